"""Which arcs of a network can have rows in a batch, and which outputs get any: what cannot is not built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Map, Output
from jettison.network.windows.slice_groups import readers_below
from jettison.plan.plan import Plan
from jettison.spark.compile.drops import ALL, passes
from jettison.spark.compile.value_samples import valued_columns
from jettison.spark.windows.slices import Shape


def closed_arcs(graph: Graph, plan: Plan, rows: Mapping[str, int], quiet: frozenset[str]) -> frozenset[str]:
    """Arcs that nothing can reach or pass under this plan. One side of a join is enough: others wait there.

    An aggregate gives what it has kept, unless it is `quiet`, whether anything comes in or not.
    """
    closed: set[str] = set()
    for operator in graph.operators:
        entering = graph.arcs_into(operator.name)
        if not operator.inputs and (rows.get(operator.name, 0) == 0 or plan.closes(operator.name)):
            closed.update(entering)
        windowed = isinstance(operator, Aggregate)
        nothing = operator.name in quiet or (not windowed and closed.issuperset(entering))
        leaving = graph.arcs_out_of(operator.name)
        closed.update(arc for arc in leaving if nothing or plan.closes(arc))
    return frozenset(closed)


def live_outputs(graph: Graph, closed: frozenset[str]) -> list[Output]:
    """Outputs that may get rows."""
    return [output for output in graph.outputs if not closed.issuperset(graph.arcs_into(output.name))]


def worth_sharing(graph: Graph, shared: Iterable[str], live: Iterable[Output]) -> frozenset[str]:
    """Of operators whose rows are to be persisted, those that are read more than once in this batch."""
    idle = {output.name for output in graph.outputs} - {output.name for output in live}
    return frozenset(name for name in shared if len(readers_below(graph, name) - idle) > 1)


def counted_by_slices(graph: Graph, plan: Plan, shapes: Mapping[str, Shape]) -> bool:
    """Whether slices tell all there is to count behind the source: rows without event time, and how far times got.

    To look at every row for that takes a good part of the time of simple aggregates.
    """
    source = graph.sources[0]
    if any(isinstance(each, Map) for each in graph.operators):
        return False  # what their tasks tell is observed with the rest
    if source.payload is not None or valued_columns(graph, source.name):
        return False
    if any(passes(arc, plan) != ALL for arc in plan.arcs):
        return False
    if graph.count_aggregates or graph.stream_joins:
        return False  # their slices say nothing of times, and joins have none
    direct = bool(shapes) and all(shape.group.tail == source.name for shape in shapes.values())
    return direct and len(graph.sources) == 1
