"""Drops in front of timed operators (LAS): where they may stand, what each lets through, how much of the work is cut.

The work in excess is shared out: every timed operator is left the same share of its own. An operator below another one
counts what still comes to it, so a tuple that was dropped above is not dropped twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from jettison.network.graph import Graph
from jettison.network.operators import Map
from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.latency_rule import LATE_SHARE, LatencyRule
from jettison.plan.floors import floor_at
from jettison.plan.placement.strata import estimates_below
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.plan.shedders.timed_costs import TimedCosts
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.load import flows

LATENCY_GOAL = "latency goal"
_LEAST_KEEP = 0.001
_HALVINGS = 30
_TRIES = 12
_WASTE = 0.002
"""A cut is good enough when it saves no more than this share of the budget too much."""
_SURE = 1e-9


def timed_operators(graph: Graph) -> list[Map]:
    """The timed operators in front of which a drop by cost may stand, from above to below.

    It may not stand above windows whose results must be right, or above estimates: there the rest of the network, with
    its drops by window and by chance, is planned as if costs were all the same.
    """
    timed = [each for each in graph.operators if isinstance(each, Map)]
    return [each for each in timed if _may_stand(graph, graph.arcs_into(each.name)[0])]


def _may_stand(graph: Graph, arc: str) -> bool:
    return decisions_of(graph).by_chance(arc) and not estimates_below(graph, arc)


def least_cut(problem: Problem, drops_at: Callable[[float], Mapping[str, Drop]]) -> float:
    """The smallest share of timed work to cut so that the work fits its budget; 1 where even that is not enough."""

    def over_us(cut: float) -> float:
        return problem.load_us - claimed(problem, drops_at(cut), LATENCY_GOAL).saves_us - problem.budget_us

    rounding_us = 1e-8 * max(1.0, problem.load_us)
    low, low_us, high, high_us = 0.0, over_us(0.0), 1.0, over_us(1.0)
    if low_us <= rounding_us:
        return 0.0
    if high_us > rounding_us:
        return 1.0
    for number in range(_TRIES):
        # where it would be if work fell evenly, and in between by halves: below what goals cut, it does not fall at all
        middle = low + (high - low) * (0.5 if number % 2 else low_us / (low_us - high_us))
        middle_us = over_us(middle)
        if middle_us > rounding_us:
            low, low_us = middle, middle_us
            continue
        high, high_us = middle, middle_us
        if -middle_us <= _WASTE * max(0.0, problem.budget_us):
            break
    return high


@dataclass(frozen=True)
class CostBounds:
    """Makes the drops of one shedder: its settings, what it knows about operators, and the time between batches."""

    check: str
    order: str
    least_keep: float
    tau_us: float | None
    interval_us: float
    known: Callable[[str], TimedCosts]

    def drops(
        self, problem: Problem, cut: float, late_cut: float = 0.0, beside: Mapping[str, Drop] | None = None, *,
        sure: bool = False,
    ) -> dict[str, Drop]:  # fmt: skip
        """Drops that leave every timed operator 1 - `cut` of its work, and hold goals for latency.

        `late_cut` is what goals ask for, of operators that have one (see `late_cut_of`). `beside` are drops of the rest
        of the network; one in front of a timed operator is a cut of its work. With `sure` drops in order of arrival are
        expected to take what the cut asks for and no more.
        """
        found, others = dict[str, Drop](), beside or {}
        whole = flows(problem.graph, problem.profile, problem.rows)
        for operator in timed_operators(problem.graph):
            (arc,) = problem.graph.arcs_into(operator.name)
            keeps = {where: drop.keep for where, drop in {**others, **found}.items() if where != arc}
            coming = flows(problem.graph, problem.profile, problem.rows, keeps)[arc] if keeps else whole[arc]
            arriving = _Arriving(operator, arc, whole[arc], coming)
            here = max(cut, 1.0 - others[arc].keep) if arc in others else cut
            bound = self._bound(problem, arriving, here, late_cut, sure=sure)
            found |= {} if bound is None else {arc: bound}
        return found

    def late_cut_of(self, problem: Problem) -> float:
        """With order "worth": the share of work to cut so that a tuple that came one interval before the batch begins,
        and waits for its end, is within its goal."""
        goals = [self.goal_us(problem.graph, each.name) for each in timed_operators(problem.graph)]
        limits = [max(0.1 * goal, goal - self.interval_us) for goal in goals if goal is not None]
        if self.order != "worth" or not limits or problem.load_us <= min(limits):
            return 0.0
        return least_cut(problem.with_budget(min(limits)), lambda cut: self.drops(problem, 0.0, cut))

    def goal_us(self, graph: Graph, operator: str) -> float | None:
        """The shedder's own goal, or the strictest one of the outputs behind an operator."""
        if self.tau_us is not None:
            return self.tau_us
        behind = graph.outputs_below(operator)
        goals = [each.qos.latency_goal_us for each in graph.outputs if each.name in behind]
        return min((goal for goal in goals if goal is not None), default=None)

    def _bound(
        self, problem: Problem, arriving: _Arriving, cut: float, late_cut: float, *, sure: bool
    ) -> CostBound | None:
        known = self.known(arriving.operator.name)
        goal_us = self.goal_us(problem.graph, arriving.operator.name)
        free = (
            problem.profile.cost(arriving.operator.name) <= 0
        )  # as batch times tell; what was timed may be late still
        if arriving.rows <= 0 or known.mean_us <= 0 or (free and (goal_us is None or self.order == "worth")):
            return None
        least = min(1.0, floor_at(problem.graph, arriving.arc) * arriving.whole / arriving.rows)
        if self.order == "worth":
            late = goal_us is not None and late_cut > cut
            left = arriving.share_left(max(cut, late_cut) if goal_us is not None else cut)
            return None if left >= 1.0 else self._by_worth(problem, arriving, left, least, goal_us if late else None)
        if goal_us is None and arriving.share_left(cut) >= 1.0:
            return None
        return self._by_arrival(problem, arriving, max(least, arriving.share_left(cut)), least, cut, goal_us, sure=sure)

    def _by_arrival(
        self, problem: Problem, arriving: _Arriving, fits: float, least: float, cut: float, goal_us: float | None, *,
        sure: bool,
    ) -> CostBound:  # fmt: skip
        """Drop in order of arrival what would wait longer than the goal, or not fit the budget."""
        operator, known = arriving.operator, self.known(arriving.operator.name)
        lane_us = known.scale * known.mean_us * arriving.rows / known.lanes
        tau_us = problem.budget_us if goal_us is None else goal_us
        most_us = 2 * (tau_us - self.interval_us / 2) if self.check == "average" else tau_us
        expected = fits if sure else max(_LEAST_KEEP, least, min(fits, max(0.0, most_us) / lane_us))
        rule = LatencyRule(
            max(_SURE, tau_us),
            self.check,
            known.lanes,
            1000.0 * problem.now_ms,
            known.scale,
            known.waited.within(tau_us, LATE_SHARE),
            math.inf if cut <= 0 else fits * lane_us,
            min(self.interval_us or math.inf, tau_us / 2),
            least,
        )
        return CostBound(operator.name, operator.key, known.mean_us, rule, _name(known), min(1.0, expected))

    def _by_worth(
        self, problem: Problem, arriving: _Arriving, left: float, least: float, goal_us: float | None
    ) -> CostBound:
        """Drop what is worth least for its cost, until this share of the work is left."""
        operator, known = arriving.operator, self.known(arriving.operator.name)
        keeps = _keeps(known.classes, left, self.least_keep, least)
        rule = _valued(problem.graph, arriving, WorthRule(known.classes, keeps, goal_us=goal_us))
        mean_us = known.first_us if known.pair is None else known.mean_us
        return CostBound(operator.name, operator.key, mean_us, rule, _name(known))


