"""A run that lasts: files, memory, batch time and restart time stay flat.

Thousands of tiny batches with windows, a join of two streams and shedding in every batch, and a short retention. Files
are those of the checkpoint, `rss` is the memory of this process, the driver's Python, `jvm` the JVM's heap after a
garbage collection. Growth is the median of the last third of the run over that of the first third. The run is stopped
and started again after a tenth of it and at its end: a restart lasts from `start` to the end of the first batch.
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.options.checkpoint import Checkpoint
from jettison.options.costs import Costs
from jettison.spark.folder_size import size_of_folder
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.spark.write.sinks import spark_format
from jettison.statistics.profile import Profile

RETENTION = 200
MOST_GROWTH = 1.1
_ROWS = 100
"""Of each source in every batch. They are made in the JVM, so that time goes into batches and not into making rows."""
_BATCH_MS = 100
"""Event time that a batch covers."""
_SCHEMA = "trip long, pickup timestamp, zone int, fare double"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLES = 60
_COST_US = 63.0


def network() -> Network:
    """Windows, a join of streams, and rows as they are."""
    net = Network("soak")
    trips, tips = (net.source(name, _SCHEMA, event_time="pickup", id=["trip"]) for name in ("trips", "tips"))
    paid = trips.where("fare > 0", name="paid")
    busy = paid.window("1 second", by="zone").agg(n="count(*)", fares="sum(fare)", name="busy")
    busy.output("zones", qos=QoS(gap=3))
    left, right = trips.select("trip", "fare", name="fares"), tips.select("trip", "fare AS tip", name="extras")
    left.join(right, on="trip", within="1 second", name="both").output("pairs", qos=QoS(priority=5))
    paid.where("fare > 20", name="dear").output("alerts", qos=QoS(priority=3))
    return net


def profile(net: Network) -> Profile:
    """Costs that make every batch an overload: about half of the windows are shed."""
    return Profile(dict.fromkeys(net.graph.by_name, _COST_US), {"dear": 0.2}, fixed_ms=20.0)


def _rows(spark: Any, start_ms: float, seed: int) -> Any:
    """A stream of taxi trips that is never behind and never ahead: every batch has the same number of rows."""
    options = {"rowsPerBatch": _ROWS, "advanceMillisPerBatch": _BATCH_MS, "startTimestamp": int(start_ms)}
    made = spark.readStream.format("rate-micro-batch").options(**options, numPartitions=1).load()
    return made.selectExpr(
        "value AS trip",
        f"timestamp + make_dt_interval(0, 0, 0, pmod(value, {_ROWS}) / 1000) AS pickup",
        f"CAST(pmod(xxhash64(value, {seed}), 50) AS int) AS zone",
        f"25D * pmod(xxhash64({seed}, value), 1000) / 1000 AS fare",
    )


class Soak:
    """One run on one checkpoint, stopped and started again, with what was measured."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._began_ms = 1000 * time.time()
        self._began_s = time.monotonic()
        self._run: Run | None = None
        self.batches: list[dict[str, float]] = []
        """By batch: seconds since the beginning, milliseconds, whether something was shed."""
        self.rows: list[dict[str, Any]] = []

    def begin(self) -> float:
        """Start, or start again; how long it took until a batch was done, in seconds."""
        began = time.monotonic()
        net = network()
        names = [source.name for source in net.graph.sources]
        streams = {name: _rows(self._spark, self._began_ms, seed) for seed, name in enumerate(names)}
        self._run = start(
            net,
            streams,
            {output.name: spark_format("noop") for output in net.graph.outputs},
            trigger="100 milliseconds",
            checkpoint=Checkpoint(str(self._folder), retention=RETENTION),
            costs=Costs(profile(net), learn=False, shared=()),
        )
        self._until(lambda run: len(run.history) > 0)
        return time.monotonic() - began

    def go_on(self, batches: int, seconds: float, every: int) -> None:
        """So many batches and seconds, whichever takes longer, in all; memory and files are looked at now and then."""
        while len(self.batches) + len(self.running.history) < batches or self._elapsed_s() < seconds:
            goal = len(self.running.history) + every
            self._until(lambda run, goal=goal: len(run.history) >= goal)
            self._look()

    def end(self) -> None:
        run = self.running
        run.stop()
        for sample, plan in run.history:
            at_s = (sample.started_ms - self._began_ms) / 1000
            self.batches.append({"second": at_s, "ms": sample.duration_ms, "sheds": float(bool(plan.sheds))})

    @property
    def running(self) -> Run:
        assert self._run is not None
        return self._run

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def _until(self, done: Any) -> None:
        while not done(self.running):
            if self.running.await_termination(timeout=0.05):
                raise RuntimeError("the run ended before its time")

    def _look(self) -> None:
        gc.collect()
        size = size_of_folder(str(self._folder))
        recent = [sample.duration_ms for sample, _ in self.running.history][-25:]
        self.rows.append(
            {
                "second": round(self._elapsed_s(), 1),
                "batches": len(self.batches) + len(self.running.history),
                "files": size.files,
                "checkpoint_kb": size.bytes // 1000,
                "rss_mb": round(_resident_mb(), 1),
                "jvm_mb": round(_heap_mb(self._spark), 1),
                "batch_ms": round(statistics.median(recent), 1),
            }
        )


