"""A shedder of the user's own runs on Spark: what it plans is logged and obeyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.plan.shedders.test_own_shedder import example
from tests.spark.running import TRIGGER, ended, taxi, trips

import jettison as jt
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

DEAR = Profile({"paid": 1000.0}, {})
"""2,000 trips take 2 s, of a budget of 180 ms: nine in a hundred may stay."""


class Failing:
    def plan(self, problem: Problem) -> Plan:
        raise ValueError("no idea")


@pytest.mark.parametrize("shedder", [example().SameShare(), Failing()], ids=["own", "failing"])
def test_a_shedder_of_ones_own_is_obeyed_and_one_that_fails_is_replaced(
    spark: SparkSession, tmp_path: Path, shedder: object
) -> None:
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    run = ended(
        jt.start(
            taxi(),
            {"trips": trips(spark, 4000, 2000)},
            sinks,
            trigger=TRIGGER,
            checkpoint=str(tmp_path),
            shedding=jt.Shedding(shedder=shedder),
            costs=jt.Costs(DEAR, learn=False),
        ),
        4000,
    )
    plans = [plan for _, plan in run.history]
    assert len(plans) == 2
    for sample, plan in run.history:
        assert list(plan.drops) == ["trips"]
        assert plan.keep("trips") == pytest.approx(0.09, abs=1e-4)
        rows, kept = sample.arcs["trips"]
        assert kept == pytest.approx(0.09 * rows, rel=0.25)
    assert run.report().uncertified_plans == (2 if isinstance(shedder, Failing) else 0)
