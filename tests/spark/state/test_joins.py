"""Joins of two streams on Spark: batch by batch they give what one join of all rows gives, also when broken off."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.running import FREE, PATIENCE_S, TRIGGER, ended

import jettison as jt
from jettison.errors import CheckpointError, PlanError, SinkError, StartError
from jettison.network import Graph, Source
from jettison.network.event_time import join_retention
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Plan
from jettison.spark.batch.calibration import calibrate
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.compile.drops import keeps
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.raw_rows import dropped_raw, parsed
from jettison.spark.run.checks import check_compiles
from jettison.spark.run.run import Run
from jettison.spark.state.join_state import JoinState
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.samples import Measured

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


def pairs_of(batches: Sequence[Batch], within_s: float = WITHIN_S) -> dict[Row, int]:
    """The pairs of all rows, found by looking at each, with the batch in which a pair is complete."""
    orders = [(row, number) for number, batch in enumerate(batches) for row in batch[0]]
    payments = [(row, number) for number, batch in enumerate(batches) for row in batch[1]]
    return {
        (left[0], left[1], right[1]): max(here, there)
        for left, here in orders
        for right, there in payments
        if left[0] is not None and left[0] == right[0] and abs(left[2] - right[2]) <= 1e6 * within_s
    }


class Shop:
    """Runs batches of a network by hand, so that a test chooses the plan and when to break off."""

    def __init__(self, spark: SparkSession, folder: Path, network: jt.Network | None = None) -> None:
        self.spark = spark
        self.folder = folder
        self.graph: Graph = (network or shop()).graph
        empty = self.raw(([], []))
        schemas = check_compiles(spark, self.graph, empty, {}).sides
        self.state = JoinState(spark, LocalFolder(folder), str(folder), schemas)
        self.sinks = {output.name: MemorySink() for output in self.graph.outputs}
        sinks = RunSinks.of(self.graph, self.sinks, MemorySink())
        self.runner = BatchRunner(spark, self.graph, {}, sinks, [self.state])

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

    def kept(self, side: str) -> dict[str, int]:
        """Rows of a side that are on the disk, by part."""
        parts = sorted((self.folder / "joined" / side).iterdir())
        return {part.name: self.spark.read.parquet(str(part)).count() for part in parts}


def found(sink: MemorySink) -> list[Row]:
    return sorted((row.order, row.item, row.amount) for row in sink.rows)


def test_a_run_gives_what_one_join_gives_stopped_and_broken_off(spark: SparkSession, tmp_path: Path) -> None:
    batches = rows_of(4, 40, keys=12)
    wanted = pairs_of(batches)
    net = shop()
    net.stream("joined").where("amount < 2000000", name="early").output("some")
    writer = Shop(spark, tmp_path / "unused", net)
    fails_in = {2}

    def some(rows: DataFrame, batch: int) -> None:
        if batch in fails_in:
            raise OSError("the disk is full")
        early.write(rows, batch)

    early, sink = jt.memory(), jt.memory()

    def put(number: int) -> None:
        for name, frame in writer.raw(batches[number]).items():
            frame.coalesce(1).write.parquet(str(tmp_path / name / str(number)))

    def start() -> Run:
        streams = {
            name: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/{name}/*")
            for name, schema in (("orders", ORDERS), ("payments", PAYMENTS))
        }
        sinks = {"pairs": sink, "some": some}
        where = str(tmp_path / "checkpoint")
        return jt.start(net, streams, sinks, trigger=TRIGGER, checkpoint=where, costs=jt.Costs(FREE, shared=["joined"]))

    put(0)
    put(1)
    run = ended(start(), 160)
    assert found(sink) == sorted(pair for pair, batch in wanted.items() if batch < 2)
    report = run.report().outputs["pairs"]
    assert report.rows == len(sink.rows)
    assert report.latency_ms["p50"] is not None
    assert list(sink.rows[0].asDict()) == ["order", "item", "placed", "amount", "paid"]
    assert run.history[-1][0].late == {"joined": 0}

    put(2)
    with pytest.raises(SinkError, match="the disk is full"):
        start().await_termination(PATIENCE_S)
    kept = tmp_path / "checkpoint/state/joined"
    assert (kept / "left/2").is_dir()
    assert not (kept / "2.json").exists(), "what is not committed has no record"

    fails_in.clear()
    put(3)
    ended(start(), 160)
    assert len(wanted) > 100
    assert found(sink) == sorted(wanted)
    assert found(early) == sorted(pair for pair in wanted if pair[2] < 2_000_000)


def test_rows_wait_as_long_as_they_are_needed_in_few_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_retention, "MOST_PARTS", 2)
    batches = rows_of(8, 10, keys=4)
    run = Shop(spark, tmp_path)
    for number, batch in enumerate(batches):
        run.run(number, batch)
        if number in (3, 4, 7):  # broken off before Spark heard of it: a new process does it again
            before = found(run.sinks["pairs"])
            again = Shop(spark, tmp_path)
            again.sinks["pairs"].batches.update(run.sinks["pairs"].batches)
            again.run(number, batch)
            run.close()
            run = again
            assert found(run.sinks["pairs"]) == before
    wanted = pairs_of(batches)
    assert max(batch - int(pair[1][5:]) // 10**6 for pair, batch in wanted.items()) >= 2, "rows must wait for long"
    assert run.pairs == sorted(wanted)
    # 60 s of band, 30 s of delay and rows up to 30 s old: three batches of 40 s, and one that is still being filled.
    for side in ("left", "right"):
        kept = run.kept(side)
        assert len(kept) <= 8, "two per level, and those that go with the next batch"
        assert sum(kept.values()) <= 6 * 10
        assert any("-" in name for name in kept), "some were merged"
    assert sorted(path.name for path in (tmp_path / "joined").glob("*.json")) == ["6.json", "7.json"]
    run.close()


def test_a_plan_decides_what_is_delivered_and_what_waits(spark: SparkSession, tmp_path: Path) -> None:
    batches = rows_of(5, 30, keys=8)
    batches[0][0].clear()
    batches[1][1].clear()
    plans = {2: Plan({"joined>pairs": Random(0.0)}), 3: Plan({"orders": Random(0.0)})}
    run = Shop(spark, tmp_path)
    for number, batch in enumerate(batches):
        assert run.run(number, batch, plans.get(number)).late == {"joined": 0}
    batches[3][0].clear()
    delivered = {pair for pair, batch in pairs_of(batches).items() if batch != 2}
    assert run.pairs == sorted(delivered)
    assert "3" not in run.kept("left")

    # A late row meets those that still wait; partners before the horizon have gone.
    mark = max(row[2] for batch in batches for row in batch[0]) - DELAY_S * 10**6
    at, first = mark - 20 * 10**6, mark - WITHIN_S * 10**6
    near = [row for batch in batches for row in batch[1] if abs(row[2] - at) <= WITHIN_S * 10**6]
    late = [(key, f"late {key}", at) for key in range(8)]
    meets = {(row[0], f"late {row[0]}", row[1]) for row in near if row[0] is not None and row[2] >= first}
    assert 0 < len(meets) < len([row for row in near if row[0] is not None]), "the example must show both"
    assert run.run(5, (late, [])).late == {"joined": 8}
    assert set(run.pairs) - delivered == meets
    assert run.run(6, ([], [])).late == {}
    run.close()


def test_pairs_wait_for_partners_like_other_rows(spark: SparkSession, tmp_path: Path) -> None:
    net = shop()
    again = net.stream("orders").select("`order`", "item AS other", name="again")
    pairs = net.stream("joined").select("`order`", "item", "amount", name="slim")
    pairs.join(again, ["order"], within="20 seconds", delay=f"{DELAY_S} seconds", name="third").output("triples")
    batches = rows_of(3, 16, keys=4)
    run = Shop(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        run.run(number, batch)
    orders = {row[1]: row for batch in batches for row in batch[0]}
    paid = {row[1]: row[2] for batch in batches for row in batch[1]}
    wanted = [
        (key, item, amount, other)
        for key, item, amount in pairs_of(batches)
        for other, row in orders.items()
        if row[0] == key and abs(max(orders[item][2], paid[amount]) - row[2]) <= 20e6
    ]
    found_here = [tuple(row) for row in run.sinks["triples"].rows]
    assert wanted
    assert sorted(found_here) == sorted(wanted)
    run.close()


def test_a_drop_by_key_keeps_all_pairs_of_the_keys_that_it_keeps(spark: SparkSession, tmp_path: Path) -> None:
    keep, keys = 0.5, 300
    batches = rows_of(2, 900, keys=keys)
    wanted = pairs_of(batches)
    by_key = ByKey(("order",), keep, "joined")
    alike = Shop(spark, tmp_path / "alike")
    apart = Shop(spark, tmp_path / "apart")
    for number, batch in enumerate(batches):
        measured = alike.run(number, batch, Plan({"orders": by_key, "payments": by_key}))
        rows, kept_rows = measured.arcs["orders"]
        assert (rows, abs(kept_rows - keep * rows) < 0.15 * rows) == (900, True)
        apart.run(number, batch, Plan({"orders": Random(keep), "payments": Random(keep)}))

    condition = keeps("anywhere", by_key, lambda _: "id")
    judged = spark.range(keys).selectExpr("id", "xxhash64(id) AS _jt_id").where(condition).collect()
    kept_keys = {row.id for row in judged}
    assert abs(len(kept_keys) - keep * keys) <= 3 * (keep * (1 - keep) * keys) ** 0.5
    assert alike.pairs == sorted(pair for pair in wanted if pair[0] in kept_keys)
    assert len(alike.pairs) / len(wanted) == pytest.approx(keep, abs=0.1)
    assert set(apart.pairs) < set(wanted)
    assert len(apart.pairs) / len(wanted) == pytest.approx(keep * keep, abs=0.08)
    alike.close()
    apart.close()


def test_a_drop_by_value_on_both_inputs_keeps_all_pairs_of_the_values_that_it_keeps(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Thesis 3.7.3: pairs are valued by the key, and the same keep predicate stands on both inputs."""
    net = shop()
    worth = jt.QoS(value=jt.Value("order", [(0, 3, 0.1), (3, 8, 1.0)]))
    valued = jt.Network.of(
        replace(
            net.graph,
            operators=tuple(replace(each, qos=worth) if each.name == "pairs" else each for each in net.graph.operators),
        )
    )
    track = valued.graph.tracks.by_output["pairs"]
    assert {"orders", "payments"} <= set(track.columns)
    keeps_from_3 = (*tuple(float(low >= 3) for low in track.bounds[:-1]), 0.0)
    drop = Semantic("order", track.bounds, keeps_from_3, keep=0.6)
    batches = rows_of(3, 30, keys=8)
    run = Shop(spark, tmp_path, valued)
    for number, batch in enumerate(batches):
        run.run(number, batch, Plan({"orders": drop, "payments": drop}))
    run.close()
    assert run.pairs == sorted(pair for pair in pairs_of(batches) if pair[0] >= 3)
    assert 0 < len(run.pairs) < len(pairs_of(batches))


