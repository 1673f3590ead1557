"""Joins of two streams, batch by batch: new rows meet those that wait, and wait themselves.

The pairs of a batch are  new left x (old right + new right)  +  old left x new right.  New rows are written to the
checkpoint first and read from there, so that rows are computed once, whatever reads them, and Spark knows how many
there are before it plans the join.

How far a side has got, from which follow what is late and what need not wait any more, is seen at its sources before
any drop (`network.event_time.progress`), so that the pairs of two rows that are not shed are those of an unshed run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.errors import CheckpointError, JettisonError, SinkError
from jettison.network.arc import arc_name
from jettison.network.event_time.join_retention import Part, in_reach, to_merge, watermark_us
from jettison.network.operators import Operator, StreamJoin
from jettison.spark.checkpoint.small_files import Folder, as_it_stands
from jettison.spark.compile.arriving import Arriving
from jettison.spark.compile.drops import HIDDEN, IDENTITY, TIME, changing
from jettison.spark.compile.pairs import paired, waiting
from jettison.spark.error_text import failed_at
from jettison.spark.job_descriptions import part as described_part
from jettison.spark.state.join_log import SIDES, Record, Side
from jettison.spark.state.join_progress import horizon, next_record
from jettison.spark.state.operator_state import OpenedBatch, Progress, StateMeasured
from jettison.spark.state.part_files import check_files, files_of
from jettison.spark.state.presence import Presence
from jettison.spark.state.state_log import StateLog
from jettison.spark.state.written_parts import FEW_TOGETHER, together, write_part
from jettison.spark.write.small_outputs import FIXED, MOST_ROWS, TooLargeError, width_of
from jettison.statistics.samples import Measured

T = TypeVar("T")
Schemas = Mapping[str, tuple[StructType, StructType]]
"""By join: the rows of its two sides, as they are kept."""


@dataclass(frozen=True)
class _Written:
    """A part that was written (None: no row), its folder, and how many of its rows were late."""

    name: str
    part: Part | None
    late: int = 0


@dataclass(frozen=True)
class _Merged:
    """Parts that became one."""

    parts: tuple[Part, ...]
    into: _Written


@dataclass(frozen=True)
class Keeping:
    """What a join keeps of one batch, while it is being written: from what it goes on, and the jobs, by side."""

    join: StreamJoin
    batch: int
    session: SparkSession
    base: Record | None
    before: tuple[Side, Side]
    appending: Sequence[Future[_Written | None]] = ()
    merging: Sequence[Future[_Merged | None]] = ()


class JoinState:
    """What the joins of a network keep in the checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        path: str,
        schemas: Schemas,
        presence: Presence | None = None,
        bounded: Collection[str] = (),
    ) -> None:
        """`bounded` joins get no more rows than a batch reads: of small batches the driver writes them."""
        self._spark = spark
        self._path = path
        self._schemas = schemas
        self._folder = folder
        self._presence = presence
        fixed = [name for name in bounded if all(width_of(schema) == FIXED for schema in schemas[name])]
        self._bounded = frozenset(fixed)
        self._checked: set[str] = set()
        self._logs = {name: StateLog(folder, "join", name, Record.from_json) for name in schemas}
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="jettison-join")
        for name, log in self._logs.items():
            if presence is not None and not presence.keeps(name):
                continue  # what another has left is deleted when a batch runs
            last = log.latest()  # refused where it is damaged, whether the join was given a name or not
            try:
                _check_shape(name, last, schemas[name])
            except CheckpointError as error:
                if presence is None or not presence.unnamed(name):
                    raise
                presence.begin_anew(name, str(error).partition(": declare")[0])

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(self._schemas)

    def open(self, batch: OpenedBatch) -> BatchJoins:
        """The joins of one batch. What they go on from is checked when a run reads it first."""
        for name, log in self._logs.items():
            if self._presence is not None and self._presence.left_records(name, batch.number):
                log.base(batch.number)
            record = log.latest(batch.number)
            if record is not None and name not in self._checked:
                for part in (each for side in record.sides for each in side.parts if each.files):
                    check_files(self._folder, f"join {name!r}", f"{name}/{part.name}", part)
            self._checked.add(name)
        few = self._bounded if batch.rows <= MOST_ROWS else frozenset[str]()
        return BatchJoins(self, batch.number, few)

    def keep(
        self, join: StreamJoin, batch: int, new: tuple[DataFrame | None, DataFrame | None], *, few: bool = False
    ) -> Keeping:
        """Begin to write the new rows of both sides, and old parts that have become too many.

        None stands for a side that has no rows in this batch. How far the sides have got is told later (`reached`).
        """
        base = self._logs[join.name].latest(batch)
        before = self._sides(join, base)
        session = next((rows.sparkSession for rows in new if rows is not None), None)
        if session is None:
            return Keeping(join, batch, self._spark, base, before)
        work = inheritable_thread_target(self._spark)
        appending = [
            self._pool.submit(work(self._append), join, batch, side, rows, before[side], few)
            for side, rows in enumerate(new)
        ]
        merging = [self._pool.submit(work(self._merge), join, batch, side, session, before) for side in (0, 1)]
        return Keeping(join, batch, session, base, before, appending, merging)

    def joined(self, keeping: Keeping) -> tuple[DataFrame, int]:
        """The pairs that a batch's new rows make, and how many of those rows were late."""
        written = self._done(keeping, keeping.appending)
        parts = [None if each is None else each.part for each in written] or [None, None]
        late = sum(each.late for each in written if each is not None)
        return self._pairs(keeping.join, keeping.session, keeping.before, parts), late

    def record(self, keeping: Keeping) -> Record | None:
        """The record of the rows that a batch brought, when everything is written; None where it brought none."""
        if not keeping.appending:
            return None
        written, merged = self._done(keeping, keeping.appending), self._done(keeping, keeping.merging)
        return _after(keeping.batch, keeping.base, keeping.before, written, merged)

    def all_reached(self, batch: int, kept: Mapping[str, Record | None], progress: Progress) -> None:
        """The same of all joins, side by side: a disk takes as long for one record as for some."""
        _ = progress.newest_us  # looked up in this thread
        joins = progress.graph.stream_joins
        jobs = [self._pool.submit(self.reached, batch, kept.get(join.name), join, progress) for join in joins]
        wait(jobs)  # also those beside one that fails: nothing may write on
        for job in jobs:
            job.result()

    def reached(self, batch: int, kept: Record | None, join: StreamJoin, progress: Progress) -> None:
        """Say in the log how far both sides have got with a batch; `kept` is its record, if it brought rows to pair."""
        log = self._logs[join.name]
        base = log.latest(batch)
        before = kept or base or Record(batch, self._sides(join, None))
        log.write(next_record(join, batch, base, before, progress), base)

    def _sides(self, join: StreamJoin, record: Record | None) -> tuple[Side, Side]:
        if record is not None:
            return record.sides
        left, right = (Side(schema.json()) for schema in self._schemas[join.name])
        return left, right

    def _done(self, keeping: Keeping, jobs: Sequence[Future[T]]) -> list[T]:
        try:
            return [job.result() for job in jobs]
        except JettisonError:
            raise
        except Exception as error:
            raise SinkError(
                f"join {keeping.join.name!r}: keeping the rows of batch {keeping.batch} failed "
                f"({failed_at(error, self._path)}). It is not committed: mend the cause and start again; it is "
                f"repeated with its plan."
            ) from error

    def _pairs(
        self, join: StreamJoin, session: SparkSession, before: Sequence[Side], new: Sequence[Part | None]
    ) -> DataFrame:
        within_us = join.within_us
        old = [in_reach(before[side].parts, new[1 - side], within_us) for side in (0, 1)]
        waits = [self._rows(join, side, session, old[side], horizon(join, side, before)) for side in (0, 1)]
        come = [self._rows(join, side, session, [part] if part else [], None) for side, part in enumerate(new)]
        count = _rows_in([*old[0], *old[1], *(part for part in new if part is not None)])
        few = count <= FEW_TOGETHER
        found: DataFrame | None = None
        if come[0] is not None and (waits[1] is not None or come[1] is not None):
            there = waits[1] if come[1] is None else come[1] if waits[1] is None else waits[1].union(come[1])
            assert there is not None
            found = paired(join, come[0], together(there, count), few=few)
        if come[1] is not None and waits[0] is not None:
            others = paired(join, waits[0], come[1], few=few)
            found = others if found is None else found.union(others)
        if found is None:
            nothing = [session.createDataFrame([], schema) for schema in self._schemas[join.name]]
            found = paired(join, nothing[0], nothing[1])
        return found

    def _rows(
        self, join: StreamJoin, side: int, session: SparkSession, parts: Sequence[Part], first_us: int | None
    ) -> DataFrame | None:
        """The rows of these parts that are not before the horizon; None when there is no part."""
        if not parts:
            return None
        paths = [as_it_stands(f"{self._path}/{join.name}/{part.name}") for part in parts]
        rows = together(session.read.schema(self._schemas[join.name][side]).parquet(*paths), _rows_in(parts))
        return rows if first_us is None else rows.where(f"unix_micros({TIME}) >= {_number(first_us)}")

    def _append(
        self, join: StreamJoin, batch: int, side: int, rows: DataFrame | None, before: Side, few: bool
    ) -> _Written | None:
        if rows is None:
            return None
        mark = watermark_us(before.newest_us, join.delay_us)
        return self._write(join, f"{SIDES[side]}/{batch}", waiting(join, side, rows), 0, mark, few=few)

    def _merge(
        self, join: StreamJoin, batch: int, side: int, session: SparkSession, before: Sequence[Side]
    ) -> _Merged | None:
        """Parts that were merged and what they became; None when there are not too many."""
        parts = to_merge(before[side].parts)
        rows = self._rows(join, side, session, parts, horizon(join, side, before))
        if rows is None:
            return None
        level = parts[0].level + 1
        rows = rows.coalesce(session.sparkContext.defaultParallelism)
        return _Merged(parts, self._write(join, f"{SIDES[side]}/{batch}-{level}", rows, level, None))

    def _write(
        self, join: StreamJoin, name: str, rows: DataFrame, level: int, mark_us: int | None, *, few: bool = False
    ) -> _Written:
        at = f"unix_micros({TIME})"
        late = "count_if(false)" if mark_us is None else f"count_if({at} < {_number(mark_us)})"
        metrics = ("count(1) AS rows", f"min({at}) AS from_us", f"max({at}) AS to_us", f"{late} AS late")
        seen = Observation()
        observed = rows.observe(seen, *map(F.expr, metrics))
        with described_part(self._spark, f"{'merging ' if level else ''}rows that wait at {join.name}"):
            try:
                write_part(observed, self._folder, self._path, f"{join.name}/{name}", few=few)
            except TooLargeError:
                self._bounded = frozenset()
                return self._write(join, name, rows, level, mark_us)
        found: dict[str, Any] = seen.get
        if not found["rows"]:
            return _Written(name, None)
        files = files_of(self._folder, f"{join.name}/{name}")
        part = Part(name, found["rows"], found["from_us"], found["to_us"], level, files=files)
        return _Written(name, part, found["late"])


