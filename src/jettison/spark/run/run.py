"""A network that runs: one streaming query, whose every batch is planned, logged, run and measured here."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jettison.control.catch_up import SHED, UNBOUNDED, Backlog, most_rows
from jettison.control.dry_run import DryRun
from jettison.control.loop import LEAST_READ_SHARE, Controller, Settings
from jettison.errors import CheckpointError, JettisonError, SessionError, SinkError, SourceError, StartError
from jettison.network.calls import checked_call
from jettison.network.event_time.coverage import keeping
from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.network.identity.lineage_hash import network_identity
from jettison.network.windows.estimated_aggregates import weighed
from jettison.plan.counted import counted_shares
from jettison.plan.floors import least_read_share
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.reasons import CATCHING_UP, NEWEST, READING
from jettison.plan.refine.staleness import Fresh
from jettison.plan.windows.decisions import decisions_of
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.logs import Ledger, Logged, shed_entries
from jettison.spark.checkpoint.spark_files import checksum_fault
from jettison.spark.compile.freshness import Ages, count_fresh
from jettison.spark.compile.group_sizes import count_groups
from jettison.spark.compile.quality import with_counted_shares
from jettison.spark.ending.alive import end_query, failure_of, in_trigger, query_active, session_alive, wait_for_end
from jettison.spark.ending.closing import Step, close_all
from jettison.spark.ending.full_disk import full_disk
from jettison.spark.ending.interrupts import noticed_interrupts
from jettison.spark.ending.leaving import leave_batch
from jettison.spark.error_text import reason_of, shown_cause, without_our_frames
from jettison.spark.read.kafka import hint
from jettison.spark.read.offsets import end_offsets
from jettison.spark.read.read_limits import ReadLimits
from jettison.spark.read.reading import Reader, Reading, of_what_was_read
from jettison.spark.read.relations import file_frames, reads_files, tell_rows
from jettison.spark.read.source_lag import source_lags
from jettison.spark.read.stream import is_generated, merge, split
from jettison.spark.run.batch import BatchRunner
from jettison.spark.run.calibration import LEAST_ROWS, assumed_profile, calibrate
from jettison.spark.run.job_descriptions import described, part, query_name
from jettison.spark.run.missing_plans import check_never_ran
from jettison.spark.state.slice_state import SliceState
from jettison.statistics.estimators import Smoothed
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.telemetry.events import BatchEvent, batch_event
from jettison.telemetry.history import History
from jettison.telemetry.listeners import Listener, Listeners
from jettison.telemetry.live_line import LiveView
from jettison.telemetry.metrics import Metrics
from jettison.telemetry.narration import Narrator
from jettison.telemetry.report import Report, Totals

_REMEMBER_EVERY = 20
_NEWEST_TRIGGERS = 2.0
_BREAKING_OFF_S = 10.0
_LONGEST_BREAKING_OFF_S = 30.0

_log = logging.getLogger("jettison")


class Run:
    """A running network. `await_termination`, `stop`, `report`, `ledger` are what a user needs."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Graph,
        runner: BatchRunner,
        reader: Reader,
        tables: Mapping[str, DataFrame],
        settings: Settings,
        checkpoint: Checkpoint,
        profile: Profile | None,
        shared: Iterable[str] | None,
        metrics: Metrics | None,
        live: bool,
        slices: SliceState | None = None,
        *,
        notes: Sequence[str] = (),
        catch_up: str = SHED,
        dry_run: bool = False,
    ) -> None:
        self.graph = graph
        self._identity = network_identity(graph)
        self.settings = settings
        self._spark = spark
        self._tables = dict(tables)
        self._persisted = [frame.persist() for frame in tables.values() if not frame.is_cached]
        self._checkpoint = checkpoint
        self._runner = runner
        self._reader = reader
        self._slices = slices
        self._resumed = False
        known = profile or checkpoint.profile(graph)
        self._calibrated = known is not None
        self._runner.shared = checkpoint.shared(graph) if shared is None else frozenset(shared)
        # nothing is shed before something was measured
        careful = settings if self._calibrated else replace(settings, shedding=False)
        on_trial = profile is None and known is not None and not checkpoint.believed()
        self.controller = Controller(graph, careful, known or assumed_profile(graph), guessed=on_trial)
        self._dry_run = dry_run
        self._shadow = self._shadow_of(self.controller.profile)
        self._backlog = Backlog(catch_up, settings.trigger_ms)
        self._limits: ReadLimits | None = None
        self._largest_rows = 0
        self._batch_ended_s: float | None = None
        self._totals = Totals(graph, settings.budget_us / 1000, notes=notes)
        self._narrator = Narrator(settings.budget_us / 1000)
        self.history = History()
        self._bookkeeping_ms = Smoothed(0.3, 100.0)
        self._previous_ms: float | None = None
        self._ages = Ages()
        self._after_s = 0.0  # what the batch before took for its records, after its outputs were written
        self._stopping = False
        self._breaking_off = False  # the query is being stopped, whatever a batch is doing
        self._left = False  # the next batch has come, and is left to the next start
        self._failure: BaseException | None = None
        self._idle = threading.Condition()
        self._busy = False
        self._closed = False
        self.metrics = metrics
        self._progress: Mapping[str, Any] | None = None  # Spark's account of the batch before
        self._view = LiveView(self.settings.budget_us / 1000) if live else None
        self._listeners = Listeners()
        self._batch_thread: int | None = None
        self._started_s = time.monotonic()
        self._ended_s: float | None = None
        self._query: StreamingQuery | None = None
        self._columns: Mapping[str, Sequence[str] | None] = {}  # of sources that read files

    def begin(self, sources: Mapping[str, DataFrame]) -> None:
        """Start the one streaming query."""
        ordered = {source.name: sources[source.name] for source in self.graph.sources}
        self._columns = {name: frame.columns if reads_files(frame) else None for name, frame in ordered.items()}
        name = query_name(self.graph.name, [each.name for each in self._spark.streams.active])
        writer = (
            merge(self.graph, sources)
            .writeStream.queryName(name)
            .trigger(processingTime=f"{self.settings.trigger_ms:.0f} milliseconds")
            .option("checkpointLocation", self._checkpoint.spark_path)
            .foreachBatch(self._on_batch)
        )
        sizes = ((len(self.graph.sources), "source"), (len(self.graph.outputs), "output"))
        counts = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in sizes)
        _log.info(
            f"network {self.graph.name!r} starts: {counts}, a batch every {self.settings.trigger_ms / 1000:g} s, "
            f"checkpoint {self._checkpoint.path}"
        )
        try:
            if self._bounded:
                generated = [each for each, frame in ordered.items() if is_generated(frame)]
                self._limits = ReadLimits(self._spark, list(ordered), generated)
                with self._limits.first(self._spark, name, self._next_bounds({})):
                    self._query = writer.start()
            else:
                self._query = writer.start()
        except BaseException as error:
            self._failure = error
            self._close()
            damage = checksum_fault(str(error))
            if damage is not None:
                raise damage from shown_cause(error)
            if not isinstance(error, AnalysisException):  # such as an aggregate before the network
                raise
            names = ", ".join(repr(source.name) for source in self.graph.sources)
            raise StartError(f"network {self.graph.name!r}: {reason_of(error)} Sources: {names}.") from error

    @property
    def query(self) -> StreamingQuery:
        """Spark's handle of the query."""
        assert self._query is not None
        return self._query

    @property
    def shared(self) -> frozenset[str]:
        """Operators whose rows are persisted for several outputs."""
        return self._runner.shared

    @property
    def is_active(self) -> bool:
        """Whether it goes on. Not when its Spark session has ended, or the driver's JVM is gone."""
        return query_active(self._spark, self.query)

    @checked_call("run.await_termination", StartError)
    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run ends, at most `timeout` seconds. True when it has ended; raises when it failed.

        When its Spark session ends before it does, that is a failure too. Ctrl-C ends the run as `stop` does, then
        raises KeyboardInterrupt; a second one does so at once.
        """
        try:
            with noticed_interrupts() as interrupted:
                ended = wait_for_end(self._spark, self.query, timeout, interrupted)
                if interrupted.is_set():
                    self._interrupted()
        except StreamingQueryException as error:
            self._end_without_session()
            self._failure = self._failure or error  # it may have failed between two batches
            self._close()
            self._raise(error)
        if ended:
            self._end_without_session()
            self._close()
            if self._failure is not None:
                self._raise(self._failure)
        return ended

    def _interrupted(self) -> NoReturn:
        with suppress(JettisonError):  # it is in the log, and in what the next call raises
            self.stop()
        raise KeyboardInterrupt

    @checked_call("run.stop", StartError)
    def stop(self, patience_s: float = 60.0) -> None:
        """End the run between two batches. Raises when it had failed before.

        A batch that takes longer than `patience_s` is broken off: it is not committed, and the next start repeats it.
        When the Spark session has ended already, this closes what is left. Called by a listener, it returns at once,
        and the run ends after the batch. Raises, too, when the batch does not end even then, because a sink hangs: the
        checkpoint stays in use until it does, or until this process ends.
        """
        self._stopping = True
        if threading.get_ident() == self._batch_thread:  # a listener or a sink asks: its own batch must end first
            threading.Thread(target=self.stop, args=(patience_s,), name="jettison-stop", daemon=True).start()
            return
        deadline = time.monotonic() + patience_s
        while not self._left and time.monotonic() < deadline and in_trigger(self._spark, self.query):
            time.sleep(0.02)
        # asked now: a batch that stopping breaks off is no failure
        failure = self._failure or failure_of(self.query)
        self._breaking_off = True
        limit_s = min(max(_BREAKING_OFF_S, patience_s), _LONGEST_BREAKING_OFF_S)
        has_ended = end_query(self._spark, self.query, limit_s)
        with self._idle:  # nothing may write after closing
            idle = self._idle.wait_for(lambda: not self._busy, timeout=limit_s if has_ended else 0.0)
        if not idle and session_alive(self._spark):
            raise self._hangs(patience_s)
        ended_before = self._end_without_session()
        self._failure = self._failure or failure
        self._close()
        if failure is not None and not ended_before:
            self._raise(failure)

    def _hangs(self, patience_s: float) -> SinkError:
        """What to raise when a batch does not end; the run is closed when it does."""

        def close_when_idle() -> None:
            with self._idle:
                self._idle.wait_for(lambda: not self._busy)
            self._close()

        threading.Thread(target=close_when_idle, name="jettison-hangs", daemon=True).start()
        return SinkError(
            f"network {self.graph.name!r}: the batch that runs has not ended, though stop() waited {patience_s:g} s "
            f"and then broke it off: a sink, or a function of the network, hangs. The batch is not committed, and "
            f"checkpoint {self._checkpoint.path!r} stays in use until it ends: end this process, mend the sink and "
            f"start again."
        )

    def report(self) -> Report:
        """What the run has done so far."""
        seconds = (self._ended_s or time.monotonic()) - self._started_s
        # as it was obeyed: the loop's own copy may by now have its place on a newer road map
        plan = self.history[-1][1] if self.history else self.controller.plan
        return self._totals.report(seconds, plan, self._planner.infeasible)

    def ledger(self) -> DataFrame:
        """What was shed: batch, arc, rows in, rows shed, reason, plan row."""
        if not session_alive(self._spark):
            raise StartError(
                f"network {self.graph.name!r}: the ledger is a DataFrame, and its Spark session has ended: ask before "
                f"spark.stop(), or read the files in {self._checkpoint.path}/ledger."
            )
        entries = self._checkpoint.ledger.entries()
        filled = ({"rows_would_shed": 0, **entry, "plan_row": float(entry["plan_row"])} for entry in entries)
        rows = [tuple(entry[name] for name in Ledger.NAMES) for entry in filled]
        return self._spark.createDataFrame(rows, Ledger.COLUMNS)

    @property
    def totals(self) -> Totals:
        return self._totals

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._ended_s = time.monotonic()
        steps: list[Step] = [("writing the last line of the log", self._log_end)]
        if self._view is not None:
            steps.append(("ending the line in the terminal", self._view.close))
        if self.metrics is not None:
            steps.append(("closing the metrics server", self.metrics.close))
        if self._calibrated:
            steps.append(("saving the costs, which the next start measures anew", self._remember))
        steps += [("ending its threads", self._runner.close), ("letting go of the broker", self._reader.close)]
        if session_alive(self._spark):
            steps += [("letting go of a table", frame.unpersist) for frame in self._persisted]
        close_all([*steps, ("releasing the checkpoint", self._checkpoint.close)])

    def close_if_abandoned(self) -> None:
        """Release everything if the Spark session has ended and nobody has closed the run since."""
        if not self._closed and not session_alive(self._spark):
            self._end_without_session()
            self._close()

    def _end_without_session(self) -> bool:
        """Note that the session has ended before the run, if so; True then."""
        if self._closed or session_alive(self._spark):
            return isinstance(self._failure, SessionError)
        with self._idle:
            self._idle.wait_for(lambda: not self._busy, timeout=_BREAKING_OFF_S)
        if self._failure is None:
            self._failure = self._session_ended()
            _log.warning("%s", self._failure)
        return isinstance(self._failure, SessionError)

    def _session_ended(self) -> SessionError:
        return SessionError(
            f"network {self.graph.name!r}: its Spark session has ended while it ran (spark.stop(), or the driver's JVM "
            f"is gone). What is not committed is repeated: start again, in a new session, with checkpoint "
            f"{self._checkpoint.path!r}; call run.stop() before spark.stop()."
        )

    def _remember(self) -> None:
        believed = self.controller.belief.believed
        self._checkpoint.remember(self.controller.profile, self._runner.shared, believed=believed)

    def _log_end(self) -> None:
        totals = self._totals
        told = f"{totals.batches:,} batches, {totals.rows_in:,} rows in, {totals.rows_shed:,} shed"
        if self._failure is None:
            _log.info(f"network {self.graph.name!r} has stopped: {told}")
        else:
            _log.error(f"network {self.graph.name!r} has failed: {reason_of(self._failure)} ({told})")

    def _raise(self, error: BaseException) -> NoReturn:
        """Raise what the run failed with, with its first cause in few lines."""
        explained = self._explain(error)
        _log.debug("network %s failed", self.graph.name, exc_info=error)
        cause = shown_cause(explained.__cause__ if explained is self._failure else self._failure or error)
        raise explained.with_traceback(None) from without_our_frames(cause)

    def _explain(self, error: BaseException) -> BaseException:
        if isinstance(self._failure, JettisonError):
            return self._failure
        if not session_alive(self._spark):
            return self._session_ended()
        names = ", ".join(repr(source.name) for source in self.graph.sources)
        detail = reason_of(self._failure or error)
        damage = checksum_fault(f"{detail} {error}")
        if damage is not None:
            return damage
        again = f"start again with checkpoint {self._checkpoint.path!r}."
        temporary = self._spark.conf.get("spark.local.dir", None) or tempfile.gettempdir()
        places = {"the checkpoint": self._checkpoint.path, "Spark's temporary folder": temporary}
        full = full_disk(f"{detail} {error}", places)
        if full is not None:
            return CheckpointError(
                f"network {self.graph.name!r} stopped: {full} The batch is not committed: then {again}"
            )
        on_kafka = any(source.kafka is not None for source in self.graph.sources)
        advice = hint(f"{detail} {error}") if on_kafka else ""
        return SourceError(
            f"network {self.graph.name!r} stopped: {detail}{' ' if advice else ''}{advice} Sources: {names}. The batch "
            f"is not committed: mend the cause and {again}"
        )

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        if self._stopping:
            # the batch before is committed and this one has written nothing: the next start begins with it
            self._left = True
            leave_batch(self._spark, self.query)
        with self._idle:
            self._busy = True
        self._batch_thread = threading.get_ident()
        broken_off = False
        try:
            with described(self._spark, f"{self.graph.name}: batch {batch}"):
                self._run_batch(frame, batch)
        except BaseException as error:
            broken_off = self._breaking_off and session_alive(self._spark)
            if not broken_off:
                self._failure = error if session_alive(self._spark) else self._session_ended()
                raise
        finally:
            self._batch_thread = None
            with self._idle:
                self._busy = False
                self._idle.notify_all()
        if broken_off:
            leave_batch(self._spark, self.query)

    def _run_batch(self, frame: DataFrame, batch: int) -> None:
        began, started_ms = time.monotonic(), 1000 * time.time()  # durations are never of the wall clock, which jumps
        self._checkpoint.check_held()
        first = self._previous_ms is None
        interval_ms = self.settings.trigger_ms if self._previous_ms is None else 1000 * began - self._previous_ms
        self._previous_ms = 1000 * began
        self._learn_bookkeeping()
        logged = self._checkpoint.plans.read(batch)
        obeyed = logged is not None and logged.network in ("", self._identity)
        if logged is not None and not obeyed:
            _log.warning(
                "network %s: batch %d was planned for other operators and is planned anew", self.graph.name, batch
            )
        if logged is None and first:
            check_never_ran(self._checkpoint, self._runner.sinks, batch)
            last = self._checkpoint.plans.read(batch - 1) if batch > 0 else None
            if last is not None and last.network == self._identity:
                self.controller.restore(last.plan, last.rows_per_s)
        if logged is not None and logged.careful:
            self._runner.known.careful = True
        reading = self._reader.size(frame, batch) if logged is None else self._reader.again(logged, batch, frame)
        if self._calibrated:
            self._judge_backlog(reading.rows)
        skips = False
        if logged is None and self._calibrated and not self._dry_run and not self._backlog.keeps_all:
            skips = self._skips
            reading = self._to_the_newest(reading, batch) if skips else self._passing_over(reading, batch)
        rows = dict(reading.rows)
        raw = self._frames(frame, reading)
        calibrating_s = 0.0
        self._runner.begin(batch)
        enough = sum(rows.values()) >= LEAST_ROWS or (self._totals.over_budget > 1 and any(rows.values()))
        if not self._calibrated and enough:
            before = time.monotonic()
            with part(self._spark, "calibration"):
                self._calibrate(raw, rows)
            calibrating_s = time.monotonic() - before
        if logged is None or not obeyed:
            now_ms = 1000 * time.monotonic()
            fresh = self._fresh(raw, reading) if self._calibrated else None
            if self._calibrated and (unknown := self.controller.groups_to_count(rows)):
                before = time.monotonic()
                known = self._runner.known
                work = partial(count_groups, self.graph, raw, rows, self._tables, known, unknown)
                with part(self._spark, "counting groups"):
                    counted = self._runner.carefully(raw, work)
                self.controller.groups.update(counted)
                calibrating_s += time.monotonic() - before  # once after a start: no batch takes that
            marks = self._marks(batch)
            held = CATCHING_UP if self._backlog.keeps_all else None
            decided = self.controller.decide(rows, now_ms, fresh=fresh, marks=marks, skipped=reading.skipped, held=held)
            would = None if self._shadow is None else self._shadow.decide(rows, interval_ms, marks, held)
            plan = self.controller.plan = of_what_was_read(self.graph, decided, reading, NEWEST if skips else READING)
            offsets = end_offsets(self._checkpoint.spark_folder, batch)
            self._checkpoint.plans.write(
                Logged(
                    batch,
                    plan,
                    rows,
                    offsets,
                    reading.gone,
                    reading.ids,
                    reading.begins,
                    reading.ends,
                    reading.skipped,
                    reading.stale,
                    would,
                    self._identity,
                    self._runner.known.careful,
                    bool(keeping(self.graph)),
                    self.controller.memory(),
                )
            )
        else:
            plan, would = logged.plan, logged.would
            self.controller.resume(plan)
            self.controller.restore(plan, logged.rows_per_s)
            if self._shadow is not None and would is not None:
                self._shadow.resume(would, rows)
        ready = time.monotonic()
        count_shares = partial(self._with_counted_shares, raw, batch, plan, reading)
        shown = self._runner.carefully(raw, count_shares)
        measured = self._runner.run(raw, batch, shown, rows)
        ended = time.monotonic()
        overhead_ms = self._bookkeeping_ms.get() or 0.0
        sample = BatchSample(
            batch=batch,
            started_ms=started_ms,
            interval_ms=interval_ms,
            duration_ms=1000 * (ended - began - calibrating_s + self._after_s) + overhead_ms,
            rows_in=rows,
            arcs=measured.arcs,
            outputs=measured.outputs,
            rejected=measured.rejected,
            timeless=measured.timeless,
            late=measured.late,
            gone=reading.gone,
            skipped=reading.skipped,
            stale=reading.stale,
            topics=self._reader.lag(batch),
            values=measured.values,
            parts_ms={**measured.parts_ms, "deciding": 1000 * (ready - began), "bookkeeping": overhead_ms},
            plan_row=plan.row,
            failed=measured.failed,
            groups=measured.groups,
            would={} if self._shadow is None or would is None else self._shadow.dropped,
            would_deliver={} if self._shadow is None or would is None else self._shadow.delivered,
            timeless_in=measured.timeless_in,
            unneeded=measured.unneeded,
            windows=measured.windows,
            watermark_us=measured.watermark_us,
            withheld=measured.withheld,
            missing=measured.missing,
            before=measured.before,
            unfit=measured.unfit,
        )
        costs = self.controller.costs
        delivered, worth = counted_shares(self.graph, costs.profile, plan, sample, costs.passes_by_value)
        sample = replace(sample, delivered=delivered, worth=worth)
        ages = [seen.latency_ms[-1] for seen in measured.outputs.values() if seen.latency_ms]
        cut = bool(plan.stale) or any(reading.stale.values())
        self._ages.delivered(max(ages, default=0.0) / 1000, ended_s=ended, cut=cut)
        self._checkpoint.ledger.write(batch, shed_entries(sample, plan, would))
        event = self._show(sample, plan)
        on_trial = not self.controller.belief.believed
        self.controller.record(sample)
        if self._shadow is not None:
            self._shadow.record(sample)
        self._largest_rows = max(self._largest_rows, sum(rows.values()))
        if self._limits is not None:
            self._limits.set(self._query, self._next_bounds(rows))
        self._batch_ended_s = time.monotonic()
        if self._calibrated and (on_trial or batch % _REMEMBER_EVERY == 0):
            self._remember()
        self._checkpoint.tidying.after(batch)
        self._listeners.tell(event)
        self._after_s = time.monotonic() - ended

    def _shadow_of(self, profile: Profile) -> DryRun | None:
        """Who plans in a dry run: as if it were obeyed, and learning that it was not."""
        if not self._dry_run or not self._calibrated:
            return None
        on_trial = not self.controller.belief.believed
        settings = replace(self.settings, shedding=True, obeyed=False)
        return DryRun(Controller(self.graph, settings, profile, guessed=on_trial))

    @property
    def _planner(self) -> Controller:
        """Who knows whether a budget can be held: in a dry run, the one whose plans are not obeyed."""
        return self.controller if self._shadow is None else self._shadow.controller

    @property
    def _bounded(self) -> bool:
        """Whether batches are bounded: not those of a run that only measures, unless it is to catch up."""
        return self.settings.shedding or self._dry_run or self._backlog.policy != SHED

    def _judge_backlog(self, rows: Mapping[str, int]) -> None:
        """Tell whether this batch is part of a backlog."""
        waited_ms = 0.0 if self._batch_ended_s is None else 1000 * (time.monotonic() - self._batch_ended_s)
        load_us = Problem(self.graph, self.controller.profile, rows, self.settings.budget_us).load_us
        self._backlog.begins(waited_ms=waited_ms, load_us=load_us, budget_us=self.settings.budget_us)

    def _next_bounds(self, rows: Mapping[str, int]) -> dict[str, int]:
        """How many rows of each source the next batch may read."""
        on_trial = not self.controller.belief.believed
        unshed = self._backlog.keeps_all or on_trial  # a dry run reads what a run that sheds would: that is the rate
        profile = self.controller.profile if self._calibrated else None
        bounds = most_rows(
            self.graph, profile, rows, self.settings.budget_us, unshed=unshed, largest=self._largest_rows
        )
        if on_trial and self._calibrated and bounds:  # costs that may be far too high
            bounds = {name: max(bound, rows.get(name, 0)) for name, bound in bounds.items()}
        if self._calibrated and not unshed:  # what is too much of these is passed over unread
            bounds |= dict.fromkeys(self._reader.skippable, UNBOUNDED)
        return bounds

    def _to_the_newest(self, reading: Reading, batch: int) -> Reading:
        """Pass over all records but the newest, as many as the budget bears, floors held; the backlog is gone then.

        Not of sources whose shed rows somebody keeps. Of sources that cannot be passed over, old rows are dropped.
        """
        names = self._reader.skippable - self._runner.kept_sources
        problem = Problem(self.graph, self.controller.profile, reading.rows, self.settings.budget_us)
        fixed_us = 1000 * self.controller.profile.fixed_ms
        left_us = max(0.0, self.settings.budget_us - fixed_us)
        least = [least_read_share(self.graph, name, reading.rows.get(name, 0)) for name in names]
        share = max(LEAST_READ_SHARE, min(1.0, left_us / max(1.0, problem.load_us - fixed_us)), *least)
        if not self._timed_sources - names:
            self._backlog.end()
        return self._reader.skipping(reading, share, names, batch)

    @property
    def _skips(self) -> bool:
        """Whether what is old of a backlog is skipped now: not before costs are believed."""
        return self._backlog.skips and self.settings.shedding and self.controller.belief.believed

    @property
    def _timed_sources(self) -> frozenset[str]:
        return frozenset(source.name for source in self.graph.sources if source.event_time is not None)

    def _with_counted_shares(self, raw: Mapping[str, DataFrame], batch: int, plan: Plan, reading: Reading) -> Plan:
        """The plan with what it delivers of this batch, where results say so of themselves."""
        sample = BatchSample(batch, 0.0, 0.0, 0.0, reading.rows, skipped=reading.skipped, stale=reading.stale)
        return with_counted_shares(
            self.graph, raw, sample, self._tables, self._runner.known, plan, self.controller.costs
        )

    def _frames(self, frame: DataFrame, reading: Reading) -> dict[str, DataFrame]:
        """The batch by source: files, and topics of which a part is read, anew; the rest as it was handed over."""
        given = split(self.graph, frame)
        files = file_frames(self._query, frame.sparkSession, self._columns)
        raw = self._reader.frames({**given, **files}, reading)
        tell_rows(self._query, [None if raw[name] is given[name] else reading.rows[name] for name in given])
        return raw

    def _marks(self, batch: int) -> BatchMarks | None:
        """How far windows have got. After a start, what was decided about them is in the log of the batch before."""
        if self._slices is None:
            return None
        if not self._resumed:
            self._resumed = True
            last = self._checkpoint.plan_before(batch, "what it decided about windows that are open is unknown")
            self.controller.fates = {} if last is None else last.plan.fates
            if self._shadow is not None and last is not None and last.would is not None:
                self._shadow.resume(last.would, {})
        return self._slices.marks(batch)

    def _fresh(self, raw: Mapping[str, DataFrame], reading: Reading) -> Fresh | None:
        """What of a batch is not stale, where some of it may be, there is too much of it, and there is time to look.

        Where stale records were passed over by their offsets, there will hardly be others.
        """
        rows = dict(reading.rows)
        limits = {} if any(reading.stale.values()) else self._stale_limits(rows)
        self._ages.planned(time.monotonic())
        if self._skips:  # of sources that cannot be passed over unread, old rows are dropped as if stale
            newest_s = _NEWEST_TRIGGERS * self.settings.trigger_ms / 1000
            old = dict.fromkeys(self._timed_sources - self._reader.skippable, newest_s)
            if old:
                return count_fresh(self.graph, raw, rows, {**limits, **old}, time.time(), self._runner.known)
        if not limits or not self.controller.can_look(rows):
            return None
        with part(self._spark, "looking for stale rows"):
            return count_fresh(self.graph, raw, rows, limits, time.time(), self._runner.known)

    def _stale_limits(self, rows: Mapping[str, int]) -> Mapping[str, float]:
        """How old rows may be, by arc; nothing while there is no overload, or no row can be as old as that."""
        limits = self.controller.stale_limits
        return limits if self._ages.may_be_stale(limits, time.monotonic()) and self.controller.overloaded(rows) else {}

    def _passing_over(self, reading: Reading, batch: int) -> Reading:
        """Leave records unread that are stale, in an overload, and more of them when reading alone is too much.

        Not of sources whose shed rows somebody keeps.
        """
        names = self._reader.skippable - self._runner.kept_sources
        decisions = decisions_of(self.graph)
        names = frozenset(name for name in names if decisions.by_chance(name))  # windows would be made of what is left
        names -= weighed(self.graph)  # of a record that was never looked at nobody knows whom it could stand for
        now_s = time.time()
        limits = self._stale_limits(reading.rows)
        younger_s = {name: now_s - limit for name, limit in limits.items() if name in names}
        without_stale = self._reader.skipping_stale(reading, younger_s, batch)
        if self.controller.may_skip(without_stale.rows, without_stale.skipped):
            reading = without_stale
        share = self.controller.read_share(reading.rows, names, reading.skipped)
        return reading if share >= 1 else self._reader.skipping(reading, share, names, batch)

    def _calibrate(self, raw: Mapping[str, DataFrame], rows: Mapping[str, int]) -> None:
        began = time.monotonic()
        _log.info(f"measuring costs on a batch of {sum(rows.values()):,} rows")
        known = self._runner.known
        work = partial(calibrate, self.graph, raw, rows, self._tables, known)
        found = self._runner.carefully(raw, work)
        self._calibrated = True
        self._runner.shared = found.shared
        fates, groups = self.controller.fates, self.controller.groups
        self.controller = Controller(self.graph, self.settings, found.profile, guessed=True)
        self.controller.fates, self.controller.groups = fates, groups
        self._shadow = self._shadow_of(found.profile)
        self._remember()
        kept = f", rows shared at {', '.join(sorted(found.shared))}" if found.shared else ""
        fixed = f"{found.profile.fixed_ms:.0f} ms per batch beside its rows"
        _log.info(f"costs are measured, in {time.monotonic() - began:.1f} s: {fixed}{kept}")

    def _learn_bookkeeping(self) -> None:
        """What a trigger costs beside the batch itself, from Spark's own account of the batch before."""
        progress = self._progress = None if self._query is None else self._query.lastProgress
        if progress is not None and progress.get("numInputRows", 0) > 0:
            spent = progress["durationMs"]
            self._bookkeeping_ms.update(max(0.0, spent.get("triggerExecution", 0) - spent.get("addBatch", 0)))

    def add_listener(self, listener: Listener) -> None:
        """Call a function with the `BatchEvent` of every batch, after it has run and on its thread: keep it short."""
        self._listeners.add(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Call a function no more."""
        self._listeners.remove(listener)

    def _show(self, sample: BatchSample, plan: Plan) -> BatchEvent:
        """Show a batch in all views of the run itself."""
        event = batch_event(
            self.graph,
            sample,
            plan,
            budget_ms=self.settings.budget_us / 1000,
            profile=self.controller.profile,
            infeasible=self._planner.infeasible,
            calibrating=not self._calibrated,
        )
        self.history.append((sample, plan))
        if self.metrics is not None:
            self.metrics.lag(source_lags(self._progress, [source.name for source in self.graph.sources]))
            self.metrics.record(event)
        # last of what can be asked for: who sees a row in the report sees it elsewhere
        self._totals.add(sample, plan, event)
        for line in self._narrator.after(sample, plan, event.infeasible):
            _log.log(line.level, line.text)
        if self._view is not None:
            self._view.update(event)
        return event