def test_a_key_inside_a_payload_is_judged_as_one_outside(spark: SparkSession) -> None:
    drop = ByKey(("zone", "day"), 0.4, "joined")
    rows = spark.range(400).selectExpr("id", "int(id % 50) AS zone", "IF(id % 7 = 0, NULL, string(id % 3)) AS day")
    plain = Source("s", (("id", "long"), ("zone", "int"), ("day", "string")), id=("id",))
    inside = Source("s", plain.schema, id=("id",), payload="json")
    texts = rows.selectExpr("to_json(struct(id, bigint(zone) AS zone, day)) AS value")
    kept = []
    for source, frame in ((plain, rows), (inside, texts)):
        passed = dropped_raw(source, frame, frame.columns, Plan({"s": drop}), ExpressionCache())
        kept.append(sorted(row.id for row in parsed(source, passed, frame.columns, ExpressionCache()).collect()))
    assert kept[0] == kept[1]
    assert 0.2 < len(kept[0]) / 400 < 0.6
    groups = {(n % 50, None if n % 7 == 0 else n % 3) for n in range(400)}
    whole = {(n % 50, None if n % 7 == 0 else n % 3) for n in kept[0]}
    shed = {(n % 50, None if n % 7 == 0 else n % 3) for n in set(range(400)) - set(kept[0])}
    assert whole | shed == groups
    assert not whole & shed
    with pytest.raises(PlanError, match=r"by 'city', which it has not. It has: id, zone, day"):
        dropped_raw(inside, texts, ["value"], Plan({"s": ByKey(("city",), 0.5, "x")}), ExpressionCache())


