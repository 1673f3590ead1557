"""Aggregates of windows of time in one batch: new rows become slices in the checkpoint, closed windows are made of
them.

New rows of a batch are sliced and written in one job per group, while outputs are written from the slices of earlier
batches. Only aggregates of results wait for their new slices.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from itertools import groupby
from math import ceil
from typing import Any

from pyspark.sql import DataFrame

from jettison.network.arc import arc_head
from jettison.network.event_time.coverage import withheld
from jettison.network.event_time.join_retention import still_needed, to_merge
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.network.operators import Aggregate, Operator
from jettison.network.windows.estimate_context import remembered
from jettison.plan.refine.thinning import Thinned, shares_above, thinned_after
from jettison.plan.windows.closed_windows import windows_of_batch, without_withheld
from jettison.spark.compile.arriving import Arriving
from jettison.spark.compile.drops import TIME
from jettison.spark.state.operator_state import OpenedBatch, Progress, StateMeasured
from jettison.spark.state.slice_log import SlicePart, SliceRecord
from jettison.spark.state.slice_store import Failing, explained
from jettison.spark.state.slice_writer import Merged, Sliced, SliceWriter, Written
from jettison.spark.state.written_parts import together
from jettison.spark.windows.missing_results import Missing
from jettison.spark.windows.slices import SLICE, Shape, number, results
from jettison.statistics.samples import Measured


class BatchSlices:
    """The aggregates of one batch; `bases` are the records of the batch before, by group."""

    def __init__(
        self, sliced: Sliced, batch: OpenedBatch, marks: BatchMarks, bases: Mapping[str, SliceRecord | None]
    ) -> None:
        self._sliced = sliced
        self._store = sliced.store
        self._batch = batch
        self._bases = bases
        self._marks = marks
        self._writer = SliceWriter(sliced, batch, marks)
        self._members: dict[str, tuple[Aggregate, str]] = {
            member.name: (member, name) for name, shape in sliced.shapes.items() for member in shape.group.members
        }
        self._closing = windows_of_batch(sliced.graph, batch.plan, marks, self._oldest())
        self._writing: dict[str, list[Future[Written]]] = {}
        self._merging: dict[str, list[Future[Merged]]] = {}
        self._began: dict[str, float] = {}
        self._failing = Failing()
        self._missing = Missing()
        self._withheld: dict[str, int] = {}  # windows by aggregate that it has not seen from their first row on
        self._measured = StateMeasured()
        self._most_rows: dict[str, int] = {}

    @property
    def quiet(self) -> frozenset[str]:
        """Aggregates that give nothing in this batch, whatever comes in."""
        return frozenset(name for name in self._members if not self._marks.may_close(name, self._oldest_us(name)))

    def outside(self, name: str, of: Collection[str]) -> str:
        """The condition, in SQL, that is true for rows of an aggregate that are late, or of which no window is kept:
        they are counted as such, by the slices of `of`. Empty where there are none."""
        first = self._marks.late_before_us(name)
        at = f"unix_micros(CAST({TIME} AS timestamp))"
        begins = f"({at} - pmod({at}, {self._sliced.shapes[self._members[name][1]].group.slice_us}L))"
        found = [] if first is None else [f"{SLICE} < {number(first)}"]
        unneeded = self._writer.unneeded_slices(name, of)
        return " OR ".join(found if unneeded is None else [*found, unneeded]).replace(SLICE, begins)

    def take(self, operator: Operator, arriving: Arriving) -> None:
        """Begin to slice what comes to an aggregate and those that share its slices."""
        shape = self._sliced.shapes[self._members[operator.name][1]]
        group, base = shape.group, self._bases[shape.group.name]
        sliced = shape.of_tried_rows() if arriving.tried else shape
        self._began[group.name] = time.perf_counter()
        inputs = {tuple(map(arc_head, arcs)): rows for arcs, rows in arriving.rows.items()}
        self._writing[group.name] = [
            self._store.submit(self._writer.append, sliced, f"{self._batch.number}-{index}", names, rows)
            for index, (names, rows) in enumerate(inputs.items())
        ]
        self._merging[group.name] = [
            self._store.submit(self._writer.merge, shape, f"{self._batch.number}-m{index}", parts)
            for index, parts in enumerate(_too_many(base.parts if base else ()))
        ]

    def frames(self, operator: Operator) -> dict[str, DataFrame]:
        """The results of an aggregate and of those that share its slices."""
        shape = self._sliced.shapes[self._members[operator.name][1]]
        group = shape.group
        new: list[SlicePart] = []
        if self._marks.nested(group.name):
            new = [each.part for each in self._written(group.name) if each.part is not None]
        return {member.name: self._results(shape, member, new) for member in group.members}

    def most_rows(self, name: str) -> int | None:
        """Every slice of a group is in so many windows at most."""
        return self._most_rows.get(name)

    def commit(self, progress: Progress) -> None:
        """Wait until everything is kept, and say so in the log."""
        for name in self._sliced.shapes:
            self._written(name)
        all_written: list[Written] = []
        parts_ms, records = {}, {}
        newest_us = progress.newest_us
        for name, shape in self._sliced.shapes.items():
            base = self._bases[name]
            written, joint = self._written(name), [self._done(name, job) for job in self._merging.get(name, ())]
            records[name] = (self._after(shape, base, written, joint, newest_us), base)
            all_written += written
            if name in self._began:
                parts_ms[name] = 1000 * (time.perf_counter() - self._began[name])
        self._store.write_records(records)
        self._measured = self._measured_by(all_written, parts_ms)

    def measured(self) -> StateMeasured:
        return self._measured

    def close(self) -> None:
        """Nothing of a failed batch may write on while it is repeated."""
        jobs: list[Future[Any]] = [
            job for running in (self._writing, self._merging) for each in running.values() for job in each
        ]
        for job in jobs:
            job.cancel()
        wait(jobs)

    def _measured_by(self, written: Sequence[Written], parts_ms: Mapping[str, float]) -> StateMeasured:
        late = dict.fromkeys(self._members, 0)
        for each in written:
            for member, count in each.late.items():
                late[member] += count
        sample = Measured(
            late=late,
            failed=self._failing.counted(),
            withheld=self._withheld,
            missing=self._missing.counted(),
            groups={member: sample for each in written for member, sample in each.groups.items()},
            timeless_in={member: each.timeless for each in written for member in each.of},
            unneeded={member: count for each in written for member, count in each.unneeded.items()},
            cut={member: rows for each in written for member, rows in each.cut.items()},
            arrived={member: each.came for each in written for member in each.of},
            windows=without_withheld(self._closing, self._withheld),
            watermark_us=self._marks.watermarks_us(),
            parts_ms=parts_ms,
        )
        return StateMeasured(
            sample,
            came={member: each.came for each in written for member in each.of},
            timeless=max((each.timeless for each in written), default=0),
            newest_us=max((each.newest_us for each in written if each.newest_us is not None), default=None),
        )

    def _oldest(self) -> dict[str, int]:
        """Where the oldest slice begins that is kept, by aggregate."""
        found = {name: self._oldest_us(name) for name in self._members}
        return {name: oldest for name, oldest in found.items() if oldest is not None}

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
        windows_of_slice = ceil(member.window.size_us / member.window.slide_us)
        self._most_rows[member.name] = windows_of_slice * sum(part.rows for part in found)
        if found:
            base = self._bases[shape.group.name]
            context = {} if base is None else base.context
            thinned = () if base is None else base.thinned.get(member.name, ())
            slices = together(self._writer.read(shape, found), sum(part.rows for part in found))
            made = results(shape, member, slices, closing, context, thinned, self._missing.watched)
            return self._failing.watched(member.name, made) if member.name in shape.failing else made
        session = self._batch.session
        return self._store.no_results(
            member.name, session, lambda: results(shape, member, session.createDataFrame([], shape.schema))
        )

    def _whole(self, member: Aggregate, closing: tuple[int, int] | None) -> tuple[int, int] | None:
        """The windows of those that close that are delivered: an aggregate that came in mid-stream withholds others."""
        if closing is None or self._sliced.presence is None:
            return closing
        count, left = withheld(member.window, closing, self._sliced.presence.whole_after_us(member.name))
        if count:
            self._withheld[member.name] = count
        return left

    def _written(self, name: str) -> list[Written]:
        return [self._done(name, job) for job in self._writing.get(name, ())]

    def _done(self, name: str, job: Future[Any]) -> Any:
        with explained(name, self._batch.number, self._store.path):
            return job.result()

    def _after(
        self,
        shape: Shape,
        base: SliceRecord | None,
        written: Sequence[Written],
        joint: Sequence[Merged],
        newest_us: Mapping[str, int],
    ) -> SliceRecord:
        """The record of this batch: its parts are added, merged ones replaced, those that no window needs left out."""
        before = () if base is None else base.parts
        replaced = {part.name for each in joint for part in each.parts}
        made = [*written, *(each.into for each in joint)]
        parts = [part for part in before if part.name not in replaced]
        parts += [each.part for each in made if each.part is not None]
        live = [part for part in parts if still_needed([part], self._writer.needed_us(part.of))]
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
        record = SliceRecord(
            self._batch.number, shape.columns_text(), marks, tuple(live), tuple(sorted(gone)), before_this
        )
        return replace(record, context=context, thinned=self._thinned(shape, base, marks))

    def _thinned(
        self, shape: Shape, base: SliceRecord | None, marks: Mapping[str, Mark]
    ) -> dict[str, tuple[Thinned, ...]]:
        """What was kept by chance of the rows of open windows, by estimated aggregate."""
        thinned = {
            member.name: thinned_after(
                () if base is None else base.thinned.get(member.name, ()),
                shares_above(self._sliced.graph, self._batch.plan, member),
                self._marks.late_before_us(member.name),
                (self._marks.largest_us(member.name), marks[member.name].largest_us),
                self._marks.open_us(member.name),
            )
            for member in shape.group.members
            if member.estimated
        }
        return {name: entries for name, entries in thinned.items() if entries}


def _too_many(parts: Sequence[SlicePart]) -> list[tuple[SlicePart, ...]]:
    """Parts to merge, of the same aggregates each."""
    ordered = sorted(parts, key=lambda part: part.of)
    found = (to_merge(tuple(alike)) for _, alike in groupby(ordered, key=lambda part: part.of))
    return [each for each in found if each]
