"""The shedder las in networks: beside windows, floors, other maps, other outputs, and outputs with other values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.control.loop import Controller, Settings
from jettison.network import Network, QoS, Value
from jettison.network.declare import Stream
from jettison.network.graph import Graph
from jettison.plan.certify import certify
from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.las import Las
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.sketches.cost_learner import CostLearning
from jettison.statistics.sketches.cost_sketch import CostSketch, sketch_size
from jettison.statistics.sketches.key_hash import key_hash
from jettison.statistics.timed import TimedSample

pytestmark = pytest.mark.core

ORDERS = pytest.mark.parametrize("order", ["arrival", "worth"])
LEARNING = CostLearning(window=100)
MAP: dict[str, Any] = {"key": "entity", "schema": "score double"}
COST_US = 250.0


def source(net: Network, name: str = "tweets") -> Stream:
    return net.source(name, "id long, at timestamp, entity long, fare double", event_time="at", id=["id"])


def learned(order: str, *operators: str, tau: str | None = None) -> Las:
    """A shedder that has seen batches: half of the tuples take 100 us, half 900 us."""
    keys = key_hash([np.arange(100)])
    durations_us = np.where(np.arange(100) % 2 == 0, 100.0, 900.0)
    sketch = CostSketch.empty(*sketch_size(0.01, 0.02)).updated(keys, durations_us)
    las = Las(tau, order=order, learning=LEARNING)
    for number in range(3):
        timed = {name: TimedSample(sketch, lanes=2) for name in operators}
        las.observe(BatchSample(number, 0.0, 300.0, 250.0, {"tweets": 100}, timed=timed))
    return las


def problem_of(graph: Graph, budget_us: float, costs_us: dict[str, float]) -> Problem:
    rows = {each.name: 1000.0 for each in graph.sources}
    return Problem(graph, Profile(costs_us, {}), rows, budget_us, now_ms=5000.0)


def planned(las: Las, problem: Problem) -> Plan:
    """A plan that fits, and is certified."""
    plan = las.plan(problem)
    assert isinstance(plan, Plan), plan
    certify(problem, plan)
    return plan


@ORDERS
@pytest.mark.parametrize("on_loss", ["subset", "estimate"])
@pytest.mark.parametrize("tau", [None, "2 seconds"])
def test_above_windows_that_must_be_right_the_rest_plans(order: str, on_loss: str, tau: str | None) -> None:
    net = Network("windows")
    qos = QoS(on_loss=on_loss, gap=3) if on_loss == "subset" else QoS(on_loss=on_loss)
    scored = source(net).map("math:sqrt", name="score", **MAP)
    scored.window("10 seconds", by="entity", delay="5 seconds").agg(n="count(*)").output("counts", qos=qos)
    las = learned(order, "score", tau=tau)
    controller = Controller(net.graph, Settings(1000.0, 0.9, shedder=las), Profile({"score": COST_US}, {}))
    for number, rows in enumerate((1000, 8000, 8000)):
        plan = controller.decide({"tweets": rows}, 1000.0 * number)
        assert controller.refused is None
        assert not any(isinstance(drop, CostBound) for drop in plan.drops.values())
        assert bool(plan.drops) == (rows > 4000)


def test_a_goal_that_is_not_held_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    net = Network("windows")
    scored = source(net).map("math:sqrt", name="score", **MAP)
    scored.window("10 seconds", delay="5 seconds").agg(n="count(*)").output("n", qos=QoS(latency_goal="2 seconds"))
    las, problem = learned("arrival", "score"), problem_of(net.graph, 300_000.0, {"score": COST_US})
    for _ in range(2):
        las.prepare(problem)
    assert caplog.text.count("front of map score") == 1
    assert "its goal for latency is not held" in caplog.text


@ORDERS
def test_one_map_before_windows_does_not_keep_another_one_from_its_drop(order: str) -> None:
    net = Network("both")
    tweets = source(net)
    tweets.map("math:sqrt", name="exact", **MAP).window("10 seconds", delay="5 seconds").agg(n="count(*)").output("n")
    tweets.map("math:sqrt", name="score", **MAP).output("scores")
    problem = problem_of(net.graph, 0.8 * 500_000, {"exact": COST_US, "score": COST_US})
    plan = planned(learned(order, "exact", "score"), problem)
    assert [arc for arc, drop in plan.drops.items() if isinstance(drop, CostBound)] == ["tweets>score"]


@ORDERS
@pytest.mark.parametrize("nested", [False, True])
def test_maps_share_what_is_in_excess(order: str, nested: bool) -> None:
    net = Network("two")
    tweets = source(net)
    first = tweets.map("math:sqrt", name="a", **MAP)
    second = (first if nested else tweets).map("math:sqrt", name="b", **MAP)
    second.output("both")
    if not nested:
        first.output("one")
    problem = problem_of(net.graph, 0.75 * 500_000, {"a": COST_US, "b": COST_US})
    plan = planned(learned(order, "a", "b"), problem)
    left_us = problem.load_us - plan.saves_us
    assert left_us == pytest.approx(problem.budget_us, rel=0.01)  # just enough, not twice as much


@ORDERS
@pytest.mark.parametrize("budget_us", [100_000.0, 300_000.0])
def test_floors_are_held(order: str, budget_us: float) -> None:
    net = Network("floor")
    source(net).map("math:sqrt", name="score", **MAP).output("scores", qos=QoS(min_accuracy=0.8))
    problem = problem_of(net.graph, budget_us, {"score": COST_US})
    answer = learned(order, "score", tau="1 millisecond").plan(problem)
    assert isinstance(answer, Infeasible) == (budget_us < 150_000.0)
    plan = answer.best if isinstance(answer, Infeasible) else answer
    certify(problem, plan, within_budget=False)
    (drop,) = plan.drops.values()
    assert isinstance(drop, CostBound)
    assert drop.keep >= 0.8 - 1e-6
    assert not isinstance(drop.rule, LatencyRule) or drop.rule.least_keep == pytest.approx(0.8)


@ORDERS
def test_a_floor_below_is_held_by_the_loop(order: str) -> None:
    net = Network("floor")
    source(net).map("math:sqrt", name="score", **MAP).output("scores", qos=QoS(min_accuracy=0.8))
    profile = Profile({"score": COST_US}, {})
    controller = Controller(net.graph, Settings(1000.0, 0.9, shedder=learned(order, "score")), profile)
    for number in range(3):
        plan = controller.decide({"tweets": 8000}, 1000.0 * number)
        assert controller.refused is None
        assert plan.delivered["scores"] >= 0.8 - 1e-6


def test_certify_does_not_believe_in_a_floor_that_nothing_holds() -> None:
    net = Network("floor")
    source(net).map("math:sqrt", name="score", **MAP).output("scores", qos=QoS(min_accuracy=0.8))
    problem = problem_of(net.graph, 300_000.0, {"score": COST_US})
    plan = planned(learned("arrival", "score", tau="2 seconds"), problem)
    (drop,) = plan.drops.values()
    assert isinstance(drop, CostBound)
    assert isinstance(drop.rule, LatencyRule)
    loose = replace(drop, rule=replace(drop.rule, least_keep=0.0))
    with pytest.raises(Exception, match=r"lets at least 0 .* floor of 0\.8"):
        certify(problem, replace(plan, drops={"tweets>score": loose}))


@given(st.floats(0.0, 1.0), st.lists(st.floats(1.0, 1e6), min_size=1, max_size=200))
def test_a_gate_lets_in_what_it_must(least_keep: float, costs_us: list[float]) -> None:
    gate = LatencyRule(1.0, "each", start_us=1e6, least_keep=least_keep).gate()
    admitted = 0
    for number, cost_us in enumerate(costs_us, start=1):
        admitted += gate.admits(0.0, cost_us)
        assert least_keep * number <= admitted <= least_keep * number + 1


@ORDERS
def test_an_output_that_costs_more_is_shed_before_a_timed_one(order: str) -> None:
    net = Network("beside")
    tweets = source(net)
    tweets.map("math:sqrt", name="score", **MAP).output("scores")
    tweets.where("fare > 1", name="heavy").output("plain")
    problem = problem_of(net.graph, 100_000.0, {"score": 50.0, "heavy": 250.0})
    plan = planned(learned(order, "score"), problem)
    assert plan.delivered["scores"] > 0.5  # and not nothing
    assert plan.delivered["plain"] == pytest.approx(0.2, abs=0.02)


def test_worth_is_that_of_the_outputs_behind_the_map() -> None:
    net = Network("values")
    tweets = source(net)
    other = QoS(value=Value("entity", [(0, 10, 1.0), (10, 100, 0.1)]))
    tweets.where("id > 0", name="others").output("first", qos=other)
    scored = tweets.map("math:sqrt", name="score", **MAP)
    low, high = Value("fare", [(0, 50, 0.2), (50, 100, 1.0)]), Value("fare", [(0, 50, 1.0), (50, 100, 0.2)])
    scored.where("id > 1", name="x").output("many", qos=QoS(value=low, priority=3))
    scored.where("id > 2", name="y").output("few", qos=QoS(value=high, priority=1))
    problem = problem_of(net.graph, 200_000.0, {"score": COST_US})
    plan = planned(learned("worth", "score"), problem)
    drop = plan.drops["tweets>score"]
    assert isinstance(drop, CostBound)
    assert isinstance(drop.rule, WorthRule)
    assert drop.rule.value == "fare"
    by_value = dict(zip(drop.rule.value_bounds, drop.rule.worths, strict=True))
    assert (by_value[0.0], by_value[50.0]) == (pytest.approx(0.4), pytest.approx(0.8))


def test_a_goal_holds_though_the_fixed_cost_of_a_batch_is_too_much_to_help() -> None:
    net = Network("goal")
    source(net).map("math:sqrt", name="score", **MAP).output("scores")
    las = learned("arrival", "score", tau="2 seconds")
    profile = Profile({"score": COST_US}, {}, fixed_ms=2000.0)
    controller = Controller(net.graph, Settings(1000.0, 0.9, shedder=las), profile)
    plan = controller.decide({"tweets": 1000}, 0.0)
    assert controller.infeasible is not None
    assert isinstance(plan.drops.get("tweets>score"), CostBound)


def test_after_a_restart_all_tasks_share_the_work_from_the_first_batch_on() -> None:
    net = Network("goal")
    source(net).map("math:sqrt", name="score", **MAP).output("scores")
    pair = learned("arrival", "score").known("score").pair
    assert pair is not None
    again = Las("2 seconds", learning=LEARNING)
    again.restore("score", pair, lanes=8)
    drop = planned(again, problem_of(net.graph, 300_000.0, {"score": COST_US})).drops["tweets>score"]
    assert isinstance(drop, CostBound)
    assert isinstance(drop.rule, LatencyRule)
    assert (drop.rule.lanes, drop.sketch) == (8, pair.name)


def test_a_goal_holds_though_batch_times_do_not_tell_what_the_map_costs() -> None:
    net = Network("goal")
    source(net).map("math:sqrt", name="score", **MAP).output("scores")
    plan = planned(learned("arrival", "score", tau="2 seconds"), problem_of(net.graph, 300_000.0, {}))
    assert isinstance(plan.drops.get("tweets>score"), CostBound)