def run(*, quick: bool, say: Say, batches: int | None = None, seconds: float | None = None) -> Result:
    batches = batches or (40 if quick else 2000)
    seconds = (0.0 if quick else 600.0) if seconds is None else seconds
    every = max(5, batches // _SAMPLES)
    spark = local_session()
    with tempfile.TemporaryDirectory(prefix="jettison-soak-") as name:
        soak = Soak(spark, Path(name) / "checkpoint")
        say("starting")
        soak.begin()
        soak.go_on(batches // 10, 0.0, every)
        soak.end()
        first_s = soak.begin()
        say(f"{len(soak.batches)} batches; started again in {first_s:.1f} s")
        soak.go_on(batches, seconds, every)
        soak.end()
        last_s = soak.begin()
        say(f"{len(soak.batches)} batches; started again in {last_s:.1f} s")
        soak.end()
    shedding = statistics.mean(each["sheds"] for each in soak.batches)
    growths = {f"{key}_growth": _growth([row[column] for row in soak.rows]) for key, column in _COLUMNS.items()}
    growths["batch_growth"] = _growth([each["ms"] for each in soak.batches])
    limits = ("files_growth", "rss_growth", "batch_growth")
    return Result(
        "soak",
        {
            "batches": len(soak.batches),
            "seconds": soak.rows[-1]["second"],
            **growths,
            "restart_first_s": round(first_s, 2),
            "restart_last_s": round(last_s, 2),
            "files_most": max(row["files"] for row in soak.rows),
            "shedding_share": round(shedding, 3),
        },
        {
            **{f"{name} is at most {MOST_GROWTH:g}": growths[name] <= MOST_GROWTH for name in limits},
            "most batches shed": shedding > 0.5,
        },
        soak.rows,
        lambda figure: _draw(figure, soak.rows, soak.batches, growths),
    )


_COLUMNS = {"files": "files", "rss": "rss_mb", "jvm": "jvm_mb"}


def _growth(values: Sequence[float]) -> float:
    """The median of the last third over that of the first third.

    >>> _growth([1.0, 1.0, 1.0, 5.0, 2.0, 2.0, 2.0, 2.0, 2.0]), _growth([3.0])
    (2.0, 1.0)
    """
    third = max(1, len(values) // 3)
    return round(statistics.median(values[-third:]) / statistics.median(values[:third]), 3)


def _resident_mb() -> float:
    """What this process has in memory; 0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6
    except OSError:
        return 0.0


def _heap_mb(spark: Any) -> float:
    """What is left in the JVM's heap after a collection: the least of three, for batches go on meanwhile."""
    jvm = spark._jvm
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    found = []
    for _ in range(3):
        jvm.java.lang.System.gc()
        found.append(float(memory.getHeapMemoryUsage().getUsed()) / 1e6)
    return min(found)


def _draw(figure: Any, rows: Sequence[Any], batches: Sequence[Any], growths: dict[str, float]) -> None:
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    at = [row["batches"] for row in rows]
    top.plot(at, [row["files"] for row in rows], color="C0")
    top.set_ylabel("files in the\ncheckpoint")
    middle.plot(at, [row["rss_mb"] for row in rows], color="C1", label="driver, Python")
    middle.plot(at, [row["jvm_mb"] for row in rows], color="C2", label="JVM, heap after collection")
    middle.set_ylabel("memory (MB)")
    middle.legend(loc="lower right")
    bottom.plot([each["ms"] for each in batches], color="C3", linewidth=0.5)
    bottom.set_ylabel("batch (ms)")
    bottom.set_xlabel("batches")
    for axes in (top, middle, bottom):
        axes.set_ylim(bottom=0)
    growth_text = ", ".join(f"{name.removesuffix('_growth')} {value:.2f}" for name, value in growths.items())
    top.set_title(f"Last third over first third of {len(batches):,} batches: {growth_text}")
