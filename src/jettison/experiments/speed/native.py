"""Windowed aggregates, nothing shed, over native Structured Streaming: rows per second, and the same results.

Both read the same parquet files, so many rows a batch, and write parquet; they have the same session, and so the same
shuffle partitions. Natively every output is a streaming query of its own (`window`, `groupBy`, a watermark, append
mode, the default state store), all of them side by side; Jettison is one. They take turns in a JVM that has seen both
at this size: a first round, in which both become a third faster, does not count.
A batch is five seconds of a stream of 400,000 rows/s, which is work for a good part of these seconds.
Speed is rows over the time from the first measured batch's start to the last one's end; the median of the rounds
counts. Results are compared row by row, up to the last window that both have closed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import parquet_sinks, wait_for
from jettison.experiments.support.trip_files import SCHEMA, TripFiles
from jettison.network.declare import Network
from jettison.network.windows.time_windows import END, START
from jettison.options.costs import Costs
from jettison.spark.batch.calibration import assumed_profile
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start

AGGREGATES = {"n": "count(*)", "cents": "sum(cents)", "mean": "avg(cents)", "most": "max(cents)"}
ALERTS = "cents > 20000"
_MOST_S = 300
_SKIPPED = 1  # the first batch of a query, which is compiled and finds no state


@dataclass(frozen=True)
class Windows:
    """An output that is an aggregate of windows by zone."""

    size: str
    slide: str


Outputs = Mapping[str, Windows | str]
"""By output, its windows, or the condition of a filter."""

SCENARIOS: dict[str, Outputs] = {
    "tumbling": {"tens": Windows("10 seconds", "10 seconds")},
    "sliding_60_5": {"minutes": Windows("60 seconds", "5 seconds")},
    "sliding_60_1": {"minutes": Windows("60 seconds", "1 second")},
    "three_outputs": {
        "alerts": ALERTS,
        "tens": Windows("10 seconds", "10 seconds"),
        "minutes": Windows("60 seconds", "5 seconds"),
    },
}
BARS = {"tumbling": 1.0, "sliding_60_5": 3.0, "sliding_60_1": 10.0, "three_outputs": 3.0}


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    rounds = 1 if quick else 4
    variants: dict[str, Callable[[Any, TripFiles, Outputs, Path], float]] = {
        "jettison": _jettison,
        "native": _native,
    }
    table: list[dict[str, Any]] = []
    equal = dict.fromkeys(SCENARIOS, True)
    compared = dict.fromkeys(SCENARIOS, 0)
    with tempfile.TemporaryDirectory(prefix="jettison-native-") as name:
        trips = TripFiles(Path(name) / "trips", *((4_000, 3, 40.0) if quick else (2_000_000, 4, 5.0)))
        small = TripFiles(Path(name) / "small", 50_000, 8, 5.0)
        say("writing trips")
        trips.write(spark)
        if not quick:
            say("warming up")
            small.write(spark)
            for scenario, outputs in SCENARIOS.items():
                for variant, work in variants.items():
                    work(spark, small, outputs, Path(name) / "warm" / scenario / variant)
        for number in range(0 if quick else -1, rounds):
            for scenario, outputs in SCENARIOS.items():
                where = Path(name) / f"{scenario} {number}"
                for variant in variants if number % 2 else reversed(variants):
                    rate = variants[variant](spark, trips, outputs, where / variant)
                    round_ = "warming up" if number < 0 else f"round {number + 1} of {rounds}"
                    say(f"{round_}: {scenario}, {variant}: {rate:,.0f} rows/s")
                    if number >= 0:
                        table.append({"scenario": scenario, "variant": variant, "round": number, "rows_per_s": rate})
                found = [_alike(spark, where, output, outputs[output]) for output in outputs]
                equal[scenario] &= all(found)
                compared[scenario] += sum(found)
    speed = {
        (scenario, variant): statistics.median(
            row["rows_per_s"] for row in table if (row["scenario"], row["variant"]) == (scenario, variant)
        )
        for scenario in SCENARIOS
        for variant in variants
    }
    ratios = {scenario: speed[scenario, "jettison"] / speed[scenario, "native"] for scenario in SCENARIOS}
    return Result(
        "native",
        {
            **{scenario: round(ratio, 2) for scenario, ratio in ratios.items()},
            **{f"{scenario}_results_compared": count for scenario, count in compared.items()},
            **{f"{scenario}_{variant}_rows_per_s": round(rate) for (scenario, variant), rate in speed.items()},
        },
        {
            **{f"{name}: the same results": same for name, same in equal.items()},
            **{
                f"{name}: at least {bar:g} times the rows per second": ratios[name] >= bar for name, bar in BARS.items()
            },
        },
        table,
        lambda figure: _draw(figure, speed, ratios, trips.rows),
    )


def _jettison(spark: Any, trips: TripFiles, outputs: Outputs, folder: Path) -> float:
    network = Network("taxi")
    rows = network.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    for name, what in outputs.items():
        if isinstance(what, str):
            rows.where(what).output(name)
        else:
            rows.window(what.size, slide=what.slide, by="zone").agg(AGGREGATES).output(name)
    running = start(
        network,
        {"trips": trips.stream(spark)},
        parquet_sinks(network, folder),
        trigger="1 millisecond",
        checkpoint=str(folder / "checkpoint"),
        shedding=False,
        costs=Costs(assumed_profile(network.graph), shared=()),
    )
    wait_for(running, trips.batches)
    report = running.report()
    assert (report.rows_shed, report.rows_late) == (0, 0), f"all rows count\n{report}"
    return _rows_per_s([running.query], trips)


def _native(spark: Any, trips: TripFiles, outputs: Outputs, folder: Path) -> float:
    queries = []
    for name, what in outputs.items():
        rows = trips.stream(spark)
        frame = rows.where(what) if isinstance(what, str) else _windows(rows, what)
        writer = frame.writeStream.format("parquet").option("path", str(folder / name)).outputMode("append")
        queries.append(writer.option("checkpointLocation", str(folder / f"checkpoint-{name}")).start())
    deadline = time.monotonic() + _MOST_S
    while any(len(_batches(query)) < trips.batches or query.status["isTriggerActive"] for query in queries):
        failed = next((query.exception() for query in queries if not query.isActive), None)
        if failed is not None or time.monotonic() > deadline:
            raise RuntimeError(f"native queries are not done after {_MOST_S} s: {failed or 'still running'}")
        time.sleep(0.05)
    for query in queries:
        query.stop()
    return _rows_per_s(queries, trips)


def _windows(rows: Any, what: Windows) -> Any:
    rows.withWatermark("pickup", "0 seconds").createOrReplaceTempView("native_trips")
    made = ", ".join(f"{sql} AS {name}" for name, sql in AGGREGATES.items())
    return rows.sparkSession.sql(
        f"SELECT zone, window.start AS {START}, window.end AS {END}, {made} FROM native_trips "
        f"GROUP BY window(pickup, '{what.size}', '{what.slide}'), zone"
    )


def _batches(query: Any) -> list[Any]:
    return [each for each in query.recentProgress if each["numInputRows"] > 0]


def _rows_per_s(queries: list[Any], trips: TripFiles) -> float:
    spans = []
    for query in queries:
        measured = _batches(query)[_SKIPPED : trips.batches]
        last = measured[-1]
        spans.append((_seconds(measured[0]), _seconds(last) + last["durationMs"]["triggerExecution"] / 1000))
    seconds = max(ended for _, ended in spans) - min(began for began, _ in spans)
    return float(round(trips.rows * (trips.batches - _SKIPPED) / seconds))


def _seconds(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()


def _alike(spark: Any, folder: Path, output: str, what: Windows | str) -> int:
    """How many rows both have written, 0 where they differ; of windows, up to the last end that both have got to."""
    names = ["trip", "pickup", "zone", "cents"] if isinstance(what, str) else ["zone", START, END, *AGGREGATES]
    ours, native = (
        spark.read.parquet(str(folder / variant / output)).select(*names) for variant in ("jettison", "native")
    )
    if not isinstance(what, str):
        until = min(frame.selectExpr(f"max(unix_micros({END}))").first()[0] for frame in (ours, native))
        ours, native = (frame.where(f"unix_micros({END}) <= {until}") for frame in (ours, native))
    same = ours.exceptAll(native).isEmpty() and native.exceptAll(ours).isEmpty()
    return ours.count() if same else 0


def _draw(figure: Any, speed: Mapping[tuple[str, str], float], ratios: Mapping[str, float], rows: int) -> None:
    axes = figure.subplots()
    for offset, variant in ((-0.2, "native"), (0.2, "jettison")):
        heights = [speed[scenario, variant] for scenario in ratios]
        axes.bar([place + offset for place in range(len(ratios))], heights, 0.4, label=variant)
    labels = [f"{scenario}\n{ratio:.1f} x (bar {BARS[scenario]:g})" for scenario, ratio in ratios.items()]
    axes.set_xticks(range(len(ratios)), labels)
    axes.set_yscale("log")
    axes.set_xlabel("windows (ratio of throughputs, and the least that is claimed)")
    axes.set_ylabel("throughput (rows/s)")
    axes.set_title(
        f"Nothing shed, batches of {rows:,} rows: a row is touched once, in its slice;\n"
        "native streaming copies it into every window, and reads the source for every output"
    )
    axes.legend()
