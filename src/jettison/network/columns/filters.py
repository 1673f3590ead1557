"""Filters whose SQL cannot be boolean, found without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jettison.errors import NetworkError
from jettison.network.columns.expressions import column_alone, is_computed_value
from jettison.network.columns.lineage import origins
from jettison.network.columns.words import an
from jettison.network.operators import Source, Where

if TYPE_CHECKING:
    from jettison.network.graph import Graph


def check_filter(graph: Graph, where: Where) -> None:
    """Raise for a filter that is a number, a text, or a column of another type than boolean.

    What a function gives is left to Spark, which checks every filter when a run starts.
    """
    column = column_alone(where.predicate)
    kinds = set() if column is None else _declared_types(graph, where.inputs[0], column)
    wrong = sorted(kind for kind in kinds if not kind.lower().startswith("boolean"))
    if wrong or is_computed_value(where.predicate):
        raise NetworkError(
            f"where {where.name!r}: {where.predicate!r} is not boolean{f' (it is {an(wrong[0])})' if wrong else ''}: "
            f"say when a row is kept, such as 'fare > 0'."
        )


def _declared_types(graph: Graph, name: str, column: str) -> set[str]:
    """The types that sources declare for a column that they pass on as it is."""
    found = set()
    for above, called in origins(graph, name, column).items():
        operator = graph.by_name[above]
        if isinstance(operator, Source):
            found |= {kind for each, kind in operator.schema if each.lower() == called.lower()}
    return found
