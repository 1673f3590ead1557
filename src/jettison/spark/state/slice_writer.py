"""The slices that a batch writes: those of its new rows, and of parts that are merged as there are too many."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate
from jettison.network.row_bounds import most_rows_of
from jettison.network.windows.estimate_context import Context, context_metrics, observed_context
from jettison.plan.drops.window import Fate, GroupCells
from jettison.spark.compile.group_sizes import MOST_SLICES, group_metrics, group_sample, named_metrics, named_sample
from jettison.spark.compile.observations import observed
from jettison.spark.state.operator_state import OpenedBatch
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_log import SlicePart
from jettison.spark.state.slice_store import SliceStore, fits_driver
from jettison.spark.windows.slices import NEWEST, ROWS, SLICE, Shape, kept_slices, merged, number, sliced
from jettison.spark.windows.unneeded_slices import cut_share, unneeded
from jettison.spark.write.small_outputs import TooLargeError
from jettison.statistics.samples import GroupSample

_FEW = 20_000
"""So many slices come to the driver."""
_FEW_UNBOUNDED = 5_000
"""So many where nothing bounds them but what there was of late, and Spark's limit of what a driver takes."""
_MOST_SPREAD = 32
"""Groups are not told apart more finely than as if a batch had so many slices: a stream may jump."""
_COUNTABLE = 200_000
"""Of so many slices it is counted how many rows no kept window needs. Early drops leave few of those."""


@dataclass(frozen=True)
class Written:
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
    cut: Mapping[str, float] = field(default_factory=dict)
    context: Mapping[str, Context] = field(default_factory=dict)


@dataclass(frozen=True)
class Merged:
    """Parts that became one."""

    parts: tuple[SlicePart, ...]
    into: Written


