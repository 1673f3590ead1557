"""Groups with gaps of their own: how many windows in a row may be missing of whom (thesis 4.10.1).

A plan says which share of an aggregate's windows is to go. Of each group that has a gap of its own no more go than that
allows; with gap 0 none, not even when all others are closed. What such groups keep, the others make up for, as far as
their own gap allows, once it is known how many tuples there are in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jettison.errors import NetworkError
from jettison.network.arc import Arc
from jettison.network.columns.lineage import origins
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Operator, Output
from jettison.plan.drops.window import GroupCells
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import most_drop_share


def allowed(share: float, gap: int) -> float:
    """The share of windows that may go where a plan asks for one, all of them where it closes; with gap 0 none, ever.

    >>> allowed(0.7, 1), allowed(0.7, 4), allowed(1.0, 4), allowed(1.0, 0)
    (0.5, 0.7, 1.0, 0.0)
    """
    if gap == 0:
        return 0.0
    return share if share == 1.0 else min(share, most_drop_share(gap))


def shares_by_gap(share: float, gaps: Sequence[int], masses: Sequence[float] = ()) -> tuple[float, ...]:
    """The share of windows that goes in each cell, so that of all tuples `share` does: no more of any than its gap
    allows. With the share q in those that allow it, sum of mass x min(q, most of the cell) is to be `share`.

    Three tenths of all tuples are in a group that loses none, so others lose more:

    >>> shares_by_gap(0.42, (0, 4), (0.3, 0.7))
    (0.0, 0.6)
    >>> shares_by_gap(0.7, (0, 4), (0.3, 0.7)), shares_by_gap(0.7, (0, 4)), shares_by_gap(1.0, (0, 4), (0.3, 0.7))
    ((0.0, 0.8), (0.0, 0.7), (0.0, 1.0))
    """
    if not masses or share == 1.0:
        return tuple(allowed(share, gap) for gap in gaps)
    mosts = [most_drop_share(gap) if gap else 0.0 for gap in gaps]
    left, mass_left, found = share, sum(masses), share
    for most, mass in sorted(zip(mosts, masses, strict=True)):
        found = min(most, left / mass_left) if mass_left > 0 else most
        if found < most:
            break
        left, mass_left = left - mass * most, mass_left - mass
    return tuple(allowed(round(found, 6), gap) for gap in gaps)


def named_groups(graph: Graph) -> dict[str, GroupCells]:
    """The aggregates some of whose groups have gaps of their own, by `QoS(gaps=...)`; of several outputs the least.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone string", event_time="at")
    >>> busy = trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
    >>> _ = busy.output("table", qos=QoS(gap=4, gaps={"zone": {"airport": 0, "harbour": 1}}))
    >>> found = named_groups(net.graph)["busy"]
    >>> found.column, found.names, found.gaps
    ('zone', ('airport', 'harbour'), (0, 1, 4))
    """
    known: dict[str, GroupCells] | None = graph.__dict__.get("_named_groups")
    if known is None:  # certificates ask for every plan
        known = graph.__dict__["_named_groups"] = _find_named_groups(graph)
    return known


def _find_named_groups(graph: Graph) -> dict[str, GroupCells]:
    decisions = decisions_of(graph)
    found: dict[str, GroupCells] = {}
    having = {output.name for output in graph.outputs if output.qos.gaps is not None}
    windowed: set[str] = set()
    for name in sorted(decisions.guarded):
        outputs = [graph.by_name[each] for each in decisions.outputs(name) if each in having]
        windowed |= {output.name for output in outputs}
        columns = {_grouped_by(graph, name, output) for output in outputs if isinstance(output, Output)}
        if len(columns) > 1:
            raise NetworkError(
                f"aggregate {name!r}: its outputs have gaps by {', '.join(sorted(columns))}: use one column."
            )
        decision = decisions.by_aggregate.get(name)
        if not columns or decision is None:
            continue
        names = sorted({value for output in outputs for value in _own_gaps(output)})
        gaps = [decisions.gap_of(name, value) for value in names]
        found[name] = GroupCells(columns.pop(), (), (0.0,) * (len(names) + 1), tuple(names), (*gaps, decision.gap))
    for name in sorted(having - windowed):
        raise NetworkError(f"output {name!r} has QoS gaps, which are for results of windows: it gets none.")
    return found


def _own_gaps(output: Operator) -> Mapping[str, int]:
    assert isinstance(output, Output)
    return next(iter((output.qos.gaps or {}).values()), {})


def _grouped_by(graph: Graph, name: str, output: Output) -> str:
    """The column of an aggregate by which an output has gaps."""
    column = next(iter(output.qos.gaps or {}))
    aggregate = graph.by_name[name]
    if not isinstance(aggregate, Aggregate):
        raise NetworkError(
            f"output {output.name!r} has gaps by {column!r}, and aggregate {name!r} has windows that count rows: "
            f"groups have gaps of their own in windows of event time. Say gap alone."
        )
    theirs = origins(graph, output.name, column).get(name, "")
    found = next((each for each in aggregate.window.by if each.lower() == theirs.lower()), None)
    judged = decisions_of(graph).arcs.fate_arcs.get(name, ())
    if found is None or not all(column_at(graph, arc, name, found) for arc in judged):
        raise NetworkError(
            f"output {output.name!r} has gaps by {column!r}, which is none of the columns that aggregate {name!r} "
            f"groups by: {', '.join(aggregate.window.by) or 'it has none'}."
        )
    return found


def column_at(graph: Graph, arc: str, name: str, column: str) -> str | None:
    """What a `by` column of an aggregate is called on an arc above or behind it; None where it is not there."""
    known: dict[tuple[str, str, str], str | None] = graph.__dict__.setdefault("_columns_at", {})
    if (arc, name, column) not in known:  # asked for in every batch
        known[arc, name, column] = _find_column(graph, arc, name, column)
    return known[arc, name, column]


def _find_column(graph: Graph, arc: str, name: str, column: str) -> str | None:
    tail = Arc(arc).origin
    above = origins(graph, name, column)
    if tail in above:
        return above[tail]
    for theirs in graph.columns[tail] or ():
        if origins(graph, tail, theirs).get(name, "").lower() == column.lower():
            return theirs
    return None


def column_apart(graph: Graph, arc: str, cells: Mapping[str, GroupCells]) -> str | None:
    """What all of these aggregates tell groups apart by, as it is called on an arc; None where they differ, or where it
    is not there."""
    if len({each.kind for each in cells.values()}) != 1:
        return None
    found = {column_at(graph, arc, name, each.column) for name, each in cells.items()}
    return found.pop() if len(found) == 1 else None
