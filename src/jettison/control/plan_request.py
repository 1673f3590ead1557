"""One decision: what to plan for, what the shedder answers, and what is made of an answer that is not enough.

Overload is answered at once; load is given back gradually, half of the way per batch, so that a noisy estimate does
not make the plan swing. A plan in force stays while it fits and wastes little: an unchanged filter is compiled already.
Both hold for every shedder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jettison.control.allowance import CANNOT_HELP
from jettison.control.judging import Estimates
from jettison.detect import Detector
from jettison.network.arc import Arc
from jettison.plan.drops.kind import Drop
from jettison.plan.placement.join_keys import by_chance, droppable
from jettison.plan.placement.ladder import LOWEST_KEEP_SHARE
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed, everything, not_enough, nothing_shed, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.reasons import NOT_BELIEVED, with_below_minimum
from jettison.plan.refine.context import Context
from jettison.plan.refine.floor_repair import hold_floors
from jettison.plan.refine.probing import most_without_closing
from jettison.plan.refine.refinements import ANSWERING, Step, refine
from jettison.plan.refine.schedules import closed, planned_rows
from jettison.plan.refine.staleness import within_floors
from jettison.plan.refine.worthwhile import lesser_plans, most_worthwhile
from jettison.plan.shedders.asked import AskedShedder
from jettison.plan.windows.count_windows import cheap_results
from jettison.plan.windows.group_values import with_groups_apart


@dataclass(frozen=True)
class Decided:
    """A plan, and the context that it was made in: its problem is what was planned for, its budget what is to be left.

    `infeasible` says why the plan is not enough, where it is not. `eased`: it is not meant to be, for the sake of what
    is left over from before nothing is closed. `stays`: it is the plan in force.
    """

    plan: Plan
    context: Context
    infeasible: str | None = None
    eased: bool = False
    stays: bool = False
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class PlanRequest:
    """What to plan, and whom to ask.

    `context` is what is known about the batch, `in_force` the plan before, which `may_stay` or not.
    """

    known: Estimates
    detector: Detector
    shedder: AskedShedder
    context: Context
    in_force: Plan = field(default_factory=Plan)
    may_stay: bool = False
    queues: Mapping[str, float] = field(default_factory=dict)
    held: str | None = None
    """Why nothing may be shed this time, where that is so."""

    def decided(self, more_us: float = 0.0) -> Decided:
        """The plan for a batch; one that saves `more_us` more than is needed.

        Where windows are dropped, plans are for what arrives in one interval and a part of what is left over.
        """
        rows, decisions = self.context.rows, self.context.decisions
        if all(decision.counts_rows for decision in decisions.by_aggregate.values()):
            return self._planned(rows, more_us)  # no tuple goes by window
        arriving = self.known.arriving
        melting = self._planned(planned_rows(rows, arriving, self.known.settings.melt_rate), more_us)
        if not closed(melting.plan) and melting.infeasible is None:
            return melting
        steady = self._planned(planned_rows(rows, arriving, 0.0), more_us)
        if steady.infeasible is not None or (closed(steady.plan) and any(arriving.values())):
            return steady
        # for the sake of what is left over from before, or of a first batch, nothing is closed
        drops = most_without_closing(decisions, melting.plan)
        plan = melting.context.restated(replace(melting.plan, row=steady.plan.row), drops)
        return Decided(plan, melting.context, eased=True)

    def _planned(self, rows: Mapping[str, float], more_us: float) -> Decided:
        """The plan for so many tuples, whatever they are: a batch, or what one interval brings."""
        problem, settings = replace(self.known.problem(rows), paused=self.in_force.paused), self.known.settings
        judgement = self.known.judge(self.detector, problem, self.queues)
        needed_us = judgement.excess_us
        if self.held or not settings.shedding or not judgement.overloaded or needed_us <= 0:
            if self.shedder.every_batch and settings.shedding and not self.held:
                return self._beside_budget(problem, judgement.reason)
            first = math.isinf(self.known.patience)  # no batch has run with these costs: they predict nothing yet
            return self._nothing(problem, self.held or (NOT_BELIEVED if first else judgement.reason))
        allowed = self.known.allowance(problem.coefficients)
        needed_us -= allowed.budget_us - settings.budget_us
        if needed_us <= 0:
            reason = allowed.reason or judgement.reason
            if self.shedder.every_batch:  # what is allowed to take longer may still be late
                return replace(self._beside_budget(problem, reason), infeasible=allowed.infeasible)
            return self._nothing(problem, reason, allowed.infeasible)
        fresh = self.context.fresh
        if fresh is not None:
            fresh = within_floors(self.known.graph, rows, fresh, self.context.read_shares)
            fresh = fresh if min(fresh.shares.values(), default=1.0) < 1.0 else None
        asked = replace(self.context, problem=problem.with_budget(problem.load_us - needed_us - more_us), fresh=fresh)
        if fresh is not None and asked.left.load_us <= asked.left.budget_us:
            found = Decided(nothing_shed(self.known.graph, "stale"), asked)
        else:
            found = self._shed(asked, judgement.reason)
        plan, steps = refine(found.plan, asked, ANSWERING)
        infeasible = allowed.infeasible or found.infeasible
        if infeasible is None and any(step.name == "floors" for step in steps):
            held = steps[0].after
            infeasible = not_enough(asked.left, held).reason if over_budget_us(asked.left, held) else None
        needed = replace(asked, problem=problem.with_budget(problem.load_us - needed_us))
        return replace(found, plan=plan, context=needed, infeasible=infeasible, steps=steps)

    def _beside_budget(self, problem: Problem, reason: str) -> Decided:
        """The batch fits its budget: what a shedder drops for the sake of another goal."""
        fits = replace(self.context, problem=problem.with_budget(max(problem.load_us, problem.budget_us)), fresh=None)
        found = self.shedder.plan(fits.problem)
        plan = found if isinstance(found, Plan) else found.best
        return Decided(plan if plan.drops else nothing_shed(self.known.graph, reason), fits)

    def _nothing(self, problem: Problem, reason: str, infeasible: str | None = None) -> Decided:
        """Nothing is to be saved, so nothing is shed."""
        unneeded = replace(
            self.context, problem=problem.with_budget(max(problem.load_us, problem.budget_us)), fresh=None
        )
        return Decided(nothing_shed(self.known.graph, reason), unneeded, infeasible)

    def _shed(self, asked: Context, reason: str) -> Decided:
        """A plan that brings the work of these rows within the budget; else as near as is worthwhile, and why."""
        problem = asked.left
        found, stays = self._answer(problem)
        if isinstance(found, Plan):
            return Decided(replace(found, reason=with_below_minimum(reason, found)), asked, stays=stays)
        eased = hold_floors(problem, self._trickle(problem, found.best))
        plans = [eased, *lesser_plans(problem, self.shedder, max(found.best.saves_us, eased.saves_us))]
        best = most_worthwhile(problem, plans)
        if best is None and self._stems_growth(eased):
            best = eased
        if best is None:
            closing = self._closing(problem)
            if closing is not None and not over_budget_us(problem, closing):
                return Decided(replace(closing, reason=reason), asked)
            best = closing
        if best is None:
            return Decided(nothing_shed(self.known.graph, CANNOT_HELP), asked, found.reason)
        return Decided(replace(best, reason="infeasible"), asked, found.reason)

    def _closing(self, problem: Problem) -> Plan | None:
        """The plan that drops all that floors and gaps of groups allow, where that is worthwhile.

        A shedder may not find it: of windows side by side that are decided apart, tuples go only when all are closed.
        """
        if not self.context.decisions.by_aggregate:
            return None
        drops = everything(problem).drops
        sound = {arc: drop for arc, drop in drops.items() if drop.judges == "window" or droppable(problem.graph, arc)}
        plan = hold_floors(problem, claimed(problem, sound, "infeasible"))
        left = with_groups_apart(problem, plan, self.context.named, by_value=self.shedder.by_value)
        return plan if most_worthwhile(problem, [left]) is not None else None

    def _answer(self, problem: Problem) -> tuple[Plan | Infeasible, bool]:
        """What the shedder says, and whether the plan in force stays."""
        if not self.may_stay or self.shedder.every_batch:
            return self.shedder.plan(problem), False
        needed_us = problem.load_us - problem.budget_us
        same = claimed(problem, self.in_force.drops, self.in_force.reason)
        asked_us = self._gradual(same.saves_us, needed_us)
        if asked_us == same.saves_us:
            return replace(same, row=self.in_force.row, below_minimum=self.in_force.below_minimum), True
        return self.shedder.plan(problem.with_budget(problem.load_us - asked_us)), False

    def _gradual(self, saved_us: float, needed_us: float) -> float:
        """What to save next: more at once, less half of the way, and as much as now while that wastes little."""
        waste_us, settings = saved_us - needed_us, self.known.settings
        if waste_us < 0:
            return needed_us
        return saved_us if waste_us <= settings.waste_share * settings.budget_us else needed_us + waste_us / 2

    def _stems_growth(self, plan: Plan) -> bool:
        """Whether a plan is worthwhile for what one interval brings, though not for the backlog at hand.

        More rows than time keep coming: without it every batch would be larger than the one before.
        """
        steady = self.known.problem(self.known.arriving)
        return most_worthwhile(steady, [claimed(steady, plan.drops, plan.reason)]) is not None

    def _trickle(self, problem: Problem, best: Plan) -> Plan:
        """A plan that drops everything, eased to the lowest level at the inputs: what never runs cannot be measured."""
        graph = problem.graph
        names = [source.name for source in graph.sources if droppable(graph, source.name)]
        # below an input of which windows need every tuple, what the best plan drops on its branches
        for arc, drop in best.drops.items():
            tail = Arc(arc).tail
            if tail is None or drop.judges == "window" or not droppable(graph, arc):
                continue
            if not any(each.name in names for each in graph.sources_above(tail)):
                names.append(arc)
        drops: dict[str, Drop] = {name: by_chance(graph, name, LOWEST_KEEP_SHARE) for name in names}
        spared = cheap_results(graph, problem.profile)
        drops |= most_without_closing(self.context.decisions, None, spared=spared)
        return replace(claimed(problem, drops, "infeasible"), row=best.row)
