"""A plan for all nodes: the share that every drop keeps, the load that is left on each, and what each node applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jettison.network.arc import Arc, arc_head
from jettison.network.graph import Graph
from jettison.plan.nodes.structure import Structure, Vector
from jettison.plan.placement.locations import drop_arcs

_OPEN = 1.0 - 1e-9


@dataclass(frozen=True)
class NodesPlan:
    """What drops keep by arc of the whole network, and what follows: load over capacity by node, rows per second at
    outputs, and the score by the objective of whoever planned. `infeasible` says why nodes stay overloaded.
    """

    keeps: Mapping[str, float]
    load: Mapping[str, float]
    delivered: Mapping[str, float]
    score: float
    infeasible: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "keeps": dict(self.keeps),
            "load": dict(self.load),
            "delivered": dict(self.delivered),
            "score": self.score,
            "infeasible": self.infeasible,
        }


def plan_of(made: Structure, keeps: Vector, rates: Vector, score: float, passing: Vector | None = None) -> NodesPlan:
    """The plan that keeps these shares at all locations; `passing` are tuples behind them, where known."""
    passing = made.passing(keeps, rates) if passing is None else passing
    load, came = made.load(passing, rates), made.gives @ passing
    names = [output.name for output in made.graph.outputs]
    return NodesPlan(
        {arc: float(keep) for arc, keep in zip(made.arcs, keeps, strict=True) if keep < _OPEN},
        dict(zip(made.nodes, load.tolist(), strict=True)),
        dict(zip(names, came.tolist(), strict=True)),
        score,
    )


def fragment_keeps(graph: Graph, keeps: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The share that drops keep on every node, by arc of its fragment.

    A link carries the stream of one operator once. Where several operators read it, the sending node keeps the largest
    share that any of them wants, and the reading node drops the rest behind it. Where the sending node cannot drop on
    the link itself, as its stream splits only beyond it, it drops at the entries of the segment that ends there.

    >>> from jettison.network import Network, Node
    >>> net = Network("n")
    >>> paid = net.source("s", "x int").where("x > 0", name="paid")
    >>> _ = paid.where("x > 1", name="b").output("o1"); _ = paid.where("x > 2", name="c").output("o2")
    >>> net.place(Node("one", ["paid"], 1.0), Node("two", ["b", "c"], 1.0))
    >>> fragment_keeps(net.graph, {"s": 0.5, "paid>b": 0.8, "paid>c": 0.4})
    {'one': {'s': 0.4}, 'two': {'paid>c': 0.5}}
    """
    placement = graph.placement
    assert placement is not None
    found: dict[str, dict[str, float]] = {node.name: {} for node in placement.nodes}
    parts = {node.name: graph.fragment(node.name) for node in placement.nodes}
    readers: dict[tuple[str, str], list[str]] = {}
    for arc in graph.arcs:
        tail, head = Arc(arc).tail, Arc(arc).head
        if tail is not None and placement.node_of[tail] != placement.node_of[head]:
            readers.setdefault((tail, placement.node_of[head]), []).append(arc)
        elif (keep := keeps.get(arc, 1.0)) < _OPEN:
            node = placement.node_of[head]
            found[node][parts[node].arcs_here(arc)[0]] = keep
    for (tail, node), arcs in readers.items():
        largest = max(keeps.get(arc, 1.0) for arc in arcs)
        sender = placement.node_of[tail]
        if largest < _OPEN:
            for place in _droppable(parts[sender].graph, parts[sender].arcs_here(arcs[0])[0]):
                found[sender][place] = found[sender].get(place, 1.0) * largest
        for each in arcs:
            rest = keeps.get(each, 1.0) / largest if largest > 0 else 1.0
            if rest < _OPEN:
                found[node][parts[node].arcs_here(each)[0]] = rest
    return found


def _droppable(graph: Graph, arc: str) -> tuple[str, ...]:
    """The arc itself where a drop may stand on it, else the entries of the segment that it lies in."""
    places = drop_arcs(graph)
    if arc in places:
        return (arc,)
    ends = graph.segment_ends
    return tuple(each for each in places if ends[arc_head(each)] == ends[arc_head(arc)])