@dataclass(frozen=True)
class _Arriving:
    """The tuples that come to an operator: without any drop (`whole`), and behind those above it (`rows`)."""

    operator: Map
    arc: str
    whole: float
    rows: float

    def share_left(self, cut: float) -> float:
        """The share of what comes that leaves the operator 1 - `cut` of its whole work."""
        return min(1.0, max(0.0, 1.0 - cut) * self.whole / self.rows)


def _keeps(classes: CostClasses, work_share: float, least_keep: float, least: float) -> tuple[float, ...]:
    """What to keep of every class of cost; more than the work allows where a floor asks for `least` of the tuples."""
    keeps = classes.keeps_for(work_share, least_keep)
    if classes.kept_share(keeps) >= least:
        return keeps
    low, high = work_share, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = classes.kept_share(classes.keeps_for(middle, least_keep)) >= least
        low, high = (low, middle) if enough else (middle, high)
    return classes.keeps_for(high, least_keep)


def _valued(graph: Graph, arriving: _Arriving, rule: WorthRule) -> WorthRule:
    """The rule with what tuples are worth: to the outputs behind the operator that value them, by their priority."""
    at, behind = graph.tracks.at(arriving.arc), graph.outputs_below(arriving.operator.name)
    if at is None:
        return rule
    track, column = at
    valued = [(each.qos.priority, each.qos.value) for each in graph.outputs if each.name in behind]
    worths = [priority * track.worth(value) for priority, value in valued if value is not None]
    whole = sum(priority for priority, value in valued if value is not None)
    if not worths or whole <= 0:
        return rule
    mean = np.sum(worths, axis=0) / whole
    return replace(rule, value=column, value_bounds=track.bounds, worths=tuple(mean.tolist()))


def _name(known: TimedCosts) -> str | None:
    return None if known.pair is None else known.pair.name
