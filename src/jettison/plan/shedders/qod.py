"""Quality of data (Stream Economics, chapter 3): minimum accuracies for all first, what is left by priority.

One cycle of the seed's controller (algorithm 3.2) as a plan for one machine, the budget of a batch:

1. Every output gets its minimum accuracy, whatever its priority.
2. What is left goes to the highest priority first, evenly among equals (`plan.quality.sharing`): a priority is a rank,
   only its order counts. What an output cannot use goes to the others.
3. Accuracies become drops, as early as possible (`qod_drops`).

Where not even the minima fit, some outputs are paused (`qod_pauses`), or all are below their minimum alike.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.plan.floors import below_floor, floors
from jettison.plan.plan import DEGRADED, PAUSED, Infeasible, Plan
from jettison.plan.predictions import OVERLOAD, WITHIN_BUDGET, claimed, not_enough, nothing_shed, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.quality.instances import groups
from jettison.plan.quality.sharing import share_out
from jettison.plan.quality.tasks import Task, TaskGraph, Vector, task_graph
from jettison.plan.shedders.qod_drops import DropPlaces, drop_places
from jettison.plan.shedders.qod_pauses import outputs_to_pause
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile

_log = logging.getLogger("jettison")

_TRIES = 30
_MORE_THAN_OVER = 1.02
"""Drops cost something to judge too: so much more than a plan is over the budget is taken from what is shared out."""


class Qod:
    """The shedder "qod". With `pause` outputs of the lowest priority make room when not all minima fit; without it all
    outputs keep running, below their minimum alike.

    >>> from jettison.network import Network, QoS
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.where("x > 0", name="a").output("first", qos=QoS(priority=5))
    >>> _ = s.where("x > 1", name="b").output("second", qos=QoS(min_accuracy=0.2))
    >>> problem = Problem(net.graph, Profile({"a": 10.0, "b": 10.0}, {}), {"s": 100.0}, 900.0)
    >>> {name: round(share, 3) for name, share in Qod().plan(problem).delivered.items()}
    {'first': 0.7, 'second': 0.2}
    """

    def __init__(self, pause: bool = True) -> None:
        if not isinstance(pause, bool):
            raise StartError(f"qod: pause is {pause!r}: say True or False.")
        self.pause = pause
        self._told: frozenset[str] = frozenset()

    def prepare(self, problem: Problem) -> None:
        """Tell, once, of which outputs nobody knows what they cost: they count as free until batches have told."""
        unknown = frozenset(unknown_costs(problem.graph, problem.profile))
        if unknown - self._told:
            self._told |= unknown
            names = ", ".join(sorted(unknown))
            _log.warning("qod: the cost of %s is unknown: it counts as nothing, until batches have measured it", names)

    def plan(self, problem: Problem) -> Plan | Infeasible:
        if problem.load_us <= problem.budget_us:
            return nothing_shed(problem.graph, WITHIN_BUDGET)
        cycle = _Cycle(problem)
        minima = cycle.minima
        if cycle.fits(cycle.plan(minima)) and not (self.pause and problem.paused):
            return cycle.filled(minima, frozenset())
        return self._paused(cycle) if self.pause else self._degraded(cycle)

    def _paused(self, cycle: _Cycle) -> Plan | Infeasible:
        """Minima of those that go on, and more; those that make room get nothing."""
        problem = cycle.problem
        paused = outputs_to_pause(
            {output.name: output.qos.priority for output in problem.graph.outputs if cycle.minima[output.name] > 0},
            cycle.left_us,
            budget_us=problem.budget_us,
            unavoidable_us=problem.unavoidable_us,
            before=problem.paused,
            declared=frozenset(floors(problem.graph)),
        )
        if paused is None:
            return not_enough(problem, cycle.plan(cycle.minima))
        found = cycle.filled({**cycle.minima, **dict.fromkeys(paused, 0.0)}, paused)
        return replace(found, below_minimum=dict.fromkeys(sorted(paused), PAUSED))

    def _degraded(self, cycle: _Cycle) -> Plan | Infeasible:
        """All minima times one factor, the largest that fits."""
        problem, wanted = cycle.problem, cycle.minima
        low, high, best = 0.0, 1.0, cycle.plan(dict.fromkeys(wanted, 0.0))
        if not cycle.fits(best):
            return not_enough(problem, cycle.plan(wanted))
        for _ in range(_TRIES):
            middle = (low + high) / 2
            tried = cycle.plan({name: middle * share for name, share in wanted.items()})
            if cycle.fits(tried):
                low, best = middle, tried
            else:
                high = middle
        return replace(best, below_minimum=dict.fromkeys(below_floor(problem.graph, problem.rows, best), DEGRADED))


class _Cycle:
    """One problem, and what is computed of it again and again."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._places: DropPlaces = drop_places(problem.graph)
        self._tasks: TaskGraph = _tasks(problem.graph)
        lowest = self._places.lowest(problem)
        self.minima = {o.name: max(o.qos.min_accuracy, lowest[o.name]) for o in problem.graph.outputs}

    def plan(self, desired: Mapping[str, float], closed: frozenset[str] = frozenset()) -> Plan:
        return claimed(self.problem, self._places.drops(self.problem, desired, closed), OVERLOAD)

    def fits(self, plan: Plan) -> bool:
        return not over_budget_us(self.problem, plan)

    def left_us(self, paused: frozenset[str]) -> float:
        """The work of minima when these outputs are paused."""
        plan = self.plan({**self.minima, **dict.fromkeys(paused, 0.0)}, paused)
        return self.problem.load_us - plan.saves_us

    def filled(self, minima: Mapping[str, float], paused: frozenset[str]) -> Plan:
        """The plan that gives minima to all, and what is left by priority."""
        problem, tasks = self.problem, self._tasks
        on = flows(problem.graph, problem.profile, problem.rows)
        work_us = [
            problem.profile.cost(name) * sum(on[arc] for arc in problem.graph.arcs_into(name)) for name in tasks.names
        ]
        slope = np.array(work_us) / problem.load_us
        placed = groups(range(len(tasks.tasks)), [0] * len(tasks.tasks), machines=1)
        least = np.array([minima[name] for name in tasks.query_names])
        most = np.array([0.0 if name in paused else 1.0 for name in tasks.query_names])
        room = max(0.0, problem.budget_us - problem.unavoidable_us) / problem.load_us
        best = self.plan(minima, paused)
        for _ in range(_TRIES):
            shares = share_out(tasks, placed, slope, np.array([room]), least, most)
            desired = dict(zip(tasks.query_names, _riding_along(tasks, slope, shares, most).tolist(), strict=True))
            tried = self.plan(desired, paused)
            over_us = over_budget_us(problem, tried)
            if not over_us:
                return tried
            room -= _MORE_THAN_OVER * over_us / problem.load_us
            if room <= 0:
                break
        return best


