"""Quality of data: minima for all, what is left by priority, evenly among equals; who makes room when minima do not."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady, trees
from tests.plan.refine.test_floors import accuracy, with_floors
from tests.plan.windows.test_shedders import networks

import jettison as jt
from jettison.errors import NetworkError, PlanError, StartError
from jettison.network import Graph, Output
from jettison.plan.certify import certify
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.random import Random
from jettison.plan.floors import plan_accuracies
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.plan.shedders.qod import Qod, unknown_costs
from jettison.plan.shedders.qod_pauses import RESUME_SHARE, outputs_to_pause
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
PRIORITIES = (1.0, 2.0, 5.0)


def with_priorities(graph: Graph, priorities: list[float]) -> Graph:
    given_ = iter(priorities * len(graph.outputs))
    operators = [
        replace(each, qos=replace(each.qos, priority=next(given_))) if isinstance(each, Output) else each
        for each in graph.operators
    ]
    return Graph(graph.name, tuple(operators))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    case: Case = draw(st.one_of(trees(5, drops_us=(0.0, 0.05)), dags(5, drops_us=(0.0, 0.05))))
    graph = with_floors(case.graph, draw(st.lists(st.sampled_from((0.0, 0.1, 0.3, 0.6)), min_size=2, max_size=4)))
    graph = with_priorities(graph, draw(st.lists(st.sampled_from(PRIORITIES), min_size=2, max_size=4)))
    full = Problem(graph, case.profile, case.rows, 0.0)
    share = draw(st.sampled_from(SHARES))
    return full.with_budget(full.unavoidable_us + share * (full.load_us - full.unavoidable_us))


@st.composite
def windowed(draw: st.DrawFn) -> Problem:
    graph = with_floors(draw(networks()), draw(st.lists(st.sampled_from((0.0, 0.3, 0.6)), min_size=2, max_size=3)))
    graph = with_priorities(graph, draw(st.lists(st.sampled_from(PRIORITIES), min_size=2, max_size=3)))
    costs = {each.name: draw(st.sampled_from((0.5, 1.0, 4.0))) for each in graph.operators}
    profile = Profile(costs, {each.name: 0.05 for each in graph.aggregates}, fixed_ms=0.1, drop_us=0.05)
    full = Problem(graph, profile, {source.name: 1000.0 for source in graph.sources}, 0.0)
    return full.with_budget(draw(st.sampled_from((0.2, 0.5, 0.8, 1.1))) * full.load_us)


def got(problem: Problem, plan: Plan) -> dict[str, float]:
    return plan_accuracies(problem.graph, problem.rows, plan)


@steady(80)
@given(st.one_of(problems(), windowed()), st.booleans())
def test_every_plan_is_certified_the_same_each_time_and_says_who_is_below_its_minimum(
    problem: Problem, pause: bool
) -> None:
    found = Qod(pause).plan(problem)
    plan = found.best if isinstance(found, Infeasible) else found
    certify(problem, plan, within_budget=isinstance(found, Plan))
    assert Qod(pause).plan(problem) == found
    for output in problem.graph.outputs:
        share = accuracy(problem.graph, dict(problem.rows), plan, output.name)
        assert share >= output.qos.min_accuracy - 1e-6 or output.name in plan.below_minimum
        assert plan.below_minimum.get(output.name, "") in ("", "paused" if pause else "degraded")
    if problem.load_us <= problem.budget_us:
        assert not plan.drops, "nothing is dropped below capacity"


@steady(60)
@given(problems())
def test_a_lower_priority_gets_more_than_its_minimum_only_when_higher_ones_have_all(problem: Problem) -> None:
    plan = Qod().plan(problem)
    if isinstance(plan, Infeasible):
        return
    share = got(problem, plan)
    outputs = {output.name: output.qos for output in problem.graph.outputs if output.name not in plan.paused}
    for low, wanted in outputs.items():
        # what costs nothing more, because others need it anyway, may be above the minimum
        if share[low] <= wanted.min_accuracy + 1e-6 or not _costs_more(problem, plan, low):
            continue
        for high, other in outputs.items():
            if other.priority > wanted.priority and _costs_more(problem, plan, high):
                assert share[high] >= 1.0 - 1e-5 or share[high] >= share[low] - 1e-6, (high, low, share)


def _costs_more(problem: Problem, plan: Plan, output: str) -> bool:
    """Whether an output has work of its own."""
    graph = problem.graph
    own = [each.name for each in graph.operators if each.name == output or graph.outputs_below(each.name) == {output}]
    return any(problem.profile.cost(name) > 0 for name in own)


@steady(40)
@given(problems())
def test_more_capacity_is_no_less_for_the_highest_priority(problem: Problem) -> None:
    top = max(output.qos.priority for output in problem.graph.outputs)
    names = [output.name for output in problem.graph.outputs if output.qos.priority == top]
    before = -1.0
    for part in (0.2, 0.5, 0.8, 1.0):
        asked = problem.with_budget(problem.unavoidable_us + part * (problem.load_us - problem.unavoidable_us))
        plan = Qod(pause=False).plan(asked)
        if isinstance(plan, Infeasible) or plan.below_minimum:
            continue
        least = min(got(asked, plan)[name] for name in names)
        assert least >= before - 1e-4
        before = least


def three(**minima: float) -> Graph:
    """Parsed once, then three outputs with work of their own."""
    net = jt.Network("three")
    parsed = net.source("s", "x int").where("x > 0", name="parsed")
    for name, priority in (("first", 5), ("second", 3), ("third", 1)):
        qos = jt.QoS(priority=priority, min_accuracy=minima.get(name, 0.0))
        parsed.where(f"x > {priority}", name=f"{name}_work").output(name, qos=qos)
    return net.graph


COSTS = Profile({"parsed": 2.0, "first_work": 10.0, "second_work": 10.0, "third_work": 10.0}, {})
ROWS = {"s": 100.0}


def test_minima_come_first_then_the_order_of_priorities() -> None:
    """parsed 200 + first 1000 + second 0.3 x 1000 + third 0.2 x 1000 of 1700 us."""
    problem = Problem(three(second=0.2, third=0.2), COSTS, ROWS, 1700.0)
    plan = Qod().plan(problem)
    assert isinstance(plan, Plan)
    assert got(problem, plan) == pytest.approx({"first": 1.0, "second": 0.3, "third": 0.2}, abs=1e-6)
    assert set(plan.drops) == {"parsed>second_work", "parsed>third_work"}


@pytest.mark.parametrize("priorities", [(5, 3, 1), (500, 2.5, 2), (3.0, 2.9, 2.8)])
def test_only_the_order_of_priorities_counts(priorities: tuple[float, ...]) -> None:
    graph = with_priorities(three(second=0.2), [float(each) for each in priorities])
    plan = Qod().plan(Problem(graph, COSTS, ROWS, 1700.0))
    assert isinstance(plan, Plan)
    assert plan.delivered == pytest.approx({"first": 1.0, "second": 0.5, "third": 0.0}, abs=1e-6)


def test_equals_share_evenly_and_what_one_cannot_use_goes_to_the_others() -> None:
    graph = with_priorities(three(), [1.0, 1.0, 1.0])
    cheap = replace(COSTS, cost_us={**COSTS.cost_us, "parsed": 0.0, "first_work": 2.0})
    plan = Qod().plan(Problem(graph, cheap, ROWS, 1200.0))
    assert isinstance(plan, Plan)
    assert plan.delivered == pytest.approx({"first": 1.0, "second": 0.5, "third": 0.5}, abs=1e-6)


def test_tuples_are_dropped_as_early_as_possible() -> None:
    """The seed's figure 3.3: sinks that want 80 % and 40 %."""
    problem = Problem(three(first=0.8, second=0.4), COSTS, ROWS, 0.8 * 200 + 800 + 400)
    plan = Qod().plan(problem)
    assert isinstance(plan, Plan)
    keeps = {arc: drop.keep for arc, drop in plan.drops.items()}
    assert keeps == pytest.approx({"s": 0.8, "parsed>second_work": 0.5, "parsed>third_work": 0.0}, abs=1e-6)


