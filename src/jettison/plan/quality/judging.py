"""What a decision must hold, checked without the code that made it: priorities and use of the machines.

A query is wronged if it could have more while those of lower priority keep their minimum. Cores are wasted if any query
could have more with all others as they are. Both ask whether a small step fits on every machine.
"""

from __future__ import annotations

import numpy as np

from jettison.plan.quality.instances import Groups
from jettison.plan.quality.sharing import machine_load
from jettison.plan.quality.tasks import TaskGraph, Vector

STEP = 1e-4
"""A step of accuracy that is worth having."""


def inversions(
    graph: TaskGraph, placed: Groups, slope: Vector, available: Vector, desired: Vector, ceilings: Vector
) -> list[str]:
    """The queries that could have more if those of lower priority had no more than their minimum.

    >>> from jettison.plan.quality.instances import groups
    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> graph = task_graph([Task("A", priority=2), Task("B", min_accuracy=0.2)])
    >>> placed, one = groups([0, 1], [0, 0], machines=1), np.ones(2)
    >>> inversions(graph, placed, one, np.array([1.0]), np.array([0.7, 0.3]), one)
    ['A']
    >>> inversions(graph, placed, one, np.array([1.0]), np.array([0.8, 0.2]), one)
    []
    """
    found = []
    for query in np.flatnonzero(desired < ceilings - 2 * STEP).tolist():
        lower = graph.query_priority < graph.query_priority[query]
        others = np.where(lower, np.minimum(desired, graph.query_minimum), desired)
        if _can_grow(graph, placed, slope, available, others, query):
            found.append(graph.query_names[query])
    return found


def could_have_more(
    graph: TaskGraph, placed: Groups, slope: Vector, available: Vector, desired: Vector, ceilings: Vector
) -> list[str]:
    """The queries that could have more with all others as they are: cores are left that would serve them."""
    growing = np.flatnonzero(desired < ceilings - 2 * STEP).tolist()
    return [graph.query_names[at] for at in growing if _can_grow(graph, placed, slope, available, desired, at)]


def _can_grow(graph: TaskGraph, placed: Groups, slope: Vector, available: Vector, desired: Vector, query: int) -> bool:
    more = desired.copy()
    more[query] += STEP
    load = machine_load(graph, placed, slope, more, len(available))
    before = machine_load(graph, placed, slope, desired, len(available))
    grows = load > before * (1 + 1e-12)
    return bool(np.all(load[grows] <= available[grows] * (1 + 1e-9)))
