"""The network as DataFrames of one batch, with the plan's drops on its arcs.

Every row carries two hidden columns: its identity, by which drops judge it, and its event time, from which latency is
measured. They are cut off at the outputs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.errors import JettisonError, PlanError, StartError
from jettison.network.estimated import weighed
from jettison.network.estimates import WEIGHT
from jettison.network.graph import Graph, arc_head, arc_name
from jettison.network.needed import needed_columns
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
from jettison.network.reach import time_places
from jettison.network.schema import quoted
from jettison.network.slices import SliceGroup, slice_groups
from jettison.plan.plan import ByKey, Drop, Plan, Semantic, Window
from jettison.plan.stratified import Stratified
from jettison.spark.count_slices import CountShape, count_shape
from jettison.spark.count_slices import direct as counted_directly
from jettison.spark.drops import (
    ALL,
    HIDDEN,
    IDENTITY,
    JUDGED,
    LOOK,
    RECORD,
    TIME,
    identity_of,
    is_fresh,
    is_needed,
    keeps,
    literal,
    passes,
    weight,
)
from jettison.spark.pairs import check_sides, paired, waiting
from jettison.spark.reasons import reason_of
from jettison.spark.slices import Shape, direct, shape_of
from jettison.spark.values import value_metrics, valued_columns

_MOST_PARSED = 2000
_LONG_TEXT = 4000
CORRUPT = "_jt_corrupt"
BODY = "_jt_body"

Joiner = Callable[[StreamJoin, DataFrame | None, DataFrame | None], DataFrame]
"""Pairs the rows of two streams; None stands for a side that has no rows in this batch."""


Slicer = Callable[[SliceGroup, Mapping[tuple[str, ...], DataFrame]], Mapping[str, DataFrame]]
"""The results of a group of aggregates, by name, from the rows that come to some of them."""


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
    again: dict[str, int] = field(default_factory=dict)
    """Rows behind a source's drop, where they had to be counted by a job of their own."""
    within: dict[str, DataFrame] = field(default_factory=dict)
    """By source or arc: the persisted frame that holds the observation."""

    def places(self) -> set[str]:
        return self.sources.keys() | self.arcs.keys() | {newest_place(name) for name in self.newest}


def newest_place(operator: str) -> str:
    """The name under which the newest event time of an operator's rows is observed."""
    return f"{operator} (newest)"


