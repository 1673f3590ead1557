"""The network as DataFrames of one batch, with the plan's drops on its arcs.

Every row carries two hidden columns: its identity, by which drops judge it, and its event time, from which latency is
measured. They are cut off at the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.types import StructType

from jettison.errors import JettisonError, StartError
from jettison.network.arc import Arc, arc_head, arc_name
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.columns.schema import quoted
from jettison.network.columns.words import an
from jettison.network.event_time.progress import time_places
from jettison.network.graph import Graph
from jettison.network.import_paths import imported
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
    Operator,
    Output,
    Select,
    Source,
    StreamJoin,
    Union,
    Where,
    WithColumns,
    kind_of,
)
from jettison.network.windows.estimated_aggregates import weighed
from jettison.network.windows.estimates import WEIGHT
from jettison.network.windows.slice_groups import SliceGroup, slice_groups
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.spark.compile.drops import (
    ALL,
    HIDDEN,
    IDENTITY,
    TIME,
    identity_of,
    passes,
    weight,
)
from jettison.spark.compile.expression_cache import Known
from jettison.spark.compile.pairs import check_sides, paired, waiting
from jettison.spark.compile.raw_rows import BODY, dropped_raw, identified, newest_metric, parsed, source_metrics
from jettison.spark.compile.value_samples import VALUES_MASK, value_metrics, valued_columns
from jettison.spark.error_text import reason_of
from jettison.spark.guard.careful import Rejecting, guarded, guarded_rows, holds_function, split, tried_rows
from jettison.spark.guard.conversions import converted_inputs, joined_with_care
from jettison.spark.guard.isolate import is_set_aside, isolate
from jettison.spark.guard.trying import TRIED
from jettison.spark.windows.count_slices import CountShape, count_shape
from jettison.spark.windows.count_slices import direct as counted_directly
from jettison.spark.windows.slices import Shape, direct, shape_of

Joiner = Callable[[StreamJoin, DataFrame | None, DataFrame | None], DataFrame]
"""Pairs the rows of two streams; None stands for a side that has no rows in this batch."""


Slicer = Callable[[SliceGroup, Mapping[tuple[str, ...], DataFrame], bool], Mapping[str, DataFrame]]
"""The results of a group of aggregates, by name, from the rows that come to some of them, and whether their arguments
were tried first."""


CountSlicer = Callable[[CountAggregate, DataFrame | None], DataFrame]
"""The results of windows that count rows, from those that come; None stands for none in this batch."""


@dataclass
class Counted:
    """Observations placed in a batch's frames: on sources behind their drop, and on arcs before the drop there."""

    sources: dict[str, Observation] = field(default_factory=dict)
    arcs: dict[str, Observation] = field(default_factory=dict)
    newest: dict[str, Observation] = field(default_factory=dict)
    """By operator whose rows come to windows or joins of streams: how far its event times have got, before anything is
    shed by window."""
    before: dict[str, Observation] = field(default_factory=dict)
    """By source whose drop judges by value: the values before it."""
    tails: dict[str, Observation] = field(default_factory=dict)
    """By operator: the rows it gives, where drops stand before slices, which tell themselves what comes to them."""
    again: dict[str, int] = field(default_factory=dict)
    """Rows behind a source's drop, where they had to be counted by a job of their own."""
    within: dict[str, DataFrame] = field(default_factory=dict)
    """By source or arc: the persisted frame that holds the observation."""

    def places(self) -> Set[str]:
        return self.by_place().keys()

    def by_place(self) -> dict[str, Observation]:
        """All observations, under names that tell them apart."""
        newest = {newest_place(name): each for name, each in self.newest.items()}
        before = {before_place(name): each for name, each in self.before.items()}
        tails = {tail_place(name): each for name, each in self.tails.items()}
        return self.sources | self.arcs | newest | before | tails


def newest_place(operator: str) -> str:
    """The name under which the newest event time of an operator's rows is observed."""
    return f"{operator} (newest)"


def before_place(source: str) -> str:
    """The name under which the values of a source's rows are observed before its drop."""
    return f"{source} (before)"


