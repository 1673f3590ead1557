"""How many rows an operator gives at most, from what sources bring: known without looking at a row, or not at all."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.columns.expressions import multiplies
from jettison.network.graph import Graph
from jettison.network.operators import Map, Output, Select, Source, Union, Where, WithColumns, computed


def most_rows_of(
    graph: Graph, name: str, rows: Mapping[str, int], results: Mapping[str, int | None] | None = None
) -> int | None:
    """The most rows that an operator gives; None where nothing bounds them. `results` bounds operators with state.

    >>> from jettison.network import Network
    >>> net = Network("n")
    >>> trips = net.source("trips", "fare double, tags array<string>")
    >>> dear = trips.where("fare > 9", name="dear")
    >>> tagged = dear.select("explode(tags) AS tag", name="tagged")
    >>> most_rows_of(net.graph, "dear", {"trips": 70}), most_rows_of(net.graph, "tagged", {"trips": 70})
    (70, None)
    """
    operator = graph.by_name[name]
    if isinstance(operator, Source):
        return rows.get(name)
    if isinstance(operator, Where | Select | WithColumns | Map | Union | Output):
        if any(map(multiplies, computed(operator))):
            return None
        inputs = [most_rows_of(graph, tail, rows, results) for tail in operator.inputs]
        known = [each for each in inputs if each is not None]
        return sum(known) if len(known) == len(inputs) else None
    return (results or {}).get(name)
