"""The examples that the seed works out, and the special conditions of its equations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jettison.errors import NetworkError
from jettison.plan.quality import Demand, Machines, Metrics, Task, cycle, task_graph
from jettison.plan.quality.accuracy import accuracy, current_accuracy, local_accuracy, non_drop, slowest_cpu
from jettison.plan.quality.cycle import decide
from jettison.plan.quality.instances import groups, instances
from jettison.plan.quality.rescheduling import instances_to_move
from jettison.plan.quality.slack import share_for_each, slack

pytestmark = pytest.mark.core

TWO_SINKS = [Task("s1"), Task("s2"), Task("m1", ("s1",)), Task("m2", ("s2",)), Task("join", ("m1", "m2"))]


def test_two_sinks_80_and_40_percent_of_figure_3_3() -> None:
    graph = task_graph([*TWO_SINKS, Task("A", ("join",)), Task("B", ("join",))])
    kept = non_drop(graph, np.array([0.8, 0.4]))
    by_name = kept.by_name(graph)
    assert by_name.pop(("", "s1")) == by_name.pop(("", "s2")) == 0.8
    assert by_name.pop(("join", "B")) == 0.5
    assert set(by_name.values()) == {1.0}
    assert accuracy(graph, kept).tolist() == pytest.approx([0.8] * 6 + [0.4])


def test_what_moves_in_3_5_1_is_all_but_40_percent_of_priority_3() -> None:
    load, priority = np.array([0.2, 0.1, 0.4, 0.1, 0.1, 0.1]), np.array([4.0, 3, 3, 2, 2, 1])
    moved = instances_to_move(0.4, load, priority)
    assert [(load[at], priority[at]) for at in moved] == [(0.1, 3), (0.1, 2), (0.1, 2), (0.1, 1)]
    assert load[moved].sum() == pytest.approx(0.4)


def test_of_equal_instances_the_first_moves_and_nothing_moves_for_nothing() -> None:
    assert instances_to_move(0.05, np.array([0.3, 0.1, 0.1]), np.ones(3)).tolist() == [1]
    assert instances_to_move(0.0, np.array([0.3, 0.1]), np.ones(2)).tolist() == []
    assert instances_to_move(9.0, np.array([0.3, 0.1]), np.ones(2)).tolist() == [0, 1]


def test_required_and_obtained_load_with_their_special_conditions() -> None:
    # known; accuracy 0; nothing known; costs nothing
    demand = Demand.measured(np.array([0.3, 0.5, math.nan, 0.0]), np.array([0.6, 0.0, 1.0, 0.7]))
    assert demand.unknown.tolist() == [False, True, True, False]
    assert demand.required(np.zeros(4)).tolist() == [0, 0, 0, 0]
    assert demand.required(np.ones(4)).tolist() == pytest.approx([0.5, 1, 1, 0])
    assert demand.required(np.full(4, 0.2)).tolist() == pytest.approx([0.1, 1, 1, 0])
    assert demand.obtained(np.zeros(4)).tolist() == [0, 0, 0, 1]
    assert demand.obtained(np.full(4, 0.25)).tolist() == [0.5, 1, 1, 1]
    assert Demand.proportional([4.0]).required(np.ones(1)).tolist() == [1.0]


def test_the_slowest_instance_says_how_accurate_a_task_is_and_what_it_costs() -> None:
    graph = task_graph([Task("src"), Task("snk", ("src",), instances=2)])
    placed = instances(graph)
    seen = Metrics(
        np.array([80.0, 30.0, 20.0]), np.array([0.1, 0.4, 0.2]), np.array([80.0]), np.array([100.0]), np.ones(1)
    )
    local = local_accuracy(graph, placed, seen)
    assert local.tolist() == pytest.approx([0.8, 0.5])
    assert current_accuracy(graph, local).tolist() == pytest.approx([0.8, 0.4])
    assert slowest_cpu(placed, seen).tolist() == pytest.approx([0.1, 0.2])
    silent = Metrics(seen.in_rate * 0, seen.cpu, seen.out_rate * 0, seen.arriving * 0, seen.machine_cpu)
    assert local_accuracy(graph, placed, silent).tolist() == [1.0, 1.0]


def test_slack_is_what_is_required_less_what_is_available() -> None:
    graph = task_graph([Task("A", min_accuracy=0.5), Task("B"), Task("C", priority=2)])
    placed = groups([0, 1, 2], [0, 0, 1], machines=2)
    demand, left = Demand.proportional([0.8, 0.4, 0.2]), np.array([0.3, 0.6])
    assert slack(graph, demand, placed, left, np.ones(3), 1.0).tolist() == pytest.approx([0.4 + 0.4 - 0.3, -math.inf])
    assert slack(graph, demand, placed, left, np.ones(3), 2.0).tolist() == pytest.approx([-math.inf, 0.2 - 0.6])
    assert share_for_each(graph, placed, left, 1.0).tolist() == pytest.approx([0.15, 0])


def test_a_share_that_another_machine_makes_useless_goes_to_the_others() -> None:
    # A's sink is stuck at 0.2 on the second machine; so the first has 0.8 of a core for B, where an even share is 0.5
    graph = task_graph([Task("a"), Task("A", ("a",)), Task("B")])
    placed = instances(graph, {"A.1": 1})
    found = decide(graph, Demand.proportional([1.0, 1.0, 1.0]), placed, np.array([1.0, 0.2]))
    assert found.by_query(graph) == pytest.approx({"A": 0.2, "B": 0.8})


def test_one_machine_of_many_cores_is_a_budget() -> None:
    graph = task_graph(
        [Task("src"), Task("A", ("src",), priority=5, min_accuracy=0.1), Task("B", ("src",), priority=3)]
    )
    demand = Demand.proportional([20e6, 10e6, 10e6], most=math.inf)  # microseconds of work in a batch
    found = decide(graph, demand, instances(graph), np.array([15e6]))
    assert found.by_query(graph) == pytest.approx({"A": 0.5, "B": 0.0}, abs=1e-6)
    found = decide(graph, demand, instances(graph), np.array([35e6]))
    assert found.by_query(graph) == pytest.approx({"A": 1.0, "B": 0.5}, abs=1e-6)


def test_rounding_is_no_shortage_in_any_unit() -> None:
    graph = task_graph([Task(f"q{at}", min_accuracy=0.1) for at in range(7)])
    for unit in (1e-6, 1.0, 1e6, 1e12):
        costs = np.array([0.1, 0.2, 0.3, 0.7, 1.1, 1.3, 1.7]) * unit
        found = decide(graph, Demand.proportional(costs, most=math.inf), instances(graph), np.array([0.1 * 5.4 * unit]))
        assert found.moves.tolist() == []
        assert found.desired.tolist() == pytest.approx([0.1] * 7, rel=1e-6)


def test_unknown_costs_take_a_whole_core_until_they_are_known() -> None:
    graph = task_graph([Task("A", min_accuracy=0.5), Task("B")])
    seen = Metrics(
        np.array([math.nan, 10.0]), np.array([math.nan, 0.5]), np.zeros(0), np.array([10.0, 10.0]), np.array([0.5])
    )
    machine = Machines(("one",), np.array([1.2]))
    found = cycle(graph, machine, instances(graph), seen)
    assert found.demand.unknown.tolist() == [True, False]
    assert found.by_query(graph) == pytest.approx({"A": 1.0, "B": 0.4})
    known = Demand.proportional([0.1, 0.5])
    assert cycle(graph, machine, instances(graph), seen, history=known).by_query(graph) == {"A": 1.0, "B": 1.0}


def test_minima_out_of_reach_say_which_and_what_would_help() -> None:
    graph = task_graph(
        [Task("parse"), Task("A", ("parse",), min_accuracy=0.8), Task("B", ("parse",), min_accuracy=0.1)]
    )
    found = decide(graph, Demand.proportional([3.0, 0.1, 0.1]), instances(graph), np.array([8.0]))
    (said,) = found.unmeetable
    assert (said.task, said.queries, said.instances) == ("parse", ("A",), 3)
    assert "no number of machines helps. Run it in 3 instances or more, or ask for at most 0.333" in str(said)
    assert found.by_query(graph) == pytest.approx({"A": 1 / 3, "B": 1 / 3})
    assert [graph.query_names[at] for at in found.below_minimum] == ["A"]


def test_what_cannot_move_is_lowered_alike() -> None:
    graph = task_graph([Task("A", min_accuracy=0.8, priority=2), Task("B", min_accuracy=0.4)])
    pinned = np.ones(2, dtype=bool)
    found = decide(graph, Demand.proportional([1.0, 1.0]), instances(graph), np.array([0.6]), pinned=pinned)
    assert found.by_query(graph) == pytest.approx({"A": 0.4, "B": 0.2})
    assert found.below_minimum.tolist() == [0, 1]
    assert found.moves.tolist() == []


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([], "there are no tasks"),
        ([Task("a"), Task("a")], "two tasks are named 'a'"),
        ([Task("a", ("b",))], "task 'a': upstream 'b' is no task"),
        ([Task("a", ("b",)), Task("b", ("a",))], "tasks feed each other in a circle: a, b"),
        ([Task("a", priority=2), Task("b", ("a",))], "task 'a' feeds 'b': priority and min_accuracy belong to"),
    ],
)
def test_graphs_that_cannot_be(tasks: list[Task], said: str) -> None:
    with pytest.raises(NetworkError, match=said):
        task_graph(tasks)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_accuracy": 1.2}, "min_accuracy is 1.2: give a share"),
        ({"min_accuracy": -0.1}, "min_accuracy is -0.1"),
        ({"priority": "high"}, "priority is 'high': give a number above 0"),
        ({"priority": math.nan}, "priority is nan"),
        ({"priority": True}, "priority is True"),
        ({"instances": 0}, "instances is 0: give a whole number from 1 on"),
        ({"upstream": ("a", "a")}, "upstream names a task twice"),
    ],
)
def test_tasks_that_cannot_be(given: dict[str, object], said: str) -> None:
    with pytest.raises(NetworkError, match=said):
        Task("t", **given)  # type: ignore[arg-type]
