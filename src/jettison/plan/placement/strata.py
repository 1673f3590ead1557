"""Where a drop may look at the groups of what is estimated below it, and what they are called there."""

from __future__ import annotations

from jettison.network.arc import Arc, arc_head
from jettison.network.columns.lineage import origins
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate


def estimates_below(graph: Graph, arc: str) -> tuple[Aggregate, ...]:
    """The estimated aggregates that an arc's tuples come to."""
    wanted = [each for each in graph.aggregates if each.estimated]
    if not wanted:
        return ()
    found, waiting = set(), [arc_head(arc)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph.consumers[name]
    return tuple(each for each in wanted if each.name in found)


def strata_at(graph: Graph, arc: str) -> tuple[Aggregate, tuple[str, ...]] | None:
    """The aggregate whose groups a drop on an arc tells apart, and what its `by` columns are called there.

    Of several below, the one with the finest groups: where none of those vanishes none of theirs does. None where
    there is none (groups that are not parts of one another), columns are computed further down, or all is one group.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "trip long, at timestamp, place int", event_time="at", id=["trip"])
    >>> busy = trips.select("place AS zone").window("1 minute", by="zone").agg(n="count(*)", name="busy")
    >>> _ = busy.output("table", qos=QoS(on_loss="estimate"))
    >>> strata_at(net.graph, "trips")[1]
    ('place',)
    """
    known = graph.__dict__.setdefault("_strata", {})  # planners ask again and again
    if arc not in known:
        known[arc] = _strata(graph, arc)
    found: tuple[Aggregate, tuple[str, ...]] | None = known[arc]
    return found


def _strata(graph: Graph, arc: str) -> tuple[Aggregate, tuple[str, ...]] | None:
    tail = Arc(arc).origin
    found: list[tuple[Aggregate, tuple[str, ...]]] = []
    for aggregate in estimates_below(graph, arc):
        names = [origins(graph, aggregate.inputs[0], column).get(tail) for column in aggregate.window.by]
        if None in names:
            return None
        found.append((aggregate, tuple(name for name in names if name is not None)))
    every = {name.lower() for _, names in found for name in names}
    finest = next((each for each in found if {name.lower() for name in each[1]} == every), None)
    return finest if finest is not None and finest[1] else None