def tail_place(operator: str) -> str:
    """The name under which the rows that an operator gives are counted."""
    return f"{operator} (rows)"


class Compiler:
    """Builds the frames of one batch. Frames of `shared` operators are built once and persisted.

    Joins of streams pair what is in this batch, unless `joiner` knows of rows from before; aggregates give all windows
    of this batch, unless `slicer` knows which are complete. On `closed` arcs there are no rows in this batch.
    """

    def __init__(
        self,
        graph: Graph,
        raw: Mapping[str, DataFrame],
        plan: Plan,
        tables: Mapping[str, DataFrame],
        shared: frozenset[str] = frozenset(),
        known: Known | None = None,
        whole: frozenset[str] = frozenset(),
        joiner: Joiner | None = None,
        closed: frozenset[str] = frozenset(),
        slicer: Slicer | None = None,
        counter: CountSlicer | None = None,
        mask: int = 0,
    ) -> None:
        self.mask = mask  # which rows are looked at before drops by value
        self.known = known or Known()
        self._graph = graph
        self._raw = raw
        self._plan = plan
        self._tables = tables
        self._shared = shared
        self._whole = whole  # operators whose rows are wanted with all their columns
        self._joiner = joiner or self._pair
        self._closed = closed
        self._slicer = slicer or self._slice
        self._keeps_state = (joiner, slicer, counter) != (None, None, None)
        self._told = slicer is not None  # whether slices tell what comes to them
        self._outside: Callable[[str, tuple[str, ...]], str] = getattr(slicer, "outside", lambda name, of: "")
        self._counter = counter or self._count
        judging: tuple[Operator, ...] = (*graph.aggregates, *graph.stream_joins)
        self.timed = frozenset(place for each in judging for place in time_places(graph, each.name))
        self._weighed = weighed(graph)
        self._joined: dict[str, DataFrame] = {}
        self._windowed: dict[str, DataFrame] = {}
        self.shapes: dict[str, Shape] = {}  # of groups of aggregates that were given this batch's rows alone
        self.counts: dict[str, CountShape] = {}  # the same of aggregates of counted windows
        self.sides: dict[str, tuple[StructType, StructType]] = {}  # of joins that paired this batch's rows alone
        self.persisted: dict[str, DataFrame] = {}
        self.counted = Counted()
        self.rejecting: dict[str, Rejecting] = {}  # by operator whose expressions were tried on rows first

    def output(self, name: str, *, count: bool) -> DataFrame:
        """The rows of an output, hidden columns included. With `count`, what is passed the first time is counted."""
        return self._build(name, count)

    def operator(self, name: str) -> DataFrame:
        """The rows that an operator gives, for calibration."""
        return self._build(name, False)

    def _build(self, name: str, count: bool) -> DataFrame:
        if name in self.persisted:
            return self.persisted[name]
        operator = self._graph.by_name[name]
        before = self.counted.places()
        if isinstance(operator, Source):
            frame = self._source(operator, count)
        elif isinstance(operator, StreamJoin):
            frame = self._stream_join(operator, count)
        elif isinstance(operator, Aggregate):
            frame = self._aggregated(operator, count)
        elif isinstance(operator, CountAggregate):
            frame = self._aggregated_by_count(operator, count)
        else:
            frames = [self._arc(tail, name, count) for tail in operator.inputs]
            frames[:1] = [self._without_set_aside(operator, frames[0])]
            frame = self._applied_with_care(operator, frames) if self.known.careful else self._applied(operator, frames)
        self.known.columns(name, frame)
        if count:
            if name in self.timed and operator.inputs and name not in self.counted.newest:
                observation = self.counted.newest[name] = Observation()
                frame = frame.observe(observation, self.known.expression(newest_metric(TIME)))
            frame = self._closed_counted(name, frame)
        if name in self._shared:
            frame = self.narrowed(name, frame).persist()
            self.persisted[name] = frame
            for place in self.counted.places() - before:
                self.counted.within.setdefault(place, frame)
        return frame

    def _stream_join(self, join: StreamJoin, count: bool) -> DataFrame:
        """The pairs of a join, made once: the rows of a batch are kept for later ones when they are paired."""
        if join.name not in self._joined:
            arcs = zip(join.inputs, self._graph.arcs_into(join.name), strict=True)
            left, right = (None if arc in self._closed else self._arc(tail, join.name, count) for tail, arc in arcs)
            self._joined[join.name] = self._joiner(join, left, right)
        return self._joined[join.name]

    def _aggregated(self, aggregate: Aggregate, count: bool) -> DataFrame:
        """The results of an aggregate, made once, with all that share its slices: what no drop tells apart is sliced
        once."""
        if aggregate.name not in self._windowed:
            group = next(group for group in slice_groups(self._graph) if aggregate in group.members)
            alike: dict[str, list[str]] = {}
            for member in group.members:
                arc = arc_name(group.tail, member.name)
                if arc not in self._closed:
                    alike.setdefault(passes(arc, self._plan) or ALL, []).append(member.name)
            rows = {tuple(names): self._arc(group.tail, names[0], count) for names in alike.values()}
            tried = self._tried_rows(group, rows) if self.known.careful else None
            self._windowed |= self._slicer(group, tried or rows, tried is not None)
        return self._windowed[aggregate.name]

    def _aggregated_by_count(self, aggregate: CountAggregate, count: bool) -> DataFrame:
        """The results of an aggregate of counted windows, made once."""
        if aggregate.name not in self._windowed:
            (tail,), (arc,) = aggregate.inputs, self._graph.arcs_into(aggregate.name)
            rows = None if arc in self._closed else self._arc(tail, aggregate.name, count)
            rows = self._safe_rows(aggregate, rows) if self.known.careful and rows is not None else rows
            self._windowed[aggregate.name] = self._counter(aggregate, rows)
        return self._windowed[aggregate.name]

    def _count(self, aggregate: CountAggregate, rows: DataFrame | None) -> DataFrame:
        assert rows is not None
        if aggregate.name not in self.counts:
            self.counts[aggregate.name] = count_shape(aggregate, rows)
        return counted_directly(self.counts[aggregate.name], rows)

    def _slice(
        self, group: SliceGroup, rows: Mapping[tuple[str, ...], DataFrame], tried: bool
    ) -> Mapping[str, DataFrame]:
        if group.name not in self.shapes:
            self.shapes[group.name] = shape_of(group, next(iter(rows.values())))
        shape = self.shapes[group.name]
        return direct(group, shape.of_tried_rows() if tried else shape, rows)

    def _pair(self, join: StreamJoin, left: DataFrame | None, right: DataFrame | None) -> DataFrame:
        assert left is not None
        assert right is not None
        check_sides(join, left, right)
        try:
            left, right = waiting(join, 0, left), waiting(join, 1, right)
            self.sides[join.name] = (left.schema, right.schema)
            return paired(join, left, right)
        except AnalysisException as error:
            raise StartError(f"join {join.name!r}: {reason_of(error)}") from error

    def _closed_counted(self, name: str, frame: DataFrame) -> DataFrame:
        """Count what reaches arcs that let nothing through: what is behind them may never be built."""
        for arc in self._graph.arcs_out_of(name):
            if self._plan.closes(arc) and arc not in self.counted.arcs:
                observation = self.counted.arcs[arc] = Observation()
                frame = frame.observe(observation, self.known.expression("count(1) AS rows"))
        return frame

    def _arc(self, tail: str, head: str, count: bool) -> DataFrame:
        arc = arc_name(tail, head)
        return self._dropped(arc, self._build(tail, count), count)

    def _dropped(self, arc: str, frame: DataFrame, count: bool) -> DataFrame:
        condition = passes(arc, self._plan)
        head = self._graph.by_name[arc_head(arc)]
        into_slices = self._told and isinstance(head, Aggregate)
        if condition is None or (condition == ALL and (into_slices or isinstance(head, Output))):
            return frame  # the output counts its rows, and so do slices
        if count and into_slices:
            frame = self._tail_counted(arc, frame)
        elif count and arc not in self.counted.arcs:
            observation = self.counted.arcs[arc] = Observation()
            metrics = arc_metrics(self._graph, arc, condition, self.mask)
            frame = frame.observe(observation, *map(self.known.expression, metrics))
        if condition != ALL:
            frame = frame.where(self.known.expression(condition))
        if arc_head(arc) in self._weighed and arc in self._plan.drops:
            frame = frame.withColumn(WEIGHT, self.known.expression(weight(self._plan.drops[arc], WEIGHT)))
        return frame

    def _tail_counted(self, arc: str, frame: DataFrame) -> DataFrame:
        """Count the rows that come to all drops behind an operator, once; of sources they are known."""
        tail = Arc(arc).origin
        if tail in self.counted.tails or isinstance(self._graph.by_name[tail], Source):
            return frame
        observation = self.counted.tails[tail] = Observation()
        return frame.observe(observation, self.known.expression("count(1) AS rows"))

    def _source(self, source: Source, count: bool) -> DataFrame:
        raw = self._raw[source.name]
        columns = self.known.columns(f"{source.name} (raw)", raw)
        try:
            identified(source, raw, columns, self.known)
        except AnalysisException as error:
            raise StartError(
                f"source {source.name!r}: {reason_of(error)} Name the columns that identify a row, such as id=['trip']."
            ) from error
        try:
            newest = None
            valued = self._value_metrics(source, columns)
            by_window = source.name in self.timed and isinstance(self._plan.drops.get(source.name), Window)
            at_once = by_window and source.payload is None and not valued
            if count and by_window and source.name not in (self.counted.sources if at_once else self.counted.newest):
                newest = Observation()
                (self.counted.sources if at_once else self.counted.newest)[source.name] = newest
            before = None
            drop = self._plan.drops.get(source.name)
            by_value = drop is not None and drop.judges == "value"
            if count and by_value and source.name not in self.counted.before:
                before = self.counted.before[source.name] = Observation()
            frame = dropped_raw(
                source,
                raw,
                columns,
                self._plan,
                self.known,
                newest=newest,
                at_once=at_once,
                before=before,
                mask=self.mask,
            )
        except AnalysisException as error:
            remedy = " Avro needs jt.local_session(kafka=True, avro=True)." if source.payload == "avro" else ""
            raise StartError(f"source {source.name!r}: {reason_of(error)}{remedy}") from error
        if count and source.name not in self.counted.sources:
            observation = self.counted.sources[source.name] = Observation()
            metrics = [*source_metrics(source, columns), *valued]
            if source.event_time is not None:  # also where nothing needs it yet: an aggregate may come later
                inside = "" if source.event_time in columns else f"{BODY}."
                metrics.append(newest_metric(f"{inside}{quoted(source.event_time)}"))
            frame = frame.observe(observation, *map(self.known.expression, metrics))
        frame = parsed(source, frame, columns, self.known)
        if source.name in self._weighed:
            stands_for = weight(self._plan.drops.get(source.name))
            frame = self.known.select(frame, ["*", f"{stands_for} AS {WEIGHT}"])
        return frame

    def _value_metrics(self, source: Source, columns: Sequence[str]) -> list[str]:
        """A sample of the values that outputs are valued by, where they are in the source already."""
        found = []
        for number, column in enumerate(valued_columns(self._graph, source.name)):
            name = next(name for name, _ in source.schema if name.lower() == column.lower())
            value = quoted(name) if name in columns else f"{BODY}.{quoted(name)}"
            found += value_metrics(number, value, min(self.mask, VALUES_MASK))
        return found

    def narrowed(self, name: str, frame: DataFrame) -> DataFrame:
        """An operator's rows with the columns that anybody below needs: a persisted copy holds no more."""
        needed = needed_columns(self._graph, name)
        if needed is None or name in self._whole:
            return frame
        return self.known.select(frame, [*(f"`{column}`" for column in needed), *self.known.hidden(name, frame)])

    def _applied_with_care(self, operator: Operator, frames: list[DataFrame]) -> DataFrame:
        """The same, without the rows on which the operator's expressions throw."""
        if isinstance(operator, Union):
            frames, refused = converted_inputs(operator, frames, self.known, lambda: self._applied(operator, frames))
            self.rejecting |= refused
            return self._applied(operator, frames)
        if isinstance(operator, Join):
            return self._joined_with_care(operator, frames[0])
        safe, rows, rejecting = guarded(operator, frames[0], self.known)
        if rejecting is None:
            return self._applied(operator, frames)
        self.rejecting[operator.name] = rejecting
        return self._applied(safe, [rows, *frames[1:]]).drop(TRIED)

    def _joined_with_care(self, join: Join, rows: DataFrame) -> DataFrame:
        plain = self._applied(join, [rows])
        made = joined_with_care(join, rows, self._tables[join.name], self.known)
        if made is None:
            return plain
        frame, rejecting = made
        if rejecting is not None:
            self.rejecting[join.name] = rejecting
        return frame

    def _without_set_aside(self, operator: Operator, rows: DataFrame) -> DataFrame:
        """The rows without those on which the operator's function fails."""
        ids = self.known.set_aside.get(operator.name)
        if not ids:
            return rows
        reason = f"{kind_of(operator)} {operator.name!r} fails on it"
        kept, self.rejecting[f"{operator.name} (function)"] = split(rows, is_set_aside(ids), operator.name, reason)
        return kept

    def isolate(self, say: Callable[[str], None]) -> bool:
        """Look for rows on which functions of the user fail, and set them aside; whether there are any. What cannot be
        tried row by row is found so."""
        before = dict(self.known.set_aside)
        work = self._applied_with_care if self.known.careful else self._applied
        for operator in self._graph.operators:
            if not isinstance(operator, Apply | Where | Select | WithColumns) or not self._is_built_above(
                operator.name
            ):
                continue
            if not holds_function(operator, self._build(operator.inputs[0], False), self.known):
                continue
            rows = self._without_set_aside(operator, self._arc(operator.inputs[0], operator.name, False))
            already = len(self.known.set_aside.get(operator.name, ()))
            found, reason = isolate(operator, rows, partial(_alone, work, operator), already)
            if found:
                say(f"{kind_of(operator)} {operator.name!r} fails on {len(found)} rows ({reason}): they are rejected")
                self.known.set_aside[operator.name] = self.known.set_aside.get(operator.name, frozenset()) | found
        return self.known.set_aside != before

    def _is_built_above(self, name: str) -> bool:
        """Whether all that keeps state above an operator has its rows: it is never asked twice."""
        if not self._keeps_state or name in self._joined or name in self._windowed:
            return True
        operator = self._graph.by_name[name]
        waits = isinstance(operator, Aggregate | CountAggregate | StreamJoin)
        return not waits and all(map(self._is_built_above, operator.inputs))

    def _safe_rows(self, aggregate: CountAggregate, rows: DataFrame) -> DataFrame:
        rows, rejecting = guarded_rows(aggregate, rows, self.known)
        if rejecting is not None:
            self.rejecting[aggregate.name] = rejecting
        return rows

    def _tried_rows(
        self, group: SliceGroup, rows: Mapping[tuple[str, ...], DataFrame]
    ) -> dict[tuple[str, ...], DataFrame] | None:
        """The rows of a group with all arguments of its aggregates tried: all partials are computed of every frame."""
        found = {}
        for names, frame in rows.items():
            outside = {name: self._outside(name, names) for name in names}
            found[names] = tried_rows(group.members, frame, names, self.known, outside)
        tried = {names: each for names, each in found.items() if each is not None}
        if len(tried) < len(rows) or not rows:
            return None
        for _, rejecting in tried.values():
            self.rejecting |= rejecting
        return {names: frame for names, (frame, _) in tried.items()}

    def _applied(self, operator: Operator, frames: list[DataFrame]) -> DataFrame:
        """One operator on its input frames. Spark's complaint is passed on with the operator's name."""
        try:
            if isinstance(operator, Select):
                hidden = self.known.hidden(operator.inputs[0], frames[0])
                starred = any(isinstance(item, str) and item.lstrip().startswith("*") for item in operator.expressions)
                return self.known.select(frames[0], [*operator.expressions, *(() if starred else hidden)])
            if isinstance(operator, Union):
                keys = [f"{tail} (narrowed)" if tail in self.persisted else tail for tail in operator.inputs]
                if operator.name in self._weighed:  # of two sources that count alike each row has a fate of its own
                    marked = [f"xxhash64({IDENTITY}, {number}L)" for number in range(len(frames))]
                    frames = [
                        frame.withColumn(IDENTITY, self.known.expression(sql))
                        for frame, sql in zip(frames, marked, strict=True)
                    ]
                return _united(frames, [self.known.columns(key, f) for key, f in zip(keys, frames, strict=True)])
            if isinstance(operator, Where):
                return frames[0].where(self.known.expression(operator.predicate))
            if isinstance(operator, WithColumns):
                return frames[0].withColumns({name: self.known.expression(item) for name, item in operator.columns})
            if isinstance(operator, Join):
                self._check_clash(operator, frames[0])
                return frames[0].join(self._tables[operator.name], list(operator.on), operator.how)
            if isinstance(operator, Apply):
                made = resolve(operator)(frames[0])
                if not isinstance(made, DataFrame):
                    raise TypeError(f"the function gave {an(type(made).__name__)}, not a DataFrame: return the rows.")
                if IDENTITY not in made.columns and operator.name in self._weighed:
                    raise StartError(
                        f"apply {operator.name!r}: its rows have lost what they go or stay by, and what is behind is "
                        f"estimated (on_loss='estimate'): let the function keep column {IDENTITY!r}."
                    )
                return made if IDENTITY in made.columns else made.selectExpr("*", identity_of(made.columns))
            return frames[0]
        except Exception as error:
            analysed = isinstance(error, AnalysisException)
            if isinstance(error, JettisonError) or not (analysed or isinstance(operator, Apply)):
                raise  # all but a user's function fail in Spark's analysis, or not at all
            columns_here = ", ".join(column for column in frames[0].columns if column not in HIDDEN)
            reason = reason_of(error) if analysed else f"{type(error).__name__}: {reason_of(error)}"
            element = f"{kind_of(operator)} {operator.name!r}"
            raise StartError(f"{element}: {reason} Columns here: {columns_here}.") from error

    def _check_clash(self, join: Join, frame: DataFrame) -> None:
        """The columns of a table that is named at the start are seen here first."""
        here = self.known.columns(join.inputs[0], frame)
        table = self.known.columns(f"{join.name} (static)", self._tables[join.name])
        clash = sorted((set(here) & set(table)) - set(join.on))
        if clash and join.how not in ("left_semi", "left_anti"):
            raise StartError(f"join {join.name!r}: both sides have column {clash[0]!r}: rename it on one side.")


