"""A drop by cost: the seed's rule tuple by tuple, worth per cost by class, the dictionary form, what certify allows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import PlanError
from jettison.network import Network
from jettison.plan.certify import certify, planned_load_us
from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.profile import Profile
from jettison.statistics.timed import Waited

pytestmark = pytest.mark.core

_CLASSES = CostClasses((60.0, 30.0, 10.0), (600.0, 3000.0, 10_000.0), (20.0, 200.0))


def _problem(budget_us: float) -> Problem:
    net = Network("mentions")
    tweets = net.source("tweets", "id long, entity string", id=["id"])
    tweets.map("math:sqrt", key="entity", schema="score double", name="score").output("scored")
    return Problem(net.graph, Profile({"score": 136.0}, {}), {"tweets": 100}, budget_us)


def _bound(**other: Any) -> CostBound:
    return replace(CostBound("score", ("entity",), 136.0, LatencyRule(2e6), expected=0.5), **other)


def _by_worth(share: float) -> CostBound:
    return _bound(rule=WorthRule(_CLASSES, _CLASSES.keeps_for(share)))


@pytest.mark.parametrize(
    ("check", "kept"),
    [
        ("each", [True, True, False, True, False]),  # waits 0, 5, (10), 6, (11)
        ("average", [True, True, True, False, True]),  # averages 0, 2.5, 5, (7.75), 6.5
        ("p99", [True, True, False, True, False]),
    ],
)
def test_the_checks_of_the_seeds_rule(check: str, kept: list[bool]) -> None:
    drop = _bound(rule=LatencyRule(7.5, check))
    arrived = np.array([0.0, 5.0, 10.0, 14.0, 19.0])
    assert drop.kept(np.full(5, 10.0), arrived, np.zeros(5)).tolist() == kept


def test_in_a_batch_tuples_wait_for_its_start_and_for_those_before_them() -> None:
    rule = LatencyRule(100.0, "each", start_us=1000.0)
    arrived = np.array([880.0, 910.0, 950.0, 990.0])
    assert _bound(rule=rule).kept(np.full(4, 30.0), arrived, np.zeros(4)).tolist() == [False, True, True, True]
    assert _bound(rule=replace(rule, most_work_us=70.0)).kept(np.full(4, 30.0), arrived, np.zeros(4)).sum() == 2
    assert _bound(rule=replace(rule, scale=4.0)).kept(np.full(4, 30.0), arrived, np.zeros(4)).sum() == 1


def test_a_long_calm_leaves_room_in_the_average() -> None:
    busy = np.zeros(4), np.full(4, 10.0)
    fresh, calm = LatencyRule(5.0), LatencyRule(5.0, waited=Waited(100.0, 0.0, 0.0))
    assert _bound(rule=fresh).kept(busy[1], busy[0], busy[0]).sum() == 2
    assert _bound(rule=calm).kept(busy[1], busy[0], busy[0]).sum() == 4


@given(st.floats(0.0, 1.0), st.floats(0.0, 0.3))
def test_the_cheapest_are_kept_first_and_the_work_fits(share: float, least: float) -> None:
    keeps = _CLASSES.keeps_for(share, least)
    assert list(keeps) == sorted(keeps, reverse=True)
    assert min(keeps) >= least - 1e-12
    assert _CLASSES.work_share(keeps) == pytest.approx(max(share, least), abs=1e-9)
    assert _CLASSES.kept_share(keeps) >= _CLASSES.work_share(keeps) - 1e-9


def test_dear_tuples_are_dropped_and_a_class_is_kept_in_part_by_what_is_drawn() -> None:
    drop = _by_worth(0.1)  # 1,360 of 13,600 us: all cheap ones and 760 of the 3,000 us in the middle
    costs, drawn = np.array([10.0, 100.0, 100.0, 1000.0]), np.array([0.99, 0.2, 0.3, 0.0])
    assert drop.kept(costs, np.zeros(4), drawn).tolist() == [True, True, False, False]
    assert drop.kept(costs, np.zeros(4), drawn, worth=np.array([1.0, 1.0, 10.0, 100.0])).all()
    assert (drop.keep, drop.work_share) == (pytest.approx(0.676), pytest.approx(0.1))


@pytest.mark.parametrize(
    "drop",
    [
        _bound(rule=LatencyRule(2e6, "p99", 4, 1e15, 1.25, Waited(10.0, 3.0, 1.0), 5e5), sketch="abc"),
        _bound(),
        _by_worth(0.3),
        _bound(rule=WorthRule(_CLASSES, (1.0, 0.5, 0.0), "fare", (0.0, 5.0), (1.0, 0.2), goal_us=1e6), expected=1.0),
    ],
)
def test_a_plan_with_it_is_read_as_it_was_written(drop: CostBound) -> None:
    plan = Plan({"tweets>score": drop}, "latency goal")
    assert Plan.from_json(plan.to_json()) == plan


def test_what_passes_is_cheaper_and_the_load_is_what_is_left() -> None:
    problem, drop = _problem(5000.0), _by_worth(0.3)
    assert planned_load_us(problem, Plan({"tweets>score": drop})) == pytest.approx(0.3 * problem.load_us)


def test_certify_knows_the_kind() -> None:
    tight, wide = _problem(5000.0), _problem(50_000.0)
    certify(tight, claimed(tight, {"tweets>score": _by_worth(0.3)}, "overload"))
    certify(wide, claimed(wide, {"tweets>score": _bound()}, "latency goal"))  # within its budget, for the goal
    goal = _bound(rule=replace(_by_worth(0.3).rule, goal_us=1e6))
    certify(wide, claimed(wide, {"tweets>score": goal}, "latency goal"))
    with pytest.raises(PlanError, match="within the budget"):
        certify(wide, claimed(wide, {"tweets>score": _by_worth(0.3)}, "overload"))
    with pytest.raises(PlanError, match="the budget is 5000"):
        certify(tight, claimed(tight, {"tweets>score": _by_worth(0.5)}, "overload"))


@pytest.mark.parametrize(
    ("arc", "drop", "message"),
    [
        ("score>scored", _bound(), "not stand in front of a map"),
        ("tweets>score", _bound(operator="other"), "not stand in front of a map called 'other'"),
        ("tweets>score", _bound(columns=("id",)), "judges by id; map 'score' by entity"),
    ],
)
def test_certify_refuses_it_elsewhere(arc: str, drop: CostBound, message: str) -> None:
    problem = _problem(5000.0)
    with pytest.raises(PlanError, match=message):
        certify(problem, Plan({arc: drop}, "latency goal"), within_budget=False)


def test_wrong_rules_are_named() -> None:
    with pytest.raises(PlanError, match="tau is 0"):
        LatencyRule(0.0)
    with pytest.raises(PlanError, match="'median'"):
        LatencyRule(1.0, "median")
    with pytest.raises(PlanError, match="2 keep shares for 3 classes"):
        WorthRule(_CLASSES, (1.0, 0.0))
    with pytest.raises(PlanError, match="at least one key column"):
        _bound(columns=())
