"""Killed again and again: results equal those of an undisturbed run with the same plan log.

A run that sheds is killed with SIGKILL at a random moment and started again on the same checkpoint, twenty times, then
left to finish. From the plan log and Spark's offsets in it the same batches are run once more, undisturbed, and the
outputs are compared.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.network.declare import Network
from jettison.network.fields import TAXI
from jettison.network.qos import QoS
from jettison.network.rates import Constant
from jettison.spark.batch import BatchRunner
from jettison.spark.files import LocalFolder
from jettison.spark.generator import generate, generated
from jettison.spark.logs import Logged, PlanLog
from jettison.spark.session import local_session
from jettison.spark.sinks import ParquetSink
from jettison.spark.start import start
from jettison.statistics.profile import Profile

_RATE = Constant(1000.0)
_SEED = 7
_OUTPUTS = ("fares", "alerts")


def network() -> Network:
    """Two outputs that keep the trip's number, so that every row can be told apart."""
    net = Network("recovery")
    trips = net.source(
        "trips", schema="trip long, pickup timestamp, zone int, fare double", event_time="pickup", id=["trip"]
    )
    paid = trips.where("fare > 0", name="paid")
    paid.select("trip", "zone", "fare", name="columns").output("fares", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)]))
    paid.where("fare > 50", name="dear").output("alerts", qos=QoS(priority=3))
    return net


def profile() -> Profile:
    """Costs high enough that the backlog after a restart is an overload: plans with drops on several arcs."""
    costs = {"trips": 6.0, "paid": 3.0, "columns": 3.0, "fares": 6.0, "dear": 3.0, "alerts": 6.0}
    return Profile(costs, {"paid": 0.98, "dear": 0.1}, fixed_ms=100.0, read_us={"trips": 0.5})


class _Announcing(ParquetSink):
    """Says on standard output when it begins to write."""

    def write(self, rows: Any, batch: int) -> None:
        print("writing", flush=True)
        super().write(rows, batch)


def child(folder: str, limit_rows: int) -> None:
    """What is killed: a run that reports each batch on standard output and ends when the source does."""
    spark = local_session("recovery-child")
    stream = generate(spark, TAXI, rate=_RATE, seed=_SEED, limit_rows=limit_rows, start_us=_started_us(folder))
    sinks = {name: _Announcing(f"{folder}/{name}") for name in _OUTPUTS}
    running = start(
        network(),
        {"trips": stream},
        sinks,
        trigger="400 milliseconds",
        checkpoint=f"{folder}/checkpoint",
        profile=profile(),
    )
    print("started", flush=True)
    while not running.await_termination(timeout=0.2):
        progress = running.query.lastProgress
        if progress is not None and _rows_read(folder) >= limit_rows and not running.query.status["isTriggerActive"]:
            break
    running.stop()
    print("finished", flush=True)