def test_the_lowest_priority_makes_room_for_the_minima_of_others() -> None:
    graph = three(first=0.6, second=0.6, third=0.6)  # 1920 us for all minima
    plan = Qod().plan(Problem(graph, COSTS, ROWS, 1500.0))
    assert isinstance(plan, Plan)
    assert plan.below_minimum == {"third": "paused"}
    assert plan.delivered["third"] == 0.0
    assert min(plan.delivered["first"], plan.delivered["second"]) >= 0.6 - 1e-6
    certify(Problem(graph, COSTS, ROWS, 1500.0), plan)


def test_without_pausing_all_are_below_their_minimum_alike_and_it_says_so() -> None:
    problem = Problem(three(first=0.6, second=0.3, third=0.6), COSTS, ROWS, 810.0)
    plan = Qod(pause=False).plan(problem)
    assert isinstance(plan, Plan)
    assert plan.below_minimum == dict.fromkeys(("first", "second", "third"), "degraded")
    assert got(problem, plan) == pytest.approx({"first": 0.3, "second": 0.15, "third": 0.3}, abs=1e-4)
    certify(problem, plan)


def test_only_those_that_are_below_their_minimum_are_marked() -> None:
    """Windows that may not be missing are never dropped: their output holds its minimum while the other does not."""
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, x int", event_time="at")
    trips.window("10 seconds").agg(n="count(*)", name="busy").output("all", qos=jt.QoS(min_accuracy=1.0))
    trips.where("x > 0", name="paid").output("some", qos=jt.QoS(min_accuracy=0.8))
    problem = Problem(net.graph, Profile({"paid": 5.0, "busy": 5.0}, {"busy": 0.01}), {"trips": 1000.0}, 7000.0)
    plan = Qod(pause=False).plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert got(problem, plan) == pytest.approx({"all": 1.0, "some": 0.4}, abs=1e-4)
    assert plan.below_minimum == {"some": "degraded"}


