"""The doubles that ship with the package, used as a user would."""

from __future__ import annotations

import gc
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.errors import PlanError
from jettison.plan.drops.random import Random
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.testing import FixedShedder, ManualClock, memory_source, run_rows

START = datetime(2026, 1, 1, tzinfo=UTC)


def network() -> jt.Network:
    net = jt.Network("shop")
    orders = net.source("orders", "order long, at timestamp, sum double", event_time="at", id=["order"])
    orders.where("sum > 20", name="large").output("large")
    orders.join("names", on="order", name="named").output("named")
    orders.window("10 seconds").agg(n="count(*)", name="busy").output("busy")
    return net


@pytest.mark.spark
def test_the_house_rows_in_results_out(spark: SparkSession) -> None:
    rows = [(number, START + timedelta(seconds=number), 10.0 * number) for number in range(15)]
    names = spark.createDataFrame([(3, "c")], "order long, name string")
    found = run_rows(network(), {"orders": rows}, spark=spark, tables={"names": names})
    assert [row["order"] for row in found["large"]] == list(range(3, 15))
    assert [row.name for row in found["named"]] == ["c"]
    assert [row.n for row in found["busy"]] == [10], "the window that the last row has closed, and no other"
    with pytest.raises(jt.StartError, match=r"run_rows: there are no rows for source 'orders': give \[\] where none"):
        run_rows(network(), {}, spark=spark)


@pytest.mark.spark
def test_the_house_each_add_is_a_batch(spark: SparkSession) -> None:
    source = memory_source(spark, "order long", [(1,)])
    source.add([{"order": 2}, {"order": 3}])
    net = jt.Network("n")
    net.source("orders", "order long").output("all")
    kept = jt.memory()
    run = jt.start(net, {"orders": source.frame}, {"all": kept}, trigger="available now", costs=jt.Profile({}, {}))
    assert run.await_termination(timeout=60)
    assert [[row["order"] for row in kept.batches[batch]] for batch in (0, 1)] == [[1], [2, 3]]
    with pytest.raises(jt.StartError, match=r"rows do not fit the schema 'order long': "):
        source.add([("one",)])


@pytest.mark.spark
def test_the_house_a_stream_outlives_its_memory_source(spark: SparkSession) -> None:
    frames = {"orders": memory_source(spark, "order long", [(1,)]).frame}
    gc.collect()
    net = jt.Network("n")
    net.source("orders", "order long").output("all")
    kept = jt.memory()
    run = jt.start(net, frames, {"all": kept}, trigger="available now", costs=jt.Profile({}, {}))
    assert run.await_termination(timeout=60)
    assert [row["order"] for row in kept.rows] == [1]


@pytest.mark.core
def test_the_house_a_clock_decides_when_the_loop_has_time() -> None:
    net = jt.Network("n")
    net.source("s", "a int").output("o")
    clock = ManualClock(step_s=0.25)
    Controller(net.graph, Settings(1000.0), jt.Profile({"o": 1.0}, {}), clock=clock).decide({"s": 10}, 0.0)
    assert clock.now_s % 0.25 == 0


@pytest.mark.core
def test_the_house_a_fixed_shedder_is_one() -> None:
    shedder = FixedShedder(Plan({"s": Random(0.5)}, "half"))
    assert jt.Shedding(shedder=shedder).shedder is shedder


@pytest.mark.core
def test_a_fixed_shedder_refuses_what_is_no_plan_for_the_network() -> None:
    for answer in (None, {"s": 0.5}, Random(0.5)):
        with pytest.raises(PlanError, match=r"FixedShedder has the answer .*: give a Plan or Infeasible"):
            FixedShedder(answer)  # type: ignore[arg-type]
    net = jt.Network("n")
    net.source("s", "a int").output("o")
    problem = Problem(net.graph, jt.Profile({}, {}), {"s": 10}, 9e5)
    for plan in (Plan({"rides": Random(0.5)}), Plan(stale={"rides": 5.0})):
        with pytest.raises(PlanError, match=r"drops on arc 'rides', which is not there. Arcs: s, s>o"):
            FixedShedder(plan).plan(problem)
    assert FixedShedder(Infeasible("no", Plan({"s": Random(0.1)}))).plan(problem).reason == "no"


@pytest.mark.core
def test_the_house_testing_does_not_load_spark() -> None:
    code = "import sys, jettison.testing; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
