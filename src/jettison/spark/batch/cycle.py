"""One batch of a run, from its offsets to its events: read, plan, log, run, measure, show, learn."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from jettison.network.event_time.coverage import keeping
from jettison.network.event_time.watermarks import BatchMarks
from jettison.plan.delivered import counted_shares
from jettison.plan.plan import Plan
from jettison.spark.batch.costs import RunCosts
from jettison.spark.batch.intake import Intake
from jettison.spark.batch.missing_plans import check_never_ran, check_other_rows, is_for_other_rows
from jettison.spark.batch.parts import RunParts
from jettison.spark.batch.planning import BatchPlan, Planning
from jettison.spark.batch.views import Views
from jettison.spark.checkpoint.logs import Logged, shed_entries
from jettison.spark.compile.quality import with_counted_shares
from jettison.spark.read.offsets import end_offsets
from jettison.statistics.estimators import Smoothed
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample, Measured
from jettison.telemetry.events import BatchEvent, batch_event

_log = logging.getLogger("jettison")

Frames = Mapping[str, DataFrame]
_TIDY_EVERY = 100


@dataclass
class _Clock:
    """The times of one batch. Durations are never of the wall clock, which jumps."""

    began_s: float
    started_ms: float
    interval_ms: float
    first: bool
    """Whether it is the first batch of this run."""
    apart_s: float = 0.0
    """What no other batch takes: counting groups."""
    planned_s: float = 0.0
    ended_s: float = 0.0


class BatchCycle:
    """Runs the batches of one run."""

    def __init__(self, parts: RunParts, planning: Planning, intake: Intake, costs: RunCosts, views: Views) -> None:
        self._parts = parts
        self._planning = planning
        self._intake = intake
        self._costs = costs
        self._views = views
        self._previous_ms: float | None = None
        self._after_s = 0.0  # what the batch before took for its records, after its outputs were written
        self._bookkeeping_ms = Smoothed(0.3, 100.0)
        self._progress: Mapping[str, Any] | None = None  # Spark's account of the batch before
        self._keeps_state = bool(keeping(parts.graph))

    def run(self, frame: DataFrame, batch: int, query: StreamingQuery | None) -> None:
        """Plan, run and measure a batch that Spark hands over."""
        with self._costs.batch():
            self._run(frame, batch, query)

    def _run(self, frame: DataFrame, batch: int, query: StreamingQuery | None) -> None:
        clock = self._begin(query)
        self._parts.checkpoint.check_held()
        logged = self._logged(batch, first=clock.first)
        if clock.first:
            self._planning.restore_sic(batch)
        records = self._intake.records(frame, batch, logged)
        raw = self._intake.frames(frame, batch, records, query)
        self._parts.runner.begin(batch)
        self._costs.take_over()
        marks = self._parts.runner.marks(batch)
        if logged is not None and self._is_ours(logged):
            plan = self._planning.resume(logged, marks, records.rows)
        else:
            plan = self._decide(raw, batch, records, marks, clock)
        clock.planned_s = time.monotonic()
        measured = self._obey(raw, batch, plan, records, marks)
        clock.ended_s = time.monotonic()
        sample = self._sample(batch, records, measured, plan, clock)
        self._intake.delivered(measured, plan.plan, records, clock.ended_s)
        self._planning.controller.follow(sample)
        event = self._event(sample, plan.plan)
        shown = self._planning.shown(sample, plan, marks, event)
        self._parts.checkpoint.ledger.write(batch, shed_entries(sample, plan.plan, plan.would), shown)
        self._learn(sample, event, query)
        over_budget = self._views.totals.over_budget
        self._costs.measure_beside(raw, records.rows, sample.duration_ms, over_budget=over_budget)
        self._after_s = time.monotonic() - clock.ended_s

    def _logged(self, batch: int, *, first: bool) -> Logged | None:
        """What the log says of a batch: it was begun before."""
        checkpoint, sinks, name = self._parts.checkpoint, self._parts.runner.sinks.outputs, self._parts.graph.name
        logged = checkpoint.plans.read(batch)
        if logged is not None and is_for_other_rows(logged, end_offsets(checkpoint.spark_folder, batch)):
            check_other_rows(checkpoint, sinks, batch)
            _log.warning("network %s: batch %d was planned for other rows and is planned anew", name, batch)
            self._planning.restore_before(batch)
            return None
        if logged is None:
            if first:
                check_never_ran(checkpoint, sinks, batch)
                self._planning.restore_before(batch)
            return None
        if not self._is_ours(logged):
            _log.warning("network %s: batch %d was planned for other operators and is planned anew", name, batch)
        if logged.careful:
            self._parts.runner.known.careful = True
        return logged

    def _is_ours(self, logged: Logged) -> bool:
        return logged.network in ("", self._planning.identity)

    def _begin(self, query: StreamingQuery | None) -> _Clock:
        """Note when a batch begins, and what a trigger costs beside it, from Spark's own account of the one before."""
        now_s, trigger_ms = time.monotonic(), self._parts.settings.trigger_ms
        first = self._previous_ms is None
        interval_ms = trigger_ms if self._previous_ms is None else 1000 * now_s - self._previous_ms
        self._previous_ms = 1000 * now_s
        progress = self._progress = None if query is None else query.lastProgress
        if progress is not None and progress.get("numInputRows", 0) > 0:
            spent = progress["durationMs"]
            self._bookkeeping_ms.update(max(0.0, spent.get("triggerExecution", 0) - spent.get("addBatch", 0)))
        return _Clock(now_s, 1000 * time.time(), interval_ms, first)

    def _decide(self, raw: Frames, batch: int, records: Records, marks: BatchMarks | None, clock: _Clock) -> BatchPlan:
        """Plan a batch, and log the plan before anything runs."""
        rows, now_ms = records.rows, 1000 * time.monotonic()
        fresh = self._intake.fresh(raw, records) if self._planning.calibrated else None
        clock.apart_s += self._costs.count_groups(raw, rows)
        unread, held = self._intake.unread(records), self._intake.held
        plan = self._planning.decide(
            batch, rows, (now_ms, clock.interval_ms), fresh=fresh, marks=marks, unread=unread, held=held
        )
        self._parts.checkpoint.plans.write(
            Logged(
                batch,
                plan.obeyed,
                records,
                end_offsets(self._parts.checkpoint.spark_folder, batch),
                plan.would,
                self._planning.identity,
                self._parts.runner.known.careful,
                self._keeps_state,
                self._planning.controller.memory(),
            )
        )
        return plan

    def _obey(self, raw: Frames, batch: int, plan: BatchPlan, records: Records, marks: BatchMarks | None) -> Measured:
        """Run a batch as its plan says; results that say how complete they are have that counted first."""
        parts, costs = self._parts, self._planning.controller.costs
        read = BatchSample.of(batch, 0.0, 0.0, records)
        count = partial(with_counted_shares, parts.graph, raw, read, parts.tables, parts.runner.known, plan.plan, costs)
        shown = parts.runner.carefully(raw, count)
        obeyed = replace(shown, drops=plan.obeyed.drops)
        sic = self._planning.results.sql(plan.obeyed, records, marks, costs.profile)
        return parts.runner.run(raw, batch, obeyed, records.rows, marks, sic)

    def _sample(self, batch: int, records: Records, measured: Measured, plan: BatchPlan, clock: _Clock) -> BatchSample:
        """What was measured of a batch."""
        beside_ms = self._bookkeeping_ms.get() or 0.0
        in_batch_s = clock.ended_s - clock.began_s - clock.apart_s + self._after_s
        deciding_ms = 1000 * (clock.planned_s - clock.began_s)
        parts_ms = {"window drops": plan.resolving_ms, "deciding": deciding_ms, "bookkeeping": beside_ms}
        sample = replace(
            BatchSample.of(batch, clock.started_ms, clock.interval_ms, records, measured),
            duration_ms=1000 * in_batch_s + beside_ms,
            topics=self._parts.reader.lag(batch),
            parts_ms={**measured.parts_ms, **parts_ms},
            plan_row=plan.plan.row,
        )
        sample = self._planning.with_dry_run(sample, plan.would)
        costs = self._planning.controller.costs
        delivered, worth = counted_shares(self._parts.graph, costs.profile, plan.plan, sample, costs.passes_by_value)
        return replace(sample, delivered=delivered, worth=worth)

    def _learn(self, sample: BatchSample, event: BatchEvent, query: StreamingQuery | None) -> None:
        """Show a batch, learn from it, bound the next one, and tidy up; listeners hear of it last."""
        self._views.show(event, self._progress)
        was_on_trial = self._planning.on_trial
        self._costs.remember_sample(sample)
        self._planning.record(sample)
        self._intake.batch_ended(sample.rows_in, query)
        self._costs.remember_after(sample.batch, was_on_trial=was_on_trial)
        self._parts.checkpoint.tidying.after(sample.batch)
        if sample.batch % _TIDY_EVERY == 0:
            self._planning.tidy_pairs()
        self._views.listeners.tell(event)

    def _event(self, sample: BatchSample, plan: Plan) -> BatchEvent:
        return batch_event(
            self._parts.graph,
            sample,
            plan,
            budget_ms=self._parts.settings.budget_us / 1000,
            profile=self._planning.controller.profile,
            infeasible=self._planning.infeasible,
            calibrating=not self._planning.calibrated,
            uncertified=self._planning.uncertified,
            sic=self._planning.controller.sic.all() if self._planning.controller.follows_sic else {},
        )
