"""The network as DataFrames of one batch, with the plan's drops on its arcs.

Every row carries two hidden columns: its identity, by which drops judge it, and its event time, from which latency is
measured. They are cut off at the outputs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
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


class Compiler:
    """Builds the frames of one batch. Frames of `shared` operators are built once and persisted."""

    def __init__(
        self,
        graph: Graph,
        raw: Mapping[str, DataFrame],
        plan: Plan,
        statics: Mapping[str, DataFrame],
        shared: frozenset[str] = frozenset(),
    ) -> None:
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
            frame = apply_operator(operator, frames, self._statics)
        if name in self._shared:
            frame = narrowed(self._graph, name, frame).persist()
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
            frame = frame.observe(observation, F.expr("count(1) AS rows"), F.expr(f"count_if({condition}) AS kept"))
        return frame.where(condition)

    def _source(self, source: Source, count: bool) -> DataFrame:
        frame = dropped_raw(source, self._raw[source.name], self._plan)
        if count and source.name not in self.counted.sources:
            observation = self.counted.sources[source.name] = Observation()
            frame = frame.observe(observation, *(F.expr(metric) for metric in _source_metrics(source, frame)))
        return parsed(source, frame)


def narrowed(graph: Graph, name: str, frame: DataFrame) -> DataFrame:
    """An operator's rows with the columns that anybody below needs: a persisted copy holds no more."""
    needed = needed_columns(graph, name)
    if needed is None:
        return frame
    hidden = [column for column in HIDDEN if column in frame.columns]
    return frame.selectExpr(*(f"`{column}`" for column in needed), *hidden)


def dropped_raw(source: Source, raw: DataFrame, plan: Plan) -> DataFrame:
    """Raw rows that pass the input's drop, with their identity and, behind the drop, the payload's content in a struct.

    The identity is made of the declared columns where they can be seen, else of the payload, else of the whole row.
    """
    seen = bool(source.id) and set(source.id) <= set(raw.columns)
    identity = source.id if seen else (PAYLOAD_COLUMN,) if source.payload else tuple(raw.columns)
    frame = raw.selectExpr("*", identity_of(identity))
    drop = plan.drops.get(source.name)
    if drop is not None:
        frame = frame.where(keeps(source.name, drop))
    if source.payload is not None:
        inside = ", ".join(f"`{name}` {kind}" for name, kind in source.schema if name not in raw.columns)
        options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{CORRUPT}')"
        schema = f"{inside}, {CORRUPT} string".replace("'", "\\'")
        frame = frame.selectExpr("*", f"from_json(string({PAYLOAD_COLUMN}), '{schema}', {options}) AS {BODY}")
    return frame


IS_PARSED = f"({BODY} IS NOT NULL AND {BODY}.{CORRUPT} IS NULL)"
"""True for rows whose payload is a JSON object that fits the schema."""


def parsed(source: Source, frame: DataFrame) -> DataFrame:
    """Exactly the declared columns, the identity and the time; rows that did not parse are left out."""
    columns = {name: f"`{name}`" for name, _ in source.schema}
    if source.payload is not None:
        frame = frame.where(IS_PARSED)
        columns = {name: sql if name in frame.columns else f"{BODY}.{sql}" for name, sql in columns.items()}
    chosen = [f"{sql} AS `{name}`" for name, sql in columns.items()]
    if source.event_time is not None:
        chosen.append(f"{columns[source.event_time]} AS {TIME}")
    return frame.selectExpr(*chosen, IDENTITY)


def _source_metrics(source: Source, frame: DataFrame) -> list[str]:
    """What is counted behind a source's drop: rows, those that do not parse, those without an event time."""
    metrics = ["count(1) AS kept"]
    if source.payload is not None:
        metrics.append(f"count_if(NOT {IS_PARSED}) AS rejected")
    if source.event_time is not None:
        inside = source.event_time not in frame.columns
        missing = f"{BODY if inside else ''}{'.' if inside else ''}`{source.event_time}` IS NULL"
        metrics.append(f"count_if({missing}{f' AND {IS_PARSED}' if inside else ''}) AS timeless")
    return metrics


def apply_operator(operator: Operator, frames: list[DataFrame], statics: Mapping[str, DataFrame]) -> DataFrame:
    """One operator on its input frames. Spark's complaint is passed on with the operator's name."""
    element = f"{kind_of(operator)} {operator.name!r}"
    try:
        return _applied(operator, frames, statics)
    except AnalysisException as error:
        columns = ", ".join(column for column in frames[0].columns if column not in HIDDEN)
        first_line = str(error).splitlines()[0]
        raise StartError(f"{element}: {first_line} Columns here: {columns}.") from error


def _applied(operator: Operator, frames: list[DataFrame], statics: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames[0]
    hidden = [column for column in HIDDEN if column in frame.columns]
    if isinstance(operator, Where):
        return frame.where(operator.predicate)
    if isinstance(operator, Select):
        items = (*operator.expressions, *(() if "*" in _texts(operator.expressions) else hidden))
        if all(isinstance(item, str) for item in items):
            return frame.selectExpr(*items)
        return frame.select(*(_column(item) for item in items))
    if isinstance(operator, WithColumns):
        return frame.withColumns({name: _column(item) for name, item in operator.columns})
    if isinstance(operator, Union):
        common = [column for column in HIDDEN if all(column in other.columns for other in frames)]
        visible = [column for column in frame.columns if column not in HIDDEN]
        merged = frame.select(*visible, *common)
        for other in frames[1:]:
            merged = merged.unionByName(other.select(*visible, *common))
        return merged
    if isinstance(operator, Join):
        static = statics[operator.name]
        return frame.join(static, list(operator.on), operator.how)
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