def test_what_is_paused_goes_on_only_when_there_is_room_to_spare() -> None:
    graph = three(first=0.6, second=0.6, third=0.6)
    needed_us = 0.6 * 200 + 3 * 600
    tight = replace(Problem(graph, COSTS, ROWS, 1.02 * needed_us), paused=frozenset({"third"}))
    roomy = tight.with_budget(1.02 * needed_us / RESUME_SHARE)
    for problem, paused in ((tight, {"third"}), (roomy, set())):
        plan = Qod().plan(problem)
        assert isinstance(plan, Plan)
        assert plan.paused == paused
    assert not Qod().plan(replace(tight, paused=frozenset())).paused  # type: ignore[union-attr]


def test_where_no_minimum_would_be_left_to_make_room_for_floors_win() -> None:
    problem = Problem(three(first=0.9), COSTS, ROWS, 500.0)
    found = Qod().plan(problem)
    assert isinstance(found, Infeasible)
    assert not found.best.below_minimum
    assert got(problem, found.best)["first"] == pytest.approx(0.9)


def test_the_fewest_and_smallest_are_paused() -> None:
    needs = {"a": (50.0, 2.0), "b": (30.0, 1.0), "c": (10.0, 1.0)}

    def left(paused: frozenset[str]) -> float:
        return sum(need for name, (need, _) in needs.items() if name not in paused)

    ranks = {name: rank for name, (_, rank) in needs.items()}
    assert outputs_to_pause(ranks, left, budget_us=80.0) == {"c"}
    assert outputs_to_pause(ranks, left, budget_us=60.0) == {"b"}
    assert outputs_to_pause(ranks, left, budget_us=45.0) == {"a"}, "of the lower ones, those that are not needed go on"
    assert outputs_to_pause(ranks, left, budget_us=0.0) is None


def test_a_paused_output_goes_on_in_place_of_one_of_a_lower_priority() -> None:
    needs, ranks = {"a": 10.0, "b": 60.0}, {"a": 1.0, "b": 5.0}

    def left(paused: frozenset[str]) -> float:
        return sum(need for name, need in needs.items() if name not in paused)

    assert outputs_to_pause(ranks, left, budget_us=50.0) == {"b"}, "alone it does not fit"
    assert outputs_to_pause(ranks, left, budget_us=65.0, before=frozenset("b")) == {"b"}, "it fits, with none to spare"
    assert outputs_to_pause(ranks, left, budget_us=69.0, before=frozenset("b")) == {"a"}
    assert outputs_to_pause(ranks, left, budget_us=69.0, before=frozenset("a")) == {"a"}, "and so it stays"
    equal = dict.fromkeys(ranks, 1.0)
    assert outputs_to_pause(equal, left, budget_us=69.0, before=frozenset("b")) == {"b"}, "among equals nothing swaps"


def test_certify_refuses_a_plan_that_does_not_say_who_is_below() -> None:
    problem = Problem(three(first=0.6, second=0.6), COSTS, ROWS, 900.0)
    closed = {"parsed>second_work": Random(0.0), "parsed>third_work": Random(0.0), "s": Random(0.6)}
    plan = claimed(problem, closed, "overload")
    with pytest.raises(PlanError, match=r"'second': 0\.0000 of its source rows are processed, its floor is 0\.6"):
        certify(problem, plan)
    certify(problem, replace(plan, below_minimum={"second": "paused"}))
    with pytest.raises(PlanError, match="'second' is 'gone'"):
        replace(plan, below_minimum={"second": "gone"})