@dataclass
class Known:
    """What does not change from batch to batch, so that Spark is asked once: names of columns, parsed expressions."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parsed: dict[str, Column] = field(default_factory=dict)

    def columns(self, key: str, frame: DataFrame) -> tuple[str, ...]:
        if key not in self.names:
            self.names[key] = tuple(frame.columns)
        return self.names[key]

    def hidden(self, key: str, frame: DataFrame) -> list[str]:
        return [column for column in HIDDEN if column in self.columns(key, frame)]

    def expression(self, item: object) -> Column:
        """A SQL string as a Column, parsed once; a Column as it is."""
        if not isinstance(item, str):
            return item  # type: ignore[return-value]  # a Column, as declared
        if len(item) > _LONG_TEXT:
            return F.expr(item)  # shares of groups, which are others in every batch
        if len(self.parsed) > _MOST_PARSED:
            self.parsed.clear()  # conditions of plans come and go for as long as a run lasts
        if item not in self.parsed:
            self.parsed[item] = F.expr(item)
        return self.parsed[item]

    def select(self, frame: DataFrame, items: Iterable[object]) -> DataFrame:
        return frame.select(*map(self.expression, items))


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
        statics: Mapping[str, DataFrame],
        shared: frozenset[str] = frozenset(),
        known: Known | None = None,
        whole: frozenset[str] = frozenset(),
        joiner: Joiner | None = None,
        closed: frozenset[str] = frozenset(),
        slicer: Slicer | None = None,
        counter: CountSlicer | None = None,
    ) -> None:
        self.known = known or Known()
        self._graph = graph
        self._raw = raw
        self._plan = plan
        self._statics = statics
        self._shared = shared
        self._whole = whole  # operators whose rows are wanted with all their columns
        self._joiner = joiner or self._pair
        self._closed = closed
        self._slicer = slicer or self._slice
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
            frame = self._applied(operator, frames)
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
                    alike.setdefault(passes(arc, self._plan) or "", []).append(member.name)
            rows = {tuple(names): self._arc(group.tail, names[0], count) for names in alike.values()}
            self._windowed |= self._slicer(group, rows)
        return self._windowed[aggregate.name]

    def _aggregated_by_count(self, aggregate: CountAggregate, count: bool) -> DataFrame:
        """The results of an aggregate of counted windows, made once."""
        if aggregate.name not in self._windowed:
            (tail,), (arc,) = aggregate.inputs, self._graph.arcs_into(aggregate.name)
            rows = None if arc in self._closed else self._arc(tail, aggregate.name, count)
            self._windowed[aggregate.name] = self._counter(aggregate, rows)
        return self._windowed[aggregate.name]

    def _count(self, aggregate: CountAggregate, rows: DataFrame | None) -> DataFrame:
        assert rows is not None
        if aggregate.name not in self.counts:
            self.counts[aggregate.name] = count_shape(aggregate, rows)
        return counted_directly(self.counts[aggregate.name], rows)

    def _slice(self, group: SliceGroup, rows: Mapping[tuple[str, ...], DataFrame]) -> Mapping[str, DataFrame]:
        if group.name not in self.shapes:
            self.shapes[group.name] = shape_of(group, next(iter(rows.values())))
        return direct(group, self.shapes[group.name], rows)

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
        if condition is None or (condition == ALL and isinstance(self._graph.by_name[arc_head(arc)], Output)):
            return frame  # the output counts its rows
        if count and arc not in self.counted.arcs:
            observation = self.counted.arcs[arc] = Observation()
            metrics = ("count(1) AS rows", f"count_if({condition}) AS kept")
            frame = frame.observe(observation, *map(self.known.expression, metrics))
        if condition != ALL:
            frame = frame.where(self.known.expression(condition))
        if arc_head(arc) in self._weighed and arc in self._plan.drops:
            frame = frame.withColumn(WEIGHT, self.known.expression(weight(self._plan.drops[arc], WEIGHT)))
        return frame

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
            frame = dropped_raw(source, raw, columns, self._plan, self.known, newest=newest, at_once=at_once)
        except AnalysisException as error:
            remedy = " Avro needs jt.local_session(kafka=True, avro=True)." if source.payload == "avro" else ""
            raise StartError(f"source {source.name!r}: {reason_of(error)}{remedy}") from error
        if count and source.name not in self.counted.sources:
            observation = self.counted.sources[source.name] = Observation()
            metrics = [*_source_metrics(source, columns), *valued]
            if source.name in self.timed and source.event_time is not None:
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
            found += value_metrics(number, quoted(name) if name in columns else f"{BODY}.{quoted(name)}")
        return found

    def narrowed(self, name: str, frame: DataFrame) -> DataFrame:
        """An operator's rows with the columns that anybody below needs: a persisted copy holds no more."""
        needed = needed_columns(self._graph, name)
        if needed is None or name in self._whole:
            return frame
        return self.known.select(frame, [*(f"`{column}`" for column in needed), *self.known.hidden(name, frame)])

    def _applied(self, operator: Operator, frames: list[DataFrame]) -> DataFrame:
        """One operator on its input frames. Spark's complaint is passed on with the operator's name."""
        try:
            if isinstance(operator, Select):
                hidden = self.known.hidden(operator.inputs[0], frames[0])
                starred = any(isinstance(item, str) and item.lstrip().startswith("*") for item in operator.expressions)
                return self.known.select(frames[0], [*operator.expressions, *(() if starred else hidden)])
            if isinstance(operator, Union):
                keys = [f"{tail} (narrowed)" if tail in self.persisted else tail for tail in operator.inputs]
                return _united(frames, [self.known.columns(key, f) for key, f in zip(keys, frames, strict=True)])
            if isinstance(operator, Where):
                return frames[0].where(self.known.expression(operator.predicate))
            if isinstance(operator, WithColumns):
                return frames[0].withColumns({name: self.known.expression(item) for name, item in operator.columns})
            if isinstance(operator, Join):
                self._check_clash(operator, frames[0])
                return frames[0].join(self._statics[operator.name], list(operator.on), operator.how)
            if isinstance(operator, Apply):
                made = resolve(operator)(frames[0])
                if not isinstance(made, DataFrame):
                    raise TypeError(f"the function gave a {type(made).__name__}, not a DataFrame: return the rows.")
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
        static = self.known.columns(f"{join.name} (static)", self._statics[join.name])
        clash = sorted((set(here) & set(static)) - set(join.on))
        if clash and join.how not in ("left_semi", "left_anti"):
            raise StartError(f"join {join.name!r}: both sides have column {clash[0]!r}: rename it on one side.")


def identified(
    source: Source, raw: DataFrame, columns: Sequence[str], known: Known, also: Sequence[str] = ()
) -> DataFrame:
    """Raw rows with their identity: of the declared columns, parsed alone where they are in the payload; else Kafka's
    (topic, partition, offset), else of the payload, else of the whole row. `also` are other columns to be added.
    """
    if source.id and set(source.id) <= set(columns):
        identity: Sequence[str] = source.id
    elif source.id and source.payload == "json":
        parts = [quoted(name) if name in columns else _alone(source, name) for name in source.id]
        return known.select(raw, ["*", f"xxhash64({', '.join(parts)}) AS {IDENTITY}"])
    elif set(RECORD) <= set(columns):
        identity = RECORD
    else:
        identity = (source.payload_column,) if source.payload else columns
    return known.select(raw, ["*", identity_of(identity), *also])