class BatchJoins:
    """The joins of one batch."""

    def __init__(self, state: JoinState, batch: int, few: frozenset[str] = frozenset()) -> None:
        self._state = state
        self._batch = batch
        self._few = few
        self._late: dict[str, int] = {}
        self._parts_ms: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._keeping: dict[str, Keeping] = {}

    @property
    def quiet(self) -> frozenset[str]:
        return frozenset()

    def outside(self, name: str, of: Collection[str]) -> str:
        return ""

    def take(self, operator: Operator, arriving: Arriving) -> None:
        """Begin to keep what comes to a join."""
        assert isinstance(operator, StreamJoin)
        self._began[operator.name] = time.perf_counter()
        left, right = (arriving.on(arc_name(tail, operator.name)) for tail in operator.inputs)
        few = operator.name in self._few
        self._keeping[operator.name] = self._state.keep(operator, self._batch, (left, right), few=few)

    def frames(self, operator: Operator) -> dict[str, DataFrame]:
        """The pairs of a join: its new rows are read from where they are kept."""
        name = operator.name
        pairs, self._late[name] = self._state.joined(self._keeping[name])
        self._parts_ms[name] = 1000 * (time.perf_counter() - self._began[name])
        return {name: pairs}

    def most_rows(self, name: str) -> int | None:
        return None

    def commit(self, progress: Progress) -> None:
        """Say how far all sides have got, when all rows have been looked at: also of joins that had nothing to pair,
        for what is shed must make no difference."""
        kept = {name: self._state.record(keeping) for name, keeping in self._keeping.items()}
        self._state.all_reached(self._batch, kept, progress)

    def measured(self) -> StateMeasured:
        return StateMeasured(Measured(late=self._late, parts_ms=self._parts_ms))

    def close(self) -> None:
        """Nothing of a failed batch may write on while it is repeated."""
        jobs: list[Future[Any]] = [
            job for each in self._keeping.values() for sides in (each.appending, each.merging) for job in sides
        ]
        for job in jobs:
            job.cancel()
        wait(jobs)