def arc_metrics(graph: Graph, arc: str, condition: str, mask: int) -> list[str]:
    """What is observed of an inner arc's rows before its drop, in SQL: how many come, how many pass, and a sample of
    the values by which they could be judged."""
    at = graph.tracks.at(arc)
    values = [] if at is None else value_metrics(0, quoted(at[1]), mask)
    return ["count(1) AS rows", f"count_if({condition}) AS kept", *values]


def _united(frames: list[DataFrame], columns: list[tuple[str, ...]]) -> DataFrame:
    hidden = [column for column in HIDDEN if all(column in each for each in columns)]
    common = (column for column in columns[0] if all(column in each for each in columns[1:]))
    chosen = [*(column for column in common if column not in HIDDEN), *hidden]
    merged = frames[0].select(*chosen)
    for other in frames[1:]:
        merged = merged.unionByName(other.select(*chosen))
    return merged


def _alone(work: Callable[[Operator, list[DataFrame]], DataFrame], operator: Operator, rows: DataFrame) -> DataFrame:
    return work(operator, [rows])


def resolve(operator: Apply) -> Callable[[DataFrame], DataFrame]:
    """The function of an apply, imported if it is given by path."""
    if not isinstance(operator.function, str):
        return operator.function
    return imported(f"apply {operator.name!r}", operator.function)