def test_a_stream_joins_what_is_made_of_itself_and_is_calibrated(spark: SparkSession) -> None:
    net = jt.Network("twice")
    orders = net.source("orders", ORDERS, event_time="placed", id=["item"])
    first = orders.select("`order`", "item AS first", name="first")
    second = orders.where("item > 'item 2'", name="late").select("`ORDER`", "item AS second", name="second")
    first.join(second, "Order", within="1 minute", name="joined").output("out")
    frame = spark.range(6000).selectExpr("id AS `order`", "string(id) AS item", "timestamp_seconds(id) AS placed")
    found = calibrate(net.graph, {"orders": frame}, {"orders": 6000}, {})
    assert check_compiles(spark, net.graph, {"orders": frame}, {}).sides["joined"][0].names[:2] == ["order", "first"]
    assert 0 < found.profile.passes("joined") < 1
    assert found.profile.cost("joined") > 0


def test_what_only_spark_can_see_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    def compiled(make: Any) -> Any:
        net = jt.Network("shop")
        orders = net.source("orders", ORDERS, event_time="placed", id=["item"])
        payments = net.source("payments", PAYMENTS, event_time="paid", id=["amount"])
        make(orders).join(payments, "order", within="1 minute", name="joined").output("pairs")
        frames = {
            "orders": spark.createDataFrame([], "`order` long, item string, placed timestamp"),
            "payments": spark.createDataFrame([], "`order` int, amount double, paid timestamp"),
        }
        return check_compiles(spark, net.graph, frames, {}).sides

    with pytest.raises(StartError, match=r"join 'joined': the rows of 'apply1' have lost their event time"):
        compiled(lambda orders: orders.apply(lambda rows: rows.selectExpr("`order`", "item", "_jt_id")))
    with pytest.raises(StartError, match=r"join 'joined': both sides have column 'Amount'"):
        compiled(lambda orders: orders.apply(lambda rows: rows.withColumn("Amount", F.lit(1))))
    with pytest.raises(StartError, match=r"'apply1' has no column 'order'. It has: item, placed"):
        compiled(lambda orders: orders.apply(lambda rows: rows.drop("order")))

    run = Shop(spark, tmp_path)
    run.run(0, ([(1, "a", 0)], [(1, 2.0, 0)]))
    run.close()
    other = compiled(lambda orders: orders.select("*", "1 AS pieces"))
    with pytest.raises(CheckpointError, match=r"join 'joined': .* left side as .* placed timestamp, and .* pieces int"):
        JoinState(spark, LocalFolder(tmp_path), str(tmp_path), other)
