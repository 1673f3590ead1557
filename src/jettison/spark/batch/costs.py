"""The costs of a run: measured beside its first batches of some size, and remembered for the next start."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame

from jettison.spark.batch.calibration import LEAST_ROWS, Calibration, calibrate
from jettison.spark.batch.calibration_thread import CalibrationThread
from jettison.spark.batch.network_sample import sample_rows
from jettison.spark.batch.parts import RunParts
from jettison.spark.batch.planning import Planning
from jettison.spark.batch.processor_time import Meter
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.group_sizes import count_groups
from jettison.spark.error_text import reason_of
from jettison.spark.job_descriptions import part
from jettison.statistics.samples import BatchSample

_REMEMBER_EVERY = 20
_JUDGED_BATCHES = 3
_MOST_PAUSE = 64

_log = logging.getLogger("jettison")

Rows = Mapping[str, int]
Frames = Mapping[str, DataFrame]


class RunCosts:
    """Measures what rows cost, and how large groups are, before the loop plans with it.

    Costs are measured by a thread of their own, on rows of a batch whose outputs are written. Between two batches the
    loop takes over what was found; batches that have run before say at once whether it can be right.
    """

    def __init__(self, parts: RunParts, planning: Planning) -> None:
        self._parts = parts
        self._planning = planning
        self.calibration: Calibration | None = None
        """What was measured in this run."""
        self._thread: CalibrationThread | None = None
        self._seen: list[BatchSample] = []  # the largest batches with nothing measured beside them
        self._between_batches = threading.Event()
        self._between_batches.set()
        self._failures = 0
        self._pause = 0  # batches until it is tried again

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run one batch: until it ends, a calibration may still begin (`wait_until_measured`)."""
        self._between_batches.clear()
        try:
            yield
        finally:
            self._between_batches.set()

    def take_over(self) -> None:
        """Plan by what was measured, if that is done."""
        thread = self._thread
        if thread is None or not thread.done:
            return
        self._thread = None
        if thread.found is None:
            self._tell_failure(thread)
            return
        found = self.calibration = thread.found
        self._parts.runner.shared = found.shared
        self._planning.learn_profile(found.profile, self._seen)
        self._seen.clear()
        self.remember()
        kept = f", rows shared at {', '.join(sorted(found.shared))}" if found.shared else ""
        fixed = f"{found.profile.fixed_ms:.0f} ms per batch beside its rows"
        _log.info(f"costs are measured, in {found.took_s:.1f} s beside the stream: {fixed}{kept}")

    def measure_beside(self, raw: Frames, rows: Rows, took_ms: float, *, over_budget: int) -> None:
        """Begin to calibrate on a batch that is written, if that was not done, and there are rows enough, or several
        batches were over budget. `took_ms` is how long the batch took."""
        enough = sum(rows.values()) >= LEAST_ROWS or (over_budget > 1 and any(rows.values()))
        if self._planning.calibrated or self._thread is not None or not enough:
            return
        if self._pause > 0:
            self._pause -= 1
            return
        runner, graph = self._parts.runner, self._parts.graph
        _log.info(f"measuring costs on a batch of {sum(rows.values()):,} rows, beside the stream")
        # what this batch has shown of its rows: those that expressions or functions fail on
        known = ExpressionCache(careful=runner.known.careful, set_aside=dict(runner.known.set_aside))
        tables, most_rows = self._parts.tables, sample_rows(graph, rows, took_ms)

        def work(meter: Meter) -> Calibration:
            return calibrate(graph, raw, rows, tables, known, meter, most_rows)

        self._thread = CalibrationThread(self._parts.spark, f"{graph.name}: calibration", work)

    def remember_sample(self, sample: BatchSample) -> None:
        """Remember the largest batches that ran before costs were known: small ones say nothing of costs per row."""
        if not self._planning.calibrated and self._thread is None and any(sample.rows_in.values()):
            newest_first = [sample, *self._seen]  # sorting is stable: of batches as large, the newest are kept
            newest_first.sort(key=lambda each: -sum(each.rows_in.values()))
            self._seen = newest_first[:_JUDGED_BATCHES]

    def wait_until_measured(self, timeout_s: float) -> bool:
        """Whether no calibration is under way, or about to begin with the batch that runs, within some time."""
        deadline_s = time.monotonic() + timeout_s
        if not self._planning.calibrated and not self._between_batches.wait(timeout_s):
            return False
        thread = self._thread
        return thread is None or thread.wait(max(0.0, deadline_s - time.monotonic()))

    def close(self) -> None:
        """End what is under way, keep what was found.

        A job that does not end is left to Spark: a run that has delivered all its batches has not failed.
        """
        if self._thread is not None and not self._thread.done and not self._thread.stop():
            _log.warning(
                "a job that measures costs does not end: it is left to Spark, and the next start measures anew"
            )
            return
        self.take_over()

    def _tell_failure(self, thread: CalibrationThread) -> None:
        """Say why costs are not measured, once; and try again later, less and less often."""
        if thread.failure is None:
            return
        self._failures += 1
        self._pause = min(_MOST_PAUSE, 2**self._failures - 1)
        log = _log.warning if self._failures == 1 else _log.debug
        log(f"costs could not be measured, and nothing is shed until they are: {reason_of(thread.failure)}")

    def count_groups(self, raw: Frames, rows: Rows) -> float:
        """Count groups that are to be told apart and of which nothing is known. How many seconds it took: once after a
        start."""
        controller, runner = self._planning.controller, self._parts.runner
        unknown = controller.groups_to_count(rows) if self._planning.calibrated else frozenset()
        if not unknown:
            return 0.0
        began = time.monotonic()
        work = partial(count_groups, self._parts.graph, raw, rows, self._parts.tables, runner.known, unknown)
        with part(self._parts.spark, "counting groups"):
            counted = runner.carefully(raw, work)
        controller.learn_groups(counted)
        return time.monotonic() - began

    def remember(self) -> None:
        """Write down what is known, for the next start."""
        if self._planning.calibrated:
            believed = not self._planning.on_trial
            profile = self._planning.controller.profile
            self._parts.checkpoint.remember(profile, self._parts.runner.shared, believed=believed)

    def remember_after(self, batch: int, *, was_on_trial: bool) -> None:
        """The same, now and then."""
        if was_on_trial or batch % _REMEMBER_EVERY == 0:
            self.remember()
