"""What the aggregates of windows of time keep in the checkpoint: slices, and how far event times have got.

What closes in a batch and what is late is said by `watermarks`. `batch_slices` has what happens in one batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from jettison.network.event_time.watermarks import BatchMarks, Mark, first_mark
from jettison.network.graph import Graph
from jettison.plan.windows.group_gaps import named_groups
from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.state.batch_slices import BatchSlices
from jettison.spark.state.operator_state import OpenedBatch
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_log import SliceRecord, check_shape, still_wanted
from jettison.spark.state.slice_store import SliceStore
from jettison.spark.state.slice_writer import Sliced
from jettison.spark.windows.slices import Shape


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
        folders = None if presence is None else presence.folders([shape.group for shape in shapes.values()])
        self.store = SliceStore(spark, folder, path, shapes, threads=2, called="jettison-slices", folders=folders)
        self._sliced = Sliced(graph, shapes, self.store, named_groups(graph), presence)
        self._checked: set[str] = set()
        for name, shape in shapes.items():
            if presence is None or any(presence.keeps(member.name) for member in shape.group.members):
                check_shape(self.store.logs[name].latest(), shape.columns_text(), presence)

    def close(self) -> None:
        self.store.close()

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(member.name for shape in self.shapes.values() for member in shape.group.members)

    def open(self, batch: OpenedBatch) -> BatchSlices:
        """The aggregates of one batch; its frames belong to a session of their own."""
        marks = batch.marks or self.marks(batch.number)
        return BatchSlices(self._sliced, batch, marks, {name: self.base(name, batch.number) for name in self.shapes})

    def marks(self, batch: int) -> BatchMarks:
        """How far aggregates have got before a batch."""
        if self.presence is not None:
            self.presence.begin(batch)
        return self._marks(batch)

    def _marks(self, batch: int) -> BatchMarks:
        records = [self.base(name, batch) for name in self.shapes]
        known = {name: mark for record in records if record for name, mark in record.marks.items()}
        return BatchMarks(self.graph, {**self._first_marks(), **known})

    def closes(self, batch: int) -> bool:
        """Whether windows close in a batch, whatever comes in. To ask changes nothing in the checkpoint, also where no
        batch has run yet."""
        marks = self._marks(batch)
        records = [record for name in self.shapes if (record := self.base(name, batch)) is not None]
        parts = [part for each in records for part in each.parts]
        return any(marks.may_close(name, part.from_us) for part in parts for name in part.of)

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
