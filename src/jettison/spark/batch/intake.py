"""What a batch reads: how large it may be, which records are passed over unread, and which rows are stale."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from jettison.control.catch_up import SHED, UNBOUNDED, Backlog, most_rows
from jettison.control.loop import LEAST_READ_SHARE
from jettison.network.windows.estimated_aggregates import weighed
from jettison.plan.floors import least_read_share
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.reasons import CATCHING_UP, NEWEST, READING
from jettison.plan.refine.staleness import Fresh
from jettison.plan.refine.unread import Unread
from jettison.plan.windows.decisions import decisions_of
from jettison.spark.batch.parts import RunParts
from jettison.spark.batch.planning import Planning
from jettison.spark.checkpoint.logs import Logged
from jettison.spark.compile.freshness import Ages, count_fresh
from jettison.spark.job_descriptions import part
from jettison.spark.read.read_limits import ReadLimits
from jettison.spark.read.relations import file_frames, reads_files, tell_rows
from jettison.spark.read.stream import is_generated, split
from jettison.statistics.records import Records
from jettison.statistics.samples import Measured

_NEWEST_TRIGGERS = 2.0

Rows = Mapping[str, int]
Frames = Mapping[str, DataFrame]


class Intake:
    """Backlog, bounds and ages of one run's sources."""

    def __init__(self, parts: RunParts, planning: Planning, catch_up: str) -> None:
        self._parts = parts
        self._graph, self._settings, self._reader = parts.graph, parts.settings, parts.reader
        self._planning = planning
        self._backlog = Backlog(catch_up, parts.settings.trigger_ms)
        self._limits: ReadLimits | None = None
        self._columns: Mapping[str, Sequence[str] | None] = {}  # of sources that read files
        self._largest_rows = 0
        self._batch_ended_s: float | None = None
        self._ages = Ages()
        self._skips = False

    def open(self, sources: Frames, query_name: str) -> AbstractContextManager[None]:
        """Bound the first batch of a query that is started inside; no batch of a run that only measures, unless it is
        to catch up."""
        self._columns = {name: frame.columns if reads_files(frame) else None for name, frame in sources.items()}
        if not (self._settings.shedding or self._planning.dry_run or self._backlog.policy != SHED):
            return nullcontext()
        generated = [each for each, frame in sources.items() if is_generated(frame)]
        self._limits = ReadLimits(self._parts.spark, list(sources), generated)
        return self._limits.first(self._parts.spark, query_name, self._next_bounds({}))

    def records(self, frame: DataFrame, batch: int, logged: Logged | None) -> Records:
        """What a batch reads: as it was logged, else without records that are stale or too many."""
        again = logged is not None
        records = self._reader.size(frame, batch) if logged is None else self._reader.again(logged, batch, frame)
        if self._planning.calibrated:
            self._judge_backlog(records.rows)
        self._skips = False
        if again or not self._planning.calibrated or self._planning.dry_run or self._backlog.keeps_all:
            return records
        self._skips = self._skips_backlog
        return self._to_the_newest(records, batch) if self._skips else self._without_excess(records, batch)

    def frames(
        self, frame: DataFrame, batch: int, records: Records, query: StreamingQuery | None
    ) -> dict[str, DataFrame]:
        """The batch by source: files, generated rows, and topics of which a part is read, anew; the rest as it was
        handed over."""
        given = split(self._graph, frame)
        files = file_frames(query, frame.sparkSession, self._columns)
        raw = self._reader.frames({**given, **files}, records, batch)
        if not any(raw[name] is given[name] for name in given):  # whose jobs read all sources, and Spark counts them
            tell_rows(query, [records.rows[name] for name in given])
        return raw

    def unread(self, records: Records) -> Unread:
        """What a plan must know of records that are passed over."""
        return Unread(records.skipped, records.stale, NEWEST if self._skips else READING)

    @property
    def held(self) -> str | None:
        """Why nothing may be shed for now, where that is so. Before costs are measured nobody knows of a backlog."""
        return CATCHING_UP if self._backlog.keeps_all and self._planning.calibrated else None

    def fresh(self, raw: Frames, records: Records) -> Fresh | None:
        """What of a batch is not stale, where some of it may be, there is too much of it, and there is time to look.

        Where stale records were passed over by their offsets, there will hardly be others.
        """
        rows, known = dict(records.rows), self._parts.runner.known
        limits = {} if any(records.stale.values()) else self._stale_limits(rows)
        self._ages.planned(time.monotonic())
        if self._skips_backlog:  # of sources that cannot be passed over unread, old rows are dropped as if stale
            newest_s = _NEWEST_TRIGGERS * self._settings.trigger_ms / 1000
            old = dict.fromkeys(self._timed_sources - self._reader.skippable, newest_s)
            if old:
                return count_fresh(self._graph, raw, rows, {**limits, **old}, time.time(), known)
        if not limits or not self._planning.controller.can_look(rows):
            return None
        with part(self._parts.spark, "looking for stale rows"):
            return count_fresh(self._graph, raw, rows, limits, time.time(), known)

    def delivered(self, measured: Measured, plan: Plan, records: Records, ended_s: float) -> None:
        """Learn how old the rows were that a batch delivered."""
        ages = [seen.latency_ms[-1] for seen in measured.outputs.values() if seen.latency_ms]
        cut = bool(plan.stale) or any(records.stale.values())
        self._ages.delivered(max(ages, default=0.0) / 1000, ended_s=ended_s, cut=cut)

    def batch_ended(self, rows: Rows, query: StreamingQuery | None) -> None:
        """Bound the next batch by what is known now."""
        self._largest_rows = max(self._largest_rows, sum(rows.values()))
        if self._limits is not None:
            self._limits.set(query, self._next_bounds(rows))
        self._batch_ended_s = time.monotonic()

    def _judge_backlog(self, rows: Rows) -> None:
        """Tell whether this batch is part of a backlog."""
        waited_ms = 0.0 if self._batch_ended_s is None else 1000 * (time.monotonic() - self._batch_ended_s)
        budget_us = self._settings.budget_us
        load_us = Problem(self._graph, self._planning.controller.profile, rows, budget_us).load_us
        self._backlog.begins(waited_ms=waited_ms, load_us=load_us, budget_us=budget_us)

    def _next_bounds(self, rows: Rows) -> dict[str, int]:
        """How many rows of each source the next batch may read."""
        calibrated, on_trial = self._planning.calibrated, self._planning.on_trial
        sheds = self._settings.shedding or self._planning.dry_run  # which reads what a run that sheds would
        unshed = self._backlog.keeps_all or on_trial or not sheds
        profile = self._planning.controller.profile if calibrated else None
        bounds = most_rows(
            self._graph, profile, rows, self._settings.budget_us, unshed=unshed, largest=self._largest_rows
        )
        if on_trial and calibrated and bounds:  # costs that may be far too high
            bounds = {name: max(bound, rows.get(name, 0)) for name, bound in bounds.items()}
        if calibrated and not unshed:  # what is too much of these is passed over unread
            bounds |= dict.fromkeys(self._reader.skippable, UNBOUNDED)
        return bounds

    def _to_the_newest(self, records: Records, batch: int) -> Records:
        """Pass over all records but the newest, as many as the budget bears, floors held; the backlog is gone then.

        Not of sources whose shed rows somebody keeps. Of sources that cannot be passed over, old rows are dropped.
        """
        names = self._reader.skippable - self._parts.runner.sinks.kept_sources
        profile, budget_us = self._planning.controller.profile, self._settings.budget_us
        problem = Problem(self._graph, profile, records.rows, budget_us)
        fixed_us = 1000 * profile.fixed_ms
        left_us = max(0.0, budget_us - fixed_us)
        least = [least_read_share(self._graph, name, records.rows.get(name, 0)) for name in names]
        share = max(LEAST_READ_SHARE, min(1.0, left_us / max(1.0, problem.load_us - fixed_us)), *least)
        if not self._timed_sources - names:
            self._backlog.end()
        return self._reader.skipping(records, share, names, batch)

    def _without_excess(self, records: Records, batch: int) -> Records:
        """Leave records unread that are stale, in an overload, and more of them when reading alone is too much.

        Not of sources whose shed rows somebody keeps.
        """
        names = self._reader.skippable - self._parts.runner.sinks.kept_sources
        decisions, controller = decisions_of(self._graph), self._planning.controller
        names = frozenset(name for name in names if decisions.by_chance(name))  # windows would be made of what is left
        names -= weighed(self._graph)  # skipped records cannot be weighted: nobody has looked at them
        now_s = time.time()
        limits = self._stale_limits(records.rows)
        younger_s = {name: now_s - limit for name, limit in limits.items() if name in names}
        without_stale = self._reader.skipping_stale(records, younger_s, batch)
        if controller.may_skip(without_stale.rows, without_stale.skipped):
            records = without_stale
        share = controller.read_share(records.rows, names, records.skipped)
        return records if share >= 1 else self._reader.skipping(records, share, names, batch)

    def _stale_limits(self, rows: Rows) -> Mapping[str, float]:
        """How old rows may be, by arc; nothing while there is no overload, or no row can be as old as that."""
        controller = self._planning.controller
        limits = controller.stale_limits
        return limits if self._ages.may_be_stale(limits, time.monotonic()) and controller.overloaded(rows) else {}

    @property
    def _skips_backlog(self) -> bool:
        """Whether what is old of a backlog is skipped now: not before costs are believed."""
        return self._backlog.skips and self._settings.shedding and not self._planning.on_trial

    @property
    def _timed_sources(self) -> frozenset[str]:
        return frozenset(source.name for source in self._graph.sources if source.event_time is not None)
