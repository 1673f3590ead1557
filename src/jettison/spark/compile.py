"""The network as DataFrames of one batch, with the plan's drops on its arcs.

Every row carries two hidden columns: its identity, by which drops judge it, and its event time, from which latency is
measured. They are cut off at the outputs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from jettison.errors import StartError
from jettison.network.graph import Graph, arc_name
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
from jettison.spark.drops import HIDDEN, IDENTITY, TIME, keeps, with_identity

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
            frame = frame.persist()
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
            kept = F.count_if(condition).alias("kept")
            frame = frame.observe(observation, F.count(F.lit(1)).alias("rows"), kept)
        return frame.where(condition)

    def _source(self, source: Source, count: bool) -> DataFrame:
        frame = identified(source, self._raw[source.name])
        drop = self._plan.drops.get(source.name)
        if drop is not None:
            frame = frame.where(keeps(source.name, drop))
        frame = unpacked(source, frame)
        if count and source.name not in self.counted.sources:
            observation = self.counted.sources[source.name] = Observation()
            frame = frame.observe(observation, *_source_metrics(source))
        return with_time(source, parsed(source, frame))


def identified(source: Source, raw: DataFrame) -> DataFrame:
    """Raw rows with their identity: the declared columns where they can be seen, else the payload as it is."""
    in_raw = bool(source.id) and set(source.id) <= set(raw.columns)
    return with_identity(raw, source.id if in_raw else (PAYLOAD_COLUMN,) if source.payload else source.id)


def unpacked(source: Source, frame: DataFrame) -> DataFrame:
    """Raw rows with the payload's content in a hidden struct; unchanged where there is no payload."""
    if source.payload is None:
        return frame
    inside = [(name, kind) for name, kind in source.schema if name not in frame.columns]
    schema = StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in inside))
    schema = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    return frame.withColumn(BODY, F.from_json(F.col(PAYLOAD_COLUMN).cast("string"), schema, options))


def is_parsed() -> Column:
    """True for rows whose payload is a JSON object that fits the schema."""
    return F.col(BODY).isNotNull() & F.col(BODY)[CORRUPT].isNull()


def parsed(source: Source, frame: DataFrame) -> DataFrame:
    """Exactly the declared columns and the identity; rows that did not parse are left out."""
    if source.payload is None:
        return frame.select(*(name for name, _ in source.schema), IDENTITY)
    columns = [F.col(name) if name in frame.columns else F.col(BODY)[name].alias(name) for name, _ in source.schema]
    return frame.where(is_parsed()).select(*columns, IDENTITY)


def _source_metrics(source: Source) -> list[Column]:
    """What is counted behind a source's drop: rows, those that do not parse, those without an event time."""
    metrics = [F.count(F.lit(1)).alias("kept")]
    if source.payload is not None:
        metrics.append(F.count_if(~is_parsed()).alias("rejected"))
    elif source.event_time is not None:
        metrics.append(F.count_if(F.col(source.event_time).isNull()).alias("timeless"))
    return metrics


def with_time(source: Source, frame: DataFrame) -> DataFrame:
    return frame if source.event_time is None else frame.withColumn(TIME, F.col(source.event_time))


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
        chosen = [_column(item) for item in operator.expressions]
        if any(item == "*" for item in operator.expressions):
            return frame.select(*chosen)
        return frame.select(*chosen, *hidden)
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
        return made if IDENTITY in made.columns else with_identity(made, ())
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


def _column(item: object) -> Column:
    return F.expr(item) if isinstance(item, str) else item  # type: ignore[return-value]  # a Column, as declared


def visible(frame: DataFrame) -> DataFrame:
    """Without the hidden columns."""
    return frame.drop(*HIDDEN)
