"""Random trees of nodes with queries from the root to their leaves: what nothing was tuned on."""

from __future__ import annotations

import numpy as np

from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.network.nodes.placement import Node
from jettison.network.qos import QoS
from jettison.statistics.profile import Profile


def random_tree(seed: int) -> tuple[Graph, Profile]:
    """Four to eight nodes; a query to each leaf and up to two more, an operator on each node of its way.

    Costs are 5 to 60 microseconds, selectivities .5 to 1, priorities 1 to 4, and loss graphs bend somewhere.

    >>> graph, profile = random_tree(11)
    >>> graph.placement.is_forest, min(profile.cost_us.values()) >= 5
    (True, True)
    """
    draw = np.random.default_rng([seed, 20])
    nodes = int(draw.integers(4, 9))
    parent = [0, *(int(draw.integers(node)) for node in range(1, nodes))]
    leaves = [node for node in range(1, nodes) if node not in parent[1:]]
    ends = leaves + [int(draw.integers(1, nodes)) for _ in range(int(draw.integers(0, 3)))]
    net, members = Network(f"random-tree-{seed}"), dict[int, list[str]]()
    costs, passes = dict[str, float](), dict[str, float]()
    for query, end in enumerate(ends):
        way = [end]
        while way[-1]:
            way.append(parent[way[-1]])
        stream = net.source(f"s{query}", "x int")
        for node in reversed(way):
            name = f"q{query}n{node}"
            stream = stream.where("true", name=name)
            members.setdefault(node, []).append(name)
            costs[name], passes[name] = float(draw.uniform(5, 60)), float(draw.uniform(0.5, 1))
        middle = float(draw.uniform(0.5, 1.0))
        loss = ((100.0, 1.0), (50.0, middle), (0.0, 0.0))
        stream.output(f"o{query}", qos=QoS(loss, priority=float(draw.integers(1, 5))))
    net.place(*(Node(f"n{node}", members[node], 1.0) for node in sorted(members)))
    return net.graph, Profile(costs, passes)
