"""The whole network as matrices: where drops may stand, which work their tuples cause on which node (thesis 5.2).

A drop location is an input or a branch of a split. Between one location and the next, tuples run through a segment of
operators that may lie on several nodes. With y the tuples per second behind each location's drop:

    work @ y       microseconds per second on every node             (5.1, 5.4, 5.9)
    reading @ r    the same for reading sources at rates r, which no drop saves
    reaches @ y    tuples that come to every branch from above: y of a branch is at most that     (5.6, 5.7)
    gives @ y      tuples that come to every output                  (5.3, 5.8, 5.11)

Streams that merge simply add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError
from jettison.network.arc import Arc, arc_head
from jettison.network.graph import Graph
from jettison.network.nodes.placement import Placement
from jettison.network.operators import Output
from jettison.plan.placement.locations import drop_arcs
from jettison.statistics.profile import Profile

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Structure:
    """Locations (rows of `arcs`), nodes and outputs of a placed network under one profile.

    `inputs` are the numbers of the locations that are sources, in the order of the graph's sources.
    """

    graph: Graph
    profile: Profile
    arcs: tuple[str, ...]
    inputs: npt.NDArray[np.intp]
    work_us: Matrix
    reaches: Matrix
    gives: Matrix
    capacity_us: Vector
    reading_us: Matrix

    @property
    def placement(self) -> Placement:
        assert self.graph.placement is not None
        return self.graph.placement

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.placement.nodes)

    @cached_property
    def is_input(self) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(self.arcs), dtype=bool)
        found[self.inputs] = True
        return found

    @cached_property
    def whole(self) -> Matrix:
        """Tuples at every location per tuple of each source, nothing dropped: locations x sources."""
        flows = np.zeros((len(self.arcs), len(self.inputs)))
        flows[self.inputs, np.arange(len(self.inputs))] = 1.0
        for at in np.flatnonzero(~self.is_input):
            flows[at] = self.reaches[at] @ flows
        return flows

    @cached_property
    def load_us(self) -> Matrix:
        """Work per tuple of each source on every node, nothing dropped: nodes x sources."""
        return self.work_us @ self.whole + self.reading_us

    @cached_property
    def throughput(self) -> Matrix:
        """Tuples at every output per tuple of each source, nothing dropped: outputs x sources."""
        return self.gives @ self.whole

    def rates(self, rows_per_s: Mapping[str, float]) -> Vector:
        """The rates of all sources as a vector, checked. A source may be silent for a while, but not all of them.

        >>> from jettison.plan.nodes.examples import two_chains
        >>> two_chains((1.0, 2.0), (3.0, 1.0)).rates({"i0": 0.0, "i1": 0.0})
        Traceback (most recent call last):
        jettison.errors.NetworkError: the rates of i0, i1 are 0: give rows per second above 0 for at least one source.
        """
        names = [source.name for source in self.graph.sources]
        for name in rows_per_s:
            if name not in names:
                raise NetworkError(
                    f"rates: {name!r} is not a source of network {self.graph.name!r}: {', '.join(names)}."
                )
        for name in names:
            rate: object = rows_per_s.get(name)
            number = isinstance(rate, int | float | np.number) and not isinstance(rate, bool)
            if not (number and math.isfinite(rows_per_s[name]) and rows_per_s[name] >= 0):
                raise NetworkError(f"rate of source {name!r} is {rate!r}: give rows per second, finite and at least 0.")
        found = np.array([float(rows_per_s[name]) for name in names])
        if not found.any():
            raise NetworkError(
                f"the rates of {', '.join(names)} are 0: give rows per second above 0 for at least one source."
            )
        return found

    def usable(self, headroom: float, trigger_ms: float) -> Structure:
        """With the capacity that plans may use: the headroom, less what batches take whatever they hold."""
        share = headroom - self.profile.fixed_ms / trigger_ms
        if share <= 0:
            raise NetworkError(
                f"fixed_ms is {self.profile.fixed_ms:g}: batches take more than {headroom:g} of a trigger of "
                f"{trigger_ms:g} ms before any row: use a longer trigger."
            )
        return replace(self, capacity_us=self.capacity_us * share)

    def load(self, passing: Vector, rates: Vector) -> Vector:
        """Load over capacity of every node: sources bring `rates`, and `passing` tuples are behind drops."""
        return np.asarray((self.work_us @ passing + self.reading_us @ rates) / self.capacity_us)

    def useful(self, rates: Vector) -> Vector:
        """The rates of sources that lead to an output, 0 for all others: to drop those costs nothing."""
        return np.where(self.throughput.any(axis=0), rates, 0.0)

    def check_nothing_is_read(self, planner: str) -> None:
        """Raise where reading a source costs something: then more rows may leave less, and no bound holds."""
        for source, cost in self.profile.read_us.items():
            if cost > 0:
                raise NetworkError(
                    f"profile read_us of {source!r} is {cost:g}: {planner} needs drops that save all work of a "
                    f"row, and reading is not saved: plan with mode 'per-tick'."
                )

    def feasible(self, rates: Vector) -> bool:
        """Whether every node can process these rates, nothing dropped."""
        return bool(np.all(self.load_us @ rates <= self.capacity_us * (1 + 1e-9)))

    def keeps(self, passing: Vector, rates: Vector) -> Vector:
        """The share that every location's drop keeps, of tuples per second behind each of them."""
        coming = self.reaches @ passing
        coming[self.inputs] = rates
        keeps = np.divide(passing, coming, out=np.ones_like(passing), where=coming > 0)
        return np.clip(keeps, 0.0, 1.0) + 0.0  # never -0

    def passing(self, keeps: Vector, rates: Vector) -> Vector:
        """Tuples per second behind each location's drop, of the shares that drops keep."""
        found = np.zeros(len(self.arcs))
        found[self.inputs] = rates
        for at in range(len(self.arcs)):
            if not self.is_input[at]:
                found[at] = self.reaches[at] @ found
            found[at] *= keeps[at]
        return found


