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

from jettison.errors import StartError
from jettison.network.graph import Graph, arc_name
from jettison.network.needed import needed_columns
from jettison.network.operators import (
    PAYLOAD_COLUMN,
    Apply,
    Join,
    Operator,
    Output,
    Select,
    Source,
    Union,
    Where,
    WithColumns,
    kind_of,
)
from jettison.plan.plan import Plan
from jettison.spark.drops import HIDDEN, IDENTITY, TIME, identity_of, keeps

CORRUPT = "_jt_corrupt"
BODY = "_jt_body"


@dataclass
class Counted:
    """Observations placed in a batch's frames: on sources behind their drop, and on arcs before the drop there."""

    sources: dict[str, Observation] = field(default_factory=dict)
    arcs: dict[str, Observation] = field(default_factory=dict)


@dataclass
class Known:
    """What does not change from batch to batch, so that Spark is asked once: column names of frames, metrics' Columns."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    metrics: dict[str, Column] = field(default_factory=dict)

    def columns(self, key: str, frame: DataFrame) -> tuple[str, ...]:
        if key not in self.names:
            self.names[key] = tuple(frame.columns)
        return self.names[key]

    def hidden(self, key: str, frame: DataFrame) -> list[str]:
        return [column for column in HIDDEN if column in self.columns(key, frame)]

    def metric(self, text: str) -> Column:
        if text not in self.metrics:
            self.metrics[text] = F.expr(text)
        return self.metrics[text]


class Compiler:
    """Builds the frames of one batch. Frames of `shared` operators are built once and persisted."""

    def __init__(
        self,
        graph: Graph,
        raw: Mapping[str, DataFrame],
        plan: Plan,
        statics: Mapping[str, DataFrame],
        shared: frozenset[str] = frozenset(),
        known: Known | None = None,
    ) -> None:
        self.known = known or Known()
        self._graph = graph
        self._raw = raw
        self._plan = plan
        self._statics = statics
        self._shared = shared
        self.persisted: dict[str, DataFrame] = {}
        self.counted = Counted()

    def output(self, name: str, *, count: bool) -> DataFrame:
        """The rows of an output, hidden columns included. With `count`, what it passes for the first time is counted."""
        return self._build(name, count)

    def operator(self, name: str) -> DataFrame:
        """The rows that an operator gives, for calibration."""
        return self._build(name, False)

    def _build(self, name: str, count: bool) -> DataFrame:
        if name in self.persisted:
            return self.persisted[name]
        operator = self._graph.by_name[name]
        if isinstance(operator, Source):
            frame = self._source(operator, count)
        else:
            frames = [self._arc(tail, name, count) for tail in operator.inputs]
            frame = self._applied(operator, frames)
        self.known.columns(name, frame)
        if name in self._shared:
            frame = self.narrowed(name, frame).persist()
            self.persisted[name] = frame
        return frame

    def _arc(self, tail: str, head: str, count: bool) -> DataFrame:
        arc = arc_name(tail, head)
        return self._dropped(arc, self._build(tail, count), count)

    def _dropped(self, arc: str, frame: DataFrame, count: bool) -> DataFrame:
        drop = self._plan.drops.get(arc)
        if drop is None:
            return frame
        condition = keeps(arc, drop)
        if count and arc not in self.counted.arcs:
            observation = self.counted.arcs[arc] = Observation()
            metrics = ("count(1) AS rows", f"count_if({condition}) AS kept")
            frame = frame.observe(observation, *map(self.known.metric, metrics))
        return frame.where(condition)

    def _source(self, source: Source, count: bool) -> DataFrame:
        raw = self._raw[source.name]
        columns = self.known.columns(f"{source.name} (raw)", raw)
        frame = dropped_raw(source, raw, columns, self._plan)
        if count and source.name not in self.counted.sources:
            observation = self.counted.sources[source.name] = Observation()
            frame = frame.observe(observation, *map(self.known.metric, _source_metrics(source, columns)))
        return parsed(source, frame, columns)

    def narrowed(self, name: str, frame: DataFrame) -> DataFrame:
        """An operator's rows with the columns that anybody below needs: a persisted copy holds no more."""
        needed = needed_columns(self._graph, name)
        if needed is None:
            return frame
        return frame.selectExpr(*(f"`{column}`" for column in needed), *self.known.hidden(name, frame))

    def _applied(self, operator: Operator, frames: list[DataFrame]) -> DataFrame:
        """One operator on its input frames. Spark's complaint is passed on with the operator's name."""
        try:
            if isinstance(operator, Select):
                return _selected(operator, frames[0], self.known.hidden(operator.inputs[0], frames[0]))
            if isinstance(operator, Union):
                columns = [self.known.columns(tail, f) for tail, f in zip(operator.inputs, frames, strict=True)]
                return _united(frames, columns)
            return _applied(operator, frames[0], self._statics)
        except AnalysisException as error:
            columns_here = ", ".join(column for column in frames[0].columns if column not in HIDDEN)
            first_line = str(error).splitlines()[0]
            element = f"{kind_of(operator)} {operator.name!r}"
            raise StartError(f"{element}: {first_line} Columns here: {columns_here}.") from error