@dataclass(frozen=True)
class Sliced:
    """What is sliced in a run, and where slices are kept. `recent` has, by aggregates that get the same rows, how many
    slices these made of late, `slice_rows`, of estimated ones, how many rows a slice has, dropped ones included;
    `named` the groups that have gaps of their own."""

    graph: Graph
    shapes: Mapping[str, Shape]
    store: SliceStore
    named: Mapping[str, GroupCells]
    presence: Presence | None = None
    recent: dict[tuple[str, ...], int] = field(default_factory=dict)
    small: list[bool] = field(default_factory=lambda: [True])
    """Whether slices may come to the driver: not after some were too large for it."""
    slice_rows: dict[tuple[str, ...], float] = field(default_factory=dict)

    def saw_groups(self, of: tuple[str, ...], slice_us: int, groups: Iterable[GroupSample]) -> None:
        """Remember how many rows a slice has, as far as groups of estimated aggregates tell."""
        spanned = next((each for each in groups if each.span_us is not None), None)
        if spanned is not None and spanned.span_us is not None:
            self.slice_rows[of] = spanned.rows / max(1.0, min(MOST_SLICES, spanned.span_us / slice_us))

    def saw(self, of: tuple[str, ...], slices: int) -> None:
        """Remember how many slices a batch made; after a quiet one, not much fewer are expected."""
        self.recent[of] = max(slices, self.recent.get(of, 0) // 2)


class SliceWriter:
    """Writes the slices of one batch."""

    def __init__(self, sliced: Sliced, batch: OpenedBatch, marks: BatchMarks) -> None:
        self._sliced = sliced
        self._store = sliced.store
        self._batch = batch
        self._marks = marks
        self._fates: Mapping[str, Fate] = batch.plan.fates
        self._members: dict[str, Aggregate] = {
            member.name: member for shape in sliced.shapes.values() for member in shape.group.members
        }

    def append(self, shape: Shape, name: str, of: tuple[str, ...], rows: DataFrame) -> Written:
        """Write the slices of new rows that come to these aggregates."""
        firsts = {member: self._marks.late_before_us(member) for member in of}
        needed = least(list(firsts.values()))
        kept = SLICE if needed is None else f"IF({SLICE} >= {number(needed)}, {SLICE}, NULL)"
        lost = {member: sql for member in of if (sql := self.unneeded_slices(member, of)) is not None}
        metrics = [*_arrived(firsts), *self._group_metrics(shape, of)]
        metrics += [f"sum(IF({sql}, {ROWS}, 0)) AS lost{index}" for index, sql in enumerate(lost.values())]
        cut = {member: sql for member in lost if (sql := self._cut_share(member)) is not None}
        metrics += [f"sum({ROWS} * {sql}) AS cut{index}" for index, sql in enumerate(cut.values())]
        for place, sums in enumerate(shape.contexts.values()):
            metrics += context_metrics(place, sums)
        few = self._few(shape, of)
        seen, written = self._write(shape, name, sliced(shape, rows), kept, metrics, needed, few=few)
        self._sliced.saw(of, seen.get("rows") or 0)
        part = None if written is None else self._part(shape, name, written, 0, of)
        groups = self._groups(shape, of, seen)
        estimated = [groups[member] for member in of if member in groups and self._members[member].estimated]
        self._sliced.saw_groups(of, shape.group.slice_us, estimated)
        context = {each: observed_context(place, seen) for place, each in enumerate(shape.contexts)}
        return Written(
            name,
            of,
            part,
            seen.get("newest"),
            late={member: seen.get(f"late{index}") or 0 for index, member in enumerate(firsts)},
            timeless=seen.get("timeless") or 0,
            came=seen.get("came") or 0,
            groups=groups,
            unneeded={member: seen.get(f"lost{index}") or 0 for index, member in enumerate(lost)},
            cut={member: seen.get(f"cut{index}") or 0.0 for index, member in enumerate(cut)},
            context={each: value for each, value in context.items() if value is not None},
        )

    def merge(self, shape: Shape, name: str, parts: tuple[SlicePart, ...]) -> Merged:
        """Write one part for several, without slices that no window needs any more."""
        level, of = parts[0].level + 1, parts[0].of
        needed = self.needed_us(of)
        rows = self.read(shape, parts)
        slices = merged(shape, rows if needed is None else rows.where(f"{SLICE} >= {number(needed)}"))
        _, written = self._write(shape, name, slices, SLICE, [], None)
        part = None if written is None else self._part(shape, name, written, level, of)
        return Merged(parts, Written(name, of, part))

    def read(self, shape: Shape, parts: Iterable[SlicePart]) -> DataFrame:
        return self._store.read(self._batch.session, shape.group.name, shape.schema, parts)

    def needed_us(self, names: Iterable[str]) -> int | None:
        """The first slice that a later batch may need, for any of these aggregates."""
        return least([self._marks.open_us(name) for name in names])

    def unneeded_slices(self, member: str, of: Collection[str]) -> str | None:
        """The condition, in SQL, for slices of which no window is kept; None where their rows are not counted: not of
        very many slices, for that takes time."""
        fate = self._fates.get(member)
        counted = fate is not None and fate.schedule.drops and self._sliced.recent.get(tuple(of), 0) <= _COUNTABLE
        if fate is None or not counted:
            return None
        return unneeded(self._members[member], fate, self._marks.late_before_us(member))

    def _cut_share(self, member: str) -> str | None:
        return cut_share(self._members[member], self._fates[member], self._marks.late_before_us(member))

    def _group_metrics(self, shape: Shape, of: tuple[str, ...]) -> list[str]:
        """How large groups are, where aggregates are estimated, or groups have gaps of their own."""
        estimated = any(self._members[member].estimated for member in of)
        rows = self._batch.rows
        slice_rows = self._sliced.slice_rows.get(of, rows / MOST_SLICES)
        found = group_metrics(shape, max(slice_rows, rows / _MOST_SPREAD)) if estimated else []
        return [*found, *(each for index, (_, cells) in self._named(of) for each in named_metrics(index, cells))]

    def _groups(self, shape: Shape, of: tuple[str, ...], seen: Mapping[str, Any]) -> dict[str, GroupSample]:
        sizes = {member: group_sample(seen, shape.group.slice_us) for member in of if self._members[member].estimated}
        sizes |= {member: named_sample(index, cells, seen) for index, (member, cells) in self._named(of)}
        return {member: sample for member, sample in sizes.items() if sample is not None}

    def _named(self, of: tuple[str, ...]) -> list[tuple[int, tuple[str, GroupCells]]]:
        named = self._sliced.named
        return list(enumerate((member, named[member]) for member in of if member in named))

    def _few(self, shape: Shape, of: tuple[str, ...]) -> bool:
        """Whether slices come to the driver: there were few of late, and if there are as many as rows, it bears them.

        Behind joins, results of windows and the like there may be more rows than were read: there must have been fewer.
        """
        graph = self._sliced.graph
        bounded = most_rows_of(graph, shape.group.tail, {source.name: 0 for source in graph.sources}) is not None
        few = self._sliced.recent.get(of, _FEW + 1) <= (_FEW if bounded else _FEW_UNBOUNDED)
        return few and self._sliced.small[0] and fits_driver(shape.schema, shape.group.by, self._batch.rows)

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
        try:
            self._store.write(shape.group.name, name, kept_slices(shape, watched, first_us), few=few)
        except TooLargeError:
            self._sliced.small[0] = False
            return self._write(shape, name, slices, kept, others, first_us)
        found = observed(seen)
        if not found.get("rows"):
            return found, None
        return found, (found["rows"], found["from_us"], found["to_us"])


def _arrived(firsts: Mapping[str, int | None]) -> list[str]:
    """What is observed of all slices: the newest event time, rows, those without a time, and late ones by aggregate."""
    late = [
        f"sum(IF({SLICE} < {number(first)}, {ROWS}, 0)) AS late{index}"
        for index, first in enumerate(firsts.values())
        if first is not None
    ]
    timeless = f"sum(IF({SLICE} IS NULL, {ROWS}, 0)) AS timeless"
    return [f"max({NEWEST}) AS newest", f"sum({ROWS}) AS came", timeless, *late]


def least(times: Sequence[int | None]) -> int | None:
    """The least time; None where one is not known."""
    known = [each for each in times if each is not None]
    return min(known) if known and len(known) == len(times) else None
