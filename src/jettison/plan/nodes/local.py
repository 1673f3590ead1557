"""What becomes of a network whose nodes know nothing of each other: each scales down what comes to it until it fits.

This is what a fair scheduler does in an overload (thesis 5.1.1), and what coordinated plans are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.arc import Arc
from jettison.network.graph import Graph
from jettison.plan.nodes.plans import NodesPlan
from jettison.plan.nodes.structure import Structure
from jettison.statistics.load import flows


def entering(graph: Graph, node: str) -> tuple[str, ...]:
    """The arcs on which tuples come to a node: its sources, and streams of other nodes."""
    assert graph.placement is not None
    where = graph.placement.node_of
    return tuple(
        arc
        for arc in graph.arcs
        if where[Arc(arc).head] == node and (Arc(arc).tail is None or where[Arc(arc).origin] != node)
    )


def plan_locally(made: Structure, rows_per_s: Mapping[str, float]) -> NodesPlan:
    """The plan of nodes by themselves, upstream first; `load` is what comes to each before it drops anything.

    >>> from jettison.plan.nodes.examples import two_chains
    >>> plan = plan_locally(two_chains((1.0, 2.0), (3.0, 1.0)), {"i0": 1.0, "i1": 1.0})
    >>> {node: round(load, 4) for node, load in plan.load.items()}, plan.delivered
    ({'A': 3.0, 'B': 1.3333}, {'o0': 0.25, 'o1': 0.25})
    """
    graph, profile = made.graph, made.profile
    made.rates(rows_per_s)
    keeps: dict[str, float] = {}
    load: dict[str, float] = {}
    capacity_us = dict(zip(made.nodes, made.capacity_us.tolist(), strict=True))
    for node in made.placement.order:
        on = flows(graph, profile, rows_per_s, keeps)
        operators = made.placement.by_name[node].operators
        work_us = sum(on[arc] * profile.cost(name) for name in operators for arc in graph.arcs_into(name))
        reading_us = sum(profile.read_us.get(name, 0.0) * rows_per_s.get(name, 0.0) for name in operators)
        load[node] = (work_us + reading_us) / capacity_us[node]
        if load[node] > 1:
            left_us = max(0.0, capacity_us[node] - reading_us)
            keeps |= dict.fromkeys(entering(graph, node), left_us / work_us if work_us > 0 else 0.0)
    on = flows(graph, profile, rows_per_s, keeps)
    delivered = {each.name: on[graph.arcs_into(each.name)[0]] for each in graph.outputs}
    return NodesPlan(keeps, load, delivered, sum(delivered.values()))
