"""Aggregates of windows, batch by batch: new rows become slices in the checkpoint, closed windows are made of them.

What closes in a batch and what is late is said by `watermarks`. New rows of a batch are sliced and written in one
job per group, while outputs are written from the slices of earlier batches. Only aggregates of results wait for their
new slices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.network.columns.expressions import multiplies
from jettison.network.event_time.coverage import withheld
from jettison.network.event_time.join_retention import still_needed, to_merge
from jettison.network.event_time.watermarks import BatchMarks, Mark, first_mark
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Select, Source, Where, WithColumns, computed
from jettison.network.windows.estimate_context import Context, context_metrics, observed_context, remembered
from jettison.network.windows.slice_groups import SliceGroup
from jettison.plan.drops.window import Fate
from jettison.plan.refine.thinning import GroupShares, thinned_after
from jettison.plan.windows.group_gaps import named_groups
from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.compile.drops import TIME
from jettison.spark.compile.group_sizes import MOST_SLICES, group_metrics, group_sample, named_metrics, named_sample
from jettison.spark.compile.observations import observed
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_log import SlicePart, SliceRecord, check_shape, still_wanted
from jettison.spark.state.slice_store import Failing, SliceStore, explained, fits_driver
from jettison.spark.windows.missing_results import Missing
from jettison.spark.windows.slices import NEWEST, ROWS, SLICE, Shape, kept_slices, merged, number, results, sliced
from jettison.spark.windows.unneeded_slices import unneeded
from jettison.statistics.missing_results import MissingResults
from jettison.statistics.samples import FailedWindows, GroupSample

Inputs = Mapping[tuple[str, ...], DataFrame]
"""The rows of a batch that come to a group: one frame for all of its aggregates, unless drops tell them apart."""

_FEW = 20_000
"""So many slices come to the driver."""
_MOST_SPREAD = 32
"""Groups are not told apart more finely than as if a batch had so many slices: a stream may jump."""
_COUNTABLE = 200_000
"""Of so many slices it is counted how many rows no kept window needs. Early drops leave few of those."""


@dataclass(frozen=True)
class _Written:
    """A part that was written (None: no slice), its folder, its newest event time and late rows by aggregate."""

    name: str
    of: tuple[str, ...]
    part: SlicePart | None
    newest_us: int | None = None
    late: Mapping[str, int] = field(default_factory=dict)
    timeless: int = 0
    came: int = 0
    groups: Mapping[str, GroupSample] = field(default_factory=dict)
    unneeded: Mapping[str, int] = field(default_factory=dict)
    context: Mapping[str, Context] = field(default_factory=dict)


@dataclass(frozen=True)
class _Merged:
    """Parts that became one."""

    parts: tuple[SlicePart, ...]
    into: _Written


class SliceState:
    """What the aggregates of a network keep in the checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Graph,
        folder: Folder,
        path: str,
        shapes: Mapping[str, Shape],
        presence: Presence | None = None,
    ) -> None:
        """Without `presence` all aggregates are taken to have been there from the first batch on."""
        self.shapes = shapes
        self.graph = graph
        self.presence = presence
        self.named = named_groups(graph)
        folders = None if presence is None else presence.folders([shape.group for shape in shapes.values()])
        self.store = SliceStore(spark, folder, path, shapes, threads=2, called="jettison-slices", folders=folders)
        self.of_late: dict[tuple[str, ...], int] = {}
        """How many slices the rows that come to some aggregates made of late, in this run."""
        self.slice_rows: dict[tuple[str, ...], float] = {}
        """How many rows come to some estimated aggregates in a slice, of late, dropped ones included."""
        self._checked: set[str] = set()
        for name, shape in shapes.items():
            if presence is None or any(presence.keeps(member.name) for member in shape.group.members):
                check_shape(self.store.logs[name].latest(), shape.told(), presence)

    def close(self) -> None:
        self.store.close()

    def saw(self, of: tuple[str, ...], slices: int) -> None:
        """Remember how many slices a batch made; after a quiet one, not much fewer are expected."""
        self.of_late[of] = max(slices, self.of_late.get(of, 0) // 2)

    def of_batch(self, batch: int, session: SparkSession) -> BatchSlices:
        """The aggregates of one batch; its frames belong to a session of their own."""
        return BatchSlices(self, batch, session)

    def marks(self, batch: int) -> BatchMarks:
        """How far aggregates have got before a batch."""
        if self.presence is not None:
            self.presence.begin(batch)
        records = [self.base(name, batch) for name in self.shapes]
        known = {name: mark for record in records if record for name, mark in record.marks.items()}
        return BatchMarks(self.graph, {**self._first_marks(), **known})

    def base(self, name: str, batch: int) -> SliceRecord | None:
        """What a batch goes on from: the record of a group before it, without what aggregates kept that are declared no
        more, or that began anew since."""
        record = self.store.logs[name].latest(batch)
        members = [member.name for member in self.shapes[name].group.members]
        watched = self.presence is not None and any(self.presence.watched_before(each, batch) for each in members)
        if watched and (record is None or record.batch != batch - 1):  # every batch leaves one
            raise self.store.logs[name].gone(batch - 1)
        if record is not None and name not in self._checked:
            self.store.check_parts(name, record.parts)
        self._checked.add(name)
        if record is not None and self.presence is not None:
            members = [member for member in members if self.presence.known_in(member, record.batch)]
        return still_wanted(record, members)

    def _first_marks(self) -> dict[str, Mark]:
        """Aggregates that came in mid-stream begin where event times had got to: rows that are late for others are late
        for them."""
        if self.presence is None:
            return {}
        watches = {each.name: self.presence.watch(each.name) for each in self.graph.aggregates}
        return {
            name: first_mark(self.graph, name, each.before_us)
            for name, each in watches.items()
            if each.before_us and each.settled
        }


class BatchSlices:
    """The aggregates of one batch, as a compiler asks for them, with what was measured."""

    def __init__(self, state: SliceState, batch: int, session: SparkSession) -> None:
        self._state = state
        self._store = state.store
        self._batch = batch
        self._session = session
        if state.presence is not None:
            state.presence.begin(batch)
        self._bases = {name: state.base(name, batch) for name in state.shapes}
        self._members: dict[str, tuple[Aggregate, str]] = {
            member.name: (member, name) for name, shape in state.shapes.items() for member in shape.group.members
        }
        self._marks = state.marks(batch)
        self._writing: dict[str, list[Future[_Written]]] = {}
        self._merging: dict[str, list[Future[_Merged]]] = {}
        self._began: dict[str, float] = {}
        self._failing = Failing()
        self._missing = Missing()
        self.late = dict.fromkeys(self._members, 0)
        self.came: dict[str, int] = {}  # rows by aggregate, late ones and those without event time included
        self.failed: dict[str, FailedWindows] = {}
        self.missing: dict[str, MissingResults] = {}  # by estimated aggregate, what was dropped with all of its rows
        self.withheld: dict[str, int] = {}  # windows by aggregate that it has not seen from their first row on
        self.newest_us: int | None = None  # of all rows that came to any aggregate
        self.timeless = 0  # the most rows without event time that came to one group
        self.parts_ms: dict[str, float] = {}
        self.batch_rows = 0
        self.groups: dict[str, GroupSample] = {}
        self.fates: Mapping[str, Fate] = {}
        """Which windows the plan of this batch keeps, by aggregate."""
        self.shares: Mapping[str, tuple[GroupShares, ...]] = {}
        """What the plan of this batch keeps by chance, by estimated aggregate."""
        self.timeless_in: dict[str, int] = {}
        self.unneeded: dict[str, int] = {}

    def oldest_us(self) -> dict[str, int]:
        """Where the oldest slice begins that is kept, by aggregate."""
        found = {name: self._oldest_us(name) for name in self._members}
        return {name: oldest for name, oldest in found.items() if oldest is not None}

    @property
    def marks(self) -> BatchMarks:
        return self._marks

    @property
    def quiet(self) -> frozenset[str]:
        """Aggregates that give nothing in this batch, whatever comes in."""
        return frozenset(name for name in self._members if not self._marks.may_close(name, self._oldest_us(name)))

    def __call__(self, group: SliceGroup, inputs: Inputs, tried: bool = False) -> dict[str, DataFrame]:
        """Keep what comes to a group, whose arguments were `tried` first or not; the results of its aggregates."""
        shape = self._state.shapes[group.name]
        arriving = shape.of_tried_rows() if tried else shape
        base = self._bases[group.name]
        self._began[group.name] = time.perf_counter()
        self._writing[group.name] = [
            self._store.submit(self._append, arriving, f"{self._batch}-{index}", names, rows)
            for index, (names, rows) in enumerate(inputs.items())
        ]
        self._merging[group.name] = [
            self._store.submit(self._merge, shape, f"{self._batch}-m{index}", parts)
            for index, parts in enumerate(_too_many(base.parts if base else ()))
        ]
        new: list[SlicePart] = []
        if self._marks.nested(group.name):
            new = [each.part for each in self._written(group.name) if each.part is not None]
        return {member.name: self._results(shape, member, new) for member in group.members}

    def outside(self, name: str, of: tuple[str, ...]) -> str:
        """The condition, in SQL, that is true for rows of an aggregate that are late, or of which no window is kept:
        they are counted as such, by the slices of `of`. Empty where there are none."""
        member, first = self._members[name][0], self._marks.late_before_us(name)
        at = f"unix_micros(CAST({TIME} AS timestamp))"
        begins = f"({at} - pmod({at}, {self._state.shapes[self._members[name][1]].group.slice_us}L))"
        found = [] if first is None else [f"{SLICE} < {number(first)}"]
        if self._counts_unneeded(name, of):
            found.append(unneeded(member, self.fates[name], first))
        return " OR ".join(found).replace(SLICE, begins)

    def finish(self, seen: Callable[[], Mapping[str, int]]) -> None:
        """Wait until everything is kept, and say so in the log. `seen` tells how far operators' event times got, when
        all rows have been looked at."""
        for name in self._state.shapes:
            self._written(name)
        newest_us = seen()
        for name, shape in self._state.shapes.items():
            base = self._bases[name]
            written, joint = self._written(name), [self._told(name, job) for job in self._merging.get(name, ())]
            self._store.logs[name].write(self._after(shape, base, written, joint, newest_us), base)
            for each in written:
                self.timeless = max(self.timeless, each.timeless)
                times = [time for time in (self.newest_us, each.newest_us) if time is not None]
                self.newest_us = max(times, default=None)
                self.came |= dict.fromkeys(each.of, each.came)
                for member, count in each.late.items():
                    self.late[member] += count
                self.groups |= each.groups
                self.timeless_in |= dict.fromkeys(each.of, each.timeless)
                self.unneeded |= each.unneeded
            if name in self._began:
                self.parts_ms[name] = 1000 * (time.perf_counter() - self._began[name])
        self.failed = self._failing.counted()
        self.missing = self._missing.counted()

    def close(self) -> None:
        """Nothing of a failed batch may write on while it is repeated."""
        jobs: list[Future[Any]] = [
            job for running in (self._writing, self._merging) for each in running.values() for job in each
        ]
        for job in jobs:
            job.cancel()
        wait(jobs)

    def _oldest_us(self, name: str, new: Sequence[SlicePart] = ()) -> int | None:
        """The oldest slice that is kept for an aggregate."""
        return min((part.from_us for part in self._parts(name, new)), default=None)

    def _parts(self, name: str, new: Sequence[SlicePart] = ()) -> list[SlicePart]:
        base = self._bases[self._members[name][1]]
        return [part for part in (*(base.parts if base else ()), *new) if name in part.of]

    def _results(self, shape: Shape, member: Aggregate, new: Sequence[SlicePart]) -> DataFrame:
        closing = self._whole(member, self._marks.closing(member.name, self._oldest_us(member.name, new)))
        found: list[SlicePart] = []
        if closing is not None:
            first, last = closing[0], closing[1] + member.window.size_us
            parts = self._parts(member.name, new)
            found = [each for each in parts if each.to_us >= first and each.from_us < last]
        if found:
            base = self._bases[shape.group.name]
            context = {} if base is None else base.context
            thinned = () if base is None else base.thinned.get(member.name, ())
            slices = self._read(shape, found)
            made = results(shape, member, slices, closing, context, thinned, self._missing.watched)
            return self._failing.watched(member.name, made) if member.name in shape.failing else made
        return self._store.no_results(
            member.name,
            self._session,
            lambda: results(shape, member, self._session.createDataFrame([], shape.schema)),
        )

    def _whole(self, member: Aggregate, closing: tuple[int, int] | None) -> tuple[int, int] | None:
        """The windows of those that close that are delivered: an aggregate that came in mid-stream withholds others."""
        if closing is None or self._state.presence is None:
            return closing
        count, left = withheld(member.window, closing, self._state.presence.whole_after_us(member.name))
        if count:
            self.withheld[member.name] = count
        return left

    def _read(self, shape: Shape, parts: Iterable[SlicePart]) -> DataFrame:
        return self._store.read(self._session, shape.group.name, shape.schema, parts)

    def _append(self, shape: Shape, name: str, of: tuple[str, ...], rows: DataFrame) -> _Written:
        firsts = {member: self._marks.late_before_us(member) for member in of}
        late = [
            f"sum(IF({SLICE} < {number(first)}, {ROWS}, 0)) AS late{index}"
            for index, first in enumerate(firsts.values())
            if first is not None
        ]
        needed = _least(list(firsts.values()))
        slices = sliced(shape, rows)
        kept = SLICE if needed is None else f"IF({SLICE} >= {number(needed)}, {SLICE}, NULL)"
        timeless = f"sum(IF({SLICE} IS NULL, {ROWS}, 0)) AS timeless"
        others = [f"max({NEWEST}) AS newest", f"sum({ROWS}) AS came", timeless, *late]
        estimated = [member for member in of if self._members[member][0].estimated]
        named = [(member, self._state.named[member]) for member in of if member in self._state.named]
        of_late = self._state.slice_rows.get(of, self.batch_rows / MOST_SLICES)
        others += group_metrics(shape, max(of_late, self.batch_rows / _MOST_SPREAD)) if estimated else []
        others += [metric for index, (_, cells) in enumerate(named) for metric in named_metrics(index, cells)]
        dropping = [member for member in of if self._counts_unneeded(member, of)]
        others += [
            f"sum(IF({sql}, {ROWS}, 0)) AS lost{index}"
            for index, member in enumerate(dropping)
            for sql in [unneeded(self._members[member][0], self.fates[member], firsts[member])]
        ]
        for place, sums in enumerate(shape.contexts.values()):
            others += context_metrics(place, sums)
        few = self._few(shape, of)
        seen, written = self._write(shape, name, slices, kept, others, needed, few=few)
        self._state.saw(of, seen.get("rows") or 0)
        counts = {member: seen.get(f"late{index}") or 0 for index, member in enumerate(firsts)}
        part = None if written is None else self._part(shape, name, written, 0, of)
        sizes = {member: group_sample(seen, shape.group.slice_us) for member in estimated}
        sizes |= {member: named_sample(index, cells, seen) for index, (member, cells) in enumerate(named)}
        groups = {member: sample for member, sample in sizes.items() if sample is not None}
        told = next((groups[member] for member in estimated if member in groups), None)
        if told is not None and told.span_us is not None:
            self._state.slice_rows[of] = told.rows / max(1.0, min(MOST_SLICES, told.span_us / shape.group.slice_us))
        timeless_rows, came = (seen.get(each) or 0 for each in ("timeless", "came"))
        lost = {member: seen.get(f"lost{index}") or 0 for index, member in enumerate(dropping)}
        context = {each: observed_context(place, seen) for place, each in enumerate(shape.contexts)}
        known = {each: value for each, value in context.items() if value is not None}
        return _Written(name, of, part, seen.get("newest"), counts, timeless_rows, came, groups, lost, known)

    def _counts_unneeded(self, member: str, of: tuple[str, ...]) -> bool:
        """Whether rows are counted of which no window is kept; not of very many slices, for that takes time."""
        fate = self.fates.get(member)
        return fate is not None and fate.schedule.drops and self._state.of_late.get(of, 0) <= _COUNTABLE

    def _few(self, shape: Shape, of: tuple[str, ...]) -> bool:
        """Whether slices come to the driver: there were few of late, and if there are as many as rows, it bears them.

        Behind joins, results of windows and the like there may be more rows than were read.
        """
        few = self._state.of_late.get(of, _FEW + 1) <= _FEW and _as_read(self._state.graph, shape.group.tail)
        return few and fits_driver(shape.schema, shape.group.by, self.batch_rows)

    def _merge(self, shape: Shape, name: str, parts: tuple[SlicePart, ...]) -> _Merged:
        level, of = parts[0].level + 1, parts[0].of
        needed = self._needed_us(of)
        rows = self._read(shape, parts)
        slices = merged(shape, rows if needed is None else rows.where(f"{SLICE} >= {number(needed)}"))
        _, written = self._write(shape, name, slices, SLICE, [], None)
        part = None if written is None else self._part(shape, name, written, level, of)
        return _Merged(parts, _Written(name, of, part))

    def _part(
        self, shape: Shape, name: str, written: tuple[int, int, int], level: int, of: tuple[str, ...]
    ) -> SlicePart:
        return SlicePart(name, *written, level, of, files=self._store.files(shape.group.name, name))

    def _write(
        self,
        shape: Shape,
        name: str,
        slices: DataFrame,
        kept: str,
        others: Sequence[str],
        first_us: int | None,
        *,
        few: bool = False,
    ) -> tuple[dict[str, Any], tuple[int, int, int] | None]:
        """Write slices; what was seen of them, and rows, first and last slice of what was kept, if anything was."""
        seen = Observation()
        metrics = (f"count({kept}) AS rows", f"min({kept}) AS from_us", f"max({kept}) AS to_us", *others)
        watched = slices.observe(seen, *map(F.expr, metrics))
        self._store.write(shape.group.name, name, kept_slices(shape, watched, first_us), few=few)
        found = observed(seen)
        if not found.get("rows"):
            return found, None
        return found, (found["rows"], found["from_us"], found["to_us"])

    def _written(self, name: str) -> list[_Written]:
        return [self._told(name, job) for job in self._writing.get(name, ())]

    def _told(self, name: str, job: Future[Any]) -> Any:
        with explained(name, self._batch, self._store.path):
            return job.result()

    def _after(
        self,
        shape: Shape,
        base: SliceRecord | None,
        written: Sequence[_Written],
        joint: Sequence[_Merged],
        newest_us: Mapping[str, int],
    ) -> SliceRecord:
        """The record of this batch: its parts are added, merged ones replaced, those that no window needs left out."""
        before = () if base is None else base.parts
        replaced = {part.name for each in joint for part in each.parts}
        made = [*written, *(each.into for each in joint)]
        parts = [part for part in before if part.name not in replaced]
        parts += [each.part for each in made if each.part is not None]
        live = [part for part in parts if still_needed([part], self._needed_us(part.of))]
        names = {part.name for part in before} | {each.name for each in made} | set(base.unwanted if base else ())
        marks = {
            member.name: self._marks.after(
                member.name, [each.newest_us for each in written if member.name in each.of], newest_us
            )
            for member in shape.group.members
        }
        gone = names - {part.name for part in live}
        context = remembered({} if base is None else base.context, [each.context for each in written])
        before_this = None if base is None else base.batch
        thinned = {
            member.name: thinned_after(
                () if base is None else base.thinned.get(member.name, ()),
                self.shares.get(member.name, ()),
                self._marks.late_before_us(member.name),
                (self._marks.largest_us(member.name), marks[member.name].largest_us),
                self._marks.open_us(member.name),
            )
            for member in shape.group.members
            if member.estimated
        }
        thinned = {name: entries for name, entries in thinned.items() if entries}
        record = SliceRecord(self._batch, shape.told(), marks, tuple(live), tuple(sorted(gone)), before_this)
        return replace(record, context=context, thinned=thinned)

    def _needed_us(self, names: Iterable[str]) -> int | None:
        """The first slice that a later batch may need, for any of these aggregates."""
        return _least([self._marks.open_us(name) for name in names])


def _as_read(graph: Graph, name: str) -> bool:
    """Whether an operator gives no more rows than a source has: they are filtered and projected, nothing else."""
    operator = graph.by_name[name]
    while isinstance(operator, Where | Select | WithColumns):
        if any(map(multiplies, computed(operator))):
            return False
        operator = graph.by_name[operator.inputs[0]]
    return isinstance(operator, Source)


def _least(times: Sequence[int | None]) -> int | None:
    """The least time; None where one is not known."""
    known = [each for each in times if each is not None]
    return min(known) if known and len(known) == len(times) else None


def _too_many(parts: Sequence[SlicePart]) -> list[tuple[SlicePart, ...]]:
    """Parts to merge, of the same aggregates each."""
    ordered = sorted(parts, key=lambda part: part.of)
    found = (to_merge(tuple(alike)) for _, alike in groupby(ordered, key=lambda part: part.of))
    return [each for each in found if each]
