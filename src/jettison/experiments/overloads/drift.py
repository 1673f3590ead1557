"""Values that drift, jump and were never seen: what plans by value promise, beside what passes in the end.

Three networks read the same 10,000 rows a batch, of which a quarter fits into the budget; costs are given, so that the
loop asks for just that in every batch. One judges a column at its source; one a field of a JSON payload, with a
declared histogram that is wrong; one a computed column behind a split, above a filter that removes the most valuable
rows. The truth is counted from the files. A batch of a change and the one after it are left out of `worst_gap`: nobody
can know of the one, and the other may go by chance. Nothing is left out of what results (`_kept`) and report say.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import parquet_sinks, wait_for
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.network.value import Value
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile

_ROWS = 10_000
_TRIGGER_MS = 200.0
_HEADROOM = 0.9
_FITS = 0.25
_TOP = 10_000.0
_REMOVED_FROM = 9_000.0
_INTERVALS = [(0, _TOP / 2, 0.0, 0.5), (_TOP / 2, _TOP, 0.5, 1.0)]
_TIMEOUT_S = 900.0
_MOST_GAP = 0.1

Values = npt.NDArray[np.float64]


class Batch(NamedTuple):
    """The values of a batch, and whether they are spread otherwise than those before."""

    phase: str
    change: bool
    values: Values


class Case(NamedTuple):
    """A network to run, with what its source reads."""

    name: str
    network: Network
    payload: bool
    cost_us: dict[str, float]
    filtered: bool


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    batches = list(_batches(quick))
    cases = _cases()[:1] if quick else _cases()
    table: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="jettison-drift-") as name:
        say(f"writing {len(batches)} batches of {_ROWS:,} rows")
        for payload in dict.fromkeys(case.payload for case in cases):
            _write(_files(Path(name), payload), batches, payload)
        for case in cases:
            say(f"{case.name}: {len(batches)} batches")
            rows = _run(spark, case, batches, Path(name))
            table += rows
            found = _judged(rows)
            say(", ".join(f"{key} {value}" for key, value in found.items()))
    metrics = _judged(table)
    return Result(
        "drift",
        metrics,
        {
            f"two batches after a change what passes is within {_MOST_GAP} of the plan": metrics["worst_gap"]
            <= _MOST_GAP,
            "no two batches in a row get nothing though the plan says otherwise": metrics["empty_runs"] == 0,
            "report and results say what arrived, within .02": max(metrics["told_gap"], metrics["kept_gap"]) <= 0.02,
        },
        table,
        lambda figure: _draw(figure, table),
    )


def _batches(quick: bool) -> Iterator[Batch]:
    """Phases of values, each of which begins with a change."""
    random = np.random.default_rng(7)

    def even(low: float, high: float) -> Values:
        return low + (high - low) * random.random(_ROWS)

    def some(share: float, one: Values, other: Values) -> Values:
        return np.where(random.random(_ROWS) < share, one, other)

    length = 3 if quick else 4
    phases: dict[str, list[Values]] = {
        "high": [even(5_000, 10_000) for _ in range(length)],
        "never seen": [even(1_000, 4_000) for _ in range(length)],
        "drift": [
            even(low, low + 5_000) for low in (2_500 * (1 - math.cos(step / 8)) for step in range(4 if quick else 32))
        ],
    }
    if quick:
        phases["null"] = [np.full(_ROWS, np.nan)] * length
    else:
        phases |= {
            "one value": [np.full(_ROWS, 7_000.0)] * length,
            "null": [some(0.9, np.full(_ROWS, np.nan), even(0, _TOP)) for _ in range(length)],
            "out of range": [some(0.8, even(2 * _TOP, 3 * _TOP), even(-_TOP, _TOP)) for _ in range(length)],
            "heavy tail": [np.exp(random.normal(6.5, 1.5, _ROWS)) for _ in range(length)],
            "two heaps": [some(0.2, even(9_500, 10_000), even(0, 500)) for _ in range(length)],
        }
        for turn in range(4):
            phases[f"to and fro {turn}"] = [even(*((0, 2_000) if turn % 2 else (6_000, 8_500))) for _ in range(4)]
    for phase, given in phases.items():
        for number, values in enumerate(given):
            yield Batch(phase, number == 0, values)


def _cases() -> list[Case]:
    plain = Network("columns")
    source = plain.source("s", "id long, x double", id=["id"])
    source.output("o", qos=QoS(value=Value("x", _INTERVALS, otherwise=0.3)), quality=True)
    text = Network("payload")
    wrong = [(0.0, 1_000.0, 1.0)]
    source = text.source("s", "id long, x double", id=["id"], payload="json")
    source.output("o", qos=QoS(value=Value("x", _INTERVALS, otherwise=0.3, histogram=wrong)), quality=True)
    split = Network("split")
    wide = split.source("s", "id long, x double", id=["id"]).with_columns({"y": "x + 0"}, name="wide")
    low = wide.where(f"y IS NULL OR y < {_REMOVED_FROM} OR y > {_TOP}", name="low")
    low.output("o", qos=QoS(value=Value("y", _INTERVALS, otherwise=0.3)), quality=True)
    wide.select("id", name="ids").output("log")
    cost_us = 1000 * _TRIGGER_MS * _HEADROOM / (_FITS * _ROWS)
    return [
        Case("columns", plain, False, {"o": cost_us}, False),
        Case("payload", text, True, {"o": cost_us}, False),
        Case("split", split, False, {"low": cost_us}, True),
    ]


def _files(folder: Path, payload: bool) -> Path:
    return folder / ("texts" if payload else "rows")


def _write(folder: Path, batches: list[Batch], payload: bool) -> None:
    """A file for each batch. Spark reads the file first that was changed first: each says when."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for number, batch in enumerate(batches):
        ids = np.arange(number * _ROWS, (number + 1) * _ROWS)
        table = pa.table({"id": ids, "x": pa.array(batch.values, from_pandas=True)})
        if payload:
            table = pa.table({"value": [json.dumps(row) for row in table.to_pylist()]})
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1e9 + number, 1e9 + number))