def _rows_in(parts: Sequence[Part]) -> int:
    return sum(part.rows for part in parts)


def _after(
    batch: int,
    base: Record | None,
    before: Sequence[Side],
    written: Sequence[_Written | None],
    merged: Sequence[_Merged | None],
) -> Record:
    """The record of a batch: its new parts are added, merged ones replaced."""
    grown = []
    names = {part.name for side in before for part in side.parts}
    for side, new, joint in zip(before, written, merged, strict=True):
        parts = [part for part in side.parts if joint is None or part not in joint.parts]
        made = [each for each in (new, None if joint is None else joint.into) if each is not None]
        names |= {each.name for each in made}
        parts += [each.part for each in made if each.part is not None]
        grown.append(replace(side, parts=tuple(parts)))
    live = {part.name for side in grown for part in side.parts}
    gone, earlier = tuple(sorted(names - live)), (None, {}) if base is None else (base.batch, base.seen_us)
    return Record(batch, (grown[0], grown[1]), gone, *earlier)


def _check_shape(join: str, last: Record | None, schemas: tuple[StructType, StructType]) -> None:
    for side, schema in enumerate(schemas):
        kept = None if last is None else StructType.fromJson(json.loads(last.sides[side].schema))
        if kept is not None and kept.simpleString() != schema.simpleString():
            raise CheckpointError(
                f"join {join!r}: the checkpoint keeps rows of the {SIDES[side]} side as {_shown(kept)}, and now they "
                f"are {_shown(schema)}: declare the stream as it was, or start with a new checkpoint."
            )


def _shown(schema: StructType) -> str:
    fields = [field for field in schema.fields if field.name not in HIDDEN]
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)


def _number(value: int) -> str:
    """A number that changes from batch to batch, in SQL, so that the code around it is not compiled anew."""
    return changing(f"{value}L", IDENTITY)
