"""Floors: the share of source tuples that must be processed for an output, `QoS(min_accuracy=0.2)`.

The accuracy of an output is the share of the tuples of its sources that come through every drop on the way to it:

    accuracy = sum over its sources of  rows x product of the keep shares along the way  /  sum of rows

What filters let pass does not matter, only what drops do. A drop by value counts with the share of rows that it keeps,
a drop by window with the share of windows, whole keys above a join of streams with the share on the side that keeps
less.
Stale tuples and records that are passed over unread are not processed either.

Every shedder keeps to the floors; `floor_repair` makes sure of it, and `certify` checks. Where all floors together
do not fit into the budget that is infeasible, and floors win.
"""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile

_EVERY_TUPLE = Profile({}, {})
"""All operators pass all tuples: then flows count source tuples."""

TOLERANCE = 1e-6


def floors(graph: Graph) -> dict[str, float]:
    """The outputs that have a floor."""
    return {output.name: output.qos.min_accuracy for output in graph.outputs if output.qos.min_accuracy > 0}


def floor_at(graph: Graph, arc: str) -> float:
    """The largest floor of the outputs that an arc leads to: a drop that keeps as much there breaks none by itself.

    >>> from jettison.network import Network, QoS
    >>> net = Network("two"); trips = net.source("trips", "x int")
    >>> _ = trips.where("x > 0", name="a").output("all"); _ = trips.output("bill", qos=QoS(min_accuracy=0.3))
    >>> floor_at(net.graph, "trips"), floor_at(net.graph, "trips>a")
    (0.3, 0.0)
    """
    head = arc_head(arc)
    below = graph.outputs_below(head) | {head}
    return max((floor for name, floor in floors(graph).items() if name in below), default=0.0)


def accuracies(graph: Graph, rows: Mapping[str, float], keeps: Mapping[str, float]) -> dict[str, float]:
    """The share of source tuples that is processed for each output when drops keep these shares of an arc.

    >>> from jettison.network import Network
    >>> net = Network("two"); trips, rides = net.source("trips", "x int"), net.source("rides", "x int")
    >>> _ = trips.where("x > 0", name="w").union(rides, name="u").output("o"); _ = trips.output("p")
    >>> accuracies(net.graph, {"trips": 300.0, "rides": 100.0}, {"trips": 0.5, "trips>w": 0.5})
    {'p': 0.5, 'o': 0.4375}
    """
    full = flows(graph, _EVERY_TUPLE, rows)
    now = flows(graph, _EVERY_TUPLE, rows, keeps)
    found = {}
    for output in graph.outputs:
        (arc,) = graph.arcs_into(output.name)
        found[output.name] = now[arc] / full[arc] if full[arc] > 0 else 1.0
    return found


def plan_accuracies(
    graph: Graph, rows: Mapping[str, float], plan: Plan, besides: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The accuracy of every output under a plan. `besides` are shares by arc that pass what is no drop of the plan:
    stale tuples, records that are passed over unread."""
    keeps = {arc: drop.keep for arc, drop in plan.drops.items()}
    for arc, share in (besides or {}).items():
        keeps[arc] = keeps.get(arc, 1.0) * share
    return accuracies(graph, rows, keeps)


def least_read_share(graph: Graph, source: str, rows: float, skipped: float = 0.0) -> float:
    """The share of `rows` of a source that must be read so that floors can be held; `skipped` rows are passed over.

    >>> from jettison.network import Network, QoS
    >>> net = Network("one"); _ = net.source("s", "x int").output("o", qos=QoS(min_accuracy=0.3))
    >>> least_read_share(net.graph, "s", rows=100.0), least_read_share(net.graph, "s", rows=50.0, skipped=50.0)
    (0.3, 0.6)
    """
    return min(1.0, floor_at(graph, source) * (rows + skipped) / rows) if rows > 0 else 1.0


def below_floor(
    graph: Graph, rows: Mapping[str, float], plan: Plan, besides: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The outputs whose floor a plan breaks without saying so (`Plan.below_minimum`), with their accuracy."""
    wanted = floors(graph)
    if not wanted:
        return {}
    got = plan_accuracies(graph, rows, plan, besides)
    allowed = plan.below_minimum
    return {name: got[name] for name, floor in wanted.items() if name not in allowed and got[name] < floor - TOLERANCE}
