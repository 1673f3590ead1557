"""What every decision holds, on random applications over random machines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.plan.quality import Decision, Demand, Instances, Task, TaskGraph, task_graph
from jettison.plan.quality.accuracy import accuracy
from jettison.plan.quality.cycle import decide
from jettison.plan.quality.instances import Groups, groups, instances
from jettison.plan.quality.judging import could_have_more, inversions
from jettison.plan.quality.sharing import machine_load

pytestmark = pytest.mark.core


class Setting(NamedTuple):
    graph: TaskGraph
    demand: Demand
    placed: Instances
    available: Any

    @property
    def groups(self) -> Groups:
        return groups(self.placed.task, self.placed.machine, len(self.available))

    def decide(self) -> Decision:
        return decide(self.graph, self.demand, self.placed, self.available)


@st.composite
def settings(draw: st.DrawFn, *, minima_fit: bool = True) -> Setting:
    tasks: list[Task] = []
    for app in range(draw(st.integers(1, 4))):
        above: list[str] = []
        for at in range(draw(st.integers(1, 6))):
            upstream = draw(st.lists(st.sampled_from(above), unique=True, max_size=2)) if above else []
            name = f"a{app}t{at}"
            tasks.append(Task(name, tuple(upstream), draw(st.integers(1, 3))))
            above.append(name)
    fed = {name for task in tasks for name in task.upstream}
    tasks = [
        task
        if task.name in fed
        else Task(
            task.name,
            task.upstream,
            task.instances,
            draw(st.sampled_from((1.0, 2.0, 5.0))),
            draw(st.sampled_from((0.0, 0.2, 0.5, 0.9))),
        )
        for task in tasks
    ]
    graph = task_graph(tasks)
    full = draw(st.lists(st.sampled_from((0.0, 0.05, 0.1, 0.3, 0.7, 1.4)), min_size=len(tasks), max_size=len(tasks)))
    count = draw(st.integers(1, 4))
    names = instances(graph).names
    where = {name: draw(st.integers(0, count - 1)) for name in names}
    placed = instances(graph, where)
    demand = Demand.proportional(full)
    on = groups(placed.task, placed.machine, count)
    least = machine_load(graph, on, demand.full, np.minimum(graph.query_minimum, reachable(graph, demand)), count)
    whole = machine_load(graph, on, demand.full, np.ones(len(graph.queries)), count)
    at = np.array([draw(st.floats(0, 1.1)) for _ in range(count)])
    available = (least + at * (whole - least) if minima_fit else at * whole) + 1e-6
    return Setting(graph, demand, placed, available)


def reachable(graph: TaskGraph, demand: Demand) -> Any:
    """The accuracy of each query that one core per instance allows, query by query."""
    return np.array(
        [
            min(
                float(demand.reachable()[task])
                for task in range(len(graph.tasks))
                if query in graph.pair_query[graph.pair_starts[task] :][: graph.pair_counts[task]]
            )
            for query in range(len(graph.queries))
        ]
    )


@steady(120)
@given(at=settings())
def test_minima_come_first_then_priorities_and_nothing_is_left_unused(at: Setting) -> None:
    found = at.decide()
    ceilings = reachable(at.graph, at.demand)
    assert len(found.moves) == 0
    assert np.all(found.desired >= np.minimum(at.graph.query_minimum, ceilings) - 1e-9)
    assert np.all(found.desired <= ceilings + 1e-9)
    load = machine_load(at.graph, at.groups, at.demand.full, found.desired, len(at.available))
    assert np.all(load <= at.available * (1 + 1e-6))
    assert inversions(at.graph, at.groups, at.demand.full, at.available, found.desired, ceilings) == []
    assert could_have_more(at.graph, at.groups, at.demand.full, at.available, found.desired, ceilings) == []


@steady(40)
@given(at=settings())
def test_drops_stand_as_early_as_possible(at: Setting) -> None:
    found = at.decide()
    got = accuracy(at.graph, found.kept)
    assert got[at.graph.queries] == pytest.approx(found.desired, abs=1e-9)
    # no task works for more than the most demanding of its consumers takes
    for task in range(len(at.graph.tasks)):
        below = [at.graph.heads[edge] for edge in np.flatnonzero(at.graph.tails == task)]
        if below:
            assert got[task] == pytest.approx(max(got[head] for head in below), abs=1e-9)
            # so at least one stream out of it keeps everything
            if got[task] > 0:
                assert max(found.kept.edges[at.graph.tails == task]) == pytest.approx(1.0)


@steady(40)
@given(at=settings(minima_fit=False))
def test_the_same_samples_give_the_same_decision_and_what_moves_makes_room(at: Setting) -> None:
    one, two = at.decide(), at.decide()
    assert np.array_equal(one.desired, two.desired)
    assert np.array_equal(one.moves, two.moves)
    machine = at.placed.machine.copy()
    machine[one.moves] = -1
    left = groups(at.placed.task, machine, len(at.available))
    load = machine_load(at.graph, left, at.demand.full, one.desired, len(at.available))
    assert np.all(load <= at.available * (1 + 1e-6))
    reached = np.minimum(at.graph.query_minimum, reachable(at.graph, at.demand))
    assert np.all(one.desired >= reached - 1e-9), "whoever stays has its minimum"
    for instance in one.moves:
        on = at.placed.machine[instance]
        assert one.short_cores[on] > 0, "only machines that are short let something go"


def test_room_that_a_limited_query_leaves_goes_to_minima_before_priorities() -> None:
    """TM1 holds A back: of its minimum .8 it gets .1. What A then leaves of TM2 is what B lacks for its own minimum."""
    graph = task_graph(
        [
            Task("s"),
            Task("A", ("s",), min_accuracy=0.8),
            Task("B", min_accuracy=0.8),
            Task("C", priority=5, min_accuracy=0.2),
        ]
    )
    placed = instances(graph, {"A.1": 1, "B.1": 1, "C.1": 1})
    demand = Demand.proportional([0.8, 0.5, 0.5, 0.5])
    pinned = np.ones(4, dtype=bool)
    found = decide(graph, demand, placed, np.array([0.08, 0.6]), pinned=pinned)
    assert found.by_query(graph) == pytest.approx({"A": 0.1, "B": 0.8, "C": 0.3})
    assert [graph.query_names[at] for at in found.below_minimum] == ["A"]


@steady(80)
@given(at=settings(minima_fit=False))
def test_who_is_below_its_minimum_could_not_have_more_with_others_at_theirs(at: Setting) -> None:
    pinned = np.ones(len(at.placed.task), dtype=bool)
    found = decide(at.graph, at.demand, at.placed, at.available, pinned=pinned)
    load = machine_load(at.graph, at.groups, at.demand.full, found.desired, len(at.available))
    assert np.all(load <= at.available * (1 + 1e-6))
    minima = np.minimum(at.graph.query_minimum, reachable(at.graph, at.demand))
    others = np.minimum(found.desired, minima)
    assert could_have_more(at.graph, at.groups, at.demand.full, at.available, others, minima) == []


@steady(40)
@given(at=settings(), more=st.floats(1.0, 2.0))
def test_the_highest_priority_never_loses_by_more_cores(at: Setting, more: float) -> None:
    top = at.graph.query_priority == at.graph.query_priority.max()
    before, after = at.decide(), at._replace(available=at.available * more).decide()
    assert before.desired[top].min() <= after.desired[top].min() + 1e-6