def dropped_raw(
    source: Source,
    raw: DataFrame,
    columns: Sequence[str],
    plan: Plan,
    known: Known,
    *,
    shed: bool = False,
    newest: Observation | None = None,
    at_once: bool = False,
) -> DataFrame:
    """Raw rows that pass the input's drop, with their identity and, parsed behind the drop, the payload in a struct.

    With `shed`, the rows that do not pass. A value that the drop judges by is parsed alone, where that can be done.
    `newest` observes how far event times have got before a drop by window, which looks at them anyway; `at_once`, for
    sources without a payload, also all that is counted behind the drop: every observation looks at every row.
    """
    early, late, looks = _conditions(source, columns, plan)
    if newest is not None and at_once:
        frame = identified(source, raw, columns, known, [f"{' AND '.join(early)} AS {JUDGED}"])
        metrics = [*_source_metrics(source, columns, passed=JUDGED), newest_metric(quoted(source.event_time or ""))]
        return frame.observe(newest, *map(known.expression, metrics)).where(known.expression(JUDGED))
    frame = identified(source, raw, columns, known)
    if looks:
        frame = known.select(frame, ["*", *(f"{sql} AS {name}" for sql, name in looks.items())])
    moment = raw_time(source, columns)
    if newest is not None and moment is not None:
        frame = frame.observe(newest, known.expression(newest_metric(looks.get(moment, moment))))
    if shed and not late:
        return _passing(frame, early, shed, known)
    if not shed:
        frame = _passing(frame, early, shed, known)
    if source.payload == "avro":
        frame = known.select(frame, ["*", f"{_decoded(source)} AS {BODY}"])
    elif source.payload is not None:
        frame = known.select(frame, ["*", f"{_body(source, columns)} AS {BODY}"])
    if newest is not None and moment is None:
        frame = frame.observe(newest, known.expression(newest_metric(f"{BODY}.{quoted(source.event_time or '')}")))
    return _passing(frame, [*early, *late] if shed else late, shed, known)


def _conditions(source: Source, columns: Sequence[str], plan: Plan) -> tuple[list[str], list[str], dict[str, str]]:
    """What a plan asks of a source's rows, in SQL: before parsing and behind it.

    What is inside of a JSON payload and asked for is parsed alone, before: those expressions, by their hidden name.
    """
    looks: dict[str, str] = {}

    def look(name: str) -> str:
        declared = as_declared(name)
        if declared in columns or source.payload is None:
            return quoted(declared)
        if source.payload != "json":
            return f"{BODY}.{quoted(declared)}"
        return looks.setdefault(_alone(source, declared), f"{LOOK}{len(looks)}")

    def as_declared(name: str) -> str:
        found = next((each for each, _ in source.schema if each.lower() == name.lower()), None)
        if found is None:
            given = ", ".join(each for each, _ in source.schema)
            raise PlanError(f"the drop on source {source.name!r} is by {name!r}, which it has not. It has: {given}.")
        return found

    early: list[str] = []
    late: list[str] = []
    since_s, drop = plan.stale.get(source.name), plan.drops.get(source.name)
    asked: list[tuple[tuple[str, ...], str]] = []
    if since_s is not None and source.event_time is not None:
        asked.append(((source.event_time,), is_fresh(since_s, look(source.event_time))))
    if isinstance(drop, Window) and source.event_time is not None:
        names = (source.event_time, *([] if drop.column is None else [drop.column]))
        asked.append((names, is_needed(drop, look(source.event_time), look)))
    elif drop is not None:
        asked.append((_judged_by(drop), keeps(source.name, drop, look)))
    for names, condition in asked:
        inside = not {as_declared(name) for name in names} <= set(columns)
        parsed_first = source.payload not in (None, "json") and inside
        (late if parsed_first else early).append(condition)
    return early, late, looks


def newest_metric(time: str) -> str:
    """The largest event time, in microseconds, in SQL."""
    return f"max(unix_micros(CAST({time} AS timestamp))) AS newest"


def _judged_by(drop: Drop) -> tuple[str, ...]:
    """Columns that a drop looks at."""
    if isinstance(drop, ByKey | Stratified):
        return drop.columns
    return (drop.column,) if isinstance(drop, Semantic) else ()


def _passing(frame: DataFrame, conditions: Sequence[str], shed: bool, known: Known) -> DataFrame:
    """Rows that meet all conditions, or with `shed` those that do not."""
    if not conditions:
        return frame
    together = " AND ".join(conditions)
    return frame.where(known.expression(f"NOT ({together})" if shed else together))


