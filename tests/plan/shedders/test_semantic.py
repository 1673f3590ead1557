"""Shedding by value (thesis 3.7): the numbers of the thesis, and properties of every plan by value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady, trees

from jettison.errors import PlanError
from jettison.network import Network, Output, QoS, Value
from jettison.plan.certify import certify, worth_shares
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile
from jettison.statistics.spread import Spread, flows_by_value

pytestmark = pytest.mark.core

VALUES = (
    Value("x", [(0, 50, 0.2), (50, 100, 1.0)]),
    Value("x", [(0, 50, 0.2), (50, 100, 1.0)], histogram=[(0, 50, 0.9), (50, 100, 0.1)], otherwise=0.1),
    Value("x", [(0, 30, 0.0), (30, 100, 1.0, 0.5)], chunk=35),
    Value("x", [(20, 60, 1.0), (60, 80, 0.1)], histogram=[(0, 100, 1.0)]),
)
CASES = st.one_of(trees(4, drops_us=(0.0, 0.05)), dags(4, drops_us=(0.0, 0.05)))


@st.composite
def valued(draw: st.DrawFn) -> Case:
    """A random network, some of whose outputs are valued, and filters that pass some values more than others."""
    case = draw(CASES)
    choices = {output.name: draw(st.sampled_from((None, *VALUES))) for output in case.graph.outputs}
    operators = tuple(
        replace(each, qos=QoS(priority=each.qos.priority, value=choices[each.name]))
        if isinstance(each, Output) and choices[each.name] is not None
        else each
        for each in case.graph.operators
    )
    graph = replace(case.graph, operators=operators)
    draws = np.random.default_rng(draw(st.integers(0, 3)))
    values = {
        f"{name}.{column}": tuple(map(float, draws.dirichlet(np.full(track.cells, 0.7))))
        for track in graph.tracks.all
        for name, column in track.columns.items()
        if draws.random() < 0.6
    }
    look_us = {source.name: draw(st.sampled_from((0.0, 0.3))) for source in graph.sources}
    return Case(graph, replace(case.profile, values=values, look_us=look_us), case.rows)


# --- the thesis' numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dropped_share", "keeps_from"), [(0.2, 25.0), (0.7, 75.0)])
def test_the_keep_predicate_of_the_thesis(dropped_share: float, keeps_from: float) -> None:
    """3.7.2: of intervals 0-50 (u .2, f .4) and 51-100 (u 1, f .6), drop 20 %: keep >= 25; drop 70 %: keep >= 75."""
    net = Network("fig-3-9")
    value = Value("value", [(0, 50, 0.2), (50, 100, 1.0)], histogram=[(0, 50, 0.4), (50, 100, 0.6)])
    net.source("s", "value double").with_columns({"w": "1"}, name="work").output("o", qos=QoS(value=value))
    profile = Profile({"work": 10.0}, {})
    problem = Problem(net.graph, profile, {"s": 1000.0}, budget_us=10_000 * (1 - dropped_share) + 1e-6)
    plan = RoadMapShedder(build_road_map(net.graph, profile, problem.rows)).plan(problem)
    assert isinstance(plan, Plan)
    drop = plan.drops["s"]
    assert isinstance(drop, Semantic)
    assert drop.keep == pytest.approx(1 - dropped_share)
    assert all(keep == (low >= keeps_from) for keep, low in zip(drop.keeps, drop.bounds[:-1], strict=False))


def test_tuples_that_a_filter_removes_anyway_go_first_and_for_nothing() -> None:
    net = Network("free")
    high = net.source("s", "x double").where("x >= 50", name="high")
    high.output("o", qos=QoS(value=Value("x", [(0, 50, 1.0), (50, 100, 0.1)])))
    track = net.graph.tracks.by_output["o"]
    values = {"s.x": tuple(track.spread(None)), "high.x": tuple(track.spread([(50, 100, 1.0)]))}
    profile = Profile({"s": 1.0, "high": 1.0, "o": 1.0}, {"high": 0.5}, values=values)
    road_map = build_road_map(net.graph, profile, {"s": 100.0})
    problem = Problem(net.graph, profile, {"s": 100.0}, 0.0)
    plan = RoadMapShedder(road_map).plan(problem.with_budget(0.7 * problem.load_us))
    assert isinstance(plan, Plan)
    assert plan.utility == pytest.approx(1.0)
    assert plan.delivered["o"] == pytest.approx(1.0)
    assert 0 < plan.drops["s"].keep < 1


# --- properties -----------------------------------------------------------------------------------------------------


@steady(60)
@given(valued(), st.sampled_from((0.05, 0.3, 0.6, 0.9)))
def test_every_plan_by_value_is_certified(case: Case, excess: float) -> None:
    road_map = build_road_map(case.graph, case.profile, case.rows)
    problem = Problem(case.graph, case.profile, case.rows, 0.0)
    problem = problem.with_budget(problem.unavoidable_us + (1 - excess) * (problem.load_us - problem.unavoidable_us))
    plan = RoadMapShedder(road_map).plan(problem)
    if isinstance(plan, Infeasible):
        certify(problem, plan.best, within_budget=False)
    else:
        certify(problem, plan)


@steady(40)
@given(valued())
def test_by_value_is_never_worse_than_by_chance(case: Case) -> None:
    by_value = build_road_map(case.graph, case.profile, case.rows)
    by_chance = build_road_map(case.graph, case.profile, case.rows, by_value=False)
    savings = by_chance.savings_us(case.rows)
    for row in range(1, len(by_chance), 5):
        found = by_value.find(case.rows, savings[row] * (1 - 1e-9))
        assert found is not None
        assert by_value.utility[found] >= by_chance.utility[row] - 1e-6


@steady(40)
@given(valued())
def test_savings_grow_and_utility_never_rises(case: Case) -> None:
    road_map = build_road_map(case.graph, case.profile, case.rows)
    savings = road_map.savings_us(case.rows)
    assert savings[0] == 0
    assert (np.diff(savings) > 0).all()
    assert (np.diff(road_map.utility) <= 1e-9).all()


@steady(60)
@given(valued())
def test_flows_by_value_add_up(case: Case) -> None:
    """Cell by cell nothing is lost: with a drop by value on an input, each cell passes as its own keep share says."""
    spread = Spread(case.graph, case.profile)
    for source in case.graph.sources:
        at = case.graph.tracks.at(source.name)
        if at is None:
            continue
        keeps = tuple(float(cell % 2) for cell in range(at[0].cells))
        kept = flows_by_value(case.graph, case.profile, case.rows, {source.name: keeps}, spread)[source.name]
        shed = flows_by_value(case.graph, case.profile, case.rows, {source.name: tuple(1 - k for k in keeps)}, spread)
        assert kept + shed[source.name] == pytest.approx(case.rows[source.name] * spread.of(source.name, at[0]))


def test_a_drop_by_value_where_the_value_is_not_fails_its_certificate() -> None:
    net = Network("n")
    net.source("s", "x double").with_columns({"z": "x * 2"}).output("o", qos=QoS(value=Value("z", [(0, 1, 1.0)])))
    problem = Problem(net.graph, Profile({"s": 1.0}, {}), {"s": 10.0}, 5.0)
    with pytest.raises(PlanError, match="cannot be told apart"):
        certify(problem, Plan({"s": Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.5)}))


def test_random_drops_are_worth_their_share_to_a_valued_output() -> None:
    net = Network("n")
    net.source("s", "x double").output("o", qos=QoS(value=VALUES[0]))
    problem = Problem(net.graph, Profile({"s": 1.0}, {}), {"s": 10.0}, 5.0)
    assert worth_shares(problem, Plan({"s": Random(0.25)}))["o"] == pytest.approx(0.25)


@steady(25)
@given(valued())
def test_plans_by_value_serialise(case: Case) -> None:
    road_map = build_road_map(case.graph, case.profile, case.rows)
    plan = road_map.plan(len(road_map) // 2, case.rows, "overload")
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("part", [0.13, 0.37, 0.61])
def test_between_two_rows_by_chance_a_plan_is_by_chance(part: float) -> None:
    """Where looking at values costs more than it gives, a mixture must not begin to look for want of rounding."""
    net = Network("dear-looks")
    value = Value("x", [(0, 50, 0.9), (50, 100, 1.0)])
    net.source("s", "x double").with_columns({"w": "1"}, name="work").output("o", qos=QoS(value=value))
    random = np.random.default_rng(5)
    spread = random.random(net.graph.tracks.all[0].cells)
    profile = Profile({"work": 10.0}, {}, look_us={"s": 4.0}, values={"s.x": tuple(spread / spread.sum())})
    problem = Problem(net.graph, profile, {"s": 1000.0}, 0.0)
    problem = problem.with_budget((1 - part) * problem.load_us)
    plan = RoadMapShedder(build_road_map(net.graph, profile, problem.rows)).plan(problem)
    assert isinstance(plan, Plan)
    assert isinstance(plan.drops["s"], Random)
    assert plan.saves_us == pytest.approx(part * problem.load_us, rel=1e-3)
