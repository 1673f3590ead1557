"""A row on which one aggregate's expression fails is lost to that argument alone, whoever shares its slices; and what
is counted before a batch is as careful as the batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended, log_plans
from tests.spark.windowing import Hand, S, frame_of, source

import jettison as jt
from jettison.network import QoS, Value
from jettison.network.graph import Graph
from jettison.plan.drops.semantic import Semantic
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import Schedule, Segment, keep
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.quality import with_counted_shares
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.account import Account, accounts_of
from jettison.statistics.costs import CostModel
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, Measured

pytestmark = pytest.mark.spark

VALUE = Value("x", [(0, 50, 0.5), (50, 100, 1)])


def upper_half(graph: Graph, output: str) -> Semantic:
    bounds = graph.tracks.by_output[output].bounds
    return Semantic("x", bounds, (*(float(low >= 50) for low in bounds[:-1]), 0.0), keep=0.5)


def accounts(run: Hand, measured: Measured, rows: int) -> dict[str, Account]:
    sample = BatchSample(
        0,
        0.0,
        0.0,
        0.0,
        {"trips": rows},
        arcs=measured.arcs,
        rejected=measured.rejected,
        unfit=measured.unfit,
        late=measured.late,
        timeless_in=measured.timeless_in,
        unneeded=measured.unneeded,
    )
    return {output: account for (_, output), account in accounts_of(run.graph, sample).items()}


@pytest.mark.long
def test_trust_12_an_aggregate_that_fails_on_a_row_takes_it_from_no_other(spark: SparkSession, tmp_path: Path) -> None:
    """Three aggregates share slices; then drops tell one apart from the others."""
    net = jt.Network("neighbours")
    windows = source(net).window("10 seconds")
    windows.agg(all="sum(100 div zone)", rows="count(*)", best="max_by(trip, 100 div zone)", name="a").output("parts")
    windows.agg(n="count(*)", name="b").output("counts")
    windows.agg(mean="avg(kind)", texts="count(kind)", name="c").output("means")
    fate = Fate(10 * S, Schedule((Segment(2, 1.0, 100, "s"),)))  # windows from 20 s on are dropped
    assert [keep(fate.schedule, index) for index in range(4)] == [True, True, False, False]
    plan = Plan(WindowArcs(net.graph).drops({"a": fate}))
    batches = [
        [(1, 1 * S, 1, "7", 1.0), (2, 2 * S, 0, "x", 2.0), (3, 3 * S, 2, "8", 3.0), (4, None, 0, "9", 4.0)],
        [(5, 11 * S, 0, "y", 5.0), (6, 12 * S, 4, "5", 6.0), (7, 21 * S, 0, "z", 7.0), (8, 22 * S, 5, "3", 8.0)],
        [(9, 60 * S, 1, "1", 9.0)],
        [(10, 61 * S, 1, "1", 9.0)],
    ]
    run = Hand(spark, tmp_path, net)
    measured = [run.run(number, rows, plan if number else Plan()) for number, rows in enumerate(batches)]

    assert run.rows("counts") == [(0.0, 10.0, 3), (10.0, 20.0, 2), (20.0, 30.0, 2)]
    assert run.rows("parts") == [(0.0, 10.0, 150, 3, 1), (10.0, 20.0, 25, 2, 6)]
    assert run.rows("means") == [(0.0, 10.0, 7.5, 3), (10.0, 20.0, 5.0, 2), (20.0, 30.0, 3.0, 2)]
    assert [each.unfit for each in measured] == [{"a": 1, "c": 1}, {"a": 1, "c": 2}, {}, {}]
    before, after = (accounts(run, each, 4) for each in measured[:2])
    assert before["counts"] == Account(read=4, processed=3, rejected=1)  # the one without event time
    assert before["parts"] == before["means"] == Account(read=4, processed=2, rejected=2)
    assert after["counts"] == Account(read=4, processed=4)
    assert after["parts"] == Account(read=4, processed=1, shed=2, rejected=1)
    assert after["means"] == Account(read=4, processed=2, rejected=2)
    dead_letters: MemorySink = run.runner.sinks.dead_letters  # type: ignore[assignment]
    found = sorted((row._arc, json.loads(bytes(row.value))["trip"]) for row in dead_letters.rows)
    assert found == [("trips>a", 2), ("trips>a", 5), ("trips>c", 2), ("trips>c", 5), ("trips>c", 7)]
    run.close()


def test_trust_12_a_row_that_fails_where_shares_are_counted_ends_no_run(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1000).selectExpr("id", "double(id % 100) AS x").coalesce(1).write.parquet(str(tmp_path / "in"))
    net = jt.Network("told")
    kept = net.source("s", "id long, x double", id=["id"]).where("100 div int(x) >= 0", name="w")
    kept.output("o", qos=QoS(value=VALUE), quality=True)
    kept.output("all")
    checkpoint, out = tmp_path / "checkpoint", jt.memory()
    log_plans(checkpoint, [Plan({"w>o": upper_half(net.graph, "o")})], {"s": 1000})
    stream = spark.readStream.schema("id long, x double").parquet(str(tmp_path / "in"))
    sinks = {"o": out, "all": jt.memory()}
    run = jt.start(
        net, {"s": stream}, sinks, trigger=TRIGGER, checkpoint=str(checkpoint), costs=jt.Costs(FREE, shared=[])
    )
    ended(run, 1000)

    assert run.report().unfit == {"w": 10}
    assert all(row._kept == pytest.approx(500 / 990, abs=0.001) for row in out.rows)
    assert len(out.rows) == 500


@pytest.mark.parametrize("window", ["10 seconds", "100 rows"])
def test_trust_3_of_results_the_plans_share_is_told(
    spark: SparkSession, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows that close in a batch are not those of its rows: nothing is counted of them, nor computed twice."""
    net = jt.Network("results")
    results = source(net).window(window).agg(x="sum(fare)", name="sums")
    results.output("direct", qos=QoS(value=VALUE), quality=True)
    results.where("x >= 0", name="below").output("behind", qos=QoS(value=VALUE), quality=True)
    rows = [(n, n * S, 1, "cab", 1.0) for n in range(200)]
    drops = {"sums>direct": upper_half(net.graph, "direct"), "below>behind": upper_half(net.graph, "behind")}
    plan = Plan(drops, delivered={"direct": 0.5, "behind": 0.5})
    sample = BatchSample(0, 0.0, 0.0, 0.0, {"trips": 200})
    costs = CostModel(net.graph, Profile({}, {}))
    raw = {"trips": frame_of(spark, rows)}
    monkeypatch.setattr("jettison.spark.compile.quality.Compiler.operator", None)  # no job
    assert with_counted_shares(net.graph, raw, sample, {}, ExpressionCache(), plan, costs) == plan