def dropped_raw(source: Source, raw: DataFrame, columns: Sequence[str], plan: Plan) -> DataFrame:
    """Raw rows that pass the input's drop, with their identity and, behind the drop, the payload's content in a struct.

    The identity is made of the declared columns where they can be seen, else of the payload, else of the whole row.
    """
    seen = bool(source.id) and set(source.id) <= set(columns)
    identity = source.id if seen else (PAYLOAD_COLUMN,) if source.payload else columns
    frame = raw.selectExpr("*", identity_of(identity))
    drop = plan.drops.get(source.name)
    if drop is not None:
        frame = frame.where(keeps(source.name, drop))
    if source.payload is not None:
        inside = ", ".join(f"`{name}` {kind}" for name, kind in source.schema if name not in columns)
        options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{CORRUPT}')"
        schema = f"{inside}, {CORRUPT} string".replace("'", "\\'")
        frame = frame.selectExpr("*", f"from_json(string({PAYLOAD_COLUMN}), '{schema}', {options}) AS {BODY}")
    return frame


IS_PARSED = f"({BODY} IS NOT NULL AND {BODY}.{CORRUPT} IS NULL)"
"""True for rows whose payload is a JSON object that fits the schema."""


def parsed(source: Source, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Exactly the declared columns, the identity and the time; rows that did not parse are left out."""
    declared = {name: f"`{name}`" if name in columns else f"{BODY}.`{name}`" for name, _ in source.schema}
    if source.payload is not None:
        frame = frame.where(IS_PARSED)
    chosen = [f"{sql} AS `{name}`" for name, sql in declared.items()]
    if source.event_time is not None:
        chosen.append(f"{declared[source.event_time]} AS {TIME}")
    return frame.selectExpr(*chosen, IDENTITY)


def _source_metrics(source: Source, columns: Sequence[str]) -> list[str]:
    """What is counted behind a source's drop: rows, those that do not parse, those without an event time."""
    metrics = ["count(1) AS kept"]
    if source.payload is not None:
        metrics.append(f"count_if(NOT {IS_PARSED}) AS rejected")
    if source.event_time is not None:
        inside = source.event_time not in columns
        missing = f"{BODY if inside else ''}{'.' if inside else ''}`{source.event_time}` IS NULL"
        metrics.append(f"count_if({missing}{f' AND {IS_PARSED}' if inside else ''}) AS timeless")
    return metrics


def _selected(operator: Select, frame: DataFrame, hidden: list[str]) -> DataFrame:
    items = (*operator.expressions, *(() if "*" in _texts(operator.expressions) else hidden))
    if all(isinstance(item, str) for item in items):
        return frame.selectExpr(*items)
    return frame.select(*(_column(item) for item in items))


def _united(frames: list[DataFrame], columns: list[tuple[str, ...]]) -> DataFrame:
    hidden = [column for column in HIDDEN if all(column in each for each in columns)]
    chosen = [*(column for column in columns[0] if column not in HIDDEN), *hidden]
    merged = frames[0].select(*chosen)
    for other in frames[1:]:
        merged = merged.unionByName(other.select(*chosen))
    return merged


def _applied(operator: Operator, frame: DataFrame, statics: Mapping[str, DataFrame]) -> DataFrame:
    if isinstance(operator, Where):
        return frame.where(operator.predicate)
    if isinstance(operator, WithColumns):
        return frame.withColumns({name: _column(item) for name, item in operator.columns})
    if isinstance(operator, Join):
        return frame.join(statics[operator.name], list(operator.on), operator.how)
    if isinstance(operator, Apply):
        made = resolve(operator)(frame)
        return made if IDENTITY in made.columns else made.selectExpr("*", identity_of(made.columns))
    assert isinstance(operator, Output)
    return frame


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


def _texts(items: Iterable[object]) -> set[str]:
    return {item for item in items if isinstance(item, str)}


def _column(item: object) -> Column:
    return F.expr(item) if isinstance(item, str) else item  # type: ignore[return-value]  # a Column, as declared