def look_at(source: Source, column: str) -> str:
    """One value inside a source's payload as a number, in SQL: of JSON it is parsed alone, else the record is."""
    name = next(name for name, _ in source.schema if name.lower() == column.lower())
    return f"try_cast({_alone(source, name) if source.payload == 'json' else f'{BODY}.{quoted(name)}'} AS double)"


def _decoded(source: Source) -> str:
    assert source.kafka is not None
    return f"from_avro({source.payload_column}, {literal(str(source.kafka.schema))}, map('mode', 'PERMISSIVE'))"


def _body(source: Source, columns: Sequence[str]) -> str:
    """A payload's content, in SQL. What is not as declared shows in the field CORRUPT."""
    inside = [(name, kind) for name, kind in source.schema if name not in columns]
    text = f"string({source.payload_column})"
    if source.payload == "text":
        return f"named_struct({literal(inside[0][0])}, {text}, '{CORRUPT}', CAST(NULL AS string))"
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{CORRUPT}')"
    return f"from_json({text}, {_schema([*inside, (CORRUPT, 'string')])}, {options})"


def _alone(source: Source, name: str) -> str:
    """One field of a JSON payload, in SQL: that one is parsed, not the record."""
    schema = _schema([(name, dict(source.schema)[name])])
    return f"from_json(string({source.payload_column}), {schema}).{quoted(name)}"


def _schema(columns: Sequence[tuple[str, str]]) -> str:
    return literal(", ".join(f"{quoted(name)} {kind}" for name, kind in columns))


def raw_time(source: Source, columns: Sequence[str]) -> str | None:
    """A raw row's event time, in SQL: a column, or that one field of the payload, parsed alone; None without one."""
    if source.event_time is None or source.event_time in columns:
        return None if source.event_time is None else quoted(source.event_time)
    if source.payload != "json":
        return None
    return _alone(source, source.event_time)


def is_parsed(source: Source) -> str:
    """The condition, in SQL, that is true for rows whose payload is as declared.

    What is not Avro of this schema comes as a row of nulls.
    """
    if source.payload == "avro":
        inside = source.kafka.inside(source.name) if source.kafka is not None else ()
        return f"({' OR '.join(f'{BODY}.{quoted(name)} IS NOT NULL' for name, _ in inside)})"
    return f"({BODY} IS NOT NULL AND {BODY}.{CORRUPT} IS NULL)"


def parsed(source: Source, frame: DataFrame, columns: Sequence[str], known: Known) -> DataFrame:
    """Exactly the declared columns, the identity and the time; rows that did not parse are left out."""
    declared = {name: f"`{name}`" if name in columns else f"{BODY}.`{name}`" for name, _ in source.schema}
    if source.payload is not None:
        frame = frame.where(known.expression(is_parsed(source)))
    chosen = [f"{sql} AS `{name}`" for name, sql in declared.items()]
    if source.event_time is not None:
        chosen.append(f"{declared[source.event_time]} AS {TIME}")
    return known.select(frame, [*chosen, IDENTITY])


def _source_metrics(source: Source, columns: Sequence[str], passed: str = ALL) -> list[str]:
    """What is counted behind a source's drop: rows, those that do not parse, those without an event time.

    Before a drop by window it is the same, if those rows are counted that will have `passed`: those without a time do.
    """
    metrics = ["count(1) AS kept" if passed == ALL else f"count_if({passed}) AS kept"]
    if source.payload is not None:
        metrics.append(f"count_if(NOT {is_parsed(source)}) AS rejected")
    if source.event_time is not None:
        inside = source.event_time not in columns
        missing = f"{BODY if inside else ''}{'.' if inside else ''}`{source.event_time}` IS NULL"
        metrics.append(f"count_if({missing}{f' AND {is_parsed(source)}' if inside else ''}) AS timeless")
    return metrics


def _united(frames: list[DataFrame], columns: list[tuple[str, ...]]) -> DataFrame:
    hidden = [column for column in HIDDEN if all(column in each for each in columns)]
    common = (column for column in columns[0] if all(column in each for each in columns[1:]))
    chosen = [*(column for column in common if column not in HIDDEN), *hidden]
    merged = frames[0].select(*chosen)
    for other in frames[1:]:
        merged = merged.unionByName(other.select(*chosen))
    return merged


def resolve(operator: Apply) -> Callable[[DataFrame], DataFrame]:
    """The function of an apply, imported if it is given by path."""
    if not isinstance(operator.function, str):
        return operator.function
    module, _, name = operator.function.partition(":")
    try:
        found: Callable[[DataFrame], DataFrame] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise StartError(f"apply {operator.name!r}: cannot import {operator.function!r}: {error}.") from error
    return found
