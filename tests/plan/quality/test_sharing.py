"""Shares against an oracle that lets all queries grow in small steps until machines are full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.networks import steady
from tests.plan.quality.test_properties import Setting, reachable, settings

from jettison.plan.quality import Demand, Task, TaskGraph, task_graph
from jettison.plan.quality.cycle import decide
from jettison.plan.quality.instances import groups, instances
from jettison.plan.quality.sharing import machine_load, share_out

pytestmark = pytest.mark.core

STEPS = 400


def serves(graph: TaskGraph, task: int) -> list[int]:
    begin = graph.pair_starts[task]
    return list(graph.pair_query[begin : begin + graph.pair_counts[task]])


def in_small_steps(at: Setting) -> Any:
    """The same rule, step by step: all active queries grow by an equal share of cores for their dearest instance."""
    graph, full, on = at.graph, at.demand.full, at.groups
    ceilings = reachable(graph, at.demand)
    minima = np.minimum(graph.query_minimum, ceilings)
    count = len(graph.queries)
    dearest = [
        max(full[task] for task in range(len(graph.tasks)) if query in serves(graph, task)) for query in range(count)
    ]
    reached = minima.copy()
    for priority in sorted(set(graph.query_priority), reverse=True):
        active = {query for query in range(count) if graph.query_priority[query] == priority}
        for step in range(1, STEPS + 1):
            share = step / STEPS * max(dearest)
            grown = reached.copy()
            for query in active:
                grown[query] = min(ceilings[query], minima[query] + share / max(dearest[query], 1e-9))
            while np.any(machine_load(graph, on, full, grown, len(at.available)) > at.available * (1 + 1e-9)):
                load = machine_load(graph, on, full, grown, len(at.available))
                over = set(np.flatnonzero(load > at.available * (1 + 1e-9)).tolist())
                stop = {
                    query
                    for query in active
                    if grown[query] > reached[query]
                    and any(
                        over & set(on.machine[on.task == task].tolist())
                        and full[task] > 0
                        and query in serves(graph, task)
                        and grown[query] > max(reached[other] for other in serves(graph, task)) + 1e-12
                        for task in range(len(graph.tasks))
                    )
                }
                assert stop
                for query in stop:
                    grown[query] = reached[query]
                # a query that rides along below a stopped one may grow on: it is tried again with the next step
            reached = grown
    return reached


@steady(30)
@given(at=settings())
def test_shares_are_those_of_small_steps(at: Setting) -> None:
    found = at.decide().desired
    wanted = in_small_steps(at)
    if len(set(at.graph.query_priority)) == 1 and np.all(at.demand.full > 0):
        assert found == pytest.approx(wanted, abs=0.05)
    # whoever is worst off among the highest priority is no worse off than by small steps
    top = at.graph.query_priority == at.graph.query_priority.max()
    assert found[top].min() >= wanted[top].min() - 0.02


def test_even_shares_are_of_cores_and_what_one_cannot_use_goes_to_the_others() -> None:
    # beyond minima 0.9 cores: A is satisfied with 0.1, B and C get 0.4 each
    graph = task_graph([Task("A", min_accuracy=0.5), Task("B"), Task("C")])
    placed = groups([0, 1, 2], [0, 0, 0], machines=1)
    slope = np.array([0.2, 0.8, 1.6])
    found = share_out(graph, placed, slope, np.array([1.0]), graph.query_minimum, np.ones(3))
    assert found.tolist() == pytest.approx([1.0, 0.5, 0.25])


def test_the_order_of_machines_and_tasks_changes_nothing() -> None:
    chance = np.random.default_rng(3)
    tasks = [Task(f"s{at}") for at in range(6)]
    tasks += [
        Task(f"q{at}", (f"s{at % 6}", f"s{(at + 1) % 6}"), priority=float(at % 3 + 1), min_accuracy=0.1)
        for at in range(12)
    ]
    full = dict(zip((task.name for task in tasks), chance.uniform(0.1, 1.0, len(tasks)), strict=True))
    where = {f"{task.name}.1": int(chance.integers(0, 4)) for task in tasks}
    cores = chance.uniform(0.8, 2.0, 4)
    answers = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(tasks))
        turn = np.random.default_rng(seed + 10).permutation(4)
        graph = task_graph([tasks[at] for at in order])
        placed = instances(graph, {name: int(turn[at]) for name, at in where.items()})
        available = np.zeros(4)
        available[turn] = cores
        demand = Demand.proportional([full[task.name] for task in graph.tasks])
        answers.append(decide(graph, demand, placed, available).by_query(graph))
    assert all(each == pytest.approx(answers[0], abs=1e-6) for each in answers)
    assert 0.1 < min(answers[0].values()) < max(answers[0].values()) or min(answers[0].values()) == pytest.approx(0.1)
