"""A network that runs: one streaming query, from its start to its end. `spark.batch.cycle` has what a batch does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from jettison.control.loop import Controller
from jettison.errors import JettisonError, SessionError, StartError
from jettison.network.calls import checked_call
from jettison.spark.batch.calibration import Calibration
from jettison.spark.batch.costs import RunCosts
from jettison.spark.batch.cycle import BatchCycle
from jettison.spark.batch.intake import Intake
from jettison.spark.batch.parts import RunOptions, RunParts
from jettison.spark.batch.planning import Planning
from jettison.spark.batch.views import Views
from jettison.spark.checkpoint.logs import Ledger
from jettison.spark.ending.alive import end_query, failure_of, in_trigger, session_alive
from jettison.spark.ending.closing import Step, close_all
from jettison.spark.ending.interrupts import noticed_interrupts
from jettison.spark.ending.leaving import leave_batch
from jettison.spark.ending.underway import Underway
from jettison.spark.error_text import reason_of
from jettison.spark.job_descriptions import described
from jettison.spark.run.arguments import check_seconds
from jettison.spark.run.failures import RunFailures
from jettison.spark.run.query import RunQuery
from jettison.statistics.worth import DEADLINE_TRIGGERS
from jettison.telemetry.history import History
from jettison.telemetry.listeners import Listener
from jettison.telemetry.metrics import Metrics
from jettison.telemetry.notebook import run_html
from jettison.telemetry.report import Report, Totals

_BREAKING_OFF_S = 3.0
"""How long a batch that is broken off may take to end, at least; with more patience, half of that."""
_LONGEST_BREAKING_OFF_S = 30.0

_SESSION_GONE_S = 10.0
"""How long a batch may take to end when its session is gone."""

_log = logging.getLogger("jettison")


class Run:
    """A running network. `await_termination`, `stop`, `report`, `ledger` are what a user needs."""

    def __init__(self, parts: RunParts, options: RunOptions) -> None:
        self.graph = parts.graph
        self.settings = parts.settings
        self._parts = parts
        self._spark = parts.spark
        self._runner = parts.runner
        self._checkpoint = parts.checkpoint
        self._persisted = [frame.persist() for frame in parts.tables.values() if not frame.is_cached]
        shared = parts.checkpoint.shared(parts.graph) if options.shared is None else frozenset(options.shared)
        parts.runner.shared = shared
        self._planning = Planning(parts, options)
        self._intake = Intake(parts, self._planning, options.catch_up)
        self._costs = RunCosts(parts, self._planning)
        deadline_ms = DEADLINE_TRIGGERS * parts.settings.trigger_ms
        if options.dry_run:
            options.notes.append(
                "dry run: nothing is shed; plans are made as soon as costs are measured, and none is obeyed"
            )
        chosen = self._planning.controller.choice
        if chosen is not None:
            options.notes.append(str(chosen))
        self._views = Views(parts.graph, parts.settings.budget_us / 1000, deadline_ms, options)
        self._cycle = BatchCycle(parts, self._planning, self._intake, self._costs, self._views)
        self._failures = RunFailures(parts)
        self._failure: BaseException | None = None
        self._stopping = False
        self._breaking_off = False  # the query is being stopped, whatever a batch is doing
        self._left = False  # the next batch has come, and is left to the next start
        self._underway = Underway()
        self._closed = False
        self._closing = threading.RLock()
        self._started_s = time.monotonic()
        self._ended_s: float | None = None
        self._query = RunQuery(parts, self._on_batch, available_now=options.available_now)

    def begin(self, sources: Mapping[str, DataFrame]) -> None:
        """Start the one streaming query."""
        try:
            _log.info(self._query.start_line)
            if self.controller.choice is not None:
                _log.info(str(self.controller.choice))
            self._query.start(sources, self._intake, self._worked_through)
        except BaseException as error:
            self._failure = error
            self._close()
            self._failures.raise_at_start(error)

    @property
    def query(self) -> StreamingQuery:
        """Spark's handle of the query."""
        return self._query.started

    @property
    def controller(self) -> Controller:
        """The control loop: costs as they are known, and the plan in force."""
        return self._planning.controller

    @property
    def history(self) -> History:
        """The last batches as they were measured, with their plans."""
        return self._views.history

    @property
    def metrics(self) -> Metrics | None:
        """The Prometheus metrics that are served; None where there are none."""
        return self._views.metrics

    @property
    def shared(self) -> frozenset[str]:
        """Operators whose rows are persisted for several outputs."""
        return self._runner.shared

    @property
    def calibration(self) -> Calibration | None:
        """What was measured beside the stream; None before, and where costs were given or remembered."""
        return self._costs.calibration

    @checked_call("run.await_calibration", StartError)
    def await_calibration(self, timeout: float) -> bool:
        """Wait, at most `timeout` seconds, while costs are measured beside the stream. True when that is over.

        A batch that is running is waited for, as costs may be measured on its rows. What was found is planned with from
        the next batch on, and remembered when the run ends.
        """
        check_seconds("run.await_calibration: timeout", timeout)
        return self._costs.wait_until_measured(timeout)

    @property
    def totals(self) -> Totals:
        return self._views.totals

    def add_listener(self, listener: Listener) -> None:
        """Call a function with the `BatchEvent` of every batch, after it has run and on its thread: keep it short."""
        self._views.listeners.add(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Call a function no more."""
        self._views.listeners.remove(listener)

    @property
    def is_active(self) -> bool:
        """Whether it goes on. Not when its Spark session has ended, or the driver's JVM is gone."""
        return self._query.is_active

    @checked_call("run.await_termination", StartError)
    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run ends, at most `timeout` seconds. True when it has ended; raises when it failed.

        When its Spark session ends before it does, that is a failure too. Ctrl-C ends the run as `stop` does, then
        raises KeyboardInterrupt; a second one does so at once.
        """
        check_seconds("run.await_termination: timeout", 0 if timeout is None else timeout)
        try:
            with noticed_interrupts() as interrupted:
                ended = self._query.wait(timeout, interrupted)
                if interrupted.is_set():
                    with suppress(JettisonError):  # it is in the log, and in what the next call raises
                        self.stop()
                    raise KeyboardInterrupt
        except StreamingQueryException as error:
            self._end_without_session()
            self._failure = self._failure or error  # it may have failed between two batches
            self._close()
            self._failures.raise_explained(error, self._failure)
        if ended:
            self._end_without_session()
            self._close()
            if self._failure is not None:
                self._failures.raise_explained(self._failure, self._failure)
        return ended

    @checked_call("run.await_batches", StartError)
    def await_batches(self, count: int, timeout: float) -> bool:
        """Wait, at most `timeout` seconds, until `count` batches have run since the start. True when they have; raises
        when the run failed."""
        check_seconds("run.await_batches: timeout", timeout)
        deadline = time.monotonic() + timeout
        while self.totals.batches < count and time.monotonic() < deadline:
            if self.await_termination(timeout=min(0.05, max(0.0, deadline - time.monotonic()))):
                break
        return self.totals.batches >= count

    @checked_call("run.stop", StartError)
    def stop(self, patience_s: float = 60.0) -> None:
        """End the run between two batches. Raises when it had failed before.

        A batch that takes longer than `patience_s` is broken off: it is not committed, and the next start repeats it.
        When the Spark session has ended already, this closes what is left. Called by a listener, it returns at once,
        and the run ends after the batch. Raises, too, when the batch does not end even then, because a sink hangs: the
        checkpoint stays in use until it does, or until this process ends.
        """
        check_seconds("run.stop: patience_s", patience_s)
        self._stopping = True
        if self._underway.on_this_thread:  # a listener or a sink asks: its own batch must end first
            threading.Thread(target=self.stop, args=(patience_s,), name="jettison-stop", daemon=True).start()
            return
        deadline = time.monotonic() + patience_s
        if not self._query.begin_no_more(patience_s):
            raise self._failures.still_starting(patience_s)
        while not self._left and time.monotonic() < deadline and in_trigger(self._spark, self.query):
            time.sleep(0.02)
        # asked now: a batch that stopping breaks off is no failure
        failure = self._failure or failure_of(self.query)
        self._breaking_off = True
        limit_s = min(max(_BREAKING_OFF_S, patience_s / 2), _LONGEST_BREAKING_OFF_S)
        has_ended = end_query(self._spark, self.query, limit_s)
        idle = self._underway.wait_until_idle(limit_s if has_ended else 0.0)  # nothing may write after closing
        if not idle and session_alive(self._spark):
            self._underway.when_idle(self._close)
            raise self._failures.hangs(patience_s)
        ended_before = self._end_without_session()
        self._failure = self._failure or failure
        self._close()
        if failure is not None and not ended_before:
            self._failures.raise_explained(failure, self._failure)

    def report(self) -> Report:
        """What the run has done so far."""
        seconds = (self._ended_s or time.monotonic()) - self._started_s
        # of the last batch that has run: the loop may have decided about the next one by now
        plan = self.history[-1][1] if self.history else self.controller.plan
        found = self.totals.report(seconds, plan, self._planning.infeasible)
        failures = self._views.listeners.failures
        return replace(found, listener_failures=failures, costs=self._planning.cost_reports())

    def _repr_html_(self) -> str:
        state = "runs" if self.is_active else "has ended" if self._failure is None else "has failed"
        return run_html(self.report(), state=state, checkpoint=self._checkpoint.path)

    def ledger(self) -> DataFrame:
        """What was shed: batch, arc, rows in, rows shed, reason, plan row."""
        if not session_alive(self._spark):
            raise self._failures.no_ledger()
        return self._spark.createDataFrame(self._checkpoint.ledger.rows(), Ledger.COLUMNS)

    def queries(self) -> DataFrame:
        """What every output got of every batch: its SIC, source tuples processed and lost, rows, latency."""
        if not session_alive(self._spark):
            raise self._failures.no_ledger()
        return self._spark.createDataFrame(self._checkpoint.ledger.queries(), Ledger.QUERY_COLUMNS)

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        if self._stopping:
            # the batch before is committed and this one has written nothing: the next start begins with it
            self._left = True
            leave_batch(self._spark, self.query)
        broken_off = False
        with self._underway.batch():
            try:
                with described(self._spark, f"{self.graph.name}: batch {batch}"):
                    self._cycle.run(frame, batch, self._query.handle)
            except BaseException as error:
                broken_off = self._breaking_off and session_alive(self._spark)
                if not broken_off:
                    self._failure = error if session_alive(self._spark) else self._failures.session_ended()
                    raise
        if broken_off:
            leave_batch(self._spark, self.query)

    def _worked_through(self, error: BaseException | None) -> None:
        """All data that was there has been worked through, or that has failed between two batches."""
        if error is not None:
            self._failure = self._failure or (error if session_alive(self._spark) else self._failures.session_ended())
        self._close()

    def _close(self) -> None:
        with self._closing:  # whoever comes second finds everything released
            if not self._closed:
                self._closed = True
                self._ended_s = time.monotonic()
                close_all(self._closing_steps())

    def _closing_steps(self) -> list[Step]:
        log_end = partial(_log_end, self.graph.name, self.totals, self._failure, self._failures)
        steps: list[Step] = [
            ("ending calibration", self._costs.close),
            ("writing the last line of the log", log_end),
            *self._views.closing(),
            ("saving the costs (the next start measures them anew)", self._costs.remember),
            ("ending its threads", self._runner.close),
            ("letting go of the broker", self._parts.reader.close),
        ]
        if session_alive(self._spark):
            steps += [("letting go of a table", frame.unpersist) for frame in self._persisted]
        return [*steps, ("releasing the checkpoint", self._checkpoint.close)]

    def close_if_abandoned(self) -> None:
        """Release everything if the Spark session has ended and nobody has closed the run since."""
        if not session_alive(self._spark):
            self._end_without_session()
            self._close()

    def _end_without_session(self) -> bool:
        """Note that the session has ended before the run, if so; True then."""
        if self._closed or session_alive(self._spark):
            return isinstance(self._failure, SessionError)
        self._underway.wait_until_idle(_SESSION_GONE_S)
        if self._failure is None:
            self._failure = self._failures.session_ended()
            _log.warning("%s", self._failure)
        return isinstance(self._failure, SessionError)


def _log_end(network: str, totals: Totals, failure: BaseException | None, failures: RunFailures) -> None:
    totals_text = f"{totals.batches:,} batches, {totals.rows_in:,} rows in, {totals.rows_shed:,} shed"
    if failure is None:
        _log.info(f"network {network!r} has stopped: {totals_text}")
    else:
        told = reason_of(failures.explained(failure, failure))
        _log.error(f"network {network!r} has failed: {told} ({totals_text})")
