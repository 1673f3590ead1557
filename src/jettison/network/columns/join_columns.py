"""The columns that a join gives, and what is wrong with those that it is given."""

from __future__ import annotations

from jettison.errors import NetworkError
from jettison.network.columns.expressions import check_columns
from jettison.network.columns.schema import quoted
from jettison.network.operators import Join, StreamJoin

Columns = tuple[str, ...] | None


def join_columns(element: str, join: Join, here: Columns) -> Columns:
    """Of a join with a static table: those here, then the table's others."""
    for column in join.on:
        check_columns(element, quoted(column), here)
    table: list[str] | None = getattr(join.table, "columns", None)
    if table is None:
        return None
    on, there = {column.lower() for column in join.on}, {column.lower() for column in table}
    for column in join.on:
        if column.lower() not in there:
            raise NetworkError(f"{element}: the static table has no column {column!r}. It has: {', '.join(table)}.")
    if here is None or join.how in ("left_semi", "left_anti"):
        return here
    clash = [column for column in here if column.lower() in there - on]
    if clash:
        raise NetworkError(f"{element}: both sides have column {clash[0]!r}: rename it on one side.")
    return (*here, *(column for column in table if column.lower() not in on))


def stream_join_columns(element: str, join: StreamJoin, left: Columns, right: Columns) -> Columns:
    """Of a join of two streams: `on` as the left one spells it, then the left's others, then the right's.

    >>> join = StreamJoin("paid", ("orders", "payments"), ("order",), within_ms=60_000.0)
    >>> stream_join_columns("join 'paid'", join, ("placed", "order"), ("order", "amount"))
    ('order', 'placed', 'amount')
    """
    for stream, columns in zip(join.inputs, (left, right), strict=True):
        for column in join.on:
            if columns is not None and column.lower() not in {name.lower() for name in columns}:
                raise NetworkError(f"{element}: {stream!r} has no column {column!r}. It has: {', '.join(columns)}.")
    if left is None or right is None:
        return None
    on = [column.lower() for column in join.on]
    keys = {name.lower(): name for name in left}
    others = [name for name in left if name.lower() not in on]
    added = [name for name in right if name.lower() not in on]
    clash = [name for name in added if name.lower() in keys]
    if clash:
        raise NetworkError(
            f"{element}: {join.inputs[0]!r} and {join.inputs[1]!r} both have column {clash[0]!r}: rename it on one "
            f"side, such as .select(..., '{clash[0]} AS {join.inputs[1]}_{clash[0]}')."
        )
    return (*(keys[column] for column in on), *others, *added)