def _run(spark: Any, case: Case, batches: list[Batch], folder: Path) -> list[dict[str, Any]]:
    schema = "value string" if case.payload else "id long, x double"
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    out = folder / case.name
    running = start(
        case.network,
        {"s": files.parquet(str(_files(folder, case.payload)))},
        parquet_sinks(case.network, out),
        trigger=f"{_TRIGGER_MS:g} milliseconds",
        shedding=Shedding(headroom=_HEADROOM),
        checkpoint=str(out / "checkpoint"),
        costs=Costs(Profile(case.cost_us, {}), learn=False, shared=()),
    )
    wait_for(running, len(batches), _TIMEOUT_S)
    written = spark.read.parquet(str(out / "o")).groupBy("_batch").agg({"_kept": "max"}).collect()
    said = {row[0]: row[1] for row in written}
    table = []
    for number, ((sample, plan), batch) in enumerate(zip(running.history, batches, strict=True)):
        removed = _removed(batch.values) if case.filtered else 0
        full, got = len(batch.values) - removed, sample.outputs["o"].rows
        drops = {type(drop).__name__: drop.keep for drop in plan.drops.values()}
        table.append(
            {
                "case": case.name,
                "batch": number,
                "phase": batch.phase,
                "change": int(batch.change and (number > 0 or case.payload)),
                "planned": round(plan.delivered.get("o", 1.0), 4),
                "counted": round(got / full if full else 1.0, 4),
                "told": round(sample.delivered.get("o", 1.0), 4),
                "kept": round(said[number], 4) if number in said else "",
                "by": " ".join(drops) or "-",
                "rows": got,
            }
        )
    return table


def _removed(values: Values) -> int:
    """How many of these rows the filter behind the split removes."""
    return int(((values >= _REMOVED_FROM) & (values <= _TOP)).sum())


def _judged(table: list[dict[str, Any]]) -> dict[str, float]:
    gaps, told, kept = [0.0], [0.0], [0.0]
    empty_runs = 0
    for case in dict.fromkeys(row["case"] for row in table):
        rows = [row for row in table if row["case"] == case]
        for number, row in enumerate(rows):
            settled = not row["change"] and not (number > 0 and rows[number - 1]["change"])
            gaps += [abs(row["planned"] - row["counted"])] if settled else []
            told.append(abs(row["told"] - row["counted"]))
            kept += [] if row["kept"] == "" else [abs(row["kept"] - row["counted"])]
        empty = [row["rows"] == 0 and row["planned"] > 0 for row in rows]
        twice = [one and other for one, other in pairwise(empty)]
        empty_runs += sum(here and not before for before, here in pairwise([False, *twice]))
    by_value = [row for row in table if "Semantic" in row["by"]]
    return {
        "worst_gap": round(max(gaps), 4),
        "empty_runs": empty_runs,
        "told_gap": round(max(told), 4),
        "kept_gap": round(max(kept), 4),
        "by_value_share": round(len(by_value) / len(table), 3),
        "batches": len(table),
    }


def _draw(figure: Any, table: list[dict[str, Any]]) -> None:
    cases = list(dict.fromkeys(row["case"] for row in table))
    axes = np.atleast_1d(figure.subplots(len(cases), 1, sharex=True))
    for axis, case in zip(axes, cases, strict=True):
        rows = [row for row in table if row["case"] == case]
        at = [row["batch"] for row in rows]
        for row in rows:
            if row["change"]:
                axis.axvspan(row["batch"] - 0.5, row["batch"] + 1.5, color="0.9", linewidth=0)
        axis.plot(at, [100 * row["counted"] for row in rows], color="C0", marker=".", label="delivered")
        axis.plot(at, [100 * row["planned"] for row in rows], color="C1", linestyle="--", label="planned")
        axis.set_ylim(-3, 103)
        axis.set_ylabel(f"{case} (%)")
    axes[0].legend(loc="upper right", ncols=2)
    axes[-1].set_xlabel("batch (grey: a change, and the batch after it)")
    found = _judged(table)
    figure.suptitle(
        f"Values that drift, jump and were never seen: planned and delivered differ by at most "
        f"{found['worst_gap']:.3f},\n"
        f"runs of empty batches: {found['empty_runs']}"
    )
