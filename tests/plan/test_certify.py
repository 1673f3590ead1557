"""The certificate: it computes everything again, and believes no claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, figure_3_3, steady, worth_and_work

from jettison.errors import NetworkError, PlanError
from jettison.network import Graph, QoS
from jettison.plan.certify import certify, delivered_shares, kept_flows, plan_utility, planned_load_us
from jettison.plan.drops.random import Random
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

SHARES = (0.0, 0.25, 0.5, 1.0)


def network() -> Graph:
    return figure_3_3(QoS(((100, 1), (50, 0.8), (0, 0)), 2.0), QoS(), QoS(((100, 1), (50, 0.7), (0, 0))))


PROFILE = Profile(
    {"op1": 10, "op2": 4, "op3": 8, "op4": 5, "o1": 1, "o2": 1, "o3": 1},
    {"op1": 0.5, "op2": 0.5},
    1.0,
    {"i1": 0.5},
    0.1,
)
ROWS = {"i1": 100.0, "i2": 100.0}
# i1: 10 + .5 * (4 + .5 * 1 + 8 + 1) = 16.75; i2: 5 + 1 = 6; fixed 1000, reading 50
LOAD_US = 1675 + 600 + 1050


def problem(budget_us: float) -> Problem:
    return Problem(network(), PROFILE, ROWS, budget_us)


def honest(at: Problem, drops: dict[str, float]) -> Plan:
    plan = Plan({arc: Random(keep) for arc, keep in drops.items()})
    saves_us = at.load_us - planned_load_us(at, plan)
    return replace(plan, delivered=delivered_shares(at, plan), utility=plan_utility(at, plan), saves_us=saves_us)


def test_the_problem_counts_fixed_parts_and_reading() -> None:
    assert problem(0).unavoidable_us == pytest.approx(1050)
    assert problem(0).load_us == pytest.approx(LOAD_US)


def test_numbers_of_a_plan_by_hand() -> None:
    at, plan = problem(3000), Plan({"i1": Random(0.8), "op1>op2": Random(0.5)})
    kept = kept_flows(at, plan)
    assert (kept["i1"], kept["op1>op2"], kept["op1>op3"], kept["op2>o1"]) == pytest.approx((80, 20, 40, 10))
    # work 80*10 + 20*4 + 10*1 + 40*8 + 40*1 + 600; judging .1 * (100 + 40)
    assert planned_load_us(at, plan) == pytest.approx(1050 + 1250 + 600 + 14)
    assert delivered_shares(at, plan) == pytest.approx({"o1": 0.4, "o2": 0.8, "o3": 1.0})
    assert plan_utility(at, plan) == pytest.approx(2 * 0.64 + 0.8 + 1)
    certify(at, honest(at, {"i1": 0.8, "op1>op2": 0.5}))


def test_a_drop_that_keeps_nothing_is_not_paid_for() -> None:
    """A branch of which nothing is kept is not run: nobody is judged. A drop that keeps next to nothing judges all."""
    at = problem(0)
    almost, nothing = (planned_load_us(at, Plan({"i1": Random(keep)})) for keep in (1e-9, 0.0))
    assert almost - nothing == pytest.approx(PROFILE.drop_us * ROWS["i1"], rel=1e-6)


@pytest.mark.parametrize("arc", ["i1>op1", "op2>o1", "op3>o2", "op4>o3", "i2>op4", "op1", "nowhere", "op1>op4"])
def test_refuses_a_drop_on_a_wrong_arc(arc: str) -> None:
    with pytest.raises(PlanError, match=f"'{arc}'.*i1, i2, op1>op2, op1>op3"):
        certify(problem(1000), Plan({arc: Random(0.5)}))


def test_refuses_a_plan_over_budget() -> None:
    at = problem(2000)
    with pytest.raises(PlanError, match="2000 us"):
        certify(at, honest(at, {"i2": 0.5}))
    certify(at, honest(at, {"i2": 0.5}), within_budget=False)


def test_refuses_to_shed_nothing_when_over_budget() -> None:
    with pytest.raises(PlanError, match="budget"):
        certify(problem(LOAD_US - 1), honest(problem(0), {}))


@pytest.mark.parametrize("drops", [{"i2": 0.5}, {"op1>op2": 0.0}, {"i1": 0.999}])
def test_refuses_a_drop_while_within_budget(drops: dict[str, float]) -> None:
    at = problem(LOAD_US + 1)
    with pytest.raises(PlanError, match="within the budget"):
        certify(at, honest(at, drops))
    with pytest.raises(PlanError, match="within the budget"):
        certify(at, honest(at, drops), within_budget=False)


def test_accepts_nothing_shed_while_within_budget() -> None:
    certify(problem(LOAD_US + 1), honest(problem(0), {}))
    certify(problem(LOAD_US), honest(problem(0), {}))


@pytest.mark.parametrize("error", [0.01, -0.01, 1e-4])
def test_refuses_a_false_delivered_share(error: float) -> None:
    at = problem(3000)
    plan = honest(at, {"i1": 0.5})
    with pytest.raises(PlanError, match=r"'o1'.*claims to deliver"):
        certify(at, replace(plan, delivered={**plan.delivered, "o1": 0.5 + error}))


@pytest.mark.parametrize("error", [0.01, -0.01, 1e-4])
def test_refuses_a_false_utility(error: float) -> None:
    at = problem(3000)
    plan = honest(at, {"i1": 0.5})
    with pytest.raises(PlanError, match="claims a utility"):
        certify(at, replace(plan, utility=plan.utility + error))


def test_refuses_a_false_utility_that_comes_without_shares() -> None:
    with pytest.raises(PlanError, match="utility"):
        certify(problem(3000), Plan({"i1": Random(0.5)}, utility=99.0))


def test_refuses_false_savings() -> None:
    at = problem(3000)
    plan = honest(at, {"i1": 0.5})
    saved_us = at.load_us - planned_load_us(at, plan)
    certify(at, replace(plan, saves_us=saved_us))
    with pytest.raises(PlanError, match="claims to save"):
        certify(at, replace(plan, saves_us=saved_us + 1))


@pytest.mark.parametrize("number", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("field", ["cost_us", "selectivity", "read_us", "fixed_ms", "drop_us"])
def test_a_profile_refuses_what_no_plan_can_be_computed_from(field: str, number: float) -> None:
    value: Any = number if field in ("fixed_ms", "drop_us") else {"i1": number}
    with pytest.raises(NetworkError, match=f"profile {field}.*finite"):
        replace(PROFILE, **{field: value}).check(network())


def test_refuses_a_share_for_an_output_that_does_not_exist() -> None:
    at = problem(3000)
    plan = honest(at, {"i1": 0.5})
    with pytest.raises(PlanError, match="ghost"):
        certify(at, replace(plan, delivered={**plan.delivered, "ghost": 1.0}))


@steady(100)
@given(dags(drops_us=(0.0, 0.5)), st.data())
def test_agrees_with_a_second_opinion(case: Case, data: st.DataObject) -> None:
    arcs = drop_arcs(case.graph)
    keeps = {arc: data.draw(st.sampled_from(SHARES)) for arc in arcs}
    at = Problem(case.graph, case.profile, case.rows, 0.0)
    plan = Plan({arc: Random(keep) for arc, keep in keeps.items() if keep < 1})
    worth, work = worth_and_work(case, keeps, case.profile.drop_us)
    assert planned_load_us(at, plan) - at.unavoidable_us == pytest.approx(float(work))
    assert plan_utility(at, plan) == pytest.approx(float(worth))


@steady(60)
@given(dags(), st.data())
def test_honest_plans_pass_and_small_lies_do_not(case: Case, data: st.DataObject) -> None:
    arcs = drop_arcs(case.graph)
    drops = {arc: data.draw(st.sampled_from(SHARES)) for arc in arcs}
    free = Problem(case.graph, case.profile, case.rows, 0.0)
    plan = honest(free, drops)
    at = replace(free, budget_us=min(free.load_us, planned_load_us(free, plan)))
    certify(at, plan)
    liar = data.draw(st.sampled_from([output.name for output in case.graph.outputs]))
    lie = plan.delivered[liar] + (0.01 if plan.delivered[liar] < 0.5 else -0.01)
    with pytest.raises(PlanError):
        certify(at, replace(plan, delivered={**plan.delivered, liar: lie}))
    with pytest.raises(PlanError):
        certify(at, replace(plan, utility=plan.utility + 0.01))
    if planned_load_us(at, plan) > at.unavoidable_us + 1:
        with pytest.raises(PlanError):
            certify(replace(at, budget_us=planned_load_us(at, plan) - 1), plan)


def test_a_source_without_rows_loses_nothing() -> None:
    at = replace(problem(0), rows={"i1": 100.0})
    plan = Plan({"i2": Random(0.0)})
    assert delivered_shares(at, plan)["o3"] == 1.0
    assert np.isfinite(planned_load_us(at, plan))
