"""Killed with SIGKILL at the worst moments, under plans that change: what comes is what an unshed run gives."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import ROOT
from tests.spark.killed_driver import BATCHES, PATIENCE_S, PER_BATCH, STEP_S
from tests.spark.running import ledger, logged_plans
from tests.spark.windows.random_windows import Row, S, Stage, Unshed, random_batches, random_stages, unshed

from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import BITS, keep

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

Delivered = dict[tuple[tuple[int | None, ...], int], tuple[int, int, float]]


def write_trips(folder: Path, batches: list[list[Row]]) -> None:
    """One file per batch, in an order that Spark can tell by their age."""
    (folder / "trips").mkdir(parents=True)
    for number, batch in enumerate(batches):
        trip, at, zone, fare = zip(*batch, strict=True)
        columns = {
            "trip": pa.array(trip, pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "zone": pa.array(zone, pa.int32()),
            "fare": pa.array(fare, pa.float64()),
        }
        path = folder / "trips" / f"{number:03}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def run_driver(folder: Path, seed: int, point: str = "never", number: int = 0, delay_ms: float = 0.0) -> bool:
    """Run it until it is killed, or has read all: whether it has."""
    given = [str(folder), str(seed), point, str(number), str(delay_ms)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.killed_driver", *given],
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))},
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        code = process.wait(timeout=PATIENCE_S + 60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert code in (0, -signal.SIGKILL), (folder / "log").read_text()[-3000:]
    return code == 0


def delivered(folder: Path, stage: Stage) -> Delivered:
    """What came: by group and window, the batch, `n` and `total`. Nothing comes twice."""
    rows = []
    for path in sorted((folder / stage.output).glob("batch=*")):
        for row in pq.read_table(str(path), partitioning=None).to_pylist():
            group = tuple(row[name] for name in stage.window.by)
            start = round(row["window_start"].timestamp() * S)
            rows.append(((group, start), (int(path.name.partition("=")[2]), row["n"], row["total"])))
    twice = [key for key, count in Counter(key for key, _ in rows).items() if count > 1]
    assert not twice, f"{stage.name}: these windows came more than once: {twice}"
    return dict(rows)


def fate_of(plan: Plan, stage: Stage, group: tuple[Any, ...]) -> Fate:
    """The fate of a group; those with a gap of their own are told apart from all others."""
    fate = plan.fates.get(stage.name, Fate(stage.window.slide_us))
    return fate if fate.cells is None else fate.within(0 if group == (1,) else 1)


def check(stage: Stage, truth: Unshed, got: Delivered, plans: list[Plan]) -> None:
    """Every window is right, comes with the batch that closes it, exactly if it is kept, and no gap is too long."""
    for key, row in got.items():
        assert row == truth.windows.get(key), f"{stage.name}, {key} is not as without shedding"
    for (group, start), (batch, _, _) in truth.windows.items():
        fate = fate_of(plans[batch], stage, group)
        kept = keep(fate.schedule, start // fate.slide_us)
        assert kept == ((group, start) in got), f"{stage.name}: {group} at {start} kept: {kept}"
    for group, start in truth.windows:
        most = stage.gap_of(group)
        in_a_row = [(group, start + stage.window.slide_us * ahead) for ahead in range(most + 1)]
        gone = all(each in truth.windows and each not in got for each in in_a_row)
        assert not gone, f"{stage.name}: {group} misses more than {most} windows in a row from {start} on"


def drift(stage: Stage, truth: Unshed, got: Delivered, plans: list[Plan]) -> tuple[float, float]:
    """How many more windows are missing than the plans ask for, zone 1 left out, and how far that strays by chance.

    In a block of g + 1 steps of m windows each, g m go together with the chance q = p (g + 1) / g.
    """
    came = {start for group, start in got if group != (1,)}
    more, variance = 0.0, 0.0
    closing = {start: batch for (group, start), (batch, _, _) in truth.windows.items() if group != (1,)}
    for start, batch in closing.items():
        fate = fate_of(plans[batch], stage, ())
        before = [each for each in fate.schedule.segments if each.start <= start // fate.slide_us]
        share = before[-1].drop_share if before else 0.0
        more += (start not in came) - share
        if share > 0:
            gap, chance = before[-1].gap, before[-1].limit / 2**BITS
            variance += gap**2 / (gap + 1) * fate.slide_us / stage.window.slide_us * chance * (1 - chance)
    return more, variance**0.5


def kills(draw: random.Random) -> list[tuple[str, int, float]]:
    """Moments of every kind: the point, how often it is passed first, and how many milliseconds after it."""
    groups = draw.randint(2, 4)
    return [
        (draw.choice(("plan logged", "output written", "ledger written")), draw.randint(2, 4), 0.0),
        (draw.choice(("slices being written", "output being written")), draw.randint(4, 9), draw.uniform(5, 120)),
        (draw.choice(("slices recorded", "old slices being deleted", "slices written")), 2 * groups + 1, 0.0),
        (draw.choice(("parts being merged", "parts merged")), draw.randint(1, 3), draw.uniform(0, 60)),
    ]


@pytest.mark.parametrize("seed", range(1, 1 + int(os.environ.get("JETTISON_KILLED_RUNS", "1"))))
def test_whatever_is_killed_what_comes_is_what_an_unshed_run_gives(tmp_path: Path, seed: int) -> None:
    stages = random_stages(random.Random(seed))
    batches = random_batches(random.Random(f"rows {seed}"), BATCHES, PER_BATCH, STEP_S)
    write_trips(tmp_path, batches)
    died = [not run_driver(tmp_path, seed, *moment) for moment in kills(random.Random(f"kills {seed}"))]
    assert sum(died) >= 3, "a run that ended was not killed"
    if died[-1]:
        assert run_driver(tmp_path, seed)

    plans = logged_plans(tmp_path / "checkpoint")
    assert len(plans) == BATCHES
    assert len({str(plan.fates) for plan in plans}) > 3, "plans changed"
    truth = unshed(stages, batches)
    more, strays = 0.0, 0.0
    for stage in stages:
        came = delivered(tmp_path, stage)
        assert 0 < len(came) < len(truth[stage.name].windows)
        check(stage, truth[stage.name], came, plans)
        of_stage = drift(stage, truth[stage.name], came, plans)
        more, strays = more + of_stage[0], strays + of_stage[1]
    assert abs(more) < 4 * strays, "in the long run the share that was asked for is missing"
    assert sum(entry["rows_shed"] for entry in ledger(tmp_path / "checkpoint")) > 0, "some rows went early"
    parts = list((tmp_path / "checkpoint" / "state").glob("*/*-*"))
    assert len(parts) < 15 * len(stages), "what no record refers to is deleted, also after a kill"


def test_a_batch_that_is_repeated_compiles_the_same_filters_text_by_text(tmp_path: Path) -> None:
    """Killed before, during and after a batch, each by then with a lookahead of its own, which a restart forgets."""
    seed = 1
    stages = random_stages(random.Random(seed))
    write_trips(tmp_path, random_batches(random.Random(f"rows {seed}"), BATCHES, PER_BATCH, STEP_S))
    moments = [("plan logged", 6), ("output being written", 3 * len(stages)), ("ledger written", 3)]
    assert not any(run_driver(tmp_path, seed, point, number) for point, number in moments), "it was not killed"
    assert run_driver(tmp_path, seed)

    planned: dict[int, Any] = {}
    attempts: dict[int, list[set[str]]] = {}
    windowed = 0
    for number in range(len(moments) + 1):
        for line in (tmp_path / "filters" / f"{number}.jsonl").read_text().splitlines():
            batch, kind, content = json.loads(line)
            if kind == "planned":
                assert batch not in planned, f"batch {batch} was planned twice"
                planned[batch] = content
            elif kind == "obeyed":
                assert content == planned[batch], f"batch {batch} obeys another plan than the one that was logged"
                attempts.setdefault(batch, []).append(set())
                windowed += any("CAST(split(" in (text or "") for text in content.values())
            else:
                attempts[batch][-1].add(content)
    assert sorted(planned) == list(range(BATCHES))
    repeated = {batch: texts for batch, texts in attempts.items() if len(texts) > 1}
    assert len(repeated) >= 2, "a batch that had begun is repeated"
    for batch, (first, *_, last) in repeated.items():
        assert first, f"batch {batch} had compiled something"
        assert first <= last, f"batch {batch} compiles other texts: {sorted(first - last)[:3]}"
    assert windowed > BATCHES // 4, "early window drops were compiled"
