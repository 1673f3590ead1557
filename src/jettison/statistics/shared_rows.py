"""Which splits share their rows: where one persisted copy costs less than to compute them once per reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Output
from jettison.network.windows.slice_groups import readers_below, slice_groups


@dataclass(frozen=True)
class Copy:
    """What a split's rows cost: to compute and read from the source (`again_ms`), to store once they are computed, and
    to read from the copy.

    >>> Copy(again_ms=50.0, storing_ms=20.0, reading_ms=5.0).pays(uses=2)
    True
    >>> Copy(again_ms=25.0, storing_ms=20.0, reading_ms=5.0).pays(uses=2)
    False
    """

    again_ms: float
    storing_ms: float
    reading_ms: float

    def pays(self, uses: int) -> bool:
        return self.again_ms + self.storing_ms + uses * self.reading_ms < uses * self.again_ms


def splits(graph: Graph) -> tuple[str, ...]:
    """The operators that several outputs or aggregates read, by way of several arcs, from the sources on."""
    several = [name for name, heads in graph.consumers.items() if len(heads) > 1]
    return tuple(each.name for each in graph.operators if each.name in several and _uses(graph, each.name) > 1)


def choose_shared(graph: Graph, copies: Mapping[str, Copy]) -> frozenset[str]:
    """The splits that a copy pays for; below one that is shared, none is."""
    chosen: set[str] = set()
    for name in splits(graph):
        above = any(name in _below(graph, other) for other in chosen)
        if not above and name in copies and copies[name].pays(_uses(graph, name)):
            chosen.add(name)
    return frozenset(chosen)


def computed_times(graph: Graph, shared: frozenset[str]) -> dict[str, int]:
    """How often an operator is computed: what is not shared, once per output or aggregate below it.

    >>> from jettison.network.declare import Network
    >>> net = Network("n")
    >>> s = net.source("s", "a int", id=["a"])
    >>> _ = s.where("a > 0", name="one").output("first")
    >>> _ = s.where("a > 1", name="two").output("second")
    >>> computed_times(net.graph, frozenset())["s"], computed_times(net.graph, frozenset({"s"}))["s"]
    (2, 1)
    """
    together = slices_made_by(graph)

    def times(name: str) -> int:
        if name in shared or isinstance(graph.by_name[name], Output | Aggregate | CountAggregate):
            return 1
        return max(1, sum(times(head) for head in dict.fromkeys(together.get(h, h) for h in graph.consumers[name])))

    return {name: times(name) for name in graph.by_name}


def slices_made_by(graph: Graph) -> dict[str, str]:
    """By aggregate, the first of those that share its slices."""
    return {member.name: group.name for group in slice_groups(graph) for member in group.members}


def _uses(graph: Graph, name: str) -> int:
    return len(readers_below(graph, name))


def _below(graph: Graph, name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for head in graph.consumers[waiting.pop()]:
            if head not in found:
                found.add(head)
                waiting.append(head)
    return found
