"""The plan of each batch: decided by the control loop, or as the log has it, with what its window drops do."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jettison.control.dry_run import DryRun
from jettison.control.loop import Controller
from jettison.errors import CheckpointError
from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.identity.lineage_hash import network_identity, timed_identity
from jettison.network.operators import Map
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.plan import Plan
from jettison.plan.refine.resolver import WindowDropResolver
from jettison.plan.refine.staleness import Fresh
from jettison.plan.refine.unread import Unread
from jettison.plan.refine.window_lookahead import unresolved
from jettison.plan.shedders.las import Las
from jettison.spark.batch.calibration import assumed_profile
from jettison.spark.batch.parts import RunOptions, RunParts
from jettison.spark.batch.result_sic import ResultSic
from jettison.spark.checkpoint.cost_pairs import CostPairs
from jettison.spark.checkpoint.logs import Logged
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow
from jettison.statistics.sic.batch import forgotten
from jettison.statistics.sketches.telling_keys import key_costs
from jettison.telemetry.cost_view import CostsReport
from jettison.telemetry.events import BatchEvent
from jettison.telemetry.queries import query_record, recent_records, sic_batches

_log = logging.getLogger("jettison")

Rows = Mapping[str, int]


@dataclass(frozen=True)
class BatchPlan:
    """A batch's plan as the loop has it (`plan`), and as it is logged and obeyed, with what its window drops do in this
    batch (`obeyed`). `would` is the plan of a dry run."""

    plan: Plan
    obeyed: Plan
    would: Plan | None
    resolving_ms: float


class Planning:
    """The control loop of a run, and in a dry run the one whose plans are not obeyed."""

    def __init__(self, parts: RunParts, options: RunOptions) -> None:
        self._parts = parts
        self._notes = options.notes
        self._graph, self._settings = parts.graph, parts.settings
        known = options.profile or parts.checkpoint.profile(parts.graph)
        self.calibrated = known is not None
        # nothing is shed before something was measured
        careful = parts.settings if self.calibrated else replace(parts.settings, shedding=False)
        on_trial = options.profile is None and known is not None and not parts.checkpoint.believed()
        self.controller = Controller(parts.graph, careful, known or assumed_profile(parts.graph), guessed=on_trial)
        self.dry_run = options.dry_run
        self._shadow = self._shadow_of(self.controller.profile)
        self._resolver = WindowDropResolver(parts.graph)
        self.results = ResultSic(parts.graph)
        self._identity = network_identity(parts.graph)
        self._resumed = False
        self._pairs = CostPairs(parts.checkpoint.folder)
        parts.runner.known.cost_pair = self._pairs.read
        planner = self.controller.shedder
        self._las = planner if isinstance(planner, Las) and (parts.settings.shedding or options.dry_run) else None
        maps = [each for each in parts.graph.operators if isinstance(each, Map)]
        self._timed = {} if self._las is None else {each.name: timed_identity(parts.graph, each) for each in maps}
        """What costs are of, by timed operator."""
        if self._las is not None and maps:
            parts.runner.sketch_functions = self._las.functions
            self._restore_pairs(self._las)

    @property
    def identity(self) -> str:
        """The identity of the network that plans are made for."""
        return self._identity

    @property
    def on_trial(self) -> bool:
        """Whether costs are yet to be confirmed."""
        return not self.controller.believed

    @property
    def infeasible(self) -> str | None:
        """Why no plan holds the budget; in a dry run, as the plans that are not obeyed would have it."""
        planner = self.controller if self._shadow is None else self._shadow.controller
        return planner.infeasible

    @property
    def uncertified(self) -> str | None:
        """Why a plan for the last batch was refused, where a safe one took its place."""
        planner = self.controller if self._shadow is None else self._shadow.controller
        return planner.refused

    def learn_profile(self, profile: Profile, seen: Iterable[BatchSample] = ()) -> None:
        """Plan by costs that were measured just now; batches that have run before, as `seen`, judge them."""
        self.calibrated = True
        self.controller.calibrated(profile, shedding=self._settings.shedding, seen=seen)
        self._shadow = self._shadow_of(profile)

    def decide(
        self,
        batch: int,
        rows: Rows,
        times_ms: tuple[float, float],
        *,
        fresh: Fresh | None,
        marks: BatchMarks | None,
        unread: Unread,
        held: str | None,
    ) -> BatchPlan:
        """The plan for a batch that has none yet; `times_ms` are now, and the time since the batch before."""
        now_ms, interval_ms = times_ms
        started_ms = 1000 * time.time()
        if marks is not None:
            self._resume_fates(batch)
        plan = self.controller.decide(
            rows, now_ms, fresh=fresh, marks=marks, unread=unread, held=held, started_ms=started_ms
        )
        would = None if self._shadow is None else self._shadow.decide(rows, interval_ms, marks, held)
        self._keep_pairs(plan if would is None else would, batch)
        return self._resolved(plan, plan, would, marks, rows)

    def cost_reports(self) -> dict[str, CostsReport]:
        """What was learned about the costs of maps."""
        found = {}
        for name, known in [] if self._las is None else self._las.costs.items():
            keys = () if known.pair is None else tuple(key_costs(known.pair, known.keys))
            work_us = (known.estimated_us, known.compared_us, known.skew_us)
            found[name] = CostsReport(known.learner.state, known.published, *work_us, keys)
        return found

    def tidy_pairs(self) -> None:
        """Delete published costs that no plan in the log can name."""
        oldest = min(self._parts.checkpoint.plans.batches(), default=0)
        self._pairs.tidy(oldest)

    def _keep_pairs(self, plan: Plan, batch: int) -> None:
        """Write down the costs that a plan names, before the plan is."""
        for drop in plan.drops.values():
            if self._las is not None and isinstance(drop, CostBound) and drop.sketch is not None:
                pair = self._las.pair_named(drop.sketch) or self._pairs.read(drop.sketch)
                keys, of = self._las.known(drop.operator).keys, self._timed.get(drop.operator, "")
                self._pairs.keep(drop.operator, pair, batch, keys, of)

    def _restore_pairs(self, las: Las) -> None:
        """Go on, after a restart, with the costs that were used last, where sketch, function and key are the same."""
        for operator, pair in self._pairs.newest(self._timed).items():
            if pair.functions == las.functions:
                las.restore(operator, pair, self._parts.runner.lanes)

    def restore_before(self, batch: int) -> None:
        """Go on, after a start, where a run without `learn` was before this batch."""
        if self._settings.learn:  # a plan that is not needed is not read: it may be damaged
            return
        last = self._parts.checkpoint.plans.read(batch - 1) if batch > 0 else None
        if last is not None and last.network == self._identity:
            self.controller.restore(unresolved(last.plan), last.rows_per_s)

    def restore_sic(self, batch: int) -> None:
        """Go on, after a start, with what was lost in the batches before this one, as far as the ledger has them."""
        stw_ms, ledger = self.controller.sic.stw_ms, self._parts.checkpoint.ledger
        try:
            records = list(recent_records(ledger.before(batch), stw_ms))
            self.controller.restore_sic(SicWindow.restored(self._graph, stw_ms, sic_batches(records)))
            self.results.restore(records)
        except (CheckpointError, KeyError, TypeError, ValueError, AttributeError) as error:  # no result depends on it
            _log.warning("network %s: the SIC of outputs begins anew with this run: %s", self._graph.name, error)
            return
        if records:
            self._note_changes(batch, records[0])

    def _note_changes(self, batch: int, before: Mapping[str, Any]) -> None:
        """Say which outputs the batch before this one had not, and of which ones SIC cannot go on."""
        names = [output.name for output in self._graph.outputs]
        new = [name for name in names if name not in before["queries"]]
        sentences = [f"output {name!r} is new with batch {batch}: it has no results of earlier ones" for name in new]
        sentences += [
            f"output {name!r}: its SIC begins anew with batch {batch}, as its windows or joins have changed"
            for name in forgotten(self._graph, before["sic"])
        ]
        for sentence in sentences:
            self._notes.append(f"{sentence}.")
            _log.info("network %s: %s.", self._graph.name, sentence)

    def shown(
        self, sample: BatchSample, plan: BatchPlan, marks: BatchMarks | None, event: BatchEvent
    ) -> dict[str, Any]:
        """What the ledger keeps of a batch beside what was shed: what outputs got, and what their SIC rests on."""
        if not self.controller.follows_sic:
            return {}
        self.results.after(sample, plan.obeyed, marks)
        return {**query_record(event, self.controller.sic), **self.results.written()}

    def resume(self, logged: Logged, marks: BatchMarks | None, rows: Rows) -> BatchPlan:
        """The plan of a batch that is repeated: what was resolved is in the log; earlier versions resolve it anew."""
        plan, would = unresolved(logged.plan), logged.would
        self.controller.resume(plan)
        self.controller.restore(plan, logged.rows_per_s)
        if self._shadow is not None and would is not None:
            self._shadow.resume(would, rows)
        return self._resolved(plan, logged.plan, would, marks, rows)

    def with_dry_run(self, sample: BatchSample, would: Plan | None) -> BatchSample:
        """The sample with what would have been shed."""
        if self._shadow is None or would is None:
            return sample
        return replace(sample, would=self._shadow.dropped, would_deliver=self._shadow.delivered)

    def record(self, sample: BatchSample) -> None:
        """Learn from a batch that has run."""
        self.controller.record(sample)
        if self._shadow is not None:
            self._shadow.record(sample)

    def _resolved(
        self, plan: Plan, logged: Plan, would: Plan | None, marks: BatchMarks | None, rows: Rows
    ) -> BatchPlan:
        began = time.perf_counter()
        obeyed = self._resolver.resolve(logged, marks, sum(rows.values()))
        return BatchPlan(plan, obeyed, would, 1000 * (time.perf_counter() - began))

    def _resume_fates(self, batch: int) -> None:
        """After a start, what was decided about open windows is in the log of the batch before."""
        if self._resumed:
            return
        self._resumed = True
        last = self._parts.checkpoint.plan_before(batch, "what it decided about windows that are open is unknown")
        self.controller.restore_fates(None if last is None else last.plan)
        if self._shadow is not None and last is not None and last.would is not None:
            self._shadow.resume(last.would, {})

    def _shadow_of(self, profile: Profile) -> DryRun | None:
        """Who plans in a dry run: as if it were obeyed, and learning that it was not."""
        if not self.dry_run or not self.calibrated:
            return None
        # the shedder is that of the run, which asks it for nothing: what it learns, the run reports
        settings = replace(self._settings, shedding=True, obeyed=False, shedder=self.controller.shedder)
        return DryRun(Controller(self._graph, settings, profile, guessed=self.on_trial))