def _riding_along(tasks: TaskGraph, slope: Vector, shares: Vector, most: Vector) -> Vector:
    """Accuracies that cost nothing more: every task above an output that costs anything works that much for others."""
    of_tasks = np.where(slope > 0, tasks.most(shares), 1.0)
    free = np.ones(len(shares))
    np.minimum.at(free, tasks.pair_query, of_tasks[tasks.pair_task])
    return np.minimum(np.maximum(shares, free), most)


def unknown_costs(graph: Graph, profile: Profile) -> tuple[str, ...]:
    """The outputs of whose own work nothing is known: no operator that serves them alone has a cost."""
    found = []
    for output in graph.outputs:
        own = [each.name for each in graph.operators if _serves_only(graph, each.name, output.name)]
        if not any(name in profile.cost_us for name in own):
            found.append(output.name)
    return tuple(found)


def _serves_only(graph: Graph, operator: str, output: str) -> bool:
    return operator == output or graph.outputs_below(operator) == {output}


def _tasks(graph: Graph) -> TaskGraph:
    """The operators of a network as tasks; its outputs are the queries."""
    known = graph.__dict__.get("_qod_tasks")
    if known is None:
        asked = {output.name: output.qos for output in graph.outputs}
        known = graph.__dict__["_qod_tasks"] = task_graph(
            [
                Task(
                    each.name,
                    tuple(dict.fromkeys(each.inputs)),
                    priority=asked[each.name].priority if each.name in asked else None,
                    min_accuracy=asked[each.name].min_accuracy if each.name in asked else None,
                )
                for each in graph.operators
            ]
        )
    assert isinstance(known, TaskGraph)
    return known
