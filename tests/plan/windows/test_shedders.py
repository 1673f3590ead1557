"""Whoever plans: windows that must be right go whole, as far as their gaps allow, or are closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

import jettison as jt
from jettison.network.graph import Graph
from jettison.plan.certify import certify
from jettison.plan.drops.window import Window
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import everything
from jettison.plan.problem import Problem
from jettison.plan.shedders.registry import SHEDDERS, shedder_named
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

sizes = st.sampled_from(("5 seconds", "10 seconds", "20 seconds"))


def trips(net: jt.Network, name: str) -> jt.Stream:
    return net.source(name, "at timestamp, zone int, fare double", event_time="at")


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """Windows alone, side by side, nested, beside rows, over streams that merge; some that may never go."""
    net = jt.Network("random")
    first = trips(net, "s1").where("fare > 0", name="paid")
    if draw(st.booleans()):
        first = first.union(trips(net, "s2"), name="both")
    for number in range(draw(st.integers(1, 3))):
        gap = draw(st.sampled_from((None, 0, 2, 6)))
        slide = draw(st.sampled_from((None, "5 seconds")))
        found = first.window(draw(sizes), slide=slide, by="zone").agg(n="count(*)", name=f"a{number}")
        if draw(st.booleans()):
            found = found.where("n > 1", name=f"w{number}").window("40 seconds").agg(n="sum(n)", name=f"b{number}")
        found.output(
            f"o{number}", qos=jt.QoS(gap=gap, on_loss="ignore" if gap is None and draw(st.booleans()) else "subset")
        )
    if draw(st.booleans()):
        first.where("fare > 20", name="dear").output("rows")
    if draw(st.booleans()):
        trips(net, "s3").where("fare > 1", name="others").output("alone")
    return net.graph


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    graph = draw(networks())
    costs = {each.name: draw(st.sampled_from((0.0, 0.5, 1.0, 4.0))) for each in graph.operators}
    selectivity = {each.name: draw(st.sampled_from((0.05, 0.5))) for each in graph.aggregates}
    profile = Profile(costs, selectivity, fixed_ms=0.1, drop_us=draw(st.sampled_from((0.0, 0.05))))
    rows = {source.name: draw(st.sampled_from((100.0, 1000.0))) for source in graph.sources}
    full = Problem(graph, profile, rows, 0.0)
    return full.with_budget(draw(st.floats(0.0, 1.1)) * full.load_us)


@pytest.mark.parametrize("name", SHEDDERS)
@steady(40)
@given(problems())
def test_no_plan_makes_windows_of_what_is_left(name: str, problem: Problem) -> None:
    found = shedder_named(name).plan(problem)
    plan = found.best if isinstance(found, Infeasible) else found
    certify(problem, plan, within_budget=isinstance(found, Plan))
    decisions = decisions_of(problem.graph)
    for arc, drop in plan.drops.items():
        assert isinstance(drop, Window) or decisions.by_chance(arc)


@steady(40)
@given(problems())
def test_shedding_everything_closes_windows_and_not_inputs(problem: Problem) -> None:
    plan = everything(problem.with_budget(0.0))
    certify(problem.with_budget(0.0), plan, within_budget=False)
    assert {name for name, fate in plan.fates.items() if fate.drop_share == 1.0} == set(
        decisions_of(problem.graph).by_aggregate
    )


def two_inputs(budget_us: float) -> Problem:
    net = jt.Network("two")
    for name in ("s1", "s2"):
        windows = trips(net, name).window("10 seconds").agg(n="count(*)", name=f"{name}_busy")
        windows.output(f"{name}_out", qos=jt.QoS(gap=4))
    profile = Profile({"s1": 1.0, "s2": 3.0}, {"s1_busy": 0.0, "s2_busy": 0.0})
    return Problem(net.graph, profile, {"s1": 1000.0, "s2": 1000.0}, budget_us)


def shares(name: str, budget_us: float) -> dict[str, float]:
    plan = shedder_named(name).plan(two_inputs(budget_us))
    assert isinstance(plan, Plan), plan
    return {aggregate: round(fate.drop_share, 6) for aggregate, fate in plan.fates.items()}


def test_admission_lets_windows_go_by_its_own_rule() -> None:
    assert shares("input-top-cost", 2500.0) == {"s2_busy": 0.5}
    assert shares("input-uniform", 3000.0) == {"s1_busy": 0.5, "s2_busy": round(1 / 6, 6)}
    assert shares("input-uniform-cost", 2000.0) == {"s1_busy": 0.5, "s2_busy": 0.5}
    assert shares("input-top-cost", 1200.0) == {"s2_busy": 1.0}, "more than four in five: closed, and that is enough"
    assert shares("input-uniform-cost", 0.0) == {"s1_busy": 1.0, "s2_busy": 1.0}


def test_the_exact_planner_asks_the_road_map_where_windows_may_go() -> None:
    assert shares("exact", 2500.0) == shares("random", 2500.0)
