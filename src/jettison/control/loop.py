"""WHEN to act: one tick of the control loop, the same for Spark and for a simulator.

Before a batch: `decide(rows, now_ms)` gives the plan. After it: `record(sample)` learns from what was measured.
Overload is answered at once; load is given back gradually, half of the way per batch, so that a noisy estimate does
not make the plan swing. A plan in force stays while it fits and wastes little: an unchanged filter is compiled already.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jettison.control.allowance import CANNOT_HELP, Allowance, allowance
from jettison.control.compensation import Decided, made_up
from jettison.control.named_sizes import before_drops, with_masses
from jettison.control.pace import ArrivalRates, Rest
from jettison.control.probing import Probes
from jettison.control.schedules import closed, most_without_closing, planned_rows, running_out, scheduled
from jettison.control.strata import stratified
from jettison.control.trust import Trust, by_chance_instead
from jettison.detect import Detector, Judgement
from jettison.errors import StartError
from jettison.network.columns.words import meant
from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.plan.certify import planned_load_us
from jettison.plan.drops.kind import Drop, PassShare, pass_shares
from jettison.plan.drops.window import Cells, Fate
from jettison.plan.floors import floor_at, least_read_share
from jettison.plan.placement.join_keys import by_chance, droppable
from jettison.plan.placement.ladder import LOWEST_KEEP_SHARE, Ladder
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.placement.strata import strata_at
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import WITHIN_BUDGET, claimed, not_enough, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.reasons import NOT_BELIEVED
from jettison.plan.refine.floor_repair import hold_floors
from jettison.plan.refine.staleness import Fresh, saved_by_stale_us, stale_limits, when_planned, within_floors
from jettison.plan.refine.unread import Unread, after_skipping
from jettison.plan.refine.worthwhile import lesser_plans, most_worthwhile
from jettison.plan.shedders.registry import SEMANTIC, SHEDDERS, shedder_named
from jettison.plan.shedders.road_map import RoadMap, RoadMapShedder, build_road_map
from jettison.plan.windows.count_windows import cheap_results
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.group_gaps import named_groups
from jettison.plan.windows.group_values import told_apart, window_drops
from jettison.statistics.belief import Belief
from jettison.statistics.costs import CostModel
from jettison.statistics.estimators import Smoothed
from jettison.statistics.follow import distance
from jettison.statistics.groups import GroupSizes
from jettison.statistics.load import flows, load_coefficients, queue_load_us, total_load_us
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample

_RATE_WEIGHT = 0.5
_MOST_READING_SHARE = 0.4
LEAST_READ_SHARE = 0.01
_REBUILD_CHANGE_SHARE = 0.05
_JUMP_SHARE = 0.03
_QUICK_LOCATIONS = 800
"""A road map of no more locations is built within a fraction of a second: at once, when values are spread otherwise."""
_HUNG_TIMES = 5.0
"""A batch that takes so many times as long as predicted hung somewhere: that says nothing of costs, unless the next
one takes as long."""


@dataclass(frozen=True)
class Settings:
    """How the loop behaves. `waste_share`: how much more than needed a plan in force may shed before it is changed.

    `shedder` is who plans: see `plan.shedders`. Without `learn` costs stay as they are given, and plans depend on rows
    and the order of batches alone, not on the clock (`control.pace`). Plans that are not `obeyed` are those of a dry
    run: batches are measured with nothing dropped.
    """

    trigger_ms: float
    headroom: float = 0.9
    shedding: bool = True
    melt_rate: float = 0.1
    waste_share: float = 0.04
    shedder: str = SEMANTIC
    learn: bool = True
    obeyed: bool = True

    def __post_init__(self) -> None:
        if not self.trigger_ms > 0:
            raise StartError(f"trigger is {self.trigger_ms} ms: give an interval above 0, such as '1 second'.")
        if not 0 < self.headroom <= 1:
            raise StartError(f"headroom is {self.headroom}: give the share of capacity to use, above 0 and at most 1.")
        if self.shedder not in SHEDDERS:
            near = meant(self.shedder, SHEDDERS)
            raise StartError(f"shedder {self.shedder!r} is not known{near}: use one of {', '.join(SHEDDERS)}.")

    @property
    def budget_us(self) -> float:
        """What one batch may take."""
        return 1000.0 * self.trigger_ms * self.headroom


class Controller:
    """The control loop's state: estimates, the road map, the plan in force."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        profile: Profile,
        clock: Callable[[], float] = time.perf_counter,
        *,
        guessed: bool = False,
    ) -> None:
        """`guessed`: costs were measured just now, the fixed part only guessed: batches are to confirm them."""
        self._graph = graph
        self._settings = settings
        self._costs = CostModel(graph, profile, guessed=guessed)
        self._belief = Belief(believed=not guessed)
        self._detector = Detector()
        names = [source.name for source in graph.sources]
        self._rates = ArrivalRates(names, settings.trigger_ms, by_clock=settings.learn)
        self._rest = Rest(len(graph.operators), settings.trigger_ms, clock if settings.learn else None)
        self._plan = Plan(reason=WITHIN_BUDGET)
        self._infeasible: str | None = None
        self._fates: Mapping[str, Fate] = {}
        self._groups = GroupSizes()
        self._newest_us: dict[str, int | None] = {}
        self._batch_us = {each.name: Smoothed(_RATE_WEIGHT) for each in graph.aggregates if each.estimated}
        self._decisions = decisions_of(graph)
        self._probes = Probes(self._decisions)
        self._named = named_groups(graph)
        self._road_map: RoadMap
        self._rows: Mapping[str, float] = {}
        self._sending: frozenset[str] = frozenset()
        self._hung = False
        self._held: str | None = None
        self._read: Mapping[str, float] = {}
        self._trust = Trust(graph)
        self._anew = False  # whether the plan in force rests on values as they are no more
        self._shedder = shedder_named(settings.shedder)
        self._stale_limits = when_planned(stale_limits(graph), settings.budget_us / 1e6)
        self._build({}, None)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def costs(self) -> CostModel:
        """Costs and selectivities as they are known; changed by `record` and `calibrated` alone."""
        return self._costs

    @property
    def profile(self) -> Profile:
        return self._costs.profile

    @property
    def believed(self) -> bool:
        """Whether costs have been confirmed by batches."""
        return self._belief.believed

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self._plan

    @property
    def infeasible(self) -> str | None:
        """Why the plan in force does not hold the budget, where it does not."""
        return self._infeasible

    @property
    def fates(self) -> Mapping[str, Fate]:
        """Which windows are kept, by aggregate: what has been decided so far."""
        return self._fates

    @property
    def road_map(self) -> RoadMap:
        return self._road_map

    @property
    def stale_limits(self) -> Mapping[str, float]:
        """How old rows may be when a batch is planned, in seconds by arc."""
        return self._stale_limits

    @property
    def rows_per_s(self) -> dict[str, float]:
        """Smoothed arrival rate of each source."""
        return self._rates.get()

    def read_share(
        self, rows: Mapping[str, int], skippable: frozenset[str], skipped: Mapping[str, int] | None = None
    ) -> float:
        """How much of these sources to read at all: 1, unless reading alone would take too much of the budget.

        A drop saves the work behind it, not the reading before it. Where records can be passed over unread, reading
        gets at most four tenths of what the fixed part leaves, so that there is time left to process what was read.
        Not where that would bring the batch less than half of the way to its budget; and floors are held.
        """
        budget_us = self._allowance().budget_us
        left_us = max(0.0, budget_us - 1000 * self.profile.fixed_ms)
        reading_us = {name: self.profile.read_us.get(name, 0.0) * count for name, count in rows.items()}
        passable_us = sum(cost for name, cost in reading_us.items() if name in skippable)
        most_us = max(0.0, _MOST_READING_SHARE * left_us - sum(reading_us.values()) + passable_us)
        if not self.settings.shedding or passable_us <= most_us:
            return 1.0
        problem = Problem(self.graph, self.profile, rows, budget_us)
        work_us = sum(problem.coefficients[name] * rows.get(name, 0) for name in skippable)
        if passable_us + work_us < (problem.load_us - budget_us) / 2:
            return 1.0
        before = skipped or {}
        least = [least_read_share(self.graph, each, rows.get(each, 0), before.get(each, 0)) for each in skippable]
        return max(LEAST_READ_SHARE, most_us / passable_us, *least)

    def may_skip(self, rows: Mapping[str, int], skipped: Mapping[str, int]) -> bool:
        """Whether floors can still be held when so many records are passed over and these rows are read."""
        left = {name: rows.get(name, 0) for name, count in skipped.items() if count > 0}
        return all(count >= floor_at(self.graph, name) * (count + skipped[name]) for name, count in left.items())

    def overloaded(self, rows: Mapping[str, int]) -> bool:
        """Whether so many rows, coming at the rate of late, are to be shed."""
        judged = self._judge(Problem(self.graph, self.profile, rows, self.settings.budget_us), {})
        beyond_us = self._allowance().budget_us - self.settings.budget_us
        return self.settings.shedding and judged.overloaded and (beyond_us == 0 or judged.excess_us > beyond_us)

    def can_look(self, rows: Mapping[str, int]) -> bool:
        """Whether there is time to look at one value of each of these rows: to read them, look, and read them again.

        A backlog for which there is not is thinned out by chance; that is sooner done, and the next batch is fresh.
        """
        cost_us = {name: 2 * self.profile.read_us.get(name, 0.0) + self.profile.look_us.get(name, 0.0) for name in rows}
        left_us = self.settings.budget_us - 1000 * self.profile.fixed_ms
        return sum(cost_us[name] * count for name, count in rows.items()) <= left_us

    def decide(
        self,
        rows: Mapping[str, int],
        now_ms: float,
        queues: Mapping[str, float] | None = None,
        fresh: Fresh | None = None,
        marks: BatchMarks | None = None,
        held: str | None = None,
        unread: Unread | None = None,
    ) -> Plan:
        """The plan for a batch of `rows` tuples that is about to run, as it is to be logged and obeyed.

        `queues` are tuples left waiting on arcs, `fresh` tells what of the batch is not stale, where that is known,
        `marks` how far windows have got: then windows to drop are chosen, and those that were stay so. `unread` are
        records that came beside these rows and are not read. `held` says why nothing may be shed this time, where that
        is so.
        """
        self._held = held
        passed = unread or Unread()
        self._read = passed.read_shares(rows)
        self._rates.update(rows, now_ms)
        decided = self._decide(rows, queues, fresh)
        if marks is not None:
            named = with_masses(self._named, self._groups)
            if any(name in decided.plan.fates and cells.masses for name, cells in named.items()):
                decided = self._making_up(decided, named, partial(self._decide, rows, queues, fresh))
            plan = self._probed(decided, self._probes.tried(closed(decided.plan), marks.newest_of))
            plan = self._told_apart(plan, named, decided.rows)
            plan = self._without(plan, running_out(self._decisions, plan, self.fates), decided.rows)
            plan = scheduled(self._decisions, plan, self.fates, marks)
            self._fates = plan.fates
        else:
            plan = decided.plan
        self._rows, self._infeasible = decided.rows, decided.infeasible
        plan = self._trusted(plan, decided.rows)
        plan = stratified(self.graph, plan, self._groups, self._covered_us(marks))
        self._plan = after_skipping(self.graph, plan, rows, passed)
        return self._plan

    def _trusted(self, plan: Plan, rows: Mapping[str, float]) -> Plan:
        """The plan without drops by value that rest on values nobody has seen, or that did not do what they said."""
        chance = self._trust.batches_by_chance > 0
        by_value = [arc for arc, drop in plan.drops.items() if drop.judges == "value"]
        doubted = [arc for arc in by_value if chance or not self.costs.knows_values(arc)]
        self._anew = bool(doubted)
        if not doubted:
            return plan
        return by_chance_instead(Problem(self.graph, self.profile, rows, self.settings.budget_us), plan, doubted)

    def _told_apart(self, plan: Plan, named: Mapping[str, Cells], rows: Mapping[str, float]) -> Plan:
        problem = Problem(self.graph, self.profile, rows, self.settings.budget_us)
        return told_apart(problem, plan, named, by_value=self.settings.shedder == SEMANTIC)

    def _without(self, plan: Plan, names: Collection[str], rows: Mapping[str, float]) -> Plan:
        """The plan without what it asks of aggregates of which nothing more goes for now."""
        if not names:
            return plan
        fates = {name: fate for name, fate in plan.fates.items() if name not in names}
        others: dict[str, Drop] = {arc: drop for arc, drop in plan.drops.items() if drop.judges != "window"}
        drops = {**others, **window_drops(self.graph, self._decisions, fates)}
        reason = f"{plan.reason}; {', '.join(sorted(names))}: what was decided by other rules runs out first"
        if plan.stale:
            return replace(plan, drops=drops, reason=reason)
        problem = Problem(self.graph, self.profile, rows, self.settings.budget_us)
        return replace(claimed(problem, drops, reason), row=plan.row)

    def _making_up(self, first: Decided, named: Mapping[str, Cells], decide: Callable[[float], Decided]) -> Decided:
        """The decision with others making up for what groups with gaps of their own keep, as far as they can."""
        if first.plan.stale or first.infeasible is not None:
            return first

        def saves_us(plan: Plan) -> float:
            return self._told_apart(plan, named, first.rows).saves_us

        slack_us = self.settings.waste_share * self.settings.budget_us
        plan, lacks_us = made_up(first, decide, saves_us, slack_us)
        infeasible = None
        if lacks_us:
            groups = ", ".join(repr(value) for name in plan.fates if name in named for value in named[name].names)
            infeasible = (
                f"what is kept of groups with gaps of their own ({groups}) leaves {lacks_us / 1000:.0f} ms above the "
                f"budget of {self.settings.budget_us / 1000:.0f} ms. Allow them longer gaps, "
                f"or use a longer trigger or more cores."
            )
        return replace(first, plan=replace(plan, reason=first.plan.reason), infeasible=infeasible)

    def groups_to_count(self, rows: Mapping[str, int]) -> frozenset[str]:
        """The aggregates whose groups should be counted before so many rows are shed, as nothing is known of them."""
        arcs = [self._at(arc) for arc in drop_arcs(self.graph)]
        names = frozenset(name for name in arcs if name is not None and self._groups.rows(name) is None)
        return names if names and self.overloaded(rows) else frozenset()

    def _at(self, arc: str) -> str | None:
        """The aggregate whose groups a drop on an arc tells apart."""
        found = strata_at(self.graph, arc)
        return None if found is None else found[0].name

    def _covered_us(self, marks: BatchMarks | None) -> dict[str, float]:
        """How much event time a batch covers, of late, by estimated aggregate; where that is known."""
        for name, covered in self._batch_us.items():
            newest_us, before_us = None if marks is None else marks.newest_of(name), self._newest_us.get(name)
            if newest_us is not None and before_us is not None and newest_us > before_us:
                covered.update(newest_us - before_us)
            self._newest_us[name] = newest_us
        return {name: known for name, covered in self._batch_us.items() if (known := covered.get()) is not None}

    def resume(self, plan: Plan) -> None:
        """Go on from a plan that was logged and is obeyed again."""
        self._plan, self._fates = plan, plan.fates

    def restore_fates(self, plan: Plan | None) -> None:
        """Keep to what the last logged plan decided about windows; without one nothing was decided."""
        self._fates = {} if plan is None else plan.fates

    def group_shares(self, aggregate: str) -> Mapping[int, float]:
        """The share of rows in each group of an aggregate that is told apart, as far as it is known."""
        return self._groups.of(aggregate)

    def learn_groups(self, counted: Mapping[str, GroupSample]) -> None:
        """Take in how many rows groups have, as counted, by aggregate (`groups_to_count`)."""
        self._groups.update(counted)

    def calibrated(self, profile: Profile, *, shedding: bool) -> None:
        """Plan by costs that were measured just now, and shed from now on if `shedding`.

        What is known about arrivals, groups, windows and probes stays. What was learned of the costs before goes, with
        the judgements that rest on them; batches are to confirm the new ones.
        """
        self._settings = replace(self._settings, shedding=shedding)
        self._costs = CostModel(self._graph, profile, guessed=True)
        self._belief = Belief(believed=False)
        self._detector = Detector()
        self._hung = False
        self._build(self.rows_per_s, None)

    def memory(self) -> dict[str, float]:
        """What the next plan rests on beside rows, costs and the plan in force, where the clock has no say: arrival
        rates. Nothing where costs are learned."""
        return {} if self.settings.learn else self._rates.known()

    def restore(self, plan: Plan, memory: Mapping[str, float]) -> None:
        """Go on, after a restart, where a run without `learn` was when it had made this plan."""
        if not self.settings.learn:
            self._plan = plan
            self._rates.restore(memory)

    def _decide(
        self,
        rows: Mapping[str, float],
        queues: Mapping[str, float] | None,
        fresh: Fresh | None,
        more_us: float = 0.0,
    ) -> Decided:
        """The plan for a batch; one that saves `more_us` more than is needed."""
        if all(decision.counts_rows for decision in self._decisions.by_aggregate.values()):
            return self._planned(rows, queues, fresh, more_us)  # no tuple goes by window
        arriving = self._arriving()
        melting = self._planned(planned_rows(rows, arriving, self.settings.melt_rate), queues, fresh, more_us)
        if not closed(melting.plan) and melting.infeasible is None:
            return melting
        steady = self._planned(planned_rows(rows, arriving, 0.0), queues, fresh, more_us)
        known = any(arriving.values())
        if steady.infeasible is not None or (closed(steady.plan) and known):
            return steady
        # for the sake of what is left over from before, or of a first batch, nothing is closed
        drops = most_without_closing(self._decisions, melting.plan)
        problem = Problem(self.graph, self.profile, melting.rows, self.settings.budget_us)
        plan = replace(claimed(problem, drops, melting.plan.reason), row=steady.plan.row)
        return replace(steady, plan=plan)

    def _probed(self, decided: Decided, names: Collection[str]) -> Plan:
        """The plan with these aggregates let in as their gaps allow, though it closes them."""
        plan = decided.plan
        if not names:
            return plan
        problem = Problem(self.graph, self.profile, decided.rows, self.settings.budget_us)
        drops = most_without_closing(self._decisions, plan, names)
        if plan.stale:
            return replace(plan, drops=drops)
        return replace(claimed(problem, drops, plan.reason), row=plan.row)

    def _planned(
        self, rows: Mapping[str, float], queues: Mapping[str, float] | None, fresh: Fresh | None, more_us: float
    ) -> Decided:
        """The plan for so many tuples, whatever they are: a batch, or what one interval brings."""
        problem = Problem(self.graph, self.profile, rows, self.settings.budget_us)
        judgement = self._judge(problem, queues or {})
        needed_us = judgement.excess_us
        if self._held or not self.settings.shedding or not judgement.overloaded or needed_us <= 0:
            first = math.isinf(self._belief.patience)  # no batch has run with these costs: they predict nothing yet
            reason = self._held or (NOT_BELIEVED if first else judgement.reason)
            return Decided(self.road_map.plan(0, rows, reason), rows)
        allowed = self._allowance()
        needed_us -= allowed.budget_us - self.settings.budget_us
        if needed_us <= 0:
            plan = self.road_map.plan(0, rows, allowed.reason or judgement.reason)
            return Decided(plan, rows, 0.0, allowed.infeasible)
        problem = problem.with_budget(problem.load_us - needed_us - more_us)
        fresh = None if fresh is None else within_floors(self.graph, rows, fresh, self._read)
        if fresh is not None and min(fresh.shares.values(), default=1.0) < 1.0:
            plan, infeasible = self._stale_first(problem, fresh, judgement.reason)
        else:
            plan, infeasible = self._with_floors(problem, *self._shed(problem, judgement.reason))
        return Decided(plan, rows, needed_us, allowed.infeasible or infeasible)

    def _allowance(self) -> Allowance:
        """What a batch may take before rows are dropped."""
        arriving = self._arriving()
        reading_us = sum(self.profile.read_us.get(name, 0.0) * count for name, count in arriving.items())
        return allowance(
            fixed_us=1000 * self.profile.fixed_ms,
            arriving_us=reading_us + total_load_us(load_coefficients(self.graph, self.profile), arriving),
            budget_us=self.settings.budget_us,
            patience=self._belief.patience,
        )

    def _arriving(self) -> dict[str, float]:
        """What one trigger interval brings, by source."""
        return {name: rate * self.settings.trigger_ms / 1000 for name, rate in self.rows_per_s.items()}

    def _judge(self, problem: Problem, queues: Mapping[str, float]) -> Judgement:
        """The batch at hand, and what arrives in one interval, against the budget."""
        arriving = self._arriving()
        reading_us = sum(self.profile.read_us.get(name, 0.0) * count for name, count in arriving.items())
        arriving_us = (
            1000 * self.profile.fixed_ms
            + reading_us
            + total_load_us(problem.coefficients, arriving)
            + queue_load_us(problem.coefficients, queues, self.settings.melt_rate)
        )
        return self._detector.judge(batch_us=problem.load_us, arriving_us=arriving_us, budget_us=problem.budget_us)

    def _stale_first(self, problem: Problem, fresh: Fresh, reason: str) -> tuple[Plan, str | None]:
        """Drop what is worth nothing any more, and of the rest only what is still too much."""
        before = flows(self.graph, self.profile, problem.rows)
        after = flows(self.graph, self.profile, problem.rows, fresh.shares)
        saved_us = saved_by_stale_us(problem, fresh.shares)
        rows = {name: after[name] for name in problem.rows}
        left = Problem(self.graph, self.profile, rows, 0.0)
        left = left.with_budget(left.load_us - (problem.load_us - problem.budget_us - saved_us))
        enough = left.load_us <= left.budget_us
        plan, infeasible = (self.road_map.plan(0, rows, "stale"), None) if enough else self._shed(left, reason)
        plan, infeasible = self._with_floors(left, plan, infeasible, problem.rows, fresh.shares)
        delivered = {}
        for output in self.graph.outputs:
            (arc,) = self.graph.arcs_into(output.name)
            share = after[arc] / before[arc] if before[arc] > 0 else 1.0
            delivered[output.name] = share * plan.delivered.get(output.name, 1.0)
        stale = {arc: since_s for arc, since_s in fresh.since_s.items() if fresh.shares[arc] < 1.0}
        worth = {**plan.delivered, **plan.worth}  # with what is worth nothing any more nothing is lost
        saves_us = plan.saves_us + saved_us
        return replace(plan, delivered=delivered, worth=worth, stale=stale, saves_us=saves_us), infeasible

    def _with_floors(
        self,
        problem: Problem,
        plan: Plan,
        infeasible: str | None,
        rows: Mapping[str, float] | None = None,
        fresh: Mapping[str, float] | None = None,
    ) -> tuple[Plan, str | None]:
        """The plan with every floor held, stale and unread tuples included, and why that is over budget if it is."""
        besides = {**self._read, **{arc: share * self._read.get(arc, 1.0) for arc, share in (fresh or {}).items()}}
        arrived = {n: count / self._read.get(n, 1.0) for n, count in (rows or problem.rows).items()}
        held = hold_floors(problem, plan, besides, arrived)
        if held is not plan and infeasible is None and over_budget_us(problem, held):
            infeasible = not_enough(problem, held).reason
        return held, infeasible

    def _shed(self, problem: Problem, reason: str) -> tuple[Plan, str | None]:
        """A plan that brings the work of these rows within the budget; else as near as is worthwhile, and why."""
        found = self._answer(problem)
        if isinstance(found, Plan):
            return replace(found, reason=reason), None
        eased = hold_floors(problem, self._trickle(problem, found.best))
        shedder = self._shedder or RoadMapShedder(self.road_map)
        plans = [eased, *lesser_plans(problem, shedder, max(found.best.saves_us, eased.saves_us))]
        best = most_worthwhile(problem, plans)
        if best is None and self._stems_growth(eased):
            best = eased
        if best is not None:
            return replace(best, reason="infeasible"), found.reason
        return self.road_map.plan(0, problem.rows, CANNOT_HELP), found.reason

    def _stems_growth(self, plan: Plan) -> bool:
        """Whether a plan is worthwhile for what one interval brings, though not for the backlog at hand.

        More rows than time keep coming: without it every batch would be larger than the one before.
        """
        steady = Problem(self.graph, self.profile, self._arriving(), self.settings.budget_us)
        return most_worthwhile(steady, [claimed(steady, plan.drops, plan.reason)]) is not None

    def _answer(self, problem: Problem) -> Plan | Infeasible:
        if self._shedder is None:
            saved_us = self.road_map.saves_at_us(self.plan.row, problem.rows)
            asked_us = self._gradual(saved_us, problem.load_us - problem.budget_us)
            return RoadMapShedder(self.road_map).plan(
                problem.with_budget(problem.load_us - asked_us), cursor=self.plan.row
            )
        sending = frozenset(name for name, count in problem.rows.items() if count > 0)
        same, self._sending = sending == self._sending, sending
        if not self.plan.drops or not same or self._anew:
            return self._shedder.plan(problem)
        needed_us = problem.load_us - problem.budget_us
        saved_us = problem.load_us - planned_load_us(problem, self.plan)
        asked_us = self._gradual(saved_us, needed_us)
        if asked_us == saved_us:
            return claimed(problem, self.plan.drops, self.plan.reason)
        return self._shedder.plan(problem.with_budget(problem.load_us - asked_us))

    def record(self, sample: BatchSample) -> None:
        """Learn from a batch that has run, and renew the road map when the estimates have moved."""
        obeyed = self.plan if self.settings.obeyed else Plan()
        keeps: dict[str, PassShare] = dict(pass_shares(obeyed.drops))
        for arc, (rows_in, rows_kept) in sample.arcs.items():
            planned = keeps.get(arc, 1.0)
            if rows_in == 0 or (arc not in keeps and arc not in obeyed.stale):
                continue
            if isinstance(planned, float):
                keeps[arc] = rows_kept / rows_in
            elif arc in obeyed.stale:
                fresh = min(1.0, rows_kept / rows_in / max(obeyed.keep(arc), 1e-9))
                keeps[arc] = tuple(share * fresh for share in planned)
        self._groups.update(before_drops(self._decisions, obeyed, sample, self._groups))
        self._trust.record(obeyed, sample, self.costs.expected_rows(sample.rows_in, keeps))
        if any(sample.rows_in.values()):
            self._put_on_trial(sample, keeps)
            self.costs.update_values(sample, keeps)
            if self.settings.learn:
                delivered = {name: seen.rows for name, seen in sample.outputs.items()}
                self.costs.update_rows(sample.rows_in, keeps, delivered)
                hung = sample.duration_ms > _HUNG_TIMES * self.costs.predict_ms(sample.rows_in, keeps)
                believed, self._hung = self._hung or not hung, hung
                if believed:
                    self.costs.update_time(sample.rows_in, keeps, sample.duration_ms)
                if believed and not self.fates:  # a window that is kept whole may take longer than batches beside it
                    self._detector.confirm(measured_us=1000 * sample.duration_ms, budget_us=self.settings.budget_us)
        self._rest.pass_batch(max(sample.interval_ms, sample.duration_ms))
        jumped = _jumped(self._built_for, self.profile) and len(self.road_map.layout.locations) <= _QUICK_LOCATIONS
        self._anew = self._anew or jumped
        if jumped or (self._rest.over and _moved(self._built_for, self.profile)):
            self._build(self.rows_per_s, self.road_map.ladder)

    def _put_on_trial(self, sample: BatchSample, keeps: Mapping[str, PassShare]) -> None:
        """Compare a batch with what costs that are not believed yet predicted; costs that are too high come down."""
        if self._belief.believed:
            return
        if self._belief.update(self.costs.predict_ms(sample.rows_in, keeps), sample.duration_ms):
            self.costs.lower(sample.rows_in, keeps, sample.duration_ms)
            self._build(self.rows_per_s, None)

    def _build(self, rows_per_s: Mapping[str, float], ladder: Ladder | None) -> None:
        """Renew the road map, and then let it rest so long that building takes no more than its share of the time."""
        began = self._rest.begin()
        self._built_for = self.profile
        by_value = self.settings.shedder == SEMANTIC
        self._road_map = build_road_map(self.graph, self.profile, rows_per_s, ladder, by_value=by_value)
        if self.plan.row > 0 and not self.plan.stale:  # a place on the map before, where this one saves as much
            self._plan = replace(self.plan, row=self.road_map.place_of(self.plan.saves_us, self._rows))
        self._rest.end(began)

    def _trickle(self, problem: Problem, best: Plan) -> Plan:
        """A plan that drops everything, eased to the lowest level at the inputs: what never runs cannot be measured."""
        lowest = min(LOWEST_KEEP_SHARE, self.road_map.ladder.shares[-2])
        names = [source.name for source in self.graph.sources if droppable(self.graph, source.name)]
        # below an input of which windows need every tuple, what the best plan drops on its branches
        names += [
            arc
            for arc, drop in best.drops.items()
            if ">" in arc and drop.judges != "window" and droppable(self.graph, arc)
            if not any(each.name in names for each in self.graph.sources_above(arc.rpartition(">")[0]))
        ]
        drops: dict[str, Drop] = {name: by_chance(self.graph, name, lowest) for name in names}
        drops |= most_without_closing(self._decisions, None, spared=cheap_results(self.graph, self.profile))
        return replace(claimed(problem, drops, "infeasible"), row=best.row)

    def _gradual(self, saved_us: float, needed_us: float) -> float:
        """What to save next: more at once, less half of the way, and as much as now while that wastes little."""
        waste_us = saved_us - needed_us
        if waste_us < 0:
            return needed_us
        return saved_us if waste_us <= self.settings.waste_share * self.settings.budget_us else needed_us + waste_us / 2


def _moved(old: Profile, new: Profile) -> bool:
    """Whether an estimate differs enough to plan anew."""
    pairs = [(old.fixed_ms, new.fixed_ms)]
    pairs += [(old.cost(name), cost) for name, cost in new.cost_us.items()]
    pairs += [(old.passes(name), share) for name, share in new.selectivity.items()]
    if any(abs(b - a) > _REBUILD_CHANGE_SHARE * max(a, 1e-9) for a, b in pairs):
        return True
    return any(_shifted(old.values.get(place, ()), shares) for place, shares in new.values.items())


def _jumped(old: Profile, new: Profile) -> bool:
    """Whether a range of values holds another share than the plans in force believe."""
    pairs = [(np.asarray(old.values.get(place, ())), np.asarray(shares)) for place, shares in new.values.items()]
    return any(len(before) == len(now) and distance(before, now) > _JUMP_SHARE for before, now in pairs)


def _shifted(old: Sequence[float], new: Sequence[float]) -> bool:
    """Whether values are spread differently: half of the sum of differences is the share that has moved."""
    if len(old) != len(new):
        return True
    return sum(abs(b - a) for a, b in zip(old, new, strict=True)) / 2 > _REBUILD_CHANGE_SHARE
