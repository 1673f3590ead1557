"""Where a column's values come from: through operators that pass them on as they are (thesis table 3.1).

Filters, unions, joins, plain columns and renamings preserve values, and so do aggregates those that they group by.
What computes anew does not: beyond it a value
cannot be judged yet, so no semantic drop can stand there.
"""

from __future__ import annotations

from collections.abc import Iterator

from jettison.network.columns.expressions import is_whole_star, passed_column, result_name
from jettison.network.graph import Graph
from jettison.network.operators import (
    Aggregate,
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
)


def origins(graph: Graph, name: str, column: str) -> dict[str, str]:
    """The operators, `name` included, that give the same values, and what the column is called there.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> paid = net.source("trips", "trip long, fare double").where("fare > 0", name="paid")
    >>> _ = paid.select("trip", "fare AS price", name="priced").output("prices")
    >>> origins(net.graph, "prices", "price")
    {'prices': 'price', 'priced': 'price', 'paid': 'fare', 'trips': 'fare'}
    """
    found = {name: column}
    reaching = {name, *_above(graph, name)}
    for operator in reversed(graph.operators):
        heads = [head for head in graph.consumers[operator.name] if head in reaching]
        if operator.name not in reaching or operator.name == name or not all(head in found for head in heads):
            continue
        names = [dict(_before(graph, head, found[head])).get(operator.name, "") for head in heads]
        # on every way to the output the values must be these: a row goes all of them
        if len({each.lower() for each in names}) == 1 and names[0]:
            found[operator.name] = names[0]
    return found


def _above(graph: Graph, name: str) -> Iterator[str]:
    for tail in graph.by_name[name].inputs:
        yield tail
        yield from _above(graph, tail)


def _before(graph: Graph, name: str, column: str) -> list[tuple[str, str]]:
    """The inputs of an operator that have the values of one of its columns, and its name there."""
    operator = graph.by_name[name]
    if isinstance(operator, Select):
        theirs = _selected(operator, column)
    elif isinstance(operator, WithColumns):
        made = {made.lower(): expression for made, expression in operator.columns}
        theirs = passed_column(made[column.lower()]) if column.lower() in made else column
    elif isinstance(operator, Map):
        theirs = None if column.lower() in {name.lower() for name in operator.adds} else column
    elif isinstance(operator, Aggregate | CountAggregate):
        theirs = next((name for name in operator.window.by if name.lower() == column.lower()), None)
    else:
        theirs = column if isinstance(operator, Where | Union | Join | StreamJoin | Output) else None
    if theirs is None or isinstance(operator, Source):
        return []
    return [(tail, theirs) for tail in operator.inputs if _has(graph, operator, tail, theirs)]


def _selected(operator: Select, column: str) -> str | None:
    named = [item for item in operator.expressions if (result_name(item) or "").lower() == column.lower()]
    if named:
        return passed_column(named[0])
    return column if any(is_whole_star(item) for item in operator.expressions) else None


def _has(graph: Graph, operator: Operator, tail: str, column: str) -> bool:
    """Whether an input has the column. Where only Spark knows its columns, it has what is not a static table's."""
    columns = graph.columns[tail]
    if columns is None:
        return not isinstance(operator, Join | StreamJoin)
    return column.lower() in {name.lower() for name in columns}
