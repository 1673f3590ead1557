"""The exact planner: feasible, deterministic, never worse than the road map, as good as brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, all_plans, dags, steady, trees, worth_and_work
from tests.plan.shedders.test_semantic import valued

from jettison.network import Network, QoS
from jettison.plan.certify import certify
from jettison.plan.placement.ladder import Ladder
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.exact import ExactShedder
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

EXCESSES = st.sampled_from((0.05, 0.3, 0.6, 0.9))
CASES = st.one_of(trees(4, drops_us=(0.0, 0.05)), dags(4, drops_us=(0.0, 0.05)), valued())
FREE_CASES = st.one_of(trees(5), dags(5))


def asked(case: Case, excess: float) -> Problem:
    problem = Problem(case.graph, case.profile, case.rows, 0.0)
    return problem.with_budget(problem.unavoidable_us + (1 - excess) * (problem.load_us - problem.unavoidable_us))


@steady(50)
@given(CASES, EXCESSES)
def test_every_plan_is_certified_and_the_same_each_time(case: Case, excess: float) -> None:
    problem = asked(case, excess)
    plan = ExactShedder().plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert ExactShedder().plan(problem) == plan


@steady(50)
@given(FREE_CASES, EXCESSES)
def test_the_road_map_is_never_better(case: Case, excess: float) -> None:
    problem = asked(case, excess)
    best = ExactShedder().plan(problem)
    greedy = RoadMapShedder(build_road_map(case.graph, case.profile, case.rows, Ladder(0.05))).plan(problem)
    assert isinstance(best, Plan)
    assert isinstance(greedy, Plan)
    assert greedy.utility <= best.utility + 1e-5 * max(1.0, best.utility)


@steady(40)
@given(valued(), EXCESSES)
def test_by_value_the_road_map_is_never_better_where_judging_is_free(case: Case, excess: float) -> None:
    case = replace(case, profile=replace(case.profile, drop_us=0.0, look_us={}))
    problem = asked(case, excess)
    best = ExactShedder().plan(problem)
    greedy = RoadMapShedder(build_road_map(case.graph, case.profile, case.rows)).plan(problem)
    assert isinstance(best, Plan)
    if isinstance(greedy, Plan):
        assert greedy.utility <= best.utility + 1e-4 * max(1.0, best.utility)


@steady(30)
@given(FREE_CASES)
def test_more_capacity_is_never_worth_less(case: Case) -> None:
    utilities = []
    for excess in (0.9, 0.6, 0.3, 0.0):
        plan = ExactShedder().plan(asked(case, excess))
        assert isinstance(plan, Plan)
        utilities.append(plan.utility)
    assert (np.diff(utilities) >= -1e-5).all()


@steady(40)
@given(trees(most_locations=4), EXCESSES)
def test_no_grid_of_shares_is_better(case: Case, excess: float) -> None:
    problem = asked(case, excess)
    plan = ExactShedder().plan(problem)
    assert isinstance(plan, Plan)
    worth, work = worth_and_work(case, all_plans(case.graph, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)))
    fits = np.asarray(work) <= problem.budget_us - problem.unavoidable_us + 1e-9
    assert plan.utility >= float(np.max(np.where(fits, worth, -np.inf))) - 1e-5


@steady(30)
@given(CASES)
def test_nothing_is_dropped_below_capacity(case: Case) -> None:
    problem = Problem(case.graph, case.profile, case.rows, 0.0)
    plan = ExactShedder().plan(problem.with_budget(problem.load_us))
    assert isinstance(plan, Plan)
    assert not plan.drops


def test_too_little_time_for_reading_is_infeasible_with_the_reason() -> None:
    net = Network("n")
    net.source("s", "x int").output("o")
    profile = Profile({"s": 1.0}, {}, fixed_ms=10.0)
    plan = ExactShedder().plan(Problem(net.graph, profile, {"s": 100.0}, 5000.0))
    assert isinstance(plan, Infeasible)
    assert "reading and fixed work take 10 ms" in plan.reason


def test_work_that_may_not_be_dropped_is_named_beside_reading() -> None:
    """A budget missed by 1,300 ms was put down to 400 ms of reading alone: what had to come through was not named."""
    net = Network("n")
    net.source("s", "x int").where("x > 0", name="w").output("o", qos=QoS(min_accuracy=0.8))
    profile = Profile({"w": 10.0}, {}, fixed_ms=10.0)
    answer = ExactShedder().plan(Problem(net.graph, profile, {"s": 1000.0}, 15_000.0))
    assert isinstance(answer, Infeasible)
    assert "still leaves 3 ms above the budget of 15 ms: reading and fixed work take 10 ms" in answer.reason
    assert "and the rows that this leaves 8 ms" in answer.reason


def test_where_streams_merge_greedy_may_take_the_wrong_one() -> None:
    """Record 10: s0 and s1 merge into o1, s1 also feeds o0. Greedy takes all of s0 away, the best plan none of it."""
    net = Network("merging")
    one, two = net.source("s0", "x int"), net.source("s1", "x int")
    two.where("x > 0", name="w1").output("o0", qos=QoS([(100, 1.0), (41, 0.4896), (0, 0.0)], priority=2))
    merged = one.union(two, name="u0").where("x > 0", name="w2")
    merged.output("o1", qos=QoS([(100, 1.0), (60, 0.8312), (48, 0.6887), (0, 0.0)], priority=2))
    costs = {"s0": 0.327, "s1": 4.446, "u0": 3.264, "w1": 3.818, "o0": 2.894, "w2": 4.706, "o1": 1.955}
    profile, rows = Profile(costs, {"w1": 0.984, "w2": 0.93}), {"s0": 100.0, "s1": 300.0}
    problem = Problem(net.graph, profile, rows, 0.0)
    problem = problem.with_budget(0.5 * problem.load_us)
    greedy = RoadMapShedder(build_road_map(net.graph, profile, rows, Ladder(0.01))).plan(problem)
    best = ExactShedder().plan(problem)
    assert isinstance(greedy, Plan)
    assert isinstance(best, Plan)
    assert greedy.keep("s0") == 0.0
    assert best.keep("s0") == 1.0
    assert best.utility == pytest.approx(2.573, abs=0.003)
    assert greedy.utility == pytest.approx(2.524, abs=0.005)
