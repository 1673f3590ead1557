"""Random placed networks: trees of nodes with chains, splits and (where asked for) merges."""

from __future__ import annotations

import numpy as np

import jettison as jt
from jettison.plan.nodes.structure import Structure, structure


def random_network(seed: int, *, merges: bool = False, floors: bool = False) -> Structure:
    """Two or three sources at the root, operators down a tree of up to four nodes, splits on the way."""
    draw = np.random.default_rng(seed)
    net, members = jt.Network(f"random-{seed}"), dict[int, list[str]]()
    nodes = int(draw.integers(1, 5))
    costs, passes = dict[str, float](), dict[str, float]()
    outputs = 0

    def add(stream: jt.Stream, node: int) -> jt.Stream:
        name = f"w{len(costs)}"
        costs[name], passes[name] = float(draw.uniform(1, 20)), float(draw.uniform(0.3, 1))
        members.setdefault(node, []).append(name)
        return stream.where("true", name=name)

    heads = [add(net.source(f"s{at}", "x int"), 0) for at in range(int(draw.integers(2, 4)))]
    if merges:
        members[0].append("merged")
        heads = [heads[0].union(*heads[1:], name="merged")]
    for node in range(nodes):
        for head in list(heads):
            if draw.random() < 0.7 or node == 0:
                stream = add(head, node) if node in (0,) else add(add(head, 0), node)
                floor = float(draw.uniform(0, 0.02)) if floors else 0.0
                loss = ((100.0, 1.0), (50.0, float(draw.uniform(0.5, 1.0))), (0.0, 0.0))
                qos = jt.QoS(loss, priority=float(draw.uniform(0.5, 3)), min_accuracy=floor)
                stream.output(f"o{outputs}", qos=qos)
                outputs += 1
    used = [node for node in range(nodes) if members.get(node)]
    net.place(*(jt.Node(f"n{node}", members[node], float(draw.uniform(0.05, 0.5))) for node in used))
    return structure(net.graph, jt.Profile(costs, passes))


def random_rates(made: Structure, seed: int, load: float = 3.0) -> dict[str, float]:
    """Rates by which the busiest node has this load."""
    draw = np.random.default_rng(seed)
    rates = draw.uniform(0.1, 1.0, len(made.inputs))
    rates *= load / float((made.load_us @ rates / made.capacity_us).max())
    return dict(zip((source.name for source in made.graph.sources), rates.tolist(), strict=True))


def shop() -> tuple[Structure, dict[str, float]]:
    """A node whose stream splits only on the node below it, and a second one beside that."""
    net = jt.Network("shop")
    views = net.source("views", "x int").where("true", name="seen")
    views.where("true", name="hot").output("hots")
    views.where("true", name="item").output("items", qos=jt.QoS(priority=3))
    net.source("buys", "x int").where("true", name="paid").where("true", name="cheap").output("cheaps")
    members = {"ingest": ["seen", "paid"], "left": ["hot", "item"], "right": ["cheap"]}
    net.place(*(jt.Node(node, each, 1.0 if node == "ingest" else 0.5) for node, each in members.items()))
    costs = {"seen": 5.0, "paid": 10.0, "hot": 20.0, "item": 7.0, "cheap": 30.0}
    passes = {"seen": 0.9, "paid": 0.5, "hot": 0.3, "cheap": 0.5}
    return structure(net.graph, jt.Profile(costs, passes)), {"views": 150_000.0, "buys": 50_000.0}
