"""One node's fragment as matrices of its own: what a node knows of itself, without its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jettison.errors import NetworkError
from jettison.network.nodes.fragments import Fragment
from jettison.network.nodes.placement import Node, Placement
from jettison.network.operators import Source
from jettison.plan.nodes.structure import Matrix, Structure, Vector, structure
from jettison.statistics.profile import Profile


def fragment_profile(part: Fragment, profile: Profile) -> Profile:
    """The costs and selectivities of a fragment: reading a link costs nothing here, the sender has done the work."""
    here = {name for name in part.graph.by_name if name not in part.reads and name not in part.sends}
    return replace(
        profile,
        cost_us={name: cost for name, cost in profile.cost_us.items() if name in here},
        selectivity={name: share for name, share in profile.selectivity.items() if name in here},
        read_us={name: cost for name, cost in profile.read_us.items() if name in here},
        look_us={name: cost for name, cost in profile.look_us.items() if name in here},
    )


@dataclass(frozen=True)
class NodeView:
    """A node as its own planner sees it.

    `links` are, by child, the numbers of the outputs of `own` that lead to each of the child's inputs, in its order.
    `worth` is what a tuple at each output of this node is worth, 0 for links. `step_worth` is what rounding one input
    down may lose, by the whole network, for an error of 1 (`fit.fine_spread`).
    """

    part: Fragment
    own: Structure
    links: dict[str, tuple[int, ...]]
    worth: Vector
    step_worth: float

    @property
    def name(self) -> str:
        return self.part.node.name

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.own.graph.sources)

    def given(self, keeps: Mapping[str, float], coming: Vector) -> Vector:
        """Tuples per second at every output and link, of what comes and the shares that drops keep, by arc."""
        shares = np.array([keeps.get(arc, 1.0) for arc in self.own.arcs])
        return np.asarray(self.own.gives @ self.own.passing(shares, coming))

    def loads(self, below: Mapping[str, Matrix]) -> Matrix:
        """What a tuple of each input takes of the capacity of this node and of those below, nothing dropped."""
        given = self.own.throughput
        mapped = [loads @ given[list(self.links[child])] for child, loads in below.items()]
        return np.vstack([self.own.load_us / self.own.capacity_us[:, None], *mapped])


def node_view(made: Structure, node: str, weights: Vector | None = None) -> NodeView:
    """What a node of a placed network knows of itself; a node below another may read no sources of its own."""
    made.check_nothing_is_read("a feasible input table")
    part = made.graph.fragment(node)
    if part.reads:
        for source in part.graph.sources:
            if source.name not in part.reads and isinstance(made.graph.by_name.get(source.name), Source):
                raise NetworkError(
                    f"node {node!r} reads source {source.name!r} and node {made.placement.parents(node)[0]!r}: "
                    f"feasible input tables need sources at the top alone. Plan with mode 'per-tick'."
                )
    names = tuple(part.graph.by_name)
    graph = replace(part.graph, placement=Placement((Node(node, names, part.node.capacity),)))
    own = structure(graph, fragment_profile(part, made.profile))
    own = replace(own, capacity_us=made.capacity_us[[made.nodes.index(node)]])
    outputs = [output.name for output in own.graph.outputs]
    links = {}
    for child in made.placement.children(node):
        below = made.graph.fragment(child)
        sent = {link.operator: name for name, link in part.sends.items() if link.head == child}
        read = [below.reads[source.name].operator for source in below.graph.sources if source.name in below.reads]
        links[child] = tuple(outputs.index(sent[operator]) for operator in read)
    whole = [output.name for output in made.graph.outputs]
    given = np.ones(len(whole)) if weights is None else weights
    worth = np.array([0.0 if name in part.sends else float(given[whole.index(name)]) for name in outputs])
    return NodeView(part, own, links, worth, _step_worth(made, given))


def _step_worth(made: Structure, weights: Vector) -> float:
    """The least that rates which do not fit are worth, over the number of inputs that tables put on a grid.

    Rates that do not fit can be scaled down until they fill some node, and are then worth at least as much as the
    poorest single source that fills it. Tables round what comes to leaves and to nodes with outputs of their own.
    """
    placement, worth = made.placement, weights @ made.throughput
    load_us = made.load_us[:, worth > 0]
    fills = np.divide(made.capacity_us[:, None], load_us, out=np.full_like(load_us, np.inf), where=load_us > 0)
    least = float((fills * worth[worth > 0]).min(initial=np.inf))
    ends = {placement.node_of[output.name] for output in made.graph.outputs}
    rounded = [link for link in placement.links if link.head in ends]
    sources = [source for source in made.graph.sources if placement.node_of[source.name] in ends]
    return least / max(1, len(rounded) + len(sources))
