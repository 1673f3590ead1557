"""What minima leave of the machines is shared out by priority, evenly among equals (algorithms 3.2 and 3.4).

Every query of the priority grows from its minimum as `minimum + s / dearest`, where s is the cores that its dearest
instance gets beyond the minimum. So equal queries get equal shares of the processor, and no task works for what is
dropped further down. A machine is short if this does not fit there: its slack is above 0. It fills up at some share s.
The most restrictive machine, which fills up first, is settled first: the accuracies of its tasks are ceilings for all
queries that they serve. What its queries then cannot use on other machines goes to the others there.
"""

from __future__ import annotations

import numpy as np

from jettison.plan.quality.filling import TOLERANCE, Entries, Filling
from jettison.plan.quality.instances import Groups
from jettison.plan.quality.tasks import Index, Mask, TaskGraph, Vector


def machine_load(graph: TaskGraph, placed: Groups, slope: Vector, of_queries: Vector, machines: int) -> Vector:
    """Cores that these accuracies of queries take on every machine, at `slope` cores per instance and accuracy."""
    work = placed.count * (slope * graph.most(of_queries))[placed.task]
    found: Vector = np.bincount(placed.machine, weights=work, minlength=machines).astype(float)
    return found


def share_out(
    graph: TaskGraph, placed: Groups, slope: Vector, available: Vector, minima: Vector, ceilings: Vector
) -> Vector:
    """The accuracy of every query, from its minimum up to its ceiling, the highest priority first.

    `slope` is the cores of an instance of each task per accuracy, `available` those of every machine, minima included.
    Minima must fit. A has the highest priority; of the others B needs less than an even share:

    >>> from jettison.plan.quality.instances import groups
    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> graph = task_graph([Task("A", priority=2), Task("B"), Task("C"), Task("D")])
    >>> placed = groups([0, 1, 2, 3], [0, 0, 0, 0], machines=1)
    >>> slope, cores = np.array([0.3, 0.1, 0.5, 0.5]), np.array([0.8])
    >>> share_out(graph, placed, slope, cores, np.zeros(4), np.ones(4)).round(6).tolist()
    [1.0, 1.0, 0.4, 0.4]
    """
    reached, ceiling = minima.copy(), np.maximum(minima, ceilings)
    if np.all(machine_load(graph, placed, slope, ceiling, len(available)) <= available * (1 + TOLERANCE)):
        return ceiling
    every = Entries.of(graph, placed, slope)
    every = every.only(every.work[every.group] > 0)
    dearest = _dearest(graph, placed, slope, every)
    settled = np.zeros(len(available), dtype=bool)
    for priority in np.unique(graph.query_priority)[::-1].tolist():
        level = graph.query_priority == priority
        floor = graph.most(reached)[placed.task]
        _fill_level(every, level, minima, ceiling, dearest, floor, available, settled, reached, placed.machine)
        reached = np.where(level, ceiling, reached)
    return reached


def _fill_level(
    every: Entries,
    level: Mask,
    minima: Vector,
    ceiling: Vector,
    dearest: Vector,
    floor: Vector,
    available: Vector,
    settled: Mask,
    reached: Vector,
    machine: Index,
) -> None:
    """Let the queries of one priority grow. Lowers `ceiling`, raises `reached`, marks machines that are `settled`."""
    active = level & (ceiling > reached + TOLERANCE)
    mine = every.only(level[every.query])
    shares = np.zeros(len(available))
    for _ in range(len(available) + 1):  # every round settles a machine
        growing = mine.only(active[mine.query] & ~settled[mine.machine])
        if not len(growing.query):
            return
        rest = available - np.bincount(machine, weights=every.work * floor, minlength=len(available))
        found = Filling(growing, minima, ceiling, dearest, floor, rest, available).round(shares)
        if found is None:
            return
        settled |= found.first
        shares = np.where(np.isfinite(found.shares), found.shares, 0.0)
        there = floor.copy()
        there[found.groups] = found.accuracy
        inside = found.first[every.machine]
        np.minimum.at(ceiling, every.query[inside], there[every.group[inside]])
        np.maximum(ceiling, reached, out=ceiling)
        # others that ride along with dearer ones on the tasks of a settled machine may grow up to their ceiling
        touched = np.zeros(len(ceiling), dtype=bool)
        touched[every.query[inside]] = True
        stopped = active & touched & (ceiling <= minima + found.least / dearest + TOLERANCE)
        reached[stopped] = ceiling[stopped]
        active = active & ~stopped
        still = stopped[mine.query]
        np.maximum.at(floor, mine.group[still], reached[mine.query[still]])


def _dearest(graph: TaskGraph, placed: Groups, slope: Vector, every: Entries) -> Vector:
    """The cores per accuracy of the dearest instance that every query needs."""
    found = np.zeros(len(graph.queries))
    np.maximum.at(found, every.query, slope[placed.task][every.group])
    return np.maximum(found, 1e-9 * np.max(found, initial=1e-300))
