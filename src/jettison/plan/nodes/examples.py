"""Small placed networks of the thesis (figures 5.1, 5.9 and 5.11), for tests, documents and experiments."""

from __future__ import annotations

from collections.abc import Sequence

from jettison.network.declare import Network
from jettison.network.nodes.placement import Node
from jettison.plan.nodes.structure import Structure, structure
from jettison.statistics.profile import Profile


def chains(*costs: Sequence[float], capacity: float = 1.0, selectivity: Sequence[float] = ()) -> Structure:
    """Chain queries side by side, one operator of each on every node: `costs[node][query]`, in units of the capacity.

    `capacity` is what a node can do per second, in the unit of the costs. `selectivity[query]` is that of the first
    operator of a chain.
    """
    nodes, queries = len(costs), len(costs[0])
    net = Network("chains")
    for query in range(queries):
        stream = net.source(f"i{query}", "x int")
        for node in range(nodes):
            stream = stream.where("true", name=f"q{query}n{node}")
        stream.output(f"o{query}")
    names = [chr(ord("A") + node) for node in range(nodes)]
    net.place(*(Node(name, [f"q{query}n{node}" for query in range(queries)], 1.0) for node, name in enumerate(names)))
    scale = 1e6 / capacity
    cost_us = {f"q{query}n{node}": scale * costs[node][query] for node in range(nodes) for query in range(queries)}
    return structure(net.graph, Profile(cost_us, {f"q{query}n0": share for query, share in enumerate(selectivity)}))


def two_chains(first: Sequence[float], second: Sequence[float]) -> Structure:
    """Figure 5.1: two queries over nodes A and B, capacity 1 each."""
    return chains(first, second)


def fan_out(shared: float, branches: Sequence[float], capacity: float = 1.0) -> Structure:
    """Figure 5.9 and 5.15: one input, a shared operator, and a branch of one operator per query, all on one node."""
    net = Network("fan-out")
    stream = net.source("i", "x int").where("true", name="shared")
    for at in range(len(branches)):
        stream.where("true", name=f"b{at}").output(f"o{at}")
    net.place(Node("A", ["shared", *(f"b{at}" for at in range(len(branches)))], 1.0))
    scale = 1e6 / capacity
    cost_us = {"shared": scale * shared, **{f"b{at}": scale * cost for at, cost in enumerate(branches)}}
    return structure(net.graph, Profile(cost_us, {}))
