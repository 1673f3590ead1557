"""What queries get from sources, and which arcs that takes: a network as fair shedding sees it.

A part is one source of one query. Sources of a query are one part where nothing can tell them apart: they meet above a
join of streams (both sides lose the same keys), above a split behind which a drop stands, or in windows that are kept
or dropped whole. A part that no drop may touch is kept in full.

Tuples are dropped at inputs and splits (`placement.locations`), windows by the fates of their aggregates
(`plan.windows`). An arc on which no drop may stand carries what the arc above it carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from jettison.network.arc import Arc
from jettison.network.graph import Graph
from jettison.plan.placement.join_keys import droppable
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.row_streams import leading_to


@dataclass(frozen=True)
class Part:
    """What a query gets from these sources. `windows` are the aggregates whose windows go in place of tuples; `fixed`:
    nothing of it can be dropped."""

    query: str
    sources: tuple[str, ...]
    windows: tuple[str, ...] = ()
    fixed: bool = False


class Parts:
    """The parts of a network and the arcs that each needs.

    >>> from jettison.network import Network
    >>> net = Network("two"); s, t = net.source("s", "x int"), net.source("t", "x int")
    >>> _ = s.where("x > 0", name="a").output("one"); _ = s.union(t, name="u").output("both")
    >>> parts = Parts(net.graph)
    >>> [(part.query, part.sources) for part in parts.all]
    [('one', ('s',)), ('both', ('s',)), ('both', ('t',))]
    >>> parts.needed_on["s"], parts.needed_on["s>a"], parts.needed_on["t"]
    ((0, 1), (0,), (2,))
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._decisions = decisions_of(graph)
        self._leading = {output.name: leading_to(graph, output.name) for output in graph.outputs}

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Arcs on which tuples may be dropped by chance, or by key."""
        return tuple(arc for arc in drop_arcs(self.graph) if droppable(self.graph, arc))

    @cached_property
    def all(self) -> tuple[Part, ...]:
        return tuple(part for output in self.graph.outputs for part in self._of(output.name))

    @cached_property
    def by_query(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {output.name: [] for output in self.graph.outputs}
        for number, part in enumerate(self.all):
            found[part.query].append(number)
        return {query: tuple(numbers) for query, numbers in found.items()}

    @cached_property
    def needed_on(self) -> dict[str, tuple[int, ...]]:
        """By place, the parts whose tuples pass it."""
        return {arc: tuple(self._passing(arc)) for arc in self.places}

    @cached_property
    def needed_by(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """By arc and source, the parts that decide how much of the source the arc carries; none where it is all."""
        found: dict[tuple[str, str], tuple[int, ...]] = {}
        for operator, into, out_of in self.graph.wiring:
            if not operator.inputs:
                found[into[0], operator.name] = self._deciding(into[0], operator.name, [()])
            for arc in out_of:
                for source in self.above[operator.name]:
                    above = [found[each, source] for each in into if (each, source) in found]
                    found[arc, source] = self._deciding(arc, source, above)
        return found

    def _deciding(self, arc: str, source: str, above: list[tuple[int, ...]]) -> tuple[int, ...]:
        here = [number for number in self._passing(arc) if source in self.all[number].sources]
        if any(self.all[number].fixed for number in here):
            return ()
        if arc in self._set_of_places or self._decisions.droppable(arc) or len(above) > 1 or arc in self._results:
            return tuple(here)
        return above[0]

    @cached_property
    def _set_of_places(self) -> frozenset[str]:
        return frozenset(self.places)

    @cached_property
    def _results(self) -> frozenset[str]:
        """Arcs that carry results of an aggregate that decides: there its fate drops them."""
        fates = self._decisions.arcs.fate_arcs
        return frozenset(arc for name in self._decisions.by_aggregate for arc in fates[name])

    @cached_property
    def above(self) -> dict[str, tuple[str, ...]]:
        """By operator, the sources whose rows reach it."""
        found: dict[str, tuple[str, ...]] = {}
        for operator in self.graph.operators:
            names = [name for tail in operator.inputs for name in found[tail]] or [operator.name]
            found[operator.name] = tuple(dict.fromkeys(names))
        return found

    @cached_property
    def _below(self) -> dict[str, tuple[str, ...]]:
        """By operator, the queries that its rows reach."""
        found: dict[str, tuple[str, ...]] = {}
        for operator in reversed(self.graph.operators):
            names = [name for head in self.graph.consumers[operator.name] for name in found[head]]
            found[operator.name] = tuple(dict.fromkeys(names)) or (operator.name,)
        return found

    def _passing(self, arc: str) -> list[int]:
        """The parts whose tuples pass an arc."""
        above = set(self.above[Arc(arc).origin])
        numbers = [number for query in self._below[Arc(arc).head] for number in self.by_query[query]]
        return sorted(number for number in numbers if not above.isdisjoint(self.all[number].sources))

    def _of(self, query: str) -> list[Part]:
        """A query's parts: sources that nothing tells apart are one."""
        leading = self._leading[query]
        sources = [source.name for source in self.graph.sources if source.name in leading]
        names = [name for name in self._decisions.guarded if name in leading and query in self._decisions.outputs(name)]
        windows = tuple(name for name in self._decisions.by_aggregate if name in names)
        groups = _joined(sources, self._tied(query, sources, names))
        found = []
        for group in groups:
            deciding = [name for name in names if not set(group).isdisjoint(self._sources(name))]
            mine = tuple(name for name in windows if name in deciding)
            if deciding:
                found.append(Part(query, group, mine, fixed=len(mine) < len(deciding)))
            else:
                found.append(Part(query, group, fixed=not all(self._covered(each, query) for each in group)))
        return found

    def _sources(self, name: str) -> set[str]:
        return set(self.above[name])

    def _tied(self, query: str, sources: list[str], names: list[str]) -> Iterator[set[str]]:
        """Sets of a query's sources that are dropped alike."""
        leading = self._leading[query]
        for join in self.graph.stream_joins:
            if join.name in leading:
                yield self._sources(join.name)
        for name in names:
            yield self._sources(name)
        for arc in self.places:
            place = Arc(arc)
            if place.tail is not None and place.head in leading:
                yield self._sources(place.tail) & set(sources)

    def _covered(self, source: str, query: str) -> bool:
        """Whether a drop may stand somewhere on every way from a source to a query."""
        if source in self._set_of_places:
            return True
        leading, waiting = self._leading[query], [source]
        while waiting:
            name = waiting.pop()
            if name == query:
                return False
            for arc in self.graph.arcs_out_of(name):
                head = Arc(arc).head
                if head in leading and arc not in self._set_of_places:
                    waiting.append(head)
        return True


def parts_of(graph: Graph) -> Parts:
    """The parts of a network, worked out once."""
    known = graph.__dict__.get("_fair_parts")
    if known is None:
        known = graph.__dict__["_fair_parts"] = Parts(graph)
    assert isinstance(known, Parts)
    return known


def _joined(sources: Iterable[str], together: Iterable[set[str]]) -> list[tuple[str, ...]]:
    """Sources in groups: those of one set, and of sets that overlap, are one group."""
    groups: list[set[str]] = [{source} for source in sources]
    for each in together:
        touched = [group for group in groups if group & each]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched] + [set().union(*touched)]
    order = {source: number for number, source in enumerate(sources)}
    return sorted((tuple(sorted(group, key=order.__getitem__)) for group in groups), key=lambda each: order[each[0]])
