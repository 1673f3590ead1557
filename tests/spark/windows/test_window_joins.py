"""Windows below joins of two streams on Spark: rows go early at both inputs, delivered windows are as if none had."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.running import TRIGGER, ended, forced
from tests.spark.windowing import plain

import jettison as jt
from jettison.control.loop import Controller
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.refine.resolver import WindowDropResolver
from jettison.plan.refine.schedules import scheduled
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import keep
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.checks import check_compiles
from jettison.spark.state.join_state import JoinState
from jettison.spark.state.slice_state import SliceState
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.samples import Measured

pytestmark = pytest.mark.spark

S = 1_000_000
ORDERS = "k int, o long, at timestamp, sum double"
PAYMENTS = "k int, p long, at timestamp, paid double"
WITHIN_S, DELAY_S = 3, 2
Row = tuple[Any, ...]
"""An order or a payment: its key, number, event time in microseconds, and a whole amount."""
Batch = dict[str, list[Row]]


def market(gap: int = 7) -> jt.Network:
    """Pairs of orders and payments in windows, and windows of those."""
    net = jt.Network("market")
    orders = net.source("orders", ORDERS, event_time="at", id=["o"])
    payments = net.source("payments", PAYMENTS, event_time="at", id=["p"])
    left = orders.where("sum > 1", name="sold").select("k", "sum", name="left")
    right = payments.select("k", "paid", name="right")
    delay = f"{DELAY_S} seconds"
    both = left.join(right, on="k", within=f"{WITHIN_S} seconds", delay=delay, name="both")
    busy = both.window("4 seconds", by="k", delay=delay).agg(n="count(*)", sum="sum(sum + paid)", name="busy")
    busy.output("table", qos=jt.QoS(gap=gap))
    wide = busy.where("n > 1", name="more").window("8 seconds", by="k").agg(times="count(*)", n="sum(n)", name="wide")
    wide.output("spans", qos=jt.QoS(gap=3))
    return net


def rows_of(
    batches: int, per_batch: int, *, step_s: float = 3.0, lag_s: float = 0.0, late_s: float = 0.0
) -> list[Batch]:
    """Rows out of order by up to the delay, payments `lag_s` behind orders; one in six up to `late_s` later still."""
    draw = random.Random(1)
    made: list[Batch] = []
    for batch in range(batches):
        found: Batch = {}
        for name, behind_s in (("orders", 0.0), ("payments", lag_s)):
            rows = []
            for number in range(per_batch):
                second = step_s * (batch + 1) - behind_s - draw.uniform(0, DELAY_S)
                second -= draw.uniform(0, late_s) if draw.random() < 1 / 6 else 0
                at = round(second) * S if draw.random() < 0.2 else round(second * S)
                rows.append((draw.randrange(4), batch * per_batch + number, at, float(draw.randrange(9))))
            found[name] = rows
        made.append(found)
    return made


class Hand:
    """Runs batches of a network by hand, so that a test chooses the plan and when to break off."""

    def __init__(self, spark: SparkSession, folder: Path, network: jt.Network) -> None:
        self.spark, self.folder, self.network, self.graph = spark, folder, network, network.graph
        kept = check_compiles(spark, self.graph, self.raw({name: [] for name in self.names}), {})
        self.state = SliceState(spark, self.graph, LocalFolder(folder), str(folder), kept.slices)
        joins = JoinState(spark, LocalFolder(folder), str(folder), kept.sides)
        self.sinks = {output.name: MemorySink() for output in self.graph.outputs}
        sinks = RunSinks.of(self.graph, self.sinks, MemorySink())
        self.runner = BatchRunner(spark, self.graph, {}, sinks, [joins, self.state])
        self.resolver = WindowDropResolver(self.graph)

    @property
    def names(self) -> list[str]:
        return [source.name for source in self.graph.sources]

    def raw(self, batch: Batch) -> dict[str, DataFrame]:
        return {name: frame_of(self.spark, name, batch[name]) for name in self.names}

    def run(self, number: int, batch: Batch, plan: Plan | None = None) -> Measured:
        counts = {name: len(batch[name]) for name in self.names}
        plan = self.resolver.resolve(plan or Plan(), self.state.marks(number), sum(counts.values()))
        return self.runner.run(self.raw(batch), number, plan, counts)

    def again(self) -> Hand:
        """As a new process finds it: what was delivered, and what is in the folder."""
        other = Hand(self.spark, self.folder, self.network)
        for name, sink in self.sinks.items():
            other.sinks[name].batches.update(sink.batches)
        self.runner.close()
        return other

    def rows(self, output: str, number: int | None = None) -> list[Row]:
        sink = self.sinks[output]
        return sorted(map(plain, sink.rows if number is None else sink.batches.get(number, [])), key=repr)


def frame_of(spark: SparkSession, name: str, rows: Sequence[Row]) -> DataFrame:
    number, amount = ("o", "sum") if name == "orders" else ("p", "paid")
    frame = spark.createDataFrame(list(rows), f"k int, {number} long, us long, {amount} double")
    return frame.selectExpr("k", number, "timestamp_micros(us) AS at", amount)


def asking(graph: Any, share: float) -> Plan:
    decisions = decisions_of(graph)
    shares = {
        name: share if share == 1.0 else min(share, each.most_drop_share)
        for name, each in decisions.by_aggregate.items()
    }
    return Plan(decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares)), "forced")


class Compared:
    """A network without shedding and with it, under plans that change from batch to batch."""

    def __init__(self, spark: SparkSession, folder: Path, build: Callable[[], jt.Network]) -> None:
        self.full, self.shed = (Hand(spark, folder / name, build()) for name in ("full", "shed"))
        self.decisions = decisions_of(self.shed.graph)
        self.fates: dict[str, Fate] = {}
        self.came: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.fared: dict[str, dict[int, bool]] = defaultdict(dict)
        self.delivered: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def take(self, number: int, batch: Batch, share: float, *, broken: bool = False) -> Plan:
        marks = self.shed.state.marks(number)
        plan = scheduled(self.decisions, asking(self.shed.graph, share), self.fates, marks)
        self.fates = plan.fates
        self.full.run(number, batch)
        measured = self.shed.run(number, batch, plan)
        if broken:  # a new process does it again
            self.shed = self.shed.again()
            assert self.shed.run(number, batch, plan).arcs == measured.arcs
        for arc, (rows, passed) in measured.arcs.items():
            self.came[arc][0] += rows
            self.came[arc][1] += passed
        for output, name in (("table", "busy"), ("spans", "wide")):
            if output in self.shed.sinks:
                self._same(output, name, number)
        before, after = (
            {name: mark.mark_us for log in hand.state.store.logs.values() for name, mark in log.latest().marks.items()}
            for hand in (self.full, self.shed)
        )
        assert before == after, "windows close when they would have closed"
        return plan

    def _same(self, output: str, name: str, number: int) -> None:
        everything, fate = self.full.rows(output, number), self.fates.get(name)
        wanted = everything
        if fate is not None:
            steps = [round(row[1] * S) // fate.slide_us for row in everything]
            kept = [keep(fate.schedule, step) for step in steps]
            self.fared[name].update(zip(steps, kept, strict=True))
            wanted = [row for row, stays in zip(everything, kept, strict=True) if stays]
        assert self.shed.rows(output, number) == wanted
        self.delivered[output][0] += len(everything)
        self.delivered[output][1] += len(wanted)

    def longest_gap(self, name: str) -> int:
        """Steps in a row that are missing between two that came."""
        fared = self.fared[name]
        came = [step for step in range(min(fared), max(fared) + 1) if fared.get(step, True)]
        return max(after - before - 1 for before, after in pairwise([min(fared) - 1, *came, max(fared) + 1]))

    def close(self) -> None:
        self.full.runner.close()
        self.shed.runner.close()


@pytest.mark.long
def test_kept_windows_are_as_if_nothing_was_shed(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that are late and out of order, one side behind the other, plans that change, and a new process."""
    both = Compared(spark, tmp_path, market)
    shares = [0.5, 0.75, 0.75, 0.4, 0.75, 0.75, 0.0, 0.75, 0.75, 0.3, 0.75]
    for number, batch in enumerate(rows_of(len(shares), 60, lag_s=2.5, late_s=8)):
        plan = both.take(number, batch, shares[number], broken=number == 5)
        if shares[number]:
            assert {"orders", "payments", "both>busy", "busy>table", "wide>spans"} <= set(plan.drops)
    for name in ("orders", "payments"):
        rows, passed = both.came[name]
        assert rows == 60 * len(shares)
        assert rows - passed > 0.15 * rows, "rows went at both inputs"
    assert both.came["both>busy"][1] < both.came["both>busy"][0], "and pairs that only stood in a band"
    for output, most in (("table", 0.9), ("spans", 0.95)):
        everything, delivered = both.delivered[output]
        assert 4 <= delivered < most * everything
    for name, decision in both.decisions.by_aggregate.items():
        assert both.longest_gap(name) <= decision.gap
    both.close()


