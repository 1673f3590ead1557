"""SIC against what results truly are: shares from 10 to 100 % are kept, at three places of three queries.

Trips are counted in windows by zone, behind a filter too, and windows of windows. Rows are dropped before the windows,
behind the filter, or as results between windows and windows of windows, each by chance with the same share. Every
result is compared with the one of all trips: relative errors of counts and of averages. What was truly processed is
found from the results themselves: the trips that they count, and those that the filter has removed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.by_hand import ByHand, Shapes, shapes_of
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.run.session import local_session
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow

_SCHEMA = "trip long, pickup timestamp, zone int, fare double"
_STEP_US = 500
"""A trip every half millisecond."""
_ZONES = 1000
"""So many results are dropped or kept by chance that the share kept is known within a hundredth."""
_CLOSING = 3
"""Batches after the judged ones: nested windows close one after another."""
_WINDOW_US = 10_000_000
_BATCH_US = 20_000_000
_DROPS = {"all": "trips>per_zone", "dear": "expensive>dear_per_zone", "nested": "tens>hundreds"}
"""By output, the arc on which its query loses rows or results."""
_DEAR = 10.0
_BARS = {"count_correlation": 0.95, "sic_error": 0.02}


def network() -> Network:
    """Three queries over trips; what is dropped is missing, not estimated."""
    net = Network("sic-truth")
    lossy = QoS(on_loss="ignore")
    trips = net.source("trips", _SCHEMA, event_time="pickup", id=["trip"])
    aggregates = {"n": "count(*)", "mean": "avg(fare)"}
    trips.window("10 seconds", by="zone").agg(**aggregates, name="per_zone").output("all", qos=lossy)
    dear = trips.where(f"fare > {_DEAR}", name="expensive")
    dear.window("10 seconds", by="zone").agg(**aggregates, name="dear_per_zone").output("dear", qos=lossy)
    tens = trips.where("true", name="again").window("10 seconds", by="zone").agg(**aggregates, name="tens")
    nested = tens.window("20 seconds").agg(n="sum(n)", mean="avg(mean)", name="hundreds")
    nested.output("nested", qos=lossy)
    return net


@dataclass(frozen=True)
class _Run:
    """What one run delivered: rows by output and window, and the SIC shown at its end."""

    results: Mapping[str, Mapping[tuple[Any, ...], tuple[float, float]]]
    sic: Mapping[str, float]


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    keeps = (0.3, 1.0) if quick else tuple(tenths / 10 for tenths in range(1, 11))
    batches = 2 if quick else 5
    table: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="jettison-sic-truth-") as folder:
        net = network()
        shapes = shapes_of(spark, net, _trips(spark, 0, 10))
        truth = _delivered(spark, shapes, Path(folder) / "truth", batches, 1.0)
        trips = sum(n for n, _ in truth.results["all"].values())
        dear = sum(n for n, _ in truth.results["dear"].values())
        removed = {"all": 0.0, "dear": trips - dear, "nested": 0.0}
        for keep in keeps:
            found = _delivered(spark, shapes, Path(folder) / f"{keep}", batches, keep)
            for query in _DROPS:
                table.append(_compared(query, keep, truth, found, trips, removed[query]))
                say(", ".join(f"{name} {value}" for name, value in table[-1].items()))
    metrics = {
        "count_correlation": round(min(_correlation(table, query, "count_error") for query in _DROPS), 4),
        "average_correlation": round(_correlation(table, "all", "average_error"), 4),
        "sic_error": round(max(abs(row["sic"] - row["processed_share"]) for row in table), 4),
        "results": sum(len(each) for each in truth.results.values()),
    }
    checks = {
        f"count_correlation is at least {_BARS['count_correlation']}": metrics["count_correlation"]
        >= _BARS["count_correlation"],
        f"sic_error is at most {_BARS['sic_error']}": metrics["sic_error"] <= _BARS["sic_error"],
    }
    return Result("sic-truth", metrics, checks, table, lambda figure: _draw(figure, table))


def _trips(spark: Any, first: int, last: int) -> Any:
    return spark.range(first, last, numPartitions=2).selectExpr(
        "id AS trip",
        f"timestamp_micros(id * {_STEP_US}) AS pickup",
        f"CAST(pmod(xxhash64(id, 1), {_ZONES}) AS int) AS zone",
        "25D * pmod(xxhash64(id, 2), 1000) / 1000 AS fare",
    )


def _delivered(spark: Any, shapes: Shapes, folder: Path, batches: int, keep: float) -> _Run:
    """Run all batches under one plan, and as many after them as close their windows."""
    net = network()
    plan = Plan({arc: Random(keep) for arc in _DROPS.values()}) if keep < 1 else Plan()
    per_batch = _BATCH_US // _STEP_US
    by_hand, window = ByHand(spark, net, shapes, folder), SicWindow(net.graph, 1e9)
    spans = [(number * per_batch, (number + 1) * per_batch) for number in range(batches + _CLOSING)]
    for number, (first, until) in enumerate(spans):
        took = by_hand.run(_trips(spark, first, until), until - first, plan)
        sample = BatchSample(number, 0.0, 1000.0, took.wall_ms, {"trips": until - first}, **vars(took.measured))
        window = window.after(sample)
    ends_us = batches * _BATCH_US
    found: dict[str, dict[tuple[Any, ...], tuple[float, float]]] = {}
    for query, rows in by_hand.rows().items():
        keyed = ((row.asDict(), row) for row in rows)
        found[query] = {
            (each.get("zone"), each["window_start"]): (float(each["n"]), float(each["mean"]))
            for each, _ in keyed
            if each["window_end"].timestamp() * 1e6 <= ends_us
        }
    by_hand.close()
    return _Run(found, window.all())


def _compared(query: str, keep: float, truth: _Run, found: _Run, trips: float, removed: float) -> dict[str, Any]:
    """How far results are off, and how much was truly processed. A result that is missing counts as 0."""
    true, given = truth.results[query], found.results[query]
    counts = [abs(given.get(key, (0.0, 0.0))[0] - n) / n for key, (n, _) in true.items()]
    averages = [abs(given[key][1] - mean) / mean for key, (_, mean) in true.items() if key in given]
    processed = (removed + sum(n for n, _ in given.values())) / trips
    return {
        "query": query,
        "keep_share": keep,
        "sic": round(found.sic[query], 4),
        "processed_share": round(processed, 4),
        "count_error": round(statistics.mean(counts), 4),
        "average_error": round(statistics.mean(averages), 4) if averages else 1.0,
    }


def _correlation(table: list[dict[str, Any]], query: str, column: str) -> float:
    """How well SIC tells how accurate the results of a query are."""
    rows = [row for row in table if row["query"] == query]
    return statistics.correlation([row["sic"] for row in rows], [1.0 - row[column] for row in rows])


def _draw(figure: Any, table: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    for query in _DROPS:
        rows = [row for row in table if row["query"] == query]
        left.plot([row["processed_share"] for row in rows], [row["sic"] for row in rows], marker="o", label=query)
        right.plot([row["sic"] for row in rows], [row["count_error"] for row in rows], marker="o", label=query)
    left.plot([0, 1], [0, 1], linestyle=":", color="grey")
    left.set(xlabel="share of source tuples truly processed", ylabel="SIC shown", title="SIC and what was processed")
    right.set(xlabel="SIC shown", ylabel="relative error of counts", title="SIC and how far counts are off")
    for axes in (left, right):
        axes.legend()
