"""A map as a frame: its rows go through Python workers by Arrow, and what tasks tell beside them is observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from jettison.errors import StartError
from jettison.network.columns.words import meant
from jettison.network.operators import Map
from jettison.spark.compile.drops import HIDDEN, IDENTITY, TIME
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.guard.careful import Rejecting
from jettison.spark.guard.isolate import is_set_aside
from jettison.spark.maps.task_report import FAULT, REPORT, TaskReport, one_per_partition
from jettison.spark.maps.worker import MapTask
from jettison.statistics.sketches.universal import HashFunctions

KEY_TYPES = (NumericType, StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)
"""The types that a key may have."""


@dataclass
class MappedRows:
    """The maps of one batch. `functions` are those of the sketch that tuples are timed into; None: nothing is timed."""

    known: ExpressionCache
    functions: HashFunctions | None = None
    observations: dict[str, Observation] = field(default_factory=dict)
    arriving: dict[str, DataFrame] = field(default_factory=dict)
    mapped: dict[str, DataFrame] = field(default_factory=dict)

    def rows(
        self, operator: Map, arriving: DataFrame, tau_us: float = math.inf, since_us: float = 0.0, *, count: bool
    ) -> DataFrame:
        """The rows that a map gives. With `count`, what its tasks tell is observed, the first time that it is built."""
        observed = count and operator.name not in self.observations
        schema, task = self.known.asked(f"{operator.name} (map)", lambda: _task(operator, arriving.schema))
        if observed:
            task = replace(task, functions=self.functions, tau_us=tau_us, since_us=since_us)
        made = arriving.mapInArrow(worker_function(task), schema)
        if observed:
            observation = self.observations[operator.name] = Observation()
            self.arriving[operator.name], self.mapped[operator.name] = arriving, made
            told = [f"count_if({FAULT} IS NOT NULL) AS unfit", f"collect_list({REPORT}) AS reports"]
            made = made.observe(observation, *map(self.known.expression, told))
        fit = made.where(self.known.expression(f"{FAULT} IS NULL AND {REPORT} IS NULL"))
        return fit.drop(FAULT, REPORT)

    def rejecting(self, name: str, reports: list[TaskReport]) -> Rejecting:
        """The rows that a map has rejected, with their reasons."""
        rows, observation = self.arriving[name], self.observations[name]
        if all(each.names_all for each in reports):
            reasons: dict[int, str] = {}
            for each in reports:
                reasons |= each.rejected
            pairs = ((F.lit(identity).cast("long"), F.lit(reason)) for identity, reason in reasons.items())
            texts = F.create_map(*(word for pair in pairs for word in pair))
            bad = rows.where(is_set_aside(reasons)).withColumn(FAULT, texts[F.col(IDENTITY)])
        else:  # more than tasks name: the function is asked again
            kept = [each for each in self.mapped[name].columns if each in rows.columns]
            bad = self.mapped[name].where(f"{FAULT} IS NOT NULL").select(*kept, FAULT)
        return Rejecting(name, observation, bad, F.col(FAULT), "unfit")


def reports_in(seen: dict[str, Any]) -> list[TaskReport]:
    """What tasks told, one report for each partition."""
    return one_per_partition(seen.get("reports") or ())


def worker_function(task: MapTask) -> Any:
    """The function that Spark pickles: the user's own goes with it, by value or by its import path."""

    def map_batches(batches: Any) -> Any:
        return task.run(batches)

    return map_batches


def _task(operator: Map, schema: StructType) -> tuple[StructType, MapTask]:
    """What a map's rows look like, and what its workers do, before anything is known of one batch."""
    element = f"map {operator.name!r}"
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in operator.schema)
    added = cast("StructType", StructType.fromDDL(ddl))
    replaced = {name.lower() for name in operator.adds}
    columns = {each.name.lower(): each for each in schema.fields}
    key = tuple(_key_column(element, name, columns).name for name in operator.key)
    passed = [each for each in schema.fields if each.name.lower() not in replaced]
    result = [*passed, *added.fields, StructField(FAULT, StringType()), StructField(REPORT, BinaryType())]
    task = MapTask(
        element,
        operator.function,
        operator.rows,
        tuple(each.name for each in schema.fields if each.name not in HIDDEN),
        tuple(each.name for each in passed),
        key,
        pa.schema([pa.field(each.name, to_arrow_type(each.dataType, timezone="UTC")) for each in added.fields]),
        operator.limit_ms / 1000,
        time=TIME if TIME in schema.names else None,
        identity=IDENTITY if IDENTITY in schema.names else None,
    )
    return StructType([StructField(each.name, each.dataType, nullable=True) for each in result]), task


def _key_column(element: str, name: str, columns: dict[str, StructField]) -> StructField:
    found = columns.get(name.lower())
    visible = [each.name for each in columns.values() if each.name not in HIDDEN]
    if found is None:
        raise StartError(f"{element}: key {name!r} is no column{meant(name, visible)}: {', '.join(visible)}.")
    if not isinstance(found.dataType, KEY_TYPES):
        kind = found.dataType.simpleString()
        raise StartError(f"{element}: key {name!r} is of type {kind}: use a number, a text, a time, or binary.")
    return found
