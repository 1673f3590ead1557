"""The costs of a run: measured on its first batch of some size, and remembered for the next start."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from jettison.spark.batch.calibration import LEAST_ROWS, calibrate
from jettison.spark.batch.parts import RunParts
from jettison.spark.batch.planning import Planning
from jettison.spark.compile.group_sizes import count_groups
from jettison.spark.job_descriptions import part

_REMEMBER_EVERY = 20

_log = logging.getLogger("jettison")

Rows = Mapping[str, int]
Frames = Mapping[str, DataFrame]


class RunCosts:
    """Measures what rows cost, and how large groups are, before the loop plans with it."""

    def __init__(self, parts: RunParts, planning: Planning) -> None:
        self._parts = parts
        self._planning = planning

    def measure(self, raw: Frames, rows: Rows, *, over_budget: int) -> float:
        """Calibrate if that was not done, and there are rows enough, or several batches were over budget. How many
        seconds it took: no other batch takes them."""
        enough = sum(rows.values()) >= LEAST_ROWS or (over_budget > 1 and any(rows.values()))
        if self._planning.calibrated or not enough:
            return 0.0
        began = time.monotonic()
        with part(self._parts.spark, "calibration"):
            self._calibrate(raw, rows)
        return time.monotonic() - began

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

    def _calibrate(self, raw: Frames, rows: Rows) -> None:
        began, runner = time.monotonic(), self._parts.runner
        _log.info(f"measuring costs on a batch of {sum(rows.values()):,} rows")
        work = partial(calibrate, self._parts.graph, raw, rows, self._parts.tables, runner.known)
        found = runner.carefully(raw, work)
        runner.shared = found.shared
        self._planning.learn_profile(found.profile)
        self.remember()
        kept = f", rows shared at {', '.join(sorted(found.shared))}" if found.shared else ""
        fixed = f"{found.profile.fixed_ms:.0f} ms per batch beside its rows"
        _log.info(f"costs are measured, in {time.monotonic() - began:.1f} s: {fixed}{kept}")
