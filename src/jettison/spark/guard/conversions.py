"""Values that Spark converts by itself, where streams of different types are merged, or a key is looked up in a table.

In ANSI mode such a conversion throws: a union of a string and an int column makes a bigint of both, and 'abc' is none.
So what may throw is tried first. A row whose value cannot be converted is rejected there. A row of a table whose key
cannot be converted matches no row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from jettison.network.arc import arc_name
from jettison.network.columns.schema import quoted
from jettison.network.operators import Join, Union, kind_of
from jettison.spark.compile.drops import HIDDEN
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.guard.careful import Rejecting, split
from jettison.spark.guard.harmless import never_throws
from jettison.spark.guard.trying import CANNOT, TRIED, try_column

_KEY = "_jt_join_key"


@dataclass(frozen=True)
class _Conversion:
    """A column and the type that it becomes; None of both where nothing may throw."""

    column: str
    type: DataType


def converted_inputs(
    union: Union, frames: Sequence[DataFrame], known: ExpressionCache, united: Callable[[], DataFrame]
) -> tuple[list[DataFrame], dict[str, Rejecting]]:
    """The inputs of a union, with values of the types that it has, without the rows that have none of such a type."""
    conversions = known.asked(f"{union.name} (types)", lambda: [_needed(frame, united().schema) for frame in frames])
    found, rejecting = list[DataFrame](), dict[str, Rejecting]()
    for tail, frame, needed in zip(union.inputs, frames, conversions, strict=True):
        made = _converted(frame, needed)
        if made is None:
            found.append(frame)
            continue
        arc = arc_name(tail, union.name)
        kept, rejecting[arc] = split(made, f"{TRIED} IS NULL", arc, f"{kind_of(union)} {union.name!r} fails on it")
        values = {each.column: F.col(f"{TRIED}.v{number}") for number, each in enumerate(needed)}
        found.append(kept.withColumns(values).drop(TRIED))
    return found, rejecting


def joined_with_care(
    join: Join, rows: DataFrame, table: DataFrame, known: ExpressionCache
) -> tuple[DataFrame, Rejecting | None] | None:
    """Rows joined with a table, without those whose key is of another type and cannot be converted; None where no
    conversion may throw."""
    types = known.asked(f"{join.name} (types)", lambda: [_compared_as(rows, table, name) for name in join.on])
    here, there = (_types(frame) for frame in (rows, table))
    keys = [name.lower() for name in join.on]
    risky_here = [not never_throws(here[key], kind.jsonValue()) for key, kind in zip(keys, types, strict=True)]
    risky_there = [not never_throws(there[key], kind.jsonValue()) for key, kind in zip(keys, types, strict=True)]
    if not any(risky_here) and not any(risky_there):
        return None
    plain = rows.join(table, list(join.on), join.how)
    rejecting, made = None, [F.col(quoted(name)).cast(kind) for name, kind in zip(join.on, types, strict=True)]
    frame = rows
    if any(risky_here):
        tried = _tried(rows, made)
        if tried is None:
            return None
        reason = f"{kind_of(join)} {join.name!r} fails on it"
        frame, rejecting = split(tried, f"{TRIED} IS NULL", join.name, reason)
        made = [F.col(f"{TRIED}.v{number}") for number in range(len(made))]
    named = [f"{_KEY}{number}" for number in range(len(made))]
    left = frame.withColumns(dict(zip(named, made, strict=True)))
    looked_up = [F.col(quoted(name)).try_cast(kind) for name, kind in zip(join.on, types, strict=True)]
    right = table.withColumns(dict(zip(named, looked_up, strict=True))).drop(*join.on)
    return left.join(right, named, join.how).select(*map(quoted, plain.columns)), rejecting


def _types(frame: DataFrame) -> dict[str, Any]:
    return {each.name.lower(): each.dataType.jsonValue() for each in frame.schema.fields}


def _needed(frame: DataFrame, wanted: StructType) -> list[_Conversion]:
    """Conversions that may throw, from the types of a frame to those of a union."""
    own = _types(frame)
    given = [each for each in wanted.fields if each.name not in HIDDEN and each.name.lower() in own]
    return [
        _Conversion(each.name, each.dataType)
        for each in given
        if not never_throws(own[each.name.lower()], each.dataType.jsonValue())
    ]


def _converted(frame: DataFrame, needed: Sequence[_Conversion]) -> DataFrame | None:
    return _tried(frame, [F.col(quoted(each.column)).cast(each.type) for each in needed]) if needed else None


def _tried(frame: DataFrame, values: Sequence[Column]) -> DataFrame | None:
    try:
        together = F.struct(*(value.alias(f"v{number}") for number, value in enumerate(values)))
        return frame.withColumn(TRIED, try_column(together, frame))
    except CANNOT:
        return None


def _compared_as(rows: DataFrame, table: DataFrame, name: str) -> DataType:
    """The type in which Spark compares two columns of this name."""
    here, there = rows.select(F.col(quoted(name)).alias("a")), table.select(F.col(quoted(name)).alias("b"))
    jdf: Any = here.crossJoin(there).selectExpr("a = b AS same")._jdf
    tree = json.loads(jdf.queryExecution().analyzed().expressions().apply(0).toJSON())
    equal = next(number for number, node in enumerate(tree) if node["class"].endswith(".EqualTo"))
    return StructType.fromJson(
        {"fields": [{"name": "k", "type": tree[equal + 1]["dataType"], "nullable": True, "metadata": {}}]}
    )["k"].dataType
