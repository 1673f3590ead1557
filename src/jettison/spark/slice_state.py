"""Aggregates of windows, batch by batch: new rows become slices in the checkpoint, closed windows are made of them.

Watermark of a batch: the largest event time of all earlier batches less the delay. It is known before the batch runs,
and the same when the batch is repeated. The windows that it closes are made of the slices of earlier batches. Rows of
this batch come too late for those; rows that are in no other window are counted as late and left out.

An aggregate of results gets those of its own batch, because the watermark of what is above it tells which result comes
next (`WindowSpec.first_open_us`): its closing windows are made of this batch's slices too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.errors import CheckpointError, JettisonError, SinkError
from jettison.network.band import still_needed, to_merge
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate
from jettison.network.slices import SliceGroup, results_above
from jettison.network.windows import watermark_us
from jettison.spark.files import Folder
from jettison.spark.reasons import reason_of
from jettison.spark.slice_log import Mark, SlicePart, SliceRecord
from jettison.spark.slices import NEWEST, ROWS, SLICE, Shape, kept_slices, merged, number, results, sliced
from jettison.spark.state_log import StateLog

Inputs = Mapping[tuple[str, ...], DataFrame]
"""The rows of a batch that come to a group: one frame for all of its aggregates, unless drops tell them apart."""


@dataclass(frozen=True)
class _Written:
    """A part that was written (None: no slice), its folder, its newest event time and late rows by aggregate."""

    name: str
    of: tuple[str, ...]
    part: SlicePart | None
    newest_us: int | None = None
    late: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Merged:
    """Parts that became one."""

    parts: tuple[SlicePart, ...]
    into: _Written


class SliceState:
    """What the aggregates of a network keep in the checkpoint."""

    def __init__(
        self, spark: SparkSession, graph: Graph, folder: Folder, path: str, shapes: Mapping[str, Shape]
    ) -> None:
        self.spark = spark
        self.shapes = shapes
        self.path = path
        self.above = {each.name: results_above(graph, each.name) for each in graph.aggregates}
        self.order = [each.name for each in graph.aggregates]
        self.logs = {name: StateLog(folder, "aggregate", name, SliceRecord.from_json) for name in shapes}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="jettison-slices")
        for name, shape in shapes.items():
            _check_shape(name, self.logs[name].latest(), shape)

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    def of_batch(self, batch: int, session: SparkSession) -> BatchSlices:
        """The aggregates of one batch; its frames belong to a session of their own."""
        return BatchSlices(self, batch, session)

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        return self._pool.submit(inheritable_thread_target(self.spark)(work), *given)


class BatchSlices:
    """The aggregates of one batch, as a compiler asks for them, with what was measured."""

    def __init__(self, state: SliceState, batch: int, session: SparkSession) -> None:
        self._state = state
        self._batch = batch
        self._session = session
        self._bases = {name: log.latest(batch) for name, log in state.logs.items()}
        self._marks: dict[str, int | None] = {}
        self._members: dict[str, tuple[Aggregate, str]] = {
            member.name: (member, name) for name, shape in state.shapes.items() for member in shape.group.members
        }
        for name in state.order:
            self._marks[name] = self._watermark(name)
        self._writing: dict[str, list[Future[_Written]]] = {}
        self._merging: dict[str, list[Future[_Merged]]] = {}
        self._began: dict[str, float] = {}
        self.late = dict.fromkeys(self._members, 0)
        self.parts_ms: dict[str, float] = {}

    @property
    def quiet(self) -> frozenset[str]:
        """Aggregates that give nothing in this batch, whatever comes in."""
        return frozenset(name for name in self._members if not self._may_close(name))

    def __call__(self, group: SliceGroup, inputs: Inputs) -> dict[str, DataFrame]:
        """Keep what comes to a group; the results of its aggregates."""
        shape = self._state.shapes[group.name]
        base = self._bases[group.name]
        self._began[group.name] = time.time()
        self._writing[group.name] = [
            self._state.submit(self._append, shape, f"{self._batch}-{index}", names, rows)
            for index, (names, rows) in enumerate(inputs.items())
        ]
        self._merging[group.name] = [
            self._state.submit(self._merge, shape, parts) for parts in _too_many(base.parts if base else ())
        ]
        new: list[SlicePart] = []
        if any(self._nested(member.name) for member in group.members):
            new = [each.part for each in self._written(group.name) if each.part is not None]
        return {member.name: self._results(shape, member, new) for member in group.members}

    def finish(self) -> None:
        """Wait until everything is kept, and say so in the log."""
        for name, shape in self._state.shapes.items():
            base = self._bases[name]
            written, joint = self._written(name), [self._told(name, job) for job in self._merging.get(name, ())]
            self._state.logs[name].write(self._after(shape, base, written, joint), base)
            for each in written:
                for member, count in each.late.items():
                    self.late[member] += count
            if name in self._began:
                self.parts_ms[name] = 1000 * (time.time() - self._began[name])

    def close(self) -> None:
        """Nothing of a failed batch may write on while it is repeated."""
        jobs: list[Future[Any]] = [
            job for running in (self._writing, self._merging) for each in running.values() for job in each
        ]
        for job in jobs:
            job.cancel()
        wait(jobs)

    # --- how far it has got -------------------------------------------------------------------------------------------

    def _watermark(self, name: str) -> int | None:
        window = self._members[name][0].window
        before = self._mark_before(name)
        above, rows = self._state.above[name]
        comes = [self._next_result(each) for each in above]
        mark = watermark_us(window, before.newest_us, comes, rows=rows)
        known = [each for each in (mark, before.mark_us) if each is not None]
        return max(known, default=None)

    def _next_result(self, aggregate: Aggregate) -> int | None:
        mark = self._marks[aggregate.name]
        return None if mark is None else aggregate.window.first_open_us(mark)

    def _mark_before(self, name: str) -> Mark:
        base = self._bases[self._members[name][1]]
        return Mark() if base is None else base.marks.get(name, Mark())

    def _nested(self, name: str) -> bool:
        return bool(self._state.above[name][0])

    def _late_before_us(self, name: str) -> int | None:
        """Event times before this are in closed windows alone; None while nothing is closed."""
        mark = self._mark_before(name).mark_us if self._nested(name) else self._marks[name]
        return None if mark is None else self._members[name][0].window.first_open_us(mark)

    def _closing(self, name: str, new: Sequence[SlicePart]) -> tuple[int, int] | None:
        member, group = self._members[name]
        base = self._bases[group]
        parts = [part for part in (*(base.parts if base else ()), *new) if name in part.of]
        oldest = min((part.from_us for part in parts), default=None)
        return member.window.closing(self._mark_before(name).mark_us, self._marks[name], oldest)

    def _may_close(self, name: str) -> bool:
        before, mark = self._mark_before(name).mark_us, self._marks[name]
        if not self._nested(name):
            return self._closing(name, ()) is not None
        if before is None or mark is None:
            return mark is not None
        window = self._members[name][0].window
        return window.first_open_us(before) < window.first_open_us(mark)

    # --- frames -------------------------------------------------------------------------------------------------------

    def _results(self, shape: Shape, member: Aggregate, new: Sequence[SlicePart]) -> DataFrame:
        closing = self._closing(member.name, new)
        base = self._bases[shape.group.name]
        found: list[SlicePart] = []
        if closing is not None:
            first, last = closing[0], closing[1] + member.window.size_us
            parts = (*(base.parts if base else ()), *new)
            found = [each for each in parts if member.name in each.of and each.to_us >= first and each.from_us < last]
        return results(shape, member, self._read(shape, found), closing if found else None)

    def _read(self, shape: Shape, parts: Iterable[SlicePart]) -> DataFrame:
        paths = [f"{self._state.path}/{shape.group.name}/{part.name}" for part in parts]
        if not paths:
            return self._session.createDataFrame([], shape.schema)
        return self._session.read.schema(shape.schema).parquet(*paths)

    # --- what is kept -------------------------------------------------------------------------------------------------

    def _append(self, shape: Shape, name: str, of: tuple[str, ...], rows: DataFrame) -> _Written:
        firsts = {member: self._late_before_us(member) for member in of}
        late = [
            f"sum(IF({SLICE} < {number(first)}, {ROWS}, 0)) AS late{index}"
            for index, first in enumerate(firsts.values())
            if first is not None
        ]
        needed = None if None in firsts.values() else min(each for each in firsts.values() if each is not None)
        slices = sliced(shape, rows)
        kept = SLICE if needed is None else f"IF({SLICE} >= {number(needed)}, {SLICE}, NULL)"
        seen, written = self._write(shape, name, slices, kept, [f"max({NEWEST}) AS newest", *late], needed)
        counts = {member: seen.get(f"late{index}") or 0 for index, member in enumerate(firsts)}
        part = None if written is None else SlicePart(name, *written, 0, of)
        return _Written(name, of, part, seen.get("newest"), counts)

    def _merge(self, shape: Shape, parts: tuple[SlicePart, ...]) -> _Merged:
        level, of = parts[0].level + 1, parts[0].of
        name = f"{self._batch}-m{level}-{of[0]}"
        firsts = [self._open_us(member) for member in of]
        needed = None if None in firsts else min(each for each in firsts if each is not None)
        rows = self._read(shape, parts)
        slices = merged(shape, rows if needed is None else rows.where(f"{SLICE} >= {number(needed)}"))
        _, written = self._write(shape, name, slices, SLICE, [], None)
        return _Merged(parts, _Written(name, of, None if written is None else SlicePart(name, *written, level, of)))

    def _write(
        self, shape: Shape, name: str, slices: DataFrame, kept: str, others: Sequence[str], first_us: int | None
    ) -> tuple[dict[str, Any], tuple[int, int, int] | None]:
        """Write slices; what was seen of them, and rows, first and last slice of what was kept, if anything was."""
        seen = Observation()
        metrics = (f"count({kept}) AS rows", f"min({kept}) AS from_us", f"max({kept}) AS to_us", *others)
        observed = slices.observe(seen, *map(F.expr, metrics))
        target = f"{self._state.path}/{shape.group.name}/{name}"
        kept_slices(shape, observed, first_us).write.mode("overwrite").parquet(target)
        handle: Any = seen._jo
        found: dict[str, Any] = seen.get if handle.future().isCompleted() else {}
        if not found.get("rows"):
            return found, None
        return found, (found["rows"], found["from_us"], found["to_us"])

    def _written(self, name: str) -> list[_Written]:
        return [self._told(name, job) for job in self._writing.get(name, ())]

    def _told(self, name: str, job: Future[Any]) -> Any:
        try:
            return job.result()
        except JettisonError:
            raise
        except Exception as error:
            raise SinkError(
                f"aggregate {name!r}: keeping the slices of batch {self._batch} failed ({type(error).__name__}: "
                f"{reason_of(error)}). It is not committed: mend the cause and start again; it is repeated with its "
                f"plan."
            ) from error

    def _open_us(self, name: str) -> int | None:
        """The first slice that a later batch may need: windows before it are closed and given."""
        mark = self._marks[name]
        return None if mark is None else self._members[name][0].window.first_open_us(mark)

    def _after(
        self, shape: Shape, base: SliceRecord | None, written: Sequence[_Written], joint: Sequence[_Merged]
    ) -> SliceRecord:
        """The record of this batch: its parts are added, merged ones replaced, those that no window needs left out."""
        before = () if base is None else base.parts
        replaced = {part.name for each in joint for part in each.parts}
        made = [*written, *(each.into for each in joint)]
        parts = [part for part in before if part.name not in replaced]
        parts += [each.part for each in made if each.part is not None]
        live = [part for part in parts if still_needed([part], self._needed_us(part))]
        names = {part.name for part in before} | {each.name for each in made}
        marks = {member.name: self._mark_after(member.name, written) for member in shape.group.members}
        gone = names - {part.name for part in live}
        return SliceRecord(
            self._batch, shape.told(), marks, tuple(live), tuple(sorted(gone)), None if base is None else base.batch
        )

    def _needed_us(self, part: SlicePart) -> int | None:
        firsts = [self._open_us(name) for name in part.of]
        return None if None in firsts else min(each for each in firsts if each is not None)

    def _mark_after(self, name: str, written: Sequence[_Written]) -> Mark:
        times = [self._mark_before(name).newest_us, *(each.newest_us for each in written if name in each.of)]
        return Mark(max((each for each in times if each is not None), default=None), self._marks[name])


def _too_many(parts: Sequence[SlicePart]) -> list[tuple[SlicePart, ...]]:
    """Parts to merge, of the same aggregates each."""
    ordered = sorted(parts, key=lambda part: part.of)
    found = (to_merge(tuple(alike)) for _, alike in groupby(ordered, key=lambda part: part.of))
    return [each for each in found if each]


def _check_shape(name: str, last: SliceRecord | None, shape: Shape) -> None:
    told = shape.told()
    for what, was in ({} if last is None else last.shape).items():
        if told.get(what) != was:
            raise CheckpointError(
                f"aggregate {name!r}: the checkpoint keeps slices whose {what!r} was {was!r}, and now it is "
                f"{told.get(what, 'gone')!r}: declare the aggregate as it was, or start with a new checkpoint."
            )
