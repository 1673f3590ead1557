"""What tests of windows on Spark share: batches run by hand, and what must come out of them, computed anew here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import jettison as jt
from jettison.network import Graph
from jettison.network.windows.slice_groups import slice_groups
from jettison.plan.plan import Plan
from jettison.plan.refine.resolver import WindowDropResolver
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.checks import check_compiles
from jettison.spark.state.opening import open_states
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_state import SliceState
from jettison.spark.state.state_kinds import check_kinds, remember_kinds
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.samples import Measured

TRIPS = "trip long, at timestamp, zone int, kind string, fare double"
S = 1_000_000
Row = tuple[Any, ...]
"""A trip: its number, event time in microseconds, zone, kind, fare."""


def source(net: jt.Network) -> jt.Stream:
    return net.source("trips", TRIPS, event_time="at", id=["trip"])


def trips_of(batches: int, per_batch: int, step_s: float, late_s: float, seed: int = 1) -> list[list[Row]]:
    """Trips out of order, up to `late_s` behind the newest, some at the very same time; some zones and fares are null.

    Fares are whole numbers, so that sums are the same in any order.
    """
    draw = random.Random(seed)
    made = []
    for batch in range(batches):
        rows: list[Row] = []
        for number in range(per_batch):
            second = step_s * (batch + 1) - draw.uniform(0, late_s)
            at = round(second) * S if draw.random() < 0.3 else round(second * S)
            zone = None if draw.random() < 0.1 else draw.randrange(3)
            fare = None if draw.random() < 0.1 else float(draw.randrange(50))
            rows.append((batch * per_batch + number, at, zone, draw.choice(["cab", "bus"]), fare))
        made.append(rows)
    return made


def frame_of(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    frame = spark.createDataFrame(list(rows), "trip long, us long, zone int, kind string, fare double")
    return frame.selectExpr("trip", "timestamp_micros(us) AS at", "zone", "kind", "fare")


class Hand:
    """Runs batches of a network by hand, so that a test chooses the plan and when to break off."""

    def __init__(self, spark: SparkSession, folder: Path, network: jt.Network, tables: Any = None) -> None:
        self.spark = spark
        self.folder = folder
        self.tables = tables = tables or {}
        where = LocalFolder(folder)
        declared = check_compiles(spark, network.graph, {"trips": frame_of(spark, [])}, tables)
        check_kinds(where, declared.kinds)
        self.presence = presence = Presence(where, network.graph, declared.code)
        self.graph: Graph = presence.graph
        kept = declared
        if slice_groups(self.graph) != slice_groups(network.graph):
            kept = check_compiles(spark, self.graph, {"trips": frame_of(spark, [])}, tables)
        self.sinks = {output.name: MemorySink() for output in self.graph.outputs}
        states = open_states(spark, self.graph, where, str(folder), kept, presence)
        self.state = next((each for each in states if isinstance(each, SliceState)), None)
        remember_kinds(where, kept.kinds)
        sinks = RunSinks.of(self.graph, self.sinks, MemorySink())
        self.runner = BatchRunner(spark, self.graph, tables, sinks, states, presence)
        self.resolver = WindowDropResolver(self.graph)

    def run(self, batch: int, rows: Sequence[Row], plan: Plan | None = None) -> Measured:
        marks = self.runner.marks(batch)
        plan = self.resolver.resolve(plan or Plan(), marks, len(rows))
        return self.runner.run({"trips": frame_of(self.spark, rows)}, batch, plan, {"trips": len(rows)}, marks)

    def again(self) -> Hand:
        """As a new process finds it: what was delivered, and what is in the folder."""
        other = Hand(self.spark, self.folder, jt.Network.of(self.graph), self.tables)
        for name, sink in self.sinks.items():
            other.sinks[name].batches.update(sink.batches)
        self.close()
        return other

    def rows(self, output: str) -> list[Row]:
        return sorted(map(plain, self.sinks[output].rows), key=repr)

    def close(self) -> None:
        self.runner.close()


def plain(row: Row) -> Row:
    """A row as numbers and texts: times in seconds, numbers rounded, lists in order."""
    return tuple(
        value.timestamp()
        if hasattr(value, "timestamp")
        else round(value, 6)
        if isinstance(value, float)
        else tuple(sorted(value))
        if isinstance(value, list)
        else value
        for value in row
    )


def by_spark(rows: DataFrame, size: str, slide: str | None, by: Sequence[str], until_us: int, **aggs: str) -> list[Row]:
    """The windows that end at or before a time, by Spark's own `window` over all rows."""
    window = f"window(at, '{size}', '{slide or size}') AS _w"
    grouped = rows.selectExpr("*", window).groupBy("_w", *by)
    found = grouped.agg(*(_named(sql, name) for name, sql in aggs.items()))
    ended = found.where(f"unix_micros(_w.end) <= {until_us}L")
    return sorted(map(plain, ended.select(*by, "_w.start", "_w.end", *aggs).collect()), key=repr)


def _named(sql: str, name: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(sql).alias(name)
