"""Load-aware shedding (LAS): drop by what tuples are estimated to cost in operators that are timed.

`observe` learns what keys cost (`statistics.sketches`), `plan` puts a `CostBound` in front of every timed operator. The
rest of the network is planned as before, by the road map, with the operator's cost as it was learned.

Two orders. "arrival" is the seed's rule: tuples are dropped, whatever they cost, while those before them take too long.
"worth" keeps the tuples with the most worth per cost, down to a threshold that fits the budget: where all are worth the
same, the dear ones are dropped, so that many more are kept.
"""

from __future__ import annotations

import math
from dataclasses import replace

from jettison.errors import StartError
from jettison.network.durations import duration_ms
from jettison.network.graph import Graph
from jettison.network.operators import Map
from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.latency_rule import CHECKS, LATE_SHARE, LatencyRule
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed, not_enough, over_budget_us
from jettison.plan.problem import Problem, Shedder
from jettison.plan.shedders.renewed_road_map import RenewedRoadMap
from jettison.plan.shedders.timed_costs import TimedCosts
from jettison.statistics.load import flows
from jettison.statistics.samples import BatchSample
from jettison.statistics.sketches.cost_learner import CostLearning
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.universal import HashFunctions

ORDERS = ("arrival", "worth")
LEARNING = CostLearning()
LATENCY_GOAL = "latency goal"
_LEAST_KEEP = 0.001
_ASKING = (1.0, 1.5, 2.5, 5.0)
"""How many times as much the rest of the network is asked to save, until all fits: drops above a timed operator also
take tuples that the drop in front of it would take."""