def structure(graph: Graph, profile: Profile) -> Structure:
    """The matrices of a placed network.

    >>> from jettison.network import Network, Node
    >>> net = Network("fig-5-1")
    >>> for i in (1, 2):
    ...     _ = net.source(f"i{i}", "x int").where("true", name=f"a{i}").where("true", name=f"b{i}").output(f"o{i}")
    >>> net.place(Node("A", ["a1", "a2"], capacity=1e-6), Node("B", ["b1", "b2"], capacity=1e-6))
    >>> made = structure(net.graph, Profile({"a1": 1.0, "a2": 2.0, "b1": 3.0, "b2": 1.0}, {}))
    >>> made.work_us.tolist(), made.capacity_us.tolist()
    ([[1.0, 2.0], [3.0, 1.0]], [1.0, 1.0])
    """
    graph = getattr(graph, "graph", graph)  # a Network is around one
    if graph.placement is None:
        raise NetworkError(f"network {graph.name!r} has no nodes: declare them with net.place(jt.Node(...), ...).")
    profile.check(graph)
    profile = profile.completed(graph)
    graph.check_complete()
    placement, ends = graph.placement, graph.segment_ends
    order = {operator.name: at for at, operator in enumerate(graph.operators)}
    sources = [source.name for source in graph.sources]
    branches = sorted((arc for arc in drop_arcs(graph) if arc not in sources), key=lambda arc: order[Arc(arc).origin])
    arcs = (*sources, *branches)
    node_at = {node.name: at for at, node in enumerate(placement.nodes)}
    work = np.zeros((len(node_at), len(arcs)))
    passes, end_of = np.ones(len(arcs)), list[str]()
    for at, arc in enumerate(arcs):
        head, end = arc_head(arc), ends[arc_head(arc)]
        while True:
            work[node_at[placement.node_of[head]], at] += passes[at] * profile.cost(head)
            passes[at] *= profile.passes(head)
            if head == end:
                break
            head = graph.consumers[head][0]
        end_of.append(end)
    reaches = np.zeros((len(arcs), len(arcs)))
    gives = np.zeros((len(graph.outputs), len(arcs)))
    outputs = {output.name: at for at, output in enumerate(graph.outputs)}
    tails = {arc: Arc(arc).tail for arc in arcs}
    for at, end in enumerate(end_of):
        if isinstance(graph.by_name[end], Output):
            gives[outputs[end], at] += passes[at]
        for below, arc in enumerate(arcs):
            if tails[arc] == end:
                reaches[below, at] = passes[at]
    capacity = np.array([node.capacity_us for node in placement.nodes])
    reading = np.zeros((len(node_at), len(sources)))
    for at, source in enumerate(sources):
        reading[node_at[placement.node_of[source]], at] = profile.read_us.get(source, 0.0)
    _check_work(graph, np.hstack([work, reading]))
    return Structure(graph, profile, arcs, np.arange(len(sources)), work, reaches, gives, capacity, reading)


def _check_work(graph: Graph, work: Matrix) -> None:
    """Raise where nothing costs anything: then there is nothing to plan."""
    assert graph.placement is not None
    for node, row in zip(graph.placement.nodes, work, strict=True):
        if not row.any():
            raise NetworkError(
                f"node {node.name!r}: none of its operators costs anything ({', '.join(node.operators)}): give "
                f"profile.cost_us for at least one of them, above 0."
            )
