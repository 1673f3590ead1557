"""Which aggregates share their slices, and what stands above and below them in a network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from jettison.network.arc import Arc
from jettison.network.event_time.progress import results_in
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Output, StreamJoin


@dataclass(frozen=True)
class SliceGroup:
    """Aggregates of one stream with the same `by`: their rows are cut into slices once, for all of them."""

    members: tuple[Aggregate, ...]

    @property
    def name(self) -> str:
        return self.members[0].name

    @property
    def tail(self) -> str:
        """The operator that all of them read."""
        return self.members[0].inputs[0]

    @property
    def by(self) -> tuple[str, ...]:
        return self.members[0].window.by

    @property
    def slice_us(self) -> int:
        return math.gcd(*(member.window.slice_us for member in self.members))


def slice_groups(graph: Graph) -> tuple[SliceGroup, ...]:
    """All aggregates, those that share slices together.

    Slices fit when one is a multiple of the other: 60 s every 5 s and 10 s are both made of 5 s. If neither is (5 s and
    7 s), slices of 1 s for both would cost more than they save.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone int", event_time="at")
    >>> for name, size in (("a", "10 seconds"), ("b", "7 seconds"), ("c", "5 seconds")):
    ...     _ = trips.window(size, by="zone").agg(n="count(*)", name=name).output(f"{name}_out")
    >>> [(tuple(each.name for each in group.members), group.slice_us) for group in slice_groups(net.graph)]
    [(('a', 'c'), 5000000), (('b',), 7000000)]
    """
    groups: list[list[Aggregate]] = []
    kept = [each for each in graph.aggregates if each.name in graph.together]
    new = [each for each in graph.aggregates if each.name not in graph.together]
    for aggregate in (*kept, *new):
        fitting = (group for group in groups if _belongs(graph, group, aggregate))
        found = next(fitting, None)
        if found is None:
            groups.append([aggregate])
        else:
            found.append(aggregate)
    if graph.together:
        places = {each.name: number for number, each in enumerate(graph.aggregates)}
        groups = [sorted(group, key=lambda each: places[each.name]) for group in groups]
        groups.sort(key=lambda group: places[group[0].name])
    return tuple(SliceGroup(tuple(group)) for group in groups)


def _belongs(graph: Graph, group: list[Aggregate], aggregate: Aggregate) -> bool:
    """Whether an aggregate shares the slices of a group: one that has slices in a checkpoint stays where they are,
    however the sizes of windows around it have changed."""
    folder = graph.together.get(aggregate.name)
    if folder is None:
        return _fits(group, aggregate)
    same = (group[0].inputs, group[0].window.by) == (aggregate.inputs, aggregate.window.by)
    return same and graph.together.get(group[0].name) == folder


def _fits(group: list[Aggregate], aggregate: Aggregate) -> bool:
    first = group[0]
    if (first.inputs, first.window.by) != (aggregate.inputs, aggregate.window.by):
        return False
    if first.estimated != aggregate.estimated:
        return False  # rows go by chance for one, whole windows for the other: of both at once neither could
    slices = [each.window.slice_us for each in (*group, aggregate)]
    return math.gcd(*slices) == min(slices)


def results_above(graph: Graph, name: str) -> tuple[tuple[Aggregate, ...], bool]:
    """The aggregates whose results come to an operator, the nearest on every way, and whether other rows come too.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone int", event_time="at")
    >>> busy = trips.window("1 minute").agg(n="count(*)", name="minutes").where("n > 5")
    >>> _ = busy.window("1 hour").agg(n="count(*)", name="hours").output("out")
    >>> [each.name for each in results_above(net.graph, "hours")[0]], results_above(net.graph, "minutes")[1]
    (['minutes'], True)
    """
    return results_in(graph, graph.by_name[name].inputs)


def complete_after_us(graph: Graph, name: str) -> int:
    """How long after its event time a row of an operator can be known: a result is complete when its window ends.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone int", event_time="at")
    >>> _ = trips.window("1 minute").agg(n="count(*)").output("table"); _ = trips.output("all")
    >>> complete_after_us(net.graph, "table"), complete_after_us(net.graph, "all")
    (60000000, 0)
    """
    above, rows = results_above(graph, name)
    return 0 if rows or not above else min(each.window.size_us for each in above)


def waits_above(graph: Graph, name: str) -> bool:
    """Whether what an operator gives in a batch depends on rows of earlier ones: it or one above it keeps state.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone int", event_time="at")
    >>> _ = trips.where("zone > 0", name="zoned").window("10 rows").agg(n="count(*)", name="tens").where(
    ...     "n > 5", name="busy"
    ... ).output("out")
    >>> [waits_above(net.graph, name) for name in ("zoned", "tens", "busy")]
    [False, True, True]
    """
    operator = graph.by_name[name]
    keeps_state = isinstance(operator, Aggregate | CountAggregate | StreamJoin)
    return keeps_state or any(waits_above(graph, tail) for tail in operator.inputs)


def meets_windows(graph: Graph, arc: str) -> bool:
    """Whether the rows of an arc are results, or become part of some."""
    tail, waiting = Arc(arc).tail, [Arc(arc).head]
    while waiting:
        name = waiting.pop()
        if isinstance(graph.by_name[name], Aggregate | CountAggregate):
            return True
        waiting += graph.consumers[name]
    waiting = [tail] if tail else []
    while waiting:
        operator = graph.by_name[waiting.pop()]
        if isinstance(operator, Aggregate | CountAggregate):
            return True
        waiting += operator.inputs
    return False


def readers_below(graph: Graph, name: str) -> set[str]:
    """What reads an operator's rows in a job of its own: outputs, and groups of aggregates, behind which only results
    go on.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone int", event_time="at")
    >>> busy = trips.window("1 minute").agg(n="count(*)", name="minutes")
    >>> _ = busy.output("table"); _ = busy.where("n > 5").output("alerts")
    >>> readers_below(net.graph, "trips")
    {'minutes'}
    """
    groups = {member.name: group.name for group in slice_groups(graph) for member in group.members}
    return set(_readers(graph, name, groups | {each.name: each.name for each in graph.count_aggregates}))


def _readers(graph: Graph, name: str, groups: dict[str, str]) -> Iterator[str]:
    for head in graph.consumers[name]:
        if head in groups:
            yield groups[head]
        elif isinstance(graph.by_name[head], Output):
            yield head
        else:
            yield from _readers(graph, head, groups)
