"""The controller's step: what is placed, moved and held, from nothing but state and metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.errors import NetworkError
from jettison.plan.quality import Demand, Instances, Machines, Metrics, Task, TaskGraph, task_graph
from jettison.plan.quality.controller import Settings, State, step
from jettison.plan.quality.instances import NOWHERE, instances
from jettison.plan.quality.warm_up import still_warming

pytestmark = pytest.mark.core

TWO = Machines(("TM1", "TM2"), np.array([1.0, 1.0]))


def pair() -> TaskGraph:
    return task_graph([Task("A", min_accuracy=0.8), Task("B", min_accuracy=0.8, priority=2)])


def seen(graph: TaskGraph, placed: Instances, full: list[float], machines: int = 2) -> Metrics:
    """What is measured while everything is processed."""
    cpu = np.array(full)[placed.task]
    there = placed.machine != NOWHERE
    used = np.bincount(placed.machine[there], weights=cpu[there], minlength=machines)
    return Metrics(np.full(len(placed.names), 10.0), cpu, np.zeros(0), np.full(len(graph.sources), 10.0), used)


def settled(placed: Instances, **options: object) -> State:
    return State(placed, np.zeros(len(placed.names)), **options)  # type: ignore[arg-type]


def test_what_does_not_fit_moves_to_the_other_machine_and_warms_up_there() -> None:
    graph = pair()
    placed = instances(graph)
    done = step(graph, TWO, settled(placed), seen(graph, placed, [0.7, 0.7]), now_s=100.0)
    (move,) = done.moves
    assert (move.instance, move.origin, move.target) == ("A.1", "TM1", "TM2")
    assert str(move) == "A.1: TM1 -> TM2 (minima on TM1 lack 0.12 cores)"
    assert done.state.placed.warming.tolist() == [True, False]
    assert done.state.started_s.tolist() == [100.0, 0.0]
    # until it runs there it has its minimum, and what stays has the rest
    assert done.decision.by_query(graph) == pytest.approx({"A": 0.8, "B": 1.0})


def test_a_machine_that_is_gone_by_the_time_of_the_decision_is_no_target() -> None:
    graph = pair()
    placed = instances(graph)
    only = np.array([True, False])
    done = step(graph, TWO, settled(placed), seen(graph, placed, [0.7, 0.7]), 100.0, present=only)
    assert done.moves == ()
    assert done.stuck == ("A.1", "B.1")
    assert done.decision.by_query(graph) == pytest.approx({"A": 1 / 1.4, "B": 1 / 1.4})
    assert len(done.decision.below_minimum) == 2


def test_pinned_instances_stay_and_are_not_called_stuck() -> None:
    graph = pair()
    placed = instances(graph)
    done = step(graph, TWO, settled(placed), seen(graph, placed, [0.7, 0.7]), 1.0, pinned=np.array([True, True]))
    assert (done.moves, done.stuck) == ((), ())


def test_instances_of_a_lost_machine_are_placed_by_what_is_known_of_them() -> None:
    graph = task_graph([Task("src"), Task("snk", ("src",)), Task("other")])
    placed = instances(graph, {"src.1": 0, "snk.1": 1, "other.1": 2})
    machines = Machines(("TM1", "TM2", "TM3"), np.array([1.0, 1.0, 1.0]))
    full = [0.3, 0.4, 0.1]
    metrics = Metrics(np.full(3, 10.0), np.array(full), np.array([10.0]), np.array([10.0, 10.0]), np.array(full))
    state = settled(placed, demand=Demand.proportional(full), accuracy=np.ones(3))
    gone = np.array([True, False, True])
    (move,) = step(graph, machines, state, metrics, 5.0, present=gone).moves
    assert (move.instance, move.target, move.reason) == ("snk.1", "TM1", "TM2 is gone"), "near what feeds it"
    crowded = Metrics(
        *[getattr(metrics, name) for name in ("in_rate", "cpu", "out_rate", "arriving")], np.array([0.9, 0.4, 0.1])
    )
    (move,) = step(graph, machines, state, crowded, 5.0, present=gone).moves
    assert move.target == "TM3", "it does not fit beside what feeds it"


def test_a_warm_up_ends_with_the_minimum_or_the_time_out() -> None:
    graph = task_graph([Task("A", min_accuracy=0.5)])
    placed = Instances(("A.1",), np.array([0]), np.array([0]), np.array([True]))

    def warming(in_rate: float, now_s: float) -> bool:
        metrics = Metrics(np.array([in_rate]), np.array([0.1]), np.zeros(0), np.array([100.0]), np.array([0.1]))
        return bool(still_warming(graph, placed, metrics, np.array([0.0]), now_s, timeout_s=60.0)[0])

    assert warming(40.0, 30.0)
    assert not warming(50.0, 30.0)
    assert warming(math.nan, 30.0)
    assert not warming(math.nan, 60.0)


def test_while_one_warms_up_all_tasks_of_its_machine_keep_to_their_minimum() -> None:
    graph = task_graph([Task("A", min_accuracy=0.5), Task("B", min_accuracy=0.3), Task("C", min_accuracy=0.2)])
    placed = instances(graph, {"C.1": 1})
    placed = Instances(placed.names, placed.task, placed.machine, np.array([True, False, False]))
    cold = Metrics(
        np.array([1.0, 10, 10]), np.array([0.9, 0.1, 0.1]), np.zeros(0), np.full(3, 10.0), np.array([1.0, 0.1])
    )
    done = step(graph, TWO, State(placed, np.zeros(3), Demand.proportional([0.2, 0.1, 0.1])), cold, 5.0)
    assert done.decision.by_query(graph) == pytest.approx({"A": 0.5, "B": 0.3, "C": 1.0})
    assert done.decision.demand.full[0] == 0.2, "what was known before counts, not what a cold task takes"


def test_settings_that_cannot_be() -> None:
    with pytest.raises(NetworkError, match="warm_up_timeout_s is 0: give seconds above 0"):
        Settings(warm_up_timeout_s=0)
    with pytest.raises(NetworkError, match=r"headroom is 1\.5"):
        Machines(("TM1",), np.array([1.0]), headroom=1.5)
    graph = pair()
    placed = instances(graph)
    short = Metrics(np.ones(1), np.ones(2), np.zeros(0), np.ones(2), np.ones(2))
    with pytest.raises(NetworkError, match="metrics: in_rate has 1 values: give one for each of the 2"):
        step(graph, TWO, settled(placed), short, 1.0)
    unknown = Metrics(np.ones(2), np.ones(2), np.zeros(0), np.array([1.0, math.nan]), np.ones(2))
    with pytest.raises(NetworkError, match="metrics: arriving is not known for all: give 0 where nothing comes"):
        step(graph, TWO, settled(placed), unknown, 1.0)


def rates(length: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.sampled_from((0.0, 0.3, 5.0, 100.0, math.nan)), min_size=length, max_size=length)


@steady(60)
@given(data=st.data())
def test_whatever_is_measured_nothing_runs_on_machines_that_are_not_there(data: st.DataObject) -> None:
    graph = task_graph(
        [
            Task("s"),
            Task("m", ("s",), instances=2),
            Task("A", ("m",), priority=2, min_accuracy=0.5),
            Task("B", ("m", "s"), min_accuracy=0.3),
        ]
    )
    machines = Machines(("TM1", "TM2", "TM3"), np.array([1.0, 0.5, 2.0]), headroom=0.9)
    state = State(instances(graph, default=NOWHERE), np.full(5, -np.inf))
    for number in range(4):
        metrics = Metrics(
            np.array(data.draw(rates(5))),
            np.minimum(np.array(data.draw(rates(5))), 1.0),
            np.nan_to_num(np.array(data.draw(rates(4)))),
            np.nan_to_num(np.array(data.draw(rates(1)))),
            np.array(data.draw(rates(3))),
        )
        present = np.array(data.draw(st.lists(st.booleans(), min_size=3, max_size=3)))
        done = step(graph, machines, state, metrics, 5.0 * number, present=present)
        state = done.state
        at = state.placed.machine
        assert np.all((at == NOWHERE) | present[at])
        if present.any():
            assert np.all(at != NOWHERE)
        for shares in (done.decision.desired, done.decision.kept.sources, done.decision.kept.edges):
            assert np.all((shares >= 0) & (shares <= 1 + 1e-12))
