"""Where drops may stand: at the network's inputs and on the arcs out of a split, nowhere else (thesis 3.4.1).

Operators between two such places form a segment: streams may merge in it (a union) but none splits, so a drop at
its entries saves all of its work. A segment ends at an output or at a split, whose branches enter other segments.
"""

from __future__ import annotations

from dataclasses import dataclass

from jettison.network.graph import Graph, arc_head, arc_name
from jettison.network.operators import Output
from jettison.statistics.profile import Profile


@dataclass(frozen=True)
class Location:
    """An arc where a drop may stand, the segment that it enters and the segment that it leaves (-1 at an input).

    `cost_us` is the work of that segment per tuple that enters here, `passes` how many tuples it gives at its end.
    """

    arc: str
    enters: int
    leaves: int
    cost_us: float
    passes: float


@dataclass(frozen=True)
class Segment:
    """Locations that lead in, and either an output or the locations that lead out."""

    end: str
    output: str | None
    entries: tuple[int, ...]
    branches: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """All locations and segments of a network; segments are in topological order, and so are locations."""

    locations: tuple[Location, ...]
    segments: tuple[Segment, ...]

    @property
    def arcs(self) -> tuple[str, ...]:
        return tuple(location.arc for location in self.locations)


def drop_arcs(graph: Graph) -> tuple[str, ...]:
    """The arcs where a drop may stand.

    >>> from jettison.network import Network
    >>> net = Network("fig-3-3")
    >>> op1 = net.source("i1", "x int").where("x > 0", name="op1")
    >>> op1.where("x > 1", name="op2").output("o1"); op1.where("x > 2", name="op3").output("o2")
    >>> net.source("i2", "x int").where("x > 3", name="op4").output("o3")
    >>> drop_arcs(net.graph)
    ('i1', 'i2', 'op1>op2', 'op1>op3')
    """
    inputs = [source.name for source in graph.sources]
    splits = [
        arc_name(operator.name, head)
        for operator in graph.operators
        if len(graph.consumers[operator.name]) > 1
        for head in graph.consumers[operator.name]
    ]
    return (*inputs, *splits)


def layout(graph: Graph, profile: Profile) -> Layout:
    """Segments and locations of a network with the costs of a profile."""
    end_of = graph.segment_ends
    ends = [operator.name for operator in graph.operators if end_of[operator.name] == operator.name]
    number = {end: index for index, end in enumerate(ends)}
    locations: list[Location] = []
    for arc in drop_arcs(graph):
        head = arc_head(arc)
        tail = arc.removesuffix(f">{head}") if ">" in arc else None
        cost_us, passes = _through(graph, profile, head, end_of[head])
        locations.append(Location(arc, number[end_of[head]], -1 if tail is None else number[tail], cost_us, passes))
    segments = tuple(
        Segment(
            end,
            end if isinstance(graph.by_name[end], Output) else None,
            tuple(index for index, location in enumerate(locations) if location.enters == number[end]),
            tuple(index for index, location in enumerate(locations) if location.leaves == number[end]),
        )
        for end in ends
    )
    return Layout(tuple(locations), segments)


def _through(graph: Graph, profile: Profile, head: str, end: str) -> tuple[float, float]:
    """Work per tuple and tuples out per tuple in, from operator `head` to the end of its segment."""
    cost_us, passes = 0.0, 1.0
    while True:
        cost_us += passes * profile.cost(head)
        passes *= profile.passes(head)
        if head == end:
            return cost_us, passes
        head = graph.consumers[head][0]
