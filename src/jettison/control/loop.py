"""WHEN to act: one tick of the control loop, the same for Spark and for a simulator.

Before a batch: `decide(rows, now_ms)` gives the plan, judged, planned, refined and certified (`control.deciding`).
After it: `record(sample)` learns from what was measured (`control.learning`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from jettison.control import judging
from jettison.control.agreed import with_agreed
from jettison.control.covered_time import CoveredTime
from jettison.control.deciding import certified_plan
from jettison.control.in_force import PlanInForce
from jettison.control.judging import LEAST_READ_SHARE as LEAST_READ_SHARE
from jettison.control.judging import Estimates
from jettison.control.learning import Learned
from jettison.control.named_sizes import with_masses
from jettison.control.pace import ArrivalRates
from jettison.control.plan_request import PlanRequest
from jettison.control.settings import Settings as Settings
from jettison.control.trust import Trust
from jettison.detect import Detector
from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.plan.drops.kind import work_shares
from jettison.plan.drops.window import Fate
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.placement.strata import strata_at
from jettison.plan.plan import Plan
from jettison.plan.problem import Shedder
from jettison.plan.refine.context import Context
from jettison.plan.refine.probing import Probes
from jettison.plan.refine.schedules import closed
from jettison.plan.refine.staleness import Fresh, stale_limits, when_planned
from jettison.plan.refine.unread import Unread
from jettison.plan.shedders.asked import AskedShedder
from jettison.plan.shedders.choice import Choice
from jettison.plan.shedders.registry import shedder_for
from jettison.plan.shedders.rest import Rest
from jettison.plan.windows.group_gaps import named_groups
from jettison.statistics.costs import CostModel
from jettison.statistics.groups import GroupSizes
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample
from jettison.statistics.sic import SicWindow, check_stw, default_stw_ms


class Controller:
    """The control loop's state: estimates, the shedder, the plan in force. It is changed by its methods alone."""

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
        self._learned = Learned(graph, profile, guessed=guessed)
        self._detector = Detector()
        self._rates = ArrivalRates(
            (source.name for source in graph.sources), settings.trigger_ms, by_clock=settings.learn
        )
        rest = Rest(len(graph.operators), settings.trigger_ms, clock if settings.learn else None)
        shedder, self._choice = shedder_for(settings.shedder, graph, rest)
        self._shedder = AskedShedder(shedder)
        self._in_force = PlanInForce(profile)
        self._groups = GroupSizes()
        self._covered = CoveredTime(graph)
        self._probes = Probes()
        self._named = named_groups(graph)
        self._trust = Trust(graph)
        self._agreed: Mapping[str, float] = {}
        self._sic = SicWindow(graph, source_time_window_ms(graph, settings))
        self._followed: BatchSample | None = None
        self.follows_sic = True
        self._now_ms = 0.0
        self._stale_limits = when_planned(stale_limits(graph), settings.budget_us / 1e6)
        self._prepare()

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def costs(self) -> CostModel:
        """Costs and selectivities as they are known; changed by `record` and `calibrated` alone."""
        return self._learned.costs

    @property
    def profile(self) -> Profile:
        return self._learned.costs.profile

    @property
    def believed(self) -> bool:
        """Whether costs have been confirmed by batches."""
        return self._learned.belief.believed

    @property
    def shedder(self) -> Shedder:
        """Who plans."""
        return self._shedder.shedder

    @property
    def choice(self) -> Choice | None:
        """Which shedder "auto" has taken, and why; None where the user has chosen."""
        return self._choice

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self._in_force.plan

    @property
    def infeasible(self) -> str | None:
        """Why the plan in force does not hold the budget, where it does not."""
        return self._in_force.infeasible

    @property
    def uncertified(self) -> int:
        """How many plans could not be certified, so that a safe one took their place."""
        return self._in_force.uncertified

    @property
    def refused(self) -> str | None:
        """Why another plan was refused, where the plan in force is a safe one in its place."""
        return self._in_force.refused

    @property
    def fates(self) -> Mapping[str, Fate]:
        """Which windows are kept, by aggregate: what has been decided so far."""
        return self._in_force.fates

    @property
    def sic(self) -> SicWindow:
        """How much source information is in every output, over the source time window."""
        return self._sic

    @property
    def stale_limits(self) -> Mapping[str, float]:
        """How old rows may be when a batch is planned, in seconds by arc."""
        return self._stale_limits

    @property
    def rows_per_s(self) -> dict[str, float]:
        """Smoothed arrival rate of each source."""
        return self._rates.get()

    def group_shares(self, aggregate: str) -> Mapping[int, float]:
        """The share of rows in each group of an aggregate that is told apart, as far as it is known."""
        return self._groups.of(aggregate)

    def read_share(
        self, rows: Mapping[str, int], skippable: frozenset[str], skipped: Mapping[str, int] | None = None
    ) -> float:
        """How much of these sources to read at all (`judging.read_share`)."""
        return judging.read_share(self._known, rows, skippable, skipped)

    def may_skip(self, rows: Mapping[str, int], skipped: Mapping[str, int]) -> bool:
        """Whether floors can still be held when so many records are passed over and these rows are read."""
        return judging.may_skip(self._graph, rows, skipped)

    def overloaded(self, rows: Mapping[str, int]) -> bool:
        """Whether so many rows, coming at the rate of late, are to be shed."""
        return judging.overloaded(self._known, self._detector, rows)

    def can_look(self, rows: Mapping[str, int]) -> bool:
        """Whether there is time to look at one value of each of these rows (`judging.can_look`)."""
        return judging.can_look(self._known, rows)

    def groups_to_count(self, rows: Mapping[str, int]) -> frozenset[str]:
        """The aggregates whose groups should be counted before so many rows are shed, as nothing is known of them."""
        found = [strata_at(self._graph, arc) for arc in drop_arcs(self._graph)]
        names = {at[0].name for at in found if at is not None and self._groups.rows(at[0].name) is None}
        return frozenset(names) if names and self.overloaded(rows) else frozenset()

    def decide(
        self,
        rows: Mapping[str, int],
        now_ms: float,
        queues: Mapping[str, float] | None = None,
        fresh: Fresh | None = None,
        marks: BatchMarks | None = None,
        held: str | None = None,
        unread: Unread | None = None,
        started_ms: float | None = None,
    ) -> Plan:
        """The plan for a batch of `rows` tuples that is about to run, as it is to be logged and obeyed.

        `queues` are tuples left waiting on arcs, `fresh` tells what of the batch is not stale, where that is known,
        `marks` how far windows have got: then windows to drop are chosen, and those that were stay so. `unread` are
        records that came beside these rows and are not read. `held` says why nothing may be shed this time, where that
        is so. `started_ms` is when the batch begins, in milliseconds since 1970, where `now_ms` is another clock's.
        """
        self._rates.update(rows, now_ms)
        self._now_ms = now_ms if started_ms is None else started_ms
        self._covered.update(marks)
        sending = frozenset(name for name, count in rows.items() if count > 0)
        may_stay = self._in_force.may_stay(self.profile, sending)
        context = self._context(rows, fresh, marks, unread or Unread())
        request = PlanRequest(
            self._known, self._detector, self._shedder, context, self._in_force.own, may_stay, queues or {}, held
        )
        self._in_force.sending = sending
        found = certified_plan(request, self._in_force.certified, refused_before=self._in_force.refused)
        agreed = with_agreed(found, context.problem, self._agreed) if self._agreed and held is None else found
        self._in_force.take(agreed, found.plan, self.profile, windows=marks is not None)
        if marks is not None:
            self._probes = self._probes.after(agreed.context.decisions, closed(agreed.chosen), marks.newest_of)
        return self._in_force.plan

    def agree(self, keeps: Mapping[str, float]) -> None:
        """Keep these shares on arcs from the next batch on, as agreed with other nodes; nothing ends an agreement."""
        self._agreed = keeps

    def resume(self, plan: Plan) -> None:
        """Go on from a plan that was logged and is obeyed again."""
        self._in_force.resume(plan)

    def restore_fates(self, plan: Plan | None) -> None:
        """Keep to what the last logged plan decided about windows; without one nothing was decided."""
        self._in_force.fates = {} if plan is None else plan.fates

    def learn_groups(self, counted: Mapping[str, GroupSample]) -> None:
        """Take in how many rows groups have, as counted, by aggregate (`groups_to_count`)."""
        self._groups.update(counted)

    def calibrated(self, profile: Profile, *, shedding: bool, seen: Iterable[BatchSample] = ()) -> None:
        """Plan by costs that were measured just now, and shed from now on if `shedding`.

        What is known about arrivals, groups, windows and probes stays. What was learned of the costs before goes, with
        the judgements that rest on them; batches are to confirm the new ones: those that come, and those that were
        `seen` before costs were known, of which nothing was shed (`Learned.judge_seen`).
        """
        self._settings = replace(self._settings, shedding=shedding)
        self._learned = Learned(self._graph, profile, guessed=True)
        self._learned.judge_seen(seen)
        self._detector = Detector()
        self._prepare()

    def memory(self) -> dict[str, float]:
        """What the next plan rests on beside rows, costs and the plan in force, where the clock has no say: arrival
        rates. Nothing where costs are learned."""
        return {} if self._settings.learn else self._rates.known()

    def restore(self, plan: Plan, memory: Mapping[str, float]) -> None:
        """Go on, after a restart, where a run without `learn` was when it had made this plan."""
        if not self._settings.learn:
            self._in_force.plan = self._in_force.own = plan
            self._rates.restore(memory)

    def restore_sic(self, window: SicWindow) -> None:
        """Go on with what an earlier run has lost of late."""
        self._sic = window
        self._shedder.follow_sic(window)

    def follow(self, sample: BatchSample) -> None:
        """Take a batch that has run into the SIC of outputs. `record` does it for whoever does not need it earlier."""
        self._followed = sample
        if not self.follows_sic:
            return
        plan = self._in_force.plan if self._settings.obeyed else Plan()
        self._sic = self._sic.after(sample, [arc for arc in plan.drops if plan.closes(arc)])
        self._shedder.follow_sic(self._sic)

    def record(self, sample: BatchSample) -> None:
        """Learn from a batch that has run, and let the shedder prepare for the next."""
        if self._followed is not sample:
            self.follow(sample)
        obeyed = self._in_force.plan if self._settings.obeyed else Plan()
        self._learned.groups(self._groups, obeyed, sample)
        keeps = self._learned.kept_shares(obeyed, sample)
        self._trust.record(obeyed, sample, self.costs.expected_rows(sample.rows_in, keeps))
        if any(sample.rows_in.values()):
            worked = work_shares(obeyed.drops, keeps)
            believed = self._learned.record(sample, keeps, worked, learn=self._settings.learn)
            if (
                believed and not self._in_force.fates
            ):  # a window that is kept whole may take longer than batches beside it
                self._detector.confirm(measured_us=1000 * sample.duration_ms, budget_us=self._settings.budget_us)
        if self._settings.shedding:
            self._shedder.observe(sample)
        self._prepare()

    @property
    def _known(self) -> Estimates:
        patience = self._learned.belief.patience
        return Estimates(self._graph, self._settings, self.profile, self.rows_per_s, patience, self._now_ms)

    def _context(
        self, rows: Mapping[str, int], fresh: Fresh | None, marks: BatchMarks | None, unread: Unread
    ) -> Context:
        arcs = self._graph.arcs if self._graph.tracks.all else ()
        return Context(
            self._known.problem(rows),
            rows,
            unread,
            fresh,
            marks,
            self._in_force.fates,
            with_masses(self._named, self._groups),
            self._shedder.by_value,
            self._probes,
            self._trust.batches_by_chance > 0,
            frozenset(arc for arc in arcs if not self.costs.knows_values(arc)),
            self._groups,
            self._covered.get(),
            self._settings.waste_share * self._settings.budget_us,
        )

    def _prepare(self) -> None:
        """Let the shedder get ready for what one interval brings; not while nothing is shed."""
        if self._settings.shedding:
            known = self._known
            self._shedder.prepare(known.problem(known.arriving))


def source_time_window_ms(graph: Graph, settings: Settings) -> float:
    """How long the source time window of a run is; raises StartError where it is too short for the network."""
    if settings.stw_ms is None:
        return default_stw_ms(graph, settings.trigger_ms)
    check_stw(graph, settings.stw_ms, settings.trigger_ms)
    return settings.stw_ms