class Las:
    """The shedder "las". `tau` is the goal for queueing latency, such as "2 seconds"; by default the outputs' own.

    `check` says what must not exceed it: the "average" of all tuples kept so far, as in the seed, "each" tuple's own
    latency, or its "p99". `order` is "arrival" or "worth"; with "worth", `least_keep` of every class of cost is kept.
    `learning` says how costs are learned. With None every tuple costs the mean: the seed's Straw-Man. `rest` plans the
    rest of the network, by default the road map.

    >>> Las(tau="2 seconds", check="p99").tau_us
    2000000.0
    """

    by_value = True
    every_batch = True

    def __init__(
        self,
        tau: str | None = None,
        *,
        check: str = "average",
        order: str = "arrival",
        least_keep: float = 0.0,
        learning: CostLearning | None = LEARNING,
        rest: Shedder | None = None,
    ) -> None:
        if check not in CHECKS:
            raise StartError(f"las: check is {check!r}: say one of {', '.join(map(repr, CHECKS))}.")
        if order not in ORDERS:
            raise StartError(f"las: order is {order!r}: say one of {', '.join(map(repr, ORDERS))}.")
        if isinstance(least_keep, bool) or not isinstance(least_keep, int | float) or not 0 <= least_keep <= 1:
            raise StartError(f"las: least_keep is {least_keep!r}: give a share from 0 to 1, such as 0.05.")
        if learning is not None and not isinstance(learning, CostLearning):
            raise StartError(f"las: learning is {learning!r}: give jt.CostLearning(...), or None to use the mean cost.")
        self.tau_us = None if tau is None else 1000.0 * duration_ms(tau, "las: tau")
        self._check, self._order, self._least_keep = check, order, float(least_keep)
        self._learn = learning is not None
        self._first = replace((learning or LEARNING).begin(), notices_changes=order == "arrival")
        self._rest = RenewedRoadMap() if rest is None else rest
        self._interval_us = 0.0
        self.costs: dict[str, TimedCosts] = {}
        """What is known, by timed operator."""

    def observe(self, sample: BatchSample) -> None:
        """Learn what tuples cost."""
        self._interval_us = 1000.0 * sample.interval_ms
        for name, timed in sample.timed.items():
            self.costs[name] = self.known(name).after(timed, learn=self._learn)
        if hasattr(self._rest, "observe"):
            self._rest.observe(sample)

    def prepare(self, problem: Problem) -> None:
        if hasattr(self._rest, "prepare"):
            self._rest.prepare(problem)

    @property
    def functions(self) -> HashFunctions:
        """The hash functions of sketches that tuples are timed into."""
        return self._first.sketch.functions

    def known(self, operator: str) -> TimedCosts:
        """What is known about a timed operator; nothing at first."""
        return self.costs.get(operator) or TimedCosts(self._first)

    def pair_named(self, name: str) -> CostPair | None:
        """The published pair that a plan names, while it is in use."""
        pairs = (known.pair for known in self.costs.values())
        return next((pair for pair in pairs if pair is not None and pair.name == name), None)

    def restore(self, operator: str, pair: CostPair) -> None:
        """Go on, after a restart, with a pair that was published before."""
        known = self.known(operator)
        self.costs[operator] = replace(known, learner=replace(known.learner, pair=pair))

    def plan(self, problem: Problem) -> Plan | Infeasible:
        drops: dict[str, Drop] = {}
        for operator in problem.graph.operators:
            if isinstance(operator, Map):
                bound = self._bound(problem, operator)
                drops |= {} if bound is None else dict.fromkeys(problem.graph.arcs_into(operator.name), bound)
        plan = claimed(problem, drops, LATENCY_GOAL)
        over_us = over_budget_us(problem, plan)
        if not over_us:
            return plan
        best = plan
        for times in _ASKING:
            answer = self._rest.plan(problem.with_budget(max(0.0, problem.load_us - times * over_us)))
            found = answer if isinstance(answer, Plan) else answer.best
            best = claimed(problem, {**found.drops, **drops}, LATENCY_GOAL)
            best = replace(best, below_minimum=found.below_minimum)
            if not over_budget_us(problem, best):
                return best
        return not_enough(problem, best)

    def _bound(self, problem: Problem, operator: Map) -> CostBound | None:
        """The drop in front of a timed operator, where there is something to hold and something to do."""
        known, (arc,) = self.known(operator.name), problem.graph.arcs_into(operator.name)
        count = flows(problem.graph, problem.profile, problem.rows)[arc]
        work_us = count * problem.profile.cost(operator.name)
        goal_us = self._goal_us(problem.graph, operator.name)
        excess_us = problem.load_us - problem.budget_us
        if work_us <= 0 or known.mean_us <= 0 or (goal_us is None and excess_us <= 0):
            return None
        if self._order == "worth":
            return self._by_worth(problem, operator, work_us, goal_us, excess_us)
        lane_us = known.scale * known.mean_us * count / known.lanes
        fits = min(1.0, max(0.0, 1.0 - excess_us / work_us))
        tau_us = problem.budget_us if goal_us is None else goal_us
        waiting_us = self._interval_us / 2
        most_us = 2 * (tau_us - waiting_us) if self._check == "average" else tau_us
        expected = max(_LEAST_KEEP, min(fits, max(0.0, most_us) / lane_us))
        rule = LatencyRule(
            tau_us,
            self._check,
            known.lanes,
            1000.0 * problem.now_ms,
            known.scale,
            known.waited.within(tau_us, LATE_SHARE),
            math.inf if excess_us <= 0 else fits * lane_us,
            min(self._interval_us or math.inf, tau_us / 2),
        )
        return CostBound(operator.name, operator.key, known.mean_us, rule, _name(known), min(1.0, expected))

    def _by_worth(
        self, problem: Problem, operator: Map, work_us: float, goal_us: float | None, excess_us: float
    ) -> CostBound | None:
        """Drop what is worth least for its cost, until the batch fits its budget and its tuples their goal."""
        known, (arc,) = self.known(operator.name), problem.graph.arcs_into(operator.name)
        late_us = -math.inf
        if goal_us is not None:  # a tuple may have come one interval before the batch begins, and wait for its end
            late_us = problem.load_us - max(0.1 * goal_us, goal_us - self._interval_us)
        if max(excess_us, late_us) <= 0:
            return None
        share = min(1.0, max(0.0, 1.0 - max(excess_us, late_us) / work_us))
        keeps = known.classes.keeps_for(share, self._least_keep)
        rule = WorthRule(known.classes, keeps, goal_us=goal_us if late_us > excess_us else None)
        at = problem.graph.tracks.at(arc)
        values = [each.qos.value for each in problem.graph.outputs if each.qos.value is not None]
        if at is not None and values:
            track, column = at
            rule = replace(rule, value=column, value_bounds=track.bounds, worths=tuple(track.worth(values[0]).tolist()))
        mean_us = known.first_us if known.pair is None else known.mean_us
        return CostBound(operator.name, operator.key, mean_us, rule, _name(known))

    def _goal_us(self, graph: Graph, operator: str) -> float | None:
        """The strictest goal of the outputs behind an operator, or the shedder's own."""
        if self.tau_us is not None:
            return self.tau_us
        behind = graph.outputs_below(operator)
        goals = [each.qos.latency_goal_us for each in graph.outputs if each.name in behind]
        return min((goal for goal in goals if goal is not None), default=None)


def _name(known: TimedCosts) -> str | None:
    return None if known.pair is None else known.pair.name
