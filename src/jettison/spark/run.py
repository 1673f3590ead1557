"""A network that runs: one streaming query, whose every batch is planned, logged, run and measured here."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jettison.control.loop import Controller, Settings
from jettison.errors import JettisonError, SourceError, StartError
from jettison.network.estimated import weighed
from jettison.network.graph import Graph
from jettison.network.marks import BatchMarks
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.stale import Fresh
from jettison.plan.window_decisions import decisions_of
from jettison.spark.batch import BatchRunner
from jettison.spark.calibrate import LEAST_ROWS, assumed_profile, calibrate
from jettison.spark.checkpoint import Checkpoint
from jettison.spark.evidence import check_never_ran
from jettison.spark.freshness import Ages, count_fresh
from jettison.spark.groups import count_groups
from jettison.spark.history import History
from jettison.spark.kafka import hint
from jettison.spark.live import LiveView
from jettison.spark.logs import Ledger, Logged, shed_entries
from jettison.spark.metrics import Metrics
from jettison.spark.offsets import end_offsets
from jettison.spark.reading import Reader, Reading, of_what_was_read
from jettison.spark.reasons import reason_of
from jettison.spark.relations import file_frames, reads_files, tell_rows
from jettison.spark.report import Report, Totals
from jettison.spark.slice_state import SliceState
from jettison.spark.stream import merge, split
from jettison.statistics.estimators import Smoothed
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

_REMEMBER_EVERY = 20


class Run:
    """A running network. `await_termination`, `stop`, `report`, `ledger` are what a user needs."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Graph,
        runner: BatchRunner,
        reader: Reader,
        statics: Mapping[str, DataFrame],
        settings: Settings,
        checkpoint: Checkpoint,
        profile: Profile | None,
        shared: Iterable[str] | None,
        metrics: Metrics | None,
        live: bool,
        slices: SliceState | None = None,
    ) -> None:
        self.graph = graph
        self.settings = settings
        self._spark = spark
        self._statics = dict(statics)
        self._persisted = [frame.persist() for frame in statics.values() if not frame.is_cached]
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
        self.controller = Controller(graph, careful, known or assumed_profile(graph))
        self._totals = Totals(graph, settings.budget_us / 1000)
        self.history = History()
        self._bookkeeping_ms = Smoothed(0.3, 100.0)
        self._previous_ms: float | None = None
        self._ages = Ages()
        self._after_s = 0.0  # what the batch before took for its records, after its outputs were written
        self._stopping = False
        self._halted = False
        self._failure: BaseException | None = None
        self._idle = threading.Condition()
        self._busy = False
        self._closed = False
        self.metrics = metrics
        self._view = LiveView(self) if live else None
        self._started = time.time()
        self._ended: float | None = None
        self._query: StreamingQuery | None = None
        self._columns: Mapping[str, Sequence[str] | None] = {}  # of sources that read files

    def begin(self, sources: Mapping[str, DataFrame]) -> None:
        """Start the one streaming query."""
        ordered = {source.name: sources[source.name] for source in self.graph.sources}
        self._columns = {name: frame.columns if reads_files(frame) else None for name, frame in ordered.items()}
        writer = (
            merge(self.graph, sources)
            .writeStream.queryName(f"jettison-{self.graph.name}-{id(self):x}")
            .trigger(processingTime=f"{self.settings.trigger_ms:.0f} milliseconds")
            .option("checkpointLocation", self._checkpoint.spark_path)
            .foreachBatch(self._on_batch)
        )
        try:
            self._query = writer.start()
        except AnalysisException as error:  # such as an aggregate before the network
            self._close()
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
        return bool(self.query.isActive)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run ends, at most `timeout` seconds. True when it has ended; raises when it failed."""
        try:
            # fractions of a second are fine, whatever PySpark's annotation says
            ended = self.query.awaitTermination(timeout)  # type: ignore[arg-type]
        except StreamingQueryException as error:
            self._close()
            raise self._explain(error) from error
        if timeout is None or ended:
            self._close()
            return True
        return False

    def stop(self, patience_s: float = 60.0) -> None:
        """End the run between two batches. Raises when it had failed before.

        A batch that takes longer than `patience_s` is broken off: it is not committed, and the next start repeats it.
        """
        self._stopping = True
        deadline = time.monotonic() + patience_s
        while self.query.isActive and self.query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.02)
        # asked now: a batch that stopping breaks off is no failure
        failure = self._failure or (None if self._halted else self.query.exception())
        self.query.stop()
        with self._idle:
            self._idle.wait_for(lambda: not self._busy, timeout=patience_s)  # nothing may write after closing
        self._close()
        if failure is not None:
            raise self._explain(failure) from failure

    def report(self) -> Report:
        """What the run has done so far."""
        seconds = (self._ended or time.time()) - self._started
        # as it was obeyed: the loop's own copy may by now have its place on a newer road map
        plan = self.history[-1][1] if self.history else self.controller.plan
        return self._totals.report(seconds, plan, self.controller.infeasible)

    def ledger(self) -> DataFrame:
        """What was shed: batch, arc, rows in, rows shed, reason, plan row."""
        entries = self._checkpoint.ledger.entries()
        rows = [tuple({**entry, "plan_row": float(entry["plan_row"])}.values()) for entry in entries]
        return self._spark.createDataFrame(rows, Ledger.COLUMNS)

    @property
    def totals(self) -> Totals:
        return self._totals

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._ended = time.time()
        if self._view is not None:
            self._view.close()
        if self.metrics is not None:
            self.metrics.close()
        if self._calibrated:
            self._checkpoint.remember(self.controller.profile, self._runner.shared)
        self._runner.close()
        self._reader.close()
        for frame in self._persisted:
            frame.unpersist()
        self._checkpoint.close()

    def _explain(self, error: BaseException) -> BaseException:
        if isinstance(self._failure, JettisonError):
            return self._failure
        names = ", ".join(repr(source.name) for source in self.graph.sources)
        detail = reason_of(self._failure or error)
        on_kafka = any(source.kafka is not None for source in self.graph.sources)
        advice = hint(f"{detail} {error}") if on_kafka else ""
        return SourceError(
            f"network {self.graph.name!r} stopped: {detail}{' ' if advice else ''}{advice} Sources: {names}. The batch "
            f"is not committed: mend the cause and start again with checkpoint {self._checkpoint.path!r}."
        )

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        if self._stopping:
            # the batch before is committed and this one has written nothing: the next start begins with it
            self._halted = True
            raise JettisonError(f"batch {batch} is left to the next start")
        with self._idle:
            self._busy = True
        try:
            self._run_batch(frame, batch)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            with self._idle:
                self._busy = False
                self._idle.notify_all()

    def _run_batch(self, frame: DataFrame, batch: int) -> None:
        began = time.time()
        self._checkpoint.check_held()
        first = self._previous_ms is None
        interval_ms = self.settings.trigger_ms if self._previous_ms is None else 1000 * began - self._previous_ms
        self._previous_ms = 1000 * began
        self._learn_bookkeeping()
        logged = self._checkpoint.plans.read(batch)
        if logged is None and first:
            check_never_ran(self._checkpoint, self._runner.sinks, batch)
        reading = self._reader.size(frame, batch) if logged is None else self._reader.again(logged, batch)
        if logged is None and self._calibrated:
            reading = self._passing_over(reading, batch)
        rows = dict(reading.rows)
        raw = self._frames(frame, reading)
        calibrating_s = 0.0
        enough = sum(rows.values()) >= LEAST_ROWS or (self._totals.over_budget > 1 and any(rows.values()))
        if not self._calibrated and enough:
            before = time.time()
            self._calibrate(raw, rows)
            calibrating_s = time.time() - before
        if logged is None:
            now_ms = 1000 * time.time()
            fresh = self._fresh(raw, reading, now_ms / 1000) if self._calibrated else None
            if self._calibrated and (unknown := self.controller.groups_to_count(rows)):
                before = time.time()
                counted = count_groups(self.graph, raw, rows, self._statics, self._runner.known, unknown)
                self.controller.groups.update(counted)
                calibrating_s += time.time() - before  # once after a start: no batch takes that
            decided = self.controller.decide(rows, now_ms, fresh=fresh, marks=self._marks(batch))
            plan = self.controller.plan = of_what_was_read(self.graph, decided, reading)
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
                )
            )
        else:
            plan = logged.plan
            self.controller.resume(plan)
        ready = time.time()
        measured = self._runner.run(raw, batch, plan, rows)
        ended = time.time()
        overhead_ms = self._bookkeeping_ms.get() or 0.0
        sample = BatchSample(
            batch=batch,
            started_ms=1000 * began,
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
        )
        ages = [seen.latency_ms[-1] for seen in measured.outputs.values() if seen.latency_ms]
        cut = bool(plan.stale) or any(reading.stale.values())
        self._ages.delivered(max(ages, default=0.0) / 1000, ended_s=ended, cut=cut)
        self._checkpoint.ledger.write(batch, shed_entries(sample, plan))
        self._show(sample, plan)
        self.controller.record(sample)
        if self._calibrated and batch % _REMEMBER_EVERY == 0:
            self._checkpoint.remember(self.controller.profile, self._runner.shared)
        self._checkpoint.tidy(batch)
        self._after_s = time.time() - ended

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
        return self._slices.marks(batch)

    def _fresh(self, raw: Mapping[str, DataFrame], reading: Reading, now_s: float) -> Fresh | None:
        """What of a batch is not stale, where some of it may be, there is too much of it, and there is time to look.

        Where stale records were passed over by their offsets, there will hardly be others.
        """
        rows = dict(reading.rows)
        limits = {} if any(reading.stale.values()) else self._stale_limits(rows, now_s)
        self._ages.planned(now_s)
        if not limits or not self.controller.can_look(rows):
            return None
        return count_fresh(self.graph, raw, rows, limits, now_s, self._runner.known)

    def _stale_limits(self, rows: Mapping[str, int], now_s: float) -> Mapping[str, float]:
        """How old rows may be, by arc; nothing while there is no overload, or no row can be as old as that."""
        limits = self.controller.stale_limits
        return limits if self._ages.may_be_stale(limits, now_s) and self.controller.overloaded(rows) else {}

    def _passing_over(self, reading: Reading, batch: int) -> Reading:
        """Leave records unread that are stale, in an overload, and more of them when reading alone is too much.

        Not of sources whose shed rows somebody keeps.
        """
        names = self._reader.skippable - self._runner.kept_sources
        decisions = decisions_of(self.graph)
        names = frozenset(name for name in names if decisions.by_chance(name))  # windows would be made of what is left
        names -= weighed(self.graph)  # of a record that was never looked at nobody knows whom it could stand for
        now_s = time.time()
        limits = self._stale_limits(reading.rows, now_s)
        younger_s = {name: now_s - limit for name, limit in limits.items() if name in names}
        reading = self._reader.skipping_stale(reading, younger_s, batch)
        share = self.controller.read_share(reading.rows, names)
        return reading if share >= 1 else self._reader.skipping(reading, share, names, batch)

    def _calibrate(self, raw: Mapping[str, DataFrame], rows: Mapping[str, int]) -> None:
        found = calibrate(self.graph, raw, rows, self._statics)
        self._calibrated = True
        self._runner.shared = found.shared
        fates, groups = self.controller.fates, self.controller.groups
        self.controller = Controller(self.graph, self.settings, found.profile, guessed=True)
        self.controller.fates, self.controller.groups = fates, groups
        self._checkpoint.remember(found.profile, found.shared)

    def _learn_bookkeeping(self) -> None:
        """What a trigger costs beside the batch itself, from Spark's own account of the batch before."""
        progress = None if self._query is None else self._query.lastProgress
        if progress is not None and progress.get("numInputRows", 0) > 0:
            spent = progress["durationMs"]
            self._bookkeeping_ms.update(max(0.0, spent.get("triggerExecution", 0) - spent.get("addBatch", 0)))

    def _show(self, sample: BatchSample, plan: Plan) -> None:
        self.history.append((sample, plan))
        if self.metrics is not None:
            problem = Problem(self.graph, self.controller.profile, sample.rows_in, self.settings.budget_us)
            self.metrics.record(sample, plan, problem.load_us / problem.budget_us)
        self._totals.add(sample, plan)  # last of what can be asked for: who sees a row in the report sees it elsewhere
        if self._view is not None:
            self._view.update(sample, plan)