def test_a_plan_keeps_who_is_paused_in_its_log() -> None:
    plan = Plan({"s": Random(0.5)}, "overload", below_minimum={"second": "paused"})
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.paused == {"second"}


def test_an_accuracy_is_a_share_of_windows_that_must_be_right() -> None:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, x int", event_time="at")
    trips.window("10 seconds").agg(n="count(*)", name="busy").output("o", qos=jt.QoS(gap=9, min_accuracy=0.5))
    trips.where("x > 0", name="paid").output("p", qos=jt.QoS(priority=2))
    profile = Profile({"paid": 5.0, "busy": 5.0}, {"busy": 0.01})
    problem = Problem(net.graph, profile, {"trips": 1000.0}, 8000.0)
    plan = Qod().plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert plan.fates["busy"].drop_share == pytest.approx(0.4, abs=0.01)
    assert got(problem, plan)["p"] == pytest.approx(1.0)


def test_a_minimum_bounds_the_gap() -> None:
    """Half of the windows must come: then no two in a row are missing."""
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, x int", event_time="at")
    trips.window("10 seconds").agg(n="count(*)", name="busy").output("o", qos=jt.QoS(min_accuracy=0.5))
    assert decisions_of(net.graph).by_aggregate["busy"].gap == 1
    never = jt.Network("taxi")
    trips = never.source("trips", "at timestamp, x int", event_time="at")
    trips.window("10 seconds").agg(n="count(*)", name="busy").output("o", qos=jt.QoS(min_accuracy=1.0))
    assert "busy" not in decisions_of(never.graph).by_aggregate


def test_both_sides_of_a_join_lose_the_same_keys() -> None:
    net = jt.Network("shop")
    orders = net.source("orders", "id long, at timestamp", event_time="at")
    paid = net.source("paid", "id long, on timestamp, sum double", event_time="on")
    joined = orders.join(paid, on="id", within="1 minute", name="both")
    joined.output("o", qos=jt.QoS(min_accuracy=0.4))
    orders.where("id > 0", name="w").output("p", qos=jt.QoS(min_accuracy=0.8))
    profile = Profile({"both": 10.0, "w": 1.0}, {})
    problem = Problem(net.graph, profile, {"orders": 100.0, "paid": 300.0}, 2200.0)
    plan = Qod().plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert all(isinstance(plan.drops[arc], ByKey) for arc in ("paid", "orders>both") if arc in plan.drops)
    assert got(problem, plan)["o"] >= 0.4 - 1e-6


def test_outputs_whose_cost_is_unknown_count_as_free_and_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    graph = three(first=0.2)
    partly = Profile({"parsed": 2.0, "first_work": 10.0, "second_work": 10.0}, {})
    assert unknown_costs(graph, partly) == ("third",)
    shedder = Qod()
    problem = Problem(graph, partly, ROWS, 1100.0)
    with caplog.at_level(logging.WARNING, logger="jettison"):
        shedder.prepare(problem)
        shedder.prepare(problem)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["qod"]
    assert "cost of third is unknown" in caplog.text
    plan = shedder.plan(problem)
    assert isinstance(plan, Plan)
    assert plan.delivered["third"] >= plan.delivered["first"], "what costs nothing is not dropped further down"


@pytest.mark.parametrize("minimum", [-0.1, 1.01, float("nan"), "0.6", True])
def test_a_minimum_is_a_share(minimum: object) -> None:
    with pytest.raises(NetworkError, match=r"min_accuracy is .*: give the share of source rows"):
        jt.QoS(min_accuracy=minimum)  # type: ignore[arg-type]


@pytest.mark.parametrize("priority", [0, -1, float("inf"), float("nan"), "high", None, True])
def test_a_priority_is_a_positive_number(priority: object) -> None:
    with pytest.raises(NetworkError, match=r"priority is .*: give a number above 0"):
        jt.QoS(priority=priority)  # type: ignore[arg-type]


def test_pause_is_said_or_not() -> None:
    with pytest.raises(StartError, match="pause is 'no': say True or False"):
        jt.Qod(pause="no")  # type: ignore[arg-type]
