"""What minima leave of the machines is shared out by priority, evenly among equals (algorithms 3.2 and 3.4).

Every query of the priority grows from its minimum as `minimum + s / dearest`, where s is the cores that its dearest
instance gets beyond the minimum. So equal queries get equal shares of the processor, and no task works for what is
dropped further down. A machine is short if this does not fit there: its slack is above 0. It fills up at some share s.
The most restrictive machine, which fills up first, is settled first: the accuracies of its tasks are ceilings for all
queries that they serve. What its queries then cannot use on other machines goes to the others there.
"""

from __future__ import annotations

import numpy as np

from jettison.plan.quality.filling import TOLERANCE, Entries, Filling, Round
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
    ceiling = np.maximum(minima, ceilings)
    if np.all(machine_load(graph, placed, slope, ceiling, len(available)) <= available * (1 + TOLERANCE)):
        return ceiling
    sharing = _Sharing(graph, placed, slope, available, minima, ceiling)
    for priority in np.unique(graph.query_priority)[::-1].tolist():
        sharing.grow(graph.query_priority == priority)
    return sharing.reached


def lower_alike(graph: TaskGraph, placed: Groups, slope: Vector, available: Vector, minima: Vector) -> Vector:
    """Scale all minima by the largest factor that fits; queries on no full machine keep theirs.

    On TM1 there is half of what A needs. What A leaves of TM2 is enough for all of B:

    >>> from jettison.plan.quality.instances import groups
    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> graph = task_graph([Task("s"), Task("A", ("s",), min_accuracy=0.8), Task("B", min_accuracy=0.8)])
    >>> placed = groups([0, 1, 2], [0, 1, 1], machines=2)
    >>> minima = lower_alike(graph, placed, np.ones(3), np.array([0.4, 1.2]), graph.query_minimum)
    >>> minima.round(6).tolist()
    [0.4, 0.8]
    """
    if np.all(machine_load(graph, placed, slope, minima, len(available)) <= available * (1 + TOLERANCE)):
        return minima
    nothing, pace = np.zeros(len(minima)), np.maximum(minima, 1e-9)
    sharing = _Sharing(graph, placed, slope, np.maximum(0.0, available), nothing, minima.copy(), pace)
    sharing.grow(np.ones(len(minima), dtype=bool))
    return sharing.reached


class _Sharing:
    """How far every query came, how far it may still come, and the machines on which nothing changes any more."""

    def __init__(
        self,
        graph: TaskGraph,
        placed: Groups,
        slope: Vector,
        available: Vector,
        minima: Vector,
        ceiling: Vector,
        pace: Vector | None = None,
    ) -> None:
        """`pace` is by how much every query grows with the share; by default the share is cores of its dearest
        instance."""
        every = Entries.of(graph, placed, slope)
        self._every = every.only(every.work[every.group] > 0)
        self._dearest = _dearest(graph, placed, slope, self._every) if pace is None else 1.0 / pace
        self._graph, self._placed, self._available, self._minima = graph, placed, available, minima
        self._ceiling, self._settled = ceiling, np.zeros(len(available), dtype=bool)
        by_machine = np.argsort(self._every.machine, kind="stable")
        self._on_machine = np.split(
            by_machine, np.cumsum(np.bincount(self._every.machine, minlength=len(available)))[:-1]
        )
        self.reached = minima.copy()

    def grow(self, level: Mask) -> None:
        """Let the queries of one priority grow until machines or ceilings stop all of them."""
        active = level & (self._ceiling > self.reached + TOLERANCE)
        growing = self._every.only(active[self._every.query] & ~self._settled[self._every.machine])
        floor = self._graph.most(self.reached)[self._placed.task]
        rest = self._available - self._load(slice(None), floor)
        shares = np.zeros(len(rest))
        while len(growing.query):  # every round settles a machine
            filling = Filling(growing, self._minima, self._ceiling, self._dearest, floor, rest, self._available)
            found = filling.round(shares)
            if found is None:
                break
            shares = np.where(np.isfinite(found.shares), found.shares, 0.0)
            stopped = self._settle(found, floor, active)
            active &= ~stopped
            growing = growing.only(~self._settled[growing.machine])
            still = stopped[growing.query]
            groups = np.unique(growing.group[still])
            before = floor[groups]
            np.maximum.at(floor, growing.group[still], self.reached[growing.query[still]])
            rest = rest - self._load(groups, floor[groups] - before)
            growing = growing.only(~still)
        self.reached = np.where(level, self._ceiling, self.reached)

    def _load(self, groups: Index | slice, accuracy: Vector) -> Vector:
        """Cores of every machine that groups take at these accuracies."""
        work, machine = self._every.work[groups] * accuracy, self._placed.machine[groups]
        found: Vector = np.bincount(machine, weights=work, minlength=len(self._available)).astype(float)
        return found

    def _settle(self, found: Round, floor: Vector, active: Mask) -> Mask:
        """What tasks reach on machines that are full is the ceiling of their queries. Returns the queries that stop.

        A query that rides along there with one that wants more may still grow, up to that ceiling.
        """
        self._settled |= found.first
        here = found.first[self._placed.machine[found.groups]]
        floor[found.groups[here]] = found.accuracy[here]
        inside = np.concatenate([self._on_machine[at] for at in np.flatnonzero(found.first).tolist()])
        queries = self._every.query[inside]
        np.minimum.at(self._ceiling, queries, floor[self._every.group[inside]])
        np.maximum(self._ceiling, self.reached, out=self._ceiling)
        touched = np.zeros(len(self._ceiling), dtype=bool)
        touched[queries] = True
        grown = self._minima + found.least / self._dearest
        stopped: Mask = active & touched & (self._ceiling <= grown + TOLERANCE)
        self.reached[stopped] = self._ceiling[stopped]
        return stopped


def _dearest(graph: TaskGraph, placed: Groups, slope: Vector, every: Entries) -> Vector:
    """The cores per accuracy of the dearest instance that every query needs."""
    found = np.zeros(len(graph.queries))
    np.maximum.at(found, every.query, slope[placed.task][every.group])
    return np.maximum(found, 1e-9 * np.max(found, initial=1e-300))
