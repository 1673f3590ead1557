"""Where drops may stand: at the network's inputs and on the arcs out of a split, nowhere else (thesis 3.4.1).

Operators between two such places form a segment: streams may merge in it (a union) but none splits, so a drop at
its entries saves all of its work. A segment ends at an output or at a split, whose branches enter other segments.

Where outputs are valued, tuples of different value are told apart: there is a location and a segment for every cell
of the values (`network.columns.value_tracks`), as if each cell were a stream of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from jettison.network.arc import Arc, arc_head, arc_name
from jettison.network.columns.value_tracks import Track
from jettison.network.graph import Graph
from jettison.network.operators import Output
from jettison.plan.placement.strata import estimates_below
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.profile import Profile
from jettison.statistics.spread import Spread


@dataclass(frozen=True)
class Location:
    """An arc where a drop may stand, the segment that it enters and the segment that it leaves (-1 at an input).

    `cell` is the cell of values that it is about (0 where none are told apart), `takes` the share of what reaches the
    arc from the segment above that is of this cell. `cost_us` is the work of its segment per tuple that enters here,
    `passes` how many tuples it gives at its end.
    """

    arc: str
    enters: int
    leaves: int
    cost_us: float
    passes: float
    cell: int = 0
    takes: float = 1.0


@dataclass(frozen=True)
class Section:
    """Locations that lead in, and either an output or the locations that lead out.

    `weight` is what one of its tuples is worth to its output, beside those of other cells.
    """

    end: str
    output: str | None
    entries: tuple[int, ...]
    branches: tuple[int, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Layout:
    """All locations and segments of a network; segments are in topological order, and so are locations.

    `judged` names the column by which the tuples on an arc can be told apart there, with its track. On arcs in
    `windows` tuples go by window: a share kept is one of windows, at least the one given here, or none. Work that kept
    windows need anyway is left out of the costs there: no drop saves it.
    """

    locations: tuple[Location, ...]
    segments: tuple[Section, ...]
    judged: Mapping[str, tuple[Track, str]] = field(default_factory=dict)
    windows: Mapping[str, float] = field(default_factory=dict)
    never_closed: frozenset[str] = frozenset()
    """Arcs above what is estimated: of nothing nothing can be."""

    @property
    def arcs(self) -> tuple[str, ...]:
        """The arc of every location; several locations of one arc differ in their cell."""
        return tuple(location.arc for location in self.locations)

    @cached_property
    def by_arc(self) -> dict[str, tuple[int, ...]]:
        """The locations of each arc, cell by cell."""
        found: dict[str, list[int]] = {}
        for index, location in enumerate(self.locations):
            found.setdefault(location.arc, []).append(index)
        return {arc: tuple(indices) for arc, indices in found.items()}

    @cached_property
    def apart(self) -> frozenset[int]:
        """Locations where cells that are told apart above run together: on these a drop counts by itself.

        Elsewhere a level counts from the source on, which here would differ from cell to cell.
        """
        together = [at for arc, at in self.by_arc.items() if len(at) > 1 and arc not in self.judged]
        merging = [at for at in together if len({self.locations[index].enters for index in at}) == 1]
        return frozenset(index for at in merging for index in at)


def drop_arcs(graph: Graph) -> tuple[str, ...]:
    """The arcs where a drop may stand.

    >>> from jettison.network import Network
    >>> net = Network("fig-3-3")
    >>> op1 = net.source("i1", "x int").where("x > 0", name="op1")
    >>> _ = op1.where("x > 1", name="op2").output("o1"); _ = op1.where("x > 2", name="op3").output("o2")
    >>> _ = net.source("i2", "x int").where("x > 3", name="op4").output("o3")
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


def layout(graph: Graph, profile: Profile, *, by_value: bool = False, by_window: bool = False) -> Layout:
    """Segments and locations of a network with the costs of a profile.

    `by_value` tells cells of values apart, `by_window` says where tuples go by window.
    """
    end_of = graph.segment_ends
    ends = [operator.name for operator in graph.operators if end_of[operator.name] == operator.name]
    spread = Spread(graph, profile) if by_value and graph.tracks.all else None
    tracks = {end: None if spread is None else spread.track(end) for end in ends}
    number: dict[tuple[str, int], int] = {}
    for end in ends:
        for cell in range(_cells(tracks[end])):
            number[end, cell] = len(number)
    locations: list[Location] = []
    for arc in drop_arcs(graph):
        head = arc_head(arc)
        end = end_of[head]
        tail = Arc(arc).tail
        above, own = (None if tail is None else tracks[tail]), tracks[end]
        for cell in range(max(_cells(above), _cells(own))):
            leaves = -1 if tail is None else number[tail, cell if above is not None else 0]
            enters = number[end, cell if own is not None else 0]
            takes = 1.0
            if spread is not None and own is not None and above is None:
                takes = float(spread.of(head if tail is None else tail, own)[cell])
            cost_us, passes = _through(graph, profile, spread, head, end, cell, by_window)
            locations.append(Location(arc, enters, leaves, cost_us, passes, cell, takes))
    entries: dict[int, list[int]] = {index: [] for index in number.values()}
    branches: dict[int, list[int]] = {index: [] for index in number.values()}
    for index, location in enumerate(locations):
        entries[location.enters].append(index)
        if location.leaves >= 0:
            branches[location.leaves].append(index)
    segments = tuple(
        Section(
            end,
            end if isinstance(graph.by_name[end], Output) else None,
            tuple(entries[index]),
            tuple(branches[index]),
            _weight(graph, tracks[end], end, cell),
        )
        for (end, cell), index in number.items()
    )
    judged = {} if spread is None else {arc: at for arc in drop_arcs(graph) if (at := graph.tracks.at(arc)) is not None}
    decisions = decisions_of(graph)
    by_windows = [arc for arc in drop_arcs(graph) if by_window and decisions.droppable(arc)]
    windows = {arc: decisions.least_keep(arc) for arc in by_windows}
    estimated = frozenset(arc for arc in drop_arcs(graph) if estimates_below(graph, arc))
    judged = {arc: at for arc, at in judged.items() if arc not in estimated}
    return Layout(tuple(locations), segments, judged, windows, estimated)


def _cells(track: Track | None) -> int:
    return 1 if track is None else track.cells


def _weight(graph: Graph, track: Track | None, end: str, cell: int) -> float:
    """What a tuple of a cell is worth to the output at the end of a segment; 1 where all are worth the same."""
    operator = graph.by_name[end]
    if track is None or not isinstance(operator, Output) or operator.qos.value is None:
        return 1.0
    return float(track.worth(operator.qos.value)[cell])


def _through(
    graph: Graph, profile: Profile, spread: Spread | None, head: str, end: str, cell: int, windows: bool
) -> tuple[float, float]:
    """Work per tuple and tuples out per tuple in, from operator `head` to the end of its segment, for one cell."""
    cost_us, passes = 0.0, 1.0
    decisions = decisions_of(graph)
    by_window = windows and any(decisions.droppable(arc) for arc in graph.arcs_into(head))
    while True:
        weight = min(decisions.weight(arc) for arc in graph.arcs_into(head)) if by_window else 1.0
        cost_us += passes * weight * profile.cost(head)
        if spread is None:
            passes *= profile.passes(head)
        else:
            shares = spread.passes(head)
            passes *= float(shares[cell if len(shares) > 1 else 0])
        if head == end:
            return cost_us, passes
        head = graph.consumers[head][0]
