"""Joins of two streams on Spark: batch by batch they give what one join of all rows gives, shed or broken off or not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.running import FREE, TRIGGER, ended

import jettison as jt
from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.spark.batch import BatchRunner, Measured
from jettison.spark.checks import check_compiles
from jettison.spark.files import LocalFolder
from jettison.spark.join_state import JoinState
from jettison.spark.sinks import MemorySink

pytestmark = pytest.mark.spark

ORDERS = "`order` long, item string, placed timestamp"
PAYMENTS = "`order` int, amount double, paid timestamp"
WITHIN_S, DELAY_S = 60, 30
PER_BATCH_S = 40  # so far event time advances from batch to batch: rows wait for a few batches
Row = tuple[Any, ...]
Batch = tuple[list[Row], list[Row]]


def shop(**others: Any) -> jt.Network:
    """Orders and payments, joined on the order; `others` changes the join."""
    net = jt.Network("shop")
    orders = net.source("orders", ORDERS, event_time="placed", id=["item"])
    payments = net.source("payments", PAYMENTS, event_time="paid", id=["amount"])
    band = {"on": "order", "within": f"{WITHIN_S} seconds", "delay": f"{DELAY_S} seconds", **others}
    orders.join(payments, name="joined", **band).output("pairs")
    return net


def rows_of(batches: int, per_batch: int, keys: int, seed: int = 1) -> list[Batch]:
    """Orders and payments that come out of order, but never later than the delay. One key in ten is null."""
    draw = random.Random(seed)
    made: list[Batch] = []
    for batch in range(batches):
        sides: list[list[Row]] = []
        for side in range(2):
            rows = []
            for number in range(per_batch):
                second = PER_BATCH_S * batch + draw.uniform(-DELAY_S, 0) + PER_BATCH_S
                key = None if draw.random() < 0.1 else draw.randrange(keys)
                name = 1e6 * batch + number
                rows.append((key, f"item {name:.0f}" if side == 0 else name, round(second * 1e6)))
            sides.append(rows)
        made.append((sides[0], sides[1]))
    return made


def expected(batches: Sequence[Batch], within_s: float = WITHIN_S) -> list[Row]:
    """The pairs of all rows, found by looking at each."""
    orders = [row for batch in batches for row in batch[0]]
    payments = [row for batch in batches for row in batch[1]]
    return sorted(
        (left[0], left[1], right[1])
        for left in orders
        for right in payments
        if left[0] is not None and left[0] == right[0] and abs(left[2] - right[2]) <= 1e6 * within_s
    )


class Shop:
    """Runs batches of a network by hand, so that a test chooses the plan and when to break off."""

    def __init__(self, spark: SparkSession, folder: Path, network: jt.Network | None = None) -> None:
        self.spark = spark
        self.folder = folder
        self.graph: Graph = (network or shop()).graph
        empty = self.raw(([], []))
        schemas = check_compiles(spark, self.graph, empty, {})
        self.state = JoinState(spark, LocalFolder(folder), str(folder), schemas)
        self.sinks = {output.name: MemorySink() for output in self.graph.outputs}
        self.runner = BatchRunner(spark, self.graph, self.sinks, {}, MemorySink(), joins=self.state)

    def raw(self, batch: Batch) -> dict[str, DataFrame]:
        shapes = {"orders": "`order` long, item string, us long", "payments": "`order` int, amount double, us long"}
        times = {"orders": "placed", "payments": "paid"}
        frames = {}
        for (name, shape), rows in zip(shapes.items(), batch, strict=True):
            frame = self.spark.createDataFrame(rows, shape)
            others = [f"`{column}`" for column in frame.columns[:2]]
            frames[name] = frame.selectExpr(*others, f"timestamp_micros(us) AS {times[name]}")
        return frames

    def run(self, batch: int, rows: Batch, plan: Plan | None = None) -> Measured:
        counts = {"orders": len(rows[0]), "payments": len(rows[1])}
        return self.runner.run(self.raw(rows), batch, plan or Plan(), counts)

    def close(self) -> None:
        self.runner.close()

    @property
    def pairs(self) -> list[Row]:
        return found(self.sinks["pairs"])


def found(sink: MemorySink) -> list[Row]:
    return sorted((row.order, row.item, row.amount) for row in sink.rows)


def test_a_run_gives_what_one_join_of_all_rows_gives(spark: SparkSession, tmp_path: Path) -> None:
    batches = rows_of(4, 60, keys=20)
    by_hand = Shop(spark, tmp_path / "unused")
    for number, batch in enumerate(batches):
        for name, frame in by_hand.raw(batch).items():
            frame.coalesce(1).write.mode("append").parquet(str(tmp_path / name / str(number)))
    by_hand.close()
    streams = {
        name: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/{name}/*")
        for name, schema in (("orders", ORDERS), ("payments", PAYMENTS))
    }
    sink = jt.memory()
    run = jt.start(
        shop(), streams, {"pairs": sink}, trigger=TRIGGER, checkpoint=str(tmp_path / "checkpoint"), profile=FREE
    )
    ended(run, 480)
    assert len(expected(batches)) > 100
    assert found(sink) == expected(batches)
    assert run.report().outputs["pairs"].rows == len(sink.rows)
    assert run.report().outputs["pairs"].latency_ms["p50"] is not None
    assert list(sink.rows[0].asDict()) == ["order", "item", "placed", "amount", "paid"]