def test_no_pair_of_rows_in_time_is_late(spark: SparkSession, tmp_path: Path) -> None:
    """Payments come 4 s behind orders, which is more than any delay: windows close when both sides have passed them.
    (By the newest pair, which has the time of an order up to 3 s ahead, a part of them would be late.)"""
    batches = rows_of(14, 20, step_s=1, lag_s=4)
    run = Hand(spark, tmp_path, market())
    late = 0
    for number, batch in enumerate(batches):
        late += sum(run.run(number, batch).late.values())
    run.runner.close()
    orders, payments = ([row for batch in batches for row in batch[name]] for name in ("orders", "payments"))
    windows: dict[tuple[int, int], list[float]] = defaultdict(list)
    for left in orders:
        for right in payments:
            if left[3] > 1 and left[0] == right[0] and abs(left[2] - right[2]) <= WITHIN_S * S:
                windows[left[0], max(left[2], right[2]) // (4 * S)].append(left[3] + right[3])
    until_us = max(row[2] for batch in batches[:-1] for row in batch["payments"]) - DELAY_S * S
    wanted = [
        (key, 4.0 * index, 4.0 * index + 4, len(sums), sum(sums))
        for (key, index), sums in windows.items()
        if 4 * S * (index + 1) <= until_us
    ]
    assert late == 0
    assert len(wanted) > 4
    assert run.rows("table") == sorted(wanted, key=repr)


@pytest.mark.long
def test_one_source_on_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    def build() -> jt.Network:
        net = jt.Network("twice")
        orders = net.source("orders", ORDERS, event_time="at", id=["o"])
        left = orders.select("k", "sum", name="left")
        right = orders.where("sum > 4", name="dear").select("k", "sum AS other", name="right")
        both = left.join(right, on="k", within="1500 ms", delay="1 second", name="both")
        busy = both.window("4 seconds", by="k", delay="2 seconds").agg(
            n="count(*)", sum="sum(sum + other)", name="busy"
        )
        busy.output("table", qos=jt.QoS(gap=3))
        return net

    both = Compared(spark, tmp_path, build)
    shares = [0.75, 0.75, 0.5, 0.0, 0.75, 0.75, 0.75, 0.75]
    for number, batch in enumerate(rows_of(len(shares), 50, late_s=5)):
        plan = both.take(number, {"orders": batch["orders"]}, shares[number])
    assert isinstance(plan.drops["orders"], Window)
    assert not {"orders>left", "orders>dear"} & set(plan.drops), "behind the source both need the same"
    rows, passed = both.came["orders"]
    assert rows - passed > 0.1 * rows
    everything, delivered = both.delivered["table"]
    assert 4 <= delivered < 0.9 * everything
    assert both.longest_gap("busy") <= 3
    both.close()


@pytest.mark.long
def test_windows_above_and_below_a_join(spark: SparkSession, tmp_path: Path) -> None:
    """Results of windows wait for partners as rows do, as long as results with other windows would come."""

    def build() -> jt.Network:
        net = jt.Network("above")
        orders = net.source("orders", ORDERS, event_time="at", id=["o"])
        payments = net.source("payments", PAYMENTS, event_time="at", id=["p"])
        sums = orders.window("2 seconds", by="k", delay="2 seconds").agg(sum="sum(sum)", name="sums")
        right = payments.select("k", "paid", name="right")
        both = sums.select("k", "sum", name="left").join(right, on="k", within="2 seconds", delay="1 s", name="both")
        busy = both.window("4 seconds", by="k", delay="3 seconds").agg(n="count(*)", sum="sum(sum + paid)", name="busy")
        busy.output("table", qos=jt.QoS(gap=3))
        return net

    both = Compared(spark, tmp_path, build)
    shares = [0.75, 0.75, 0.5, 0.75, 0.0, 0.75, 0.75, 0.75]
    for number, batch in enumerate(rows_of(len(shares), 50, lag_s=1, late_s=6)):
        both.take(number, batch, shares[number], broken=number == 4)
    for name in ("orders", "payments"):
        rows, passed = both.came[name]
        assert rows - passed > 0.1 * rows
    everything, delivered = both.delivered["table"]
    assert 3 <= delivered < everything
    both.close()


def test_what_a_join_knows_of_times_is_of_the_sources(spark: SparkSession, tmp_path: Path) -> None:
    """A side whose rows are all filtered out or shed has got on all the same, and a record from before that was kept
    goes on."""
    run = Hand(spark, tmp_path, market())
    run.run(0, {"orders": [(1, 1, 10 * S, 5.0)], "payments": [(1, 1, 11 * S, 5.0)]})
    run.run(1, {"orders": [(1, 2, 40 * S, 0.0)], "payments": []})  # sum > 1 is not so
    path = tmp_path / "both" / "1.json"
    record = json.loads(path.read_text())
    assert record["seen_us"] == {"orders": 40 * S, "payments": 11 * S}
    assert [record[side]["newest_us"] for side in ("left", "right")] == [40 * S, 11 * S]
    assert record["left"]["parts"], "a payment may still come for it"
    assert record["right"]["parts"] == [], "no order can come for it any more"
    del record["seen_us"]
    record["left"]["newest_us"] = 10 * S
    del record["crc32"]
    path.write_text(json.dumps(record))
    slices = tmp_path / "busy" / "1.json"
    old = json.loads(slices.read_text())
    old["marks"]["busy"] = {"newest_us": 11 * S, "mark_us": 8 * S}
    del old["crc32"]
    slices.write_text(json.dumps(old))
    run = run.again()
    run.run(2, {"orders": [(1, 3, 41 * S, 5.0)], "payments": []})
    after = json.loads((tmp_path / "both" / "2.json").read_text())
    assert [after[side]["newest_us"] for side in ("left", "right")] == [41 * S, 11 * S]
    assert after["seen_us"] == {"orders": 41 * S}
    mark = json.loads((tmp_path / "busy" / "2.json").read_text())["marks"]["busy"]
    assert mark == {"newest_us": 11 * S, "mark_us": 9 * S, "seen_us": {"orders": 41 * S}}
    run.runner.close()


@pytest.mark.long
def test_a_run_drops_windows_above_its_join_and_goes_on_after_a_stop(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As users run it, with another plan every few batches."""
    batches = rows_of(10, 40, lag_s=1)
    shares = iter([0.3, 0.75, 0.75, 0.75, 0.5, 0.75, 0.75, 0.75, 0.0, 0.0])

    monkeypatch.setattr(Controller, "decide", forced(lambda controller: asking(controller.graph, next(shares))))
    sinks = {"table": jt.memory(), "spans": jt.memory()}
    whole = Hand(spark, tmp_path / "whole", market())
    history = []
    for part in (range(5), range(5, 10)):
        for number in part:
            whole.run(number, batches[number])
            for name in ("orders", "payments"):
                frame = frame_of(spark, name, batches[number][name])
                frame.coalesce(1).write.parquet(str(tmp_path / name / str(number)))
        streams = {
            name: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/{name}/*")
            for name, schema in (("orders", ORDERS), ("payments", PAYMENTS))
        }
        run = jt.start(market(), streams, sinks, trigger=TRIGGER, checkpoint=str(tmp_path / "checkpoint"))
        history += ended(run, 400).history
    whole.runner.close()
    assert len(history) == 10
    gone = {name: sum(sample.arcs[name][0] - sample.arcs[name][1] for sample, _ in history) for name in streams}
    assert min(gone.values()) > 20
    for output in ("table", "spans"):
        everything, got = set(whole.rows(output)), set(map(plain, sinks[output].rows))
        assert got < everything
    assert len(sinks["table"].rows) > 4
