"""What a batch costs before its first row: nearly empty batches, beside a plain `foreachBatch` with the same sinks.

Rows are made in the JVM, a thousand a batch, and written as parquet. Plain Spark writes its outputs side by side, as
Jettison does. Variants alternate, and the median trigger counts, as Spark gives it. `complex` is a network of seven
queries over three sources: five aggregates, one of them of another's results, and three joins of streams.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import parquet_sinks
from jettison.network.declare import Network, Stream
from jettison.options.costs import Costs
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile

SCHEMA = "trip long, pickup timestamp, zone int, fare double"
_ROWS = 1_000
_FEW_ROWS = 50
_BATCH_MS = 1_000
"""Event time that a batch covers: a window of ten seconds closes in every tenth batch."""
_FILTERS = {"cheap": "fare <= 5", "usual": "fare > 5 AND fare <= 20", "dear": "fare > 20"}
_BARS = {"one_output_ms": 30.0, "with_window_ms": 400.0, "complex_ms": 1000.0, "share_of_plain": 1.0}


def filters(outputs: int, *, window: bool = False) -> Network:
    """So many filters of one source, and a window of ten seconds."""
    net = Network("fixed-cost")
    trips = net.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    for name, condition in list(_FILTERS.items())[:outputs]:
        trips.where(condition, name=f"{name}_only").output(name)
    if window:
        trips.window("10 seconds", by="zone").agg(n="count(*)", fares="sum(fare)", name="busy").output("zones")
    return net


def seven_queries() -> Network:
    """Seven queries over three sources: five aggregates, one of them nested, and three joins of streams."""
    net = Network("seven-queries")
    trips, tips, rides = (
        net.source(name, SCHEMA, event_time="pickup", id=["trip"]) for name in ("trips", "tips", "rides")
    )
    busy = trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
    busy.output("zones")
    busy.window("30 seconds").agg(most="max(n)", name="busiest").output("peaks")
    dear = trips.where("fare > 20", name="dear")
    dear.window("20 seconds", slide="5 seconds", by="zone").agg(fares="sum(fare)", name="takings").output("income")
    with_tip = _joined(trips, tips, "tip", "with_tip")
    with_tip.output("tipped")
    with_tip.window("10 seconds").agg(tips="sum(tip)", name="tipping").output("generosity")
    _joined(rides, tips, "extra", "with_extra").output("extras")
    both = _joined(trips, rides, "other", "both")
    both.window("10 seconds", by="zone").agg(n="count(*)", name="meeting").output("meetings")
    return net


def _joined(left: Stream, right: Stream, called: str, name: str) -> Stream:
    """Rows of two sources with the same number, within two seconds."""
    mine = left.select("trip", "zone", "fare", name=f"{name}_left")
    other = right.select("trip", f"fare AS {called}", name=f"{name}_right")
    return mine.join(other, on="trip", within="2 seconds", name=name)


def rows_in_jvm(spark: Any, rows: int, seed: int) -> Any:
    """A stream of taxi trips that is never behind and never ahead: every batch has the same number of rows."""
    options = {"rowsPerBatch": rows, "advanceMillisPerBatch": _BATCH_MS, "startTimestamp": 1_700_000_000_000}
    made = spark.readStream.format("rate-micro-batch").options(**options, numPartitions=1).load()
    return made.selectExpr(
        "value AS trip",
        f"timestamp + make_dt_interval(0, 0, 0, pmod(value, {rows}) * {_BATCH_MS / 1000 / rows}) AS pickup",
        f"CAST(pmod(xxhash64(value, {seed}), 50) AS int) AS zone",
        f"25D * pmod(xxhash64({seed}, value), 1000) / 1000 AS fare",
    )


def jettison(
    spark: Any, folder: Path, batches: int, *, network: Callable[[], Network], rows: int = _ROWS
) -> list[float]:
    """The triggers of a run that has nothing to shed, in milliseconds."""
    net = network()
    names = [source.name for source in net.graph.sources]
    cheap = Profile(dict.fromkeys(net.graph.by_name, 0.01), {}, fixed_ms=20.0)
    run = start(
        net,
        {name: rows_in_jvm(spark, rows, seed) for seed, name in enumerate(names)},
        parquet_sinks(net, folder),
        trigger="100 milliseconds",
        checkpoint=str(folder / "checkpoint"),
        costs=Costs(cheap, learn=False, shared=()),
    )
    _until(run, batches)
    run.stop()
    return _triggers_ms(run.query, batches)


def plain(spark: Any, folder: Path, batches: int, *, outputs: int) -> list[float]:
    """The same of a foreachBatch as a Spark user writes it."""
    conditions = list(_FILTERS.items())[:outputs]
    with ThreadPool(outputs) as pool:

        def write(frame: Any, batch: int) -> None:
            jobs = [(frame.where(condition), f"{folder}/{name}/batch={batch}") for name, condition in conditions]
            pool.map(lambda job: job[0].write.mode("overwrite").parquet(job[1]), jobs)

        writer = rows_in_jvm(spark, _ROWS, 0).writeStream.foreachBatch(write).trigger(processingTime="100 milliseconds")
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        deadline = time.monotonic() + 300
        while (query.lastProgress or {"batchId": -1})["batchId"] < batches and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
    return _triggers_ms(query, batches)


def run(*, quick: bool, say: Say) -> Result:
    rounds, batches, warm = (1, 4, 4) if quick else (3, 30, 20)
    spark = local_session()
    variants: dict[str, Callable[[Any, Path, int], list[float]]] = {
        "plain one output": partial(plain, outputs=1),
        "one output": partial(jettison, network=partial(filters, 1)),
        "plain three outputs": partial(plain, outputs=3),
        "three outputs": partial(jettison, network=partial(filters, 3)),
        "three and a window": partial(jettison, network=partial(filters, 3, window=True)),
        "seven queries": partial(jettison, network=seven_queries, rows=_FEW_ROWS),
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    table = []
    with tempfile.TemporaryDirectory(prefix="jettison-fixed-cost-") as name:
        for number in range(rounds + 1):
            for variant, work in variants.items():
                folder = Path(name) / f"{variant.replace(' ', '-')}-{number}"
                measured = work(spark, folder, batches if number else warm)
                if number == 0:
                    say(f"warming up: {variant}")
                    continue
                times[variant] += measured[batches // 5 :]
                say(f"round {number} of {rounds}: {variant}, {statistics.median(measured[batches // 5 :]):.0f} ms")
                table += [{"round": number, "variant": variant, "trigger_ms": ms} for ms in measured]
    median = {variant: statistics.median(values) for variant, values in times.items()}
    metrics = {
        "one_output_ms": round(median["one output"] - median["plain one output"], 1),
        "with_window_ms": round(median["three and a window"], 1),
        "complex_ms": round(median["seven queries"], 1),
        "share_of_plain": round(median["three outputs"] / median["plain three outputs"], 3),
        **{f"{variant.replace(' ', '_')}_trigger_ms": round(ms, 1) for variant, ms in median.items()},
    }
    checks = {f"{name} is at most {bar:g}": metrics[name] <= bar for name, bar in _BARS.items()}
    return Result("fixed-cost", metrics, checks, table, lambda figure: _draw(figure, times))


def _until(run: Run, batches: int, timeout_s: float = 300.0) -> None:
    deadline = time.monotonic() + timeout_s
    while run.totals.batches <= batches and time.monotonic() < deadline:
        run.await_termination(timeout=0.05)


def _triggers_ms(query: Any, batches: int) -> list[float]:
    """How long triggers took that had rows."""
    taken = [each for each in query.recentProgress if each["numInputRows"] > 0]
    return [float(each["durationMs"]["triggerExecution"]) for each in taken][:batches]


def _draw(figure: Any, times: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    axes.boxplot(list(times.values()), tick_labels=[name.replace(" ", "\n", 1) for name in times], showfliers=False)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("a trigger (ms)")
    axes.set_title("Nearly empty batches: what a trigger takes")