def run(*, quick: bool, say: Say, kills: int | None = None) -> Result:
    kills = kills or (2 if quick else 20)
    draw = random.Random(20261115)
    with tempfile.TemporaryDirectory(prefix="jettison-recovery-") as folder:
        (Path(folder) / "start_us").write_text(str(time.time_ns() // 1000))
        plans: dict[int, str] = {}
        changed: set[int] = set()
        repeated: set[int] = set()
        moments: list[tuple[int, float]] = []
        for number in range(kills):
            # 0 writes: before or in the first batch; else while an output of one of the first batches is written
            writes = draw.choice((1, 2) if quick else (0, 1, 2, 3, 4, 6, 8, 10))
            delay_s = draw.uniform(0.0, 3.0 if writes == 0 else 0.6)
            say(f"kill {number + 1} of {kills}: {delay_s:.2f} s after {writes} writes began")
            _run_and_kill(folder, writes, delay_s)
            moments.append((writes, delay_s))
            repeated |= _uncommitted(folder)
            _compare_plans(folder, plans, changed)
        limit = _rows_read(folder) + (1_000 if quick else 3_000)
        say("last run, to the end")
        _run_to_end(folder, limit)
        _compare_plans(folder, plans, changed)
        say("the same batches once more, undisturbed")
        counts = _compare_outputs(folder)
    rows = [{"kill": index, "writes": n, "seconds": round(delay, 3)} for index, (n, delay) in enumerate(moments)]
    metrics = {
        "kills": kills,
        "lost": counts["lost"],
        "doubled": counts["doubled"],
        "plans_differ": len(changed),
        "batches": len(plans),
        "batches_repeated": len(repeated),
        "batches_that_shed": counts["shedding"],
        "rows_compared": counts["rows"],
    }
    checks = {
        "nothing is lost": counts["lost"] == 0,
        "nothing is doubled": counts["doubled"] == 0,
        "no plan differs": not changed,
        "some batches shed": counts["shedding"] > 0,
        "some batches were repeated": len(repeated) > 0,
    }
    return Result("recovery", metrics, checks, rows, lambda figure: _draw(figure, moments))


def _start_child(folder: str, limit_rows: int) -> subprocess.Popen[str]:
    code = f"from jettison.experiments.recovery import child; child({folder!r}, {limit_rows})"
    log = (Path(folder) / "child.log").open("a")
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
    )


def _run_and_kill(folder: str, writes: int, delay_s: float) -> None:
    process = _start_child(folder, limit_rows=10**9)
    try:
        _expect(process, "started", folder)
        for _ in range(writes):
            _expect(process, "writing", folder)
        time.sleep(delay_s)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _run_to_end(folder: str, limit_rows: int) -> None:
    process = _start_child(folder, limit_rows)
    try:
        _expect(process, "finished", folder)
        process.wait(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _expect(process: subprocess.Popen[str], word: str, folder: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    tail = (Path(folder) / "child.log").read_text()[-2000:]
    raise RuntimeError(f"the run ended before it said {word!r}:\n{tail}")


def _started_us(folder: str) -> int:
    return int((Path(folder) / "start_us").read_text())


def _offsets(folder: str) -> dict[int, int]:
    """Rows read up to the end of each batch, from the plan log."""
    plans = PlanLog(LocalFolder(Path(folder) / "checkpoint"))
    logged = [plans.read(batch) for batch in plans.batches()]
    return {each.batch: int(json.loads(each.offsets[0])["rows"]) for each in logged if each is not None}


def _rows_read(folder: str) -> int:
    return max(_offsets(folder).values(), default=0)


def _uncommitted(folder: str) -> set[int]:
    """Batches that were planned and not committed when the run was killed."""
    committed = LocalFolder(Path(folder) / "checkpoint" / "spark").names("commits")
    planned = PlanLog(LocalFolder(Path(folder) / "checkpoint")).batches()
    return set(planned) - {int(name) for name in committed if name.isdigit()}


def _compare_plans(folder: str, known: dict[int, str], changed: set[int]) -> None:
    """Remember the plan of each batch; a plan that is not what it was has changed."""
    for batch, content in PlanLog(LocalFolder(Path(folder) / "checkpoint")).files.contents():
        text = json.dumps(content)
        if known.setdefault(batch, text) != text:
            changed.add(batch)


def _compare_outputs(folder: str) -> dict[str, int]:
    """Run every logged batch again into another folder and compare rows, as multisets."""
    spark = local_session()
    graph = network().graph
    plans = PlanLog(LocalFolder(Path(folder) / "checkpoint"))
    ends = _offsets(folder)
    sinks = {name: ParquetSink(f"{folder}/again/{name}") for name in _OUTPUTS}
    runner = BatchRunner(spark, graph, sinks, {}, ParquetSink(f"{folder}/again/rejects"))
    shedding = 0
    for batch, end in sorted(ends.items()):
        logged = plans.read(batch)
        assert isinstance(logged, Logged), f"batch {batch} has no plan"
        first = ends.get(batch - 1, 0)
        shedding += bool(logged.plan.drops)
        trips = generated(spark, TAXI, first, end, start_us=_started_us(folder), rate=_RATE, seed=_SEED)
        runner.run({"trips": trips}, batch, logged.plan, {"trips": end - first})
    runner.close()
    counts = {"lost": 0, "doubled": 0, "rows": 0, "shedding": shedding}
    for name in _OUTPUTS:
        if not Path(f"{folder}/again/{name}").exists() and not Path(f"{folder}/{name}").exists():
            continue  # shed wholly, in both
        wanted = spark.read.parquet(f"{folder}/again/{name}")
        actual = spark.read.schema(wanted.schema).parquet(f"{folder}/{name}")
        counts["lost"] += wanted.exceptAll(actual).count()
        counts["doubled"] += actual.exceptAll(wanted).count()
        counts["rows"] += wanted.count()
    return counts


def _draw(figure: Any, moments: list[tuple[int, float]]) -> None:
    axes = figure.subplots()
    axes.scatter([writes for writes, _ in moments], [delay for _, delay in moments])
    axes.set_xlabel("writes of outputs that had begun")
    axes.set_ylabel("seconds since")
    axes.set_title("When the run was killed; after each kill it was started again on the same checkpoint")
