"""The rows of two streams that belong together, as one frame."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType

from jettison.errors import StartError
from jettison.network.columns.schema import quoted
from jettison.network.columns.words import an
from jettison.network.operators import StreamJoin
from jettison.spark.compile.drops import HIDDEN, IDENTITY, TIME

_OTHER = {IDENTITY: "_jt_other_id", TIME: "_jt_other_time"}


def paired(join: StreamJoin, left: DataFrame, right: DataFrame, *, few: bool = False) -> DataFrame:
    """Pairs with equal `on` and event times within the band: `on`, the left's other columns, then the right's.

    A pair's identity is a hash of both identities, its time the later one, from which its latency counts. `few` rows
    are in one partition each, and meet there: to send one side around would take a job of its own.
    """
    here, there = visible(left.columns), visible(right.columns)
    renamed = [f"{name} AS {other}" for name, other in _OTHER.items()]
    right = right.selectExpr(*map(quoted, there), *renamed)
    right = right.hint("shuffle_hash") if few else right
    on = {name.lower() for name in join.on}
    keys = [next(own for own in here if own.lower() == name.lower()) for name in join.on]
    others = [name for name in (*here, *there) if name.lower() not in on]
    apart_us = f"abs(unix_micros({TIME}) - unix_micros({_OTHER[TIME]}))"
    near = left.join(right, list(join.on)).where(f"{apart_us} <= {join.within_us}L")
    return near.selectExpr(
        *map(quoted, (*keys, *others)),
        f"xxhash64({IDENTITY}, {_OTHER[IDENTITY]}) AS {IDENTITY}",
        f"greatest({TIME}, {_OTHER[TIME]}) AS {TIME}",
    )


def waiting(join: StreamJoin, side: int, rows: DataFrame) -> DataFrame:
    """The rows of a side that can pair at all, as they are kept: those with a key and a time."""
    stream, columns = join.inputs[side], rows.columns
    if TIME not in columns:
        raise StartError(
            f"join {join.name!r}: the rows of {stream!r} have lost their event time: let functions in .apply() before "
            f"it keep column {TIME!r}."
        )
    keyed = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in (*join.on, TIME))
    return rows.where(keyed).selectExpr(
        *map(quoted, visible(columns)), IDENTITY, f"CAST({TIME} AS timestamp) AS {TIME}"
    )


def check_sides(join: StreamJoin, left: DataFrame, right: DataFrame) -> None:
    """Columns that only Spark knows are seen here first."""
    on = {name.lower() for name in join.on}
    for stream, rows in zip(join.inputs, (left, right), strict=True):
        columns = visible(rows.columns)
        for name in join.on:
            if name.lower() not in {column.lower() for column in columns}:
                has = ", ".join(columns)
                raise StartError(f"join {join.name!r}: {stream!r} has no column {name!r}. It has: {has}.")
    for name in join.on:
        kinds = [_kind(rows, name) for rows in (left, right)]
        if kinds[0] != kinds[1]:
            raise StartError(
                f"join {join.name!r}: {name!r} is {an(kinds[0])} on one side and {an(kinds[1])} on the other, and keys "
                f"are judged as they are written: cast one of them."
            )
    there = {name.lower() for name in visible(right.columns)} - on
    clash = [name for name in visible(left.columns) if name.lower() in there]
    if clash:
        raise StartError(f"join {join.name!r}: both sides have column {clash[0]!r}: rename it on one side.")


def visible(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name not in HIDDEN]


def _kind(rows: DataFrame, name: str) -> str:
    """A column's type; integers of any width are alike."""
    kind = next(field.dataType for field in rows.schema.fields if field.name.lower() == name.lower())
    return "whole number" if isinstance(kind, IntegralType) else kind.simpleString()
