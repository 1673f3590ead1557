"""Which columns of an operator anybody downstream looks at: what a shared copy of its rows must hold."""

from __future__ import annotations

from jettison.network.columns.expressions import all_used_columns
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Join, Select, StreamJoin, Where, WithColumns


def needed_columns(graph: Graph, name: str) -> tuple[str, ...] | None:
    """Columns that the consumers of an operator use, in its order; None when that may be all of them.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "trip long, zone int, fare double, note string")
    >>> _ = trips.where("fare > 0").select("zone").output("zones"); _ = trips.select("trip").output("ids")
    >>> needed_columns(net.graph, "trips")
    ('trip', 'zone', 'fare')
    """
    columns = graph.columns[name]
    if columns is None:
        return None
    wanted: set[str] = set()
    for head in graph.consumers[name]:
        used = _used(graph, head)
        if used is None:
            return None
        wanted |= used
    return tuple(column for column in columns if column.lower() in wanted)


def _used(graph: Graph, name: str) -> set[str] | None:
    """Columns of its input that an operator and all below it use, in lower case."""
    operator = graph.by_name[name]
    if isinstance(operator, StreamJoin):
        return None  # rows that wait for partners are kept whole, so that what is declared below may change meanwhile
    if isinstance(operator, Select):
        return _all(operator.expressions)
    if isinstance(operator, Aggregate | CountAggregate):
        used = _all(tuple(call for _, call in operator.aggregates if isinstance(call, str)))
        own = (column for _, call in operator.aggregates if not isinstance(call, str) for column in call.columns)
        return None if used is None else used | {column.lower() for column in (*operator.window.by, *own)}
    if isinstance(operator, Where | WithColumns | Join):
        after: set[str] = set()
        for head in graph.consumers[name]:
            used = _used(graph, head)
            if used is None:
                return None
            after |= used
        if isinstance(operator, Join):
            return after | {column.lower() for column in operator.on}
        if isinstance(operator, Where):
            here = _all((operator.predicate,))
            return None if here is None else after | here
        made = _all(tuple(expression for _, expression in operator.columns))
        return None if made is None else (after - {column.lower() for column, _ in operator.columns}) | made
    return None


def _all(expressions: tuple[object, ...]) -> set[str] | None:
    found: set[str] = set()
    for expression in expressions:
        used = all_used_columns(expression)
        if used is None:
            return None
        found |= used
    return found
