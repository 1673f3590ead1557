"""Where window drops stand in a network, and what each of them needs.

An aggregate decides when an output gets its results without another aggregate between. Its fate says which windows that
output gets: on the first arc of every such way (`fate_arcs`) results are judged by it. Above, tuples go that no
deciding aggregate needs (`early_arcs`): at the highest arc below which all is windows, and again where less is needed:
on arcs out of a split, out of an aggregate whose results are put into windows again, and out of a join of streams.

Needs are followed against the stream through filters, maps, unions and joins with tables (`needs`). A join of
streams needs on both sides what is needed of its pairs, and its band before that. A function in `apply` ends it: who
knows what it makes of the tuples around, so all is needed there.
Windows that count rows need all too, for a row that is missing gives others its number (thesis 4.10.2). Their results
are judged where they come out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from jettison.network.arc import Arc, arc_head, arc_name
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Apply, CountAggregate, Output, StreamJoin
from jettison.network.windows.slice_groups import results_above, slice_groups
from jettison.plan.drops.window import Fate, Window
from jettison.plan.windows.needs import Needs, WinDrop, before_join, needed_intervals, rounded, through, union

FINEST = 60
"""So many granules the shortest common step of windows is cut into at most, where a band does not fit it."""


class WindowArcs:
    """The window drops of one network.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, fare double", event_time="at")
    >>> minutes = trips.where("fare > 0", name="paid").window("1 minute").agg(n="count(*)", name="minutes")
    >>> _ = minutes.window("1 hour").agg(n="max(n)", name="hours").output("peaks")
    >>> arcs = WindowArcs(net.graph)
    >>> arcs.fate_arcs, arcs.early_arcs(["hours"])
    ({'hours': ('hours>peaks',)}, ('trips', 'minutes>hours'))
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = self.graph = graph
        self._known: dict[str, frozenset[str] | None] = {}
        self._early: dict[frozenset[str], tuple[str, ...]] = {}
        groups = slice_groups(graph)
        self._sharing = {member.name: group.members for group in groups for member in group.members}

    @cached_property
    def fate_arcs(self) -> dict[str, tuple[str, ...]]:
        """By deciding aggregate, the arcs on which its results are judged.

        Left out are those whose results run together with others before it is clear whom they are for.
        """
        found = {}
        for aggregate in self._graph.aggregates:
            arcs = list(self._fate_arcs(aggregate.name))
            if arcs and None not in arcs:
                found[aggregate.name] = tuple(arc for arc in arcs if arc is not None)
        for counted in self._graph.count_aggregates:
            leaving = self._graph.arcs_out_of(counted.name)  # only there is the window's number at hand
            if tuple(self._fate_arcs(counted.name)) == leaving:
                found[counted.name] = leaving
        return found

    @cached_property
    def deciding(self) -> frozenset[str]:
        """Aggregates whose results an output gets, those that cannot be judged included."""
        names = [each.name for each in self._graph.aggregates] + [each.name for each in self._graph.count_aggregates]
        return frozenset(name for name in names if any(True for _ in self._fate_arcs(name)))

    def _fate_arcs(self, name: str) -> Iterator[str | None]:
        for head in self._graph.consumers[name]:
            if isinstance(self._graph.by_name[head], Aggregate | CountAggregate):
                continue
            for_outputs, for_windows = self._leads(head)
            if for_outputs and not for_windows:
                yield arc_name(name, head)
            elif for_outputs:
                if len(self._graph.by_name[head].inputs) > 1:
                    yield None
                yield from self._fate_arcs(head)

    def _leads(self, name: str) -> tuple[bool, bool]:
        """Whether outputs, and whether aggregates, get an operator's rows."""
        operator = self._graph.by_name[name]
        if isinstance(operator, Output):
            return True, False
        if isinstance(operator, Aggregate | CountAggregate):
            return False, True
        below = [self._leads(head) for head in self._graph.consumers[name]]
        return any(outputs for outputs, _ in below), any(windows for _, windows in below)

    def deciders(self, arc: str) -> frozenset[str] | None:
        """The aggregates that decide what is needed on an arc; None where all is."""
        if arc not in self._known:
            self._known[arc] = self._deciders(arc_head(arc), behind=bool(self.results_on(arc)))
        return self._known[arc]

    def _deciders(self, name: str, *, behind: bool) -> frozenset[str] | None:
        operator = self._graph.by_name[name]
        if behind and not self._leads(name)[1]:
            return frozenset()  # what outputs get of results is for the fate to say
        if isinstance(operator, Output | Apply | CountAggregate):
            return None
        found = frozenset(self.sharing(name)) & self.deciding
        within = behind or isinstance(operator, Aggregate)
        for member in self.sharing(name):
            for head in self._graph.consumers[member]:
                below = self._deciders(head, behind=within)
                if below is None:
                    return None
                found |= below
        return found

    def sharing(self, name: str) -> tuple[str, ...]:
        """An aggregate with all that share its slices, and so the rows that come to it; of others themselves."""
        return tuple(each.name for each in self._sharing[name]) if name in self._sharing else (name,)

    def results_on(self, arc: str) -> tuple[str, ...]:
        """The aggregates whose results an arc carries, where it carries nothing else."""
        tail = Arc(arc).tail
        if not tail:
            return ()
        if isinstance(self._graph.by_name[tail], Aggregate | CountAggregate):
            return (tail,)
        above, rows = results_above(self._graph, tail)
        return () if rows else tuple(each.name for each in above)

    def early_arcs(self, names: Collection[str]) -> tuple[str, ...]:
        """The arcs on which tuples go early when these aggregates have fates."""
        known = frozenset(names)
        if known not in self._early:  # asked for in every batch, and for few sets of aggregates
            self._early[known] = tuple(self._find_early(known))
        return self._early[known]

    def _find_early(self, names: frozenset[str]) -> Iterator[str]:
        for operator in self._graph.operators:
            for arc in self._graph.arcs_into(operator.name):
                if self.is_early(arc, names) and not self._as_above(arc, names):
                    yield arc

    def is_early(self, arc: str, names: Collection[str]) -> bool:
        """Whether tuples may go on an arc: all that is below it are windows, of these aggregates."""
        if self.results_on(arc) and self._leads(arc_head(arc))[0]:
            return False  # an output wants what the aggregate's own fate keeps
        deciders = self.deciders(arc)
        return bool(deciders) and deciders is not None and deciders <= set(names)

    def _as_above(self, arc: str, names: Collection[str]) -> bool:
        """Whether what comes here has passed a drop that asks for the same."""
        tail = Arc(arc).tail
        if not tail or isinstance(self._graph.by_name[tail], Aggregate | StreamJoin):
            return False
        above = all(self.is_early(each, names) for each in self._graph.arcs_into(tail))
        return above and len({self._target(head) for head in self._graph.consumers[tail]}) == 1

    def _target(self, head: str) -> frozenset[str]:
        """What says which tuples an operator needs: the first aggregate or join of streams on every way down."""
        if isinstance(self._graph.by_name[head], Aggregate | CountAggregate | StreamJoin | Apply | Output):
            return frozenset([self.sharing(head)[0]])
        return frozenset(name for each in self._graph.consumers[head] for name in self._target(each))

    def granule_us(self, arc: str) -> int:
        """The longest step at whose multiples all windows below an arc begin and end; above joins of streams their
        bands too, unless that were too short: then needs are rounded to it.

        Windows of a minute behind bands of 90 s, 7 s and 1 ms. Steps of 30 s and of 1 s fit the first two; for the
        third a minute would have to be cut into more than 60 parts, so parts of 1 s must do:

        >>> from jettison.network import Network
        >>> def granule_s(within):
        ...     net = Network("shop")
        ...     orders = net.source("orders", "order long, at timestamp", event_time="at")
        ...     paid = net.source("payments", "order long, paid timestamp", event_time="paid")
        ...     both = orders.join(paid, on="order", within=within, name="both")
        ...     _ = both.window("1 minute").agg(n="count(*)", name="busy").output("out")
        ...     return [WindowArcs(net.graph).granule_us(arc) / 1e6 for arc in ("orders", "both>busy")]
        >>> granule_s("90 seconds"), granule_s("7 seconds"), granule_s("1 ms")
        ([30.0, 60.0], [1.0, 60.0], [1.0, 60.0])
        """
        step = math.gcd(*(part for each in self.below(arc) for part in (each.window.size_us, each.window.slide_us)))
        fitting = math.gcd(step, *(join.within_us for join in self.joins_below(arc)))
        if fitting * FINEST >= step:
            return fitting
        return step // next(parts for parts in range(FINEST, 0, -1) if step % parts == 0)

    def joins_below(self, arc: str) -> tuple[StreamJoin, ...]:
        """The joins of streams that an arc leads to."""
        found = self.names_below(arc)
        return tuple(each for each in self._graph.stream_joins if each.name in found)

    def band_us(self, name: str) -> int:
        """How long before a window of an aggregate the first tuple may be that it needs: the bands of the joins of
        streams above it, on the longest way."""
        operator = self._graph.by_name[name]
        own = operator.within_us if isinstance(operator, StreamJoin) else 0
        return own + max((self.band_us(tail) for tail in operator.inputs), default=0)

    def below(self, arc: str) -> tuple[Aggregate, ...]:
        """The aggregates of event time that an arc leads to."""
        found = self.names_below(arc)
        return tuple(each for each in self._graph.aggregates if each.name in found)

    def names_below(self, arc: str) -> set[str]:
        """The operators that an arc leads to, with all whose rows they share."""
        found, waiting = set(), [arc_head(arc)]
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting += self._graph.consumers[name]
            waiting += [each for each in self.sharing(name) if each not in found]
        return found

    def needs(self, arc: str, fates: Mapping[str, Fate], low_us: int, high_us: int) -> Needs:
        """The ticks of an early arc, from one up to, not including, another, that kept windows need; above joins of
        streams in whole granules.

        Every other minute is kept, and orders pair with payments up to 7 s apart: of both what comes from 7 s before a
        kept minute on is needed.

        >>> from jettison.network import Network
        >>> from jettison.plan.windows.fates import Schedule, Segment
        >>> net = Network("shop")
        >>> orders = net.source("orders", "order long, at timestamp", event_time="at")
        >>> paid = net.source("payments", "order long, paid timestamp", event_time="paid")
        >>> both = orders.join(paid, on="order", within="7 seconds", name="both")
        >>> _ = both.window("1 minute").agg(n="count(*)", name="busy").output("out")
        >>> arcs, every_other = WindowArcs(net.graph), Schedule((Segment(0, drop_share=0.5, gap=1, seed="busy"),))
        >>> arcs.early_arcs(["busy"])
        ('orders', 'payments', 'both>busy')
        >>> found = arcs.needs("payments", {"busy": Fate(60_000_000, every_other)}, 0, 240_000_000)
        >>> [(low // 10**6, high // 10**6) for low, high in found]
        [(-7, 60), (113, 180), (233, 247)]
        """
        found = self._needs(arc_head(arc), fates, low_us, high_us)
        return rounded(found, self.granule_us(arc)) if self.joins_below(arc) else found

    def _needs(self, name: str, fates: Mapping[str, Fate], low_us: int, high_us: int) -> Needs:
        operator = self._graph.by_name[name]
        if isinstance(operator, Output):
            return ()
        if isinstance(operator, StreamJoin):
            later_us = high_us + operator.within_us  # a pair has the later of two times
            below = [self._needs(head, fates, low_us, later_us) for head in self._graph.consumers[name]]
            return before_join(union(*below), operator.within_us)
        if not isinstance(operator, Aggregate):
            return union(*(self._needs(head, fates, low_us, high_us) for head in self._graph.consumers[name]))
        found: list[Needs] = []
        for member in self._sharing[name]:
            size, slide = member.window.size_us, member.window.slide_us
            if member.name in fates:
                step = fates[member.name].slide_us
                common = WinDrop(step + size - slide, step)
                found.append(needed_intervals(fates[member.name].schedule, common, low_us, high_us))
            results = [
                self._needs(head, fates, low_us - size + 1, high_us) for head in self._graph.consumers[member.name]
            ]
            found.append(through(WinDrop(size, slide), union(*results)))
        return union(*found)

    def drops(self, fates: Mapping[str, Fate], keeps: Mapping[str, float] | None = None) -> dict[str, Window]:
        """All window drops that these fates ask for; `keeps` are the shares expected to pass, by arc."""
        shares = keeps or {}
        drops = {}
        for arc in self.early_arcs(fates):
            own = {name: fates[name] for name in sorted(self.deciders(arc) or ())}
            drops[arc] = Window(own, shares.get(arc, 1.0))
        for name, fate in fates.items():
            for arc in self.fate_arcs.get(name, ()):
                drops[arc] = Window({name: fate}, shares.get(arc, 1.0), of=name)
        return drops
