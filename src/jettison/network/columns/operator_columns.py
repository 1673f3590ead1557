"""The columns that an operator gives, checked against those that come in."""

from __future__ import annotations

from collections.abc import Sequence

from jettison.errors import NetworkError
from jettison.network.columns.expressions import check_columns, is_whole_star, names_itself, result_name
from jettison.network.columns.join_columns import Columns, join_columns, stream_join_columns
from jettison.network.columns.reserved import added
from jettison.network.columns.schema import check_names
from jettison.network.columns.words import meant
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
    Map,
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


def operator_columns(operator: Operator, found: dict[str, Columns], coming: Sequence[str]) -> Columns:
    """What an operator gives, checked; of its input it may also use columns that may be `coming`."""
    element = f"{kind_of(operator)} {operator.name!r}"
    if isinstance(operator, Source):
        names = tuple(name for name, _ in operator.schema)
        if operator.payload and operator.payload_column in names:
            raise NetworkError(
                f"{element}: {operator.payload_column!r} holds the payload, so the schema cannot have it too."
            )
        return names
    here = found[operator.inputs[0]]
    if isinstance(operator, Where):
        check_columns(element, operator.predicate, here, also=coming)
    elif isinstance(operator, Select):
        return _select_columns(element, operator, here, coming)
    elif isinstance(operator, WithColumns):
        for _, expression in operator.columns:
            check_columns(element, expression, here, also=coming)
        return None if here is None else _added(here, [name for name, _ in operator.columns])
    elif isinstance(operator, Union):
        return _union_columns(element, operator, found)
    elif isinstance(operator, Join):
        return join_columns(element, operator, here)
    elif isinstance(operator, StreamJoin):
        return stream_join_columns(element, operator, here, found[operator.inputs[1]])
    elif isinstance(operator, Aggregate | CountAggregate):
        for text in operator.reads:
            check_columns(element, text, here, also=coming)
        return operator.columns
    elif isinstance(operator, Apply):
        check_names(element, operator.columns or ())
        return operator.columns
    elif isinstance(operator, Map):
        _check_key(element, operator.key, here, coming)
        return None if here is None else _added(here, operator.adds)
    elif isinstance(operator, Output) and (fault := added(element, here or (), quality=operator.quality)):
        raise NetworkError(fault)
    return here


def _check_key(element: str, key: Sequence[str], here: Columns, coming: Sequence[str]) -> None:
    known = {name.lower() for name in (*(here or ()), *coming)}
    for column in key:
        if here is not None and column.lower() not in known:
            raise NetworkError(
                f"{element}: key {column!r} is no column{meant(column, here)}. Columns here: {', '.join(here)}."
            )


def _added(here: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """A new column that differs from an old one in case only takes its place, as in Spark."""
    columns = {name.lower(): name for name in here}
    columns |= {name.lower(): name for name in names}
    return tuple(columns.values())


def _select_columns(element: str, operator: Select, here: Columns, coming: Sequence[str]) -> Columns:
    names: list[str] = []
    known = here
    for expression in operator.expressions:
        check_columns(element, expression, known, also=(*names, *coming))
        name = result_name(expression)
        if name is not None:
            names.append(name)
        elif is_whole_star(expression) and here is not None:
            names.extend(here)
        elif names_itself(expression):
            known = None
        else:
            raise NetworkError(f"{element}: {expression!r} has no name: write {expression + ' AS name'!r}.")
    check_names(element, names)
    return None if known is None else tuple(names)


def _union_columns(element: str, operator: Union, found: dict[str, Columns]) -> Columns:
    """Those of the first input whose columns are known: all have the same."""
    known = [(tail, columns) for tail in operator.inputs if (columns := found[tail]) is not None]
    if not known:
        return None
    first, columns = known[0]
    names = {name.lower() for name in columns}
    for other, theirs in known[1:]:
        odd = names ^ {name.lower() for name in theirs}
        if odd:
            raise NetworkError(
                f"{element}: {first!r} and {other!r} differ in columns {', '.join(sorted(odd))}: select alike."
            )
    return columns
