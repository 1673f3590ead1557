"""How far the aggregates of a network have got, batch by batch: watermarks, and what they close.

Watermark of a batch: the largest event time of all earlier batches, rows that were shed or filtered out included, less
the delay; below a join of streams that of the side that is behind (`progress`). It is known before the batch runs,
and the same when the batch is repeated. The windows that it closes are made of the slices of earlier batches. Rows of
this batch come too late for those; rows that are in no other window are late.

An aggregate of results gets those of its own batch too: the watermark of what is above it tells which result comes next
(`WindowSpec.first_open_us`), so that what comes in this batch is still in time for the windows that close in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jettison.network.event_time.progress import further, reach_of
from jettison.network.graph import Graph
from jettison.network.operators import Source
from jettison.network.windows.slice_groups import results_above
from jettison.network.windows.time_windows import WindowSpec, watermark_us


@dataclass(frozen=True)
class Mark:
    """One aggregate after a batch: how far its event times have got, and the watermark of that batch.

    Below joins of streams `seen_us` has the largest event time so far by place (`Reach`): of those it is the slowest
    side that counts, which one number cannot tell.
    """

    newest_us: int | None = None
    mark_us: int | None = None
    seen_us: Mapping[str, int] = field(default_factory=dict)

    @property
    def largest_us(self) -> int | None:
        """The largest event time so far, of any row on the way to the aggregate."""
        return max((each for each in (self.newest_us, *self.seen_us.values()) if each is not None), default=None)


class BatchMarks:
    """The watermarks of one batch, from the marks after the batch before.

    Minutes with a delay of 10 s, and an hour of them. Rows have come up to 1:00:20, so that the last minute of the
    hour has closed, and with it the hour:

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp", event_time="at")
    >>> minutes = trips.window("1 minute", delay="10 seconds").agg(n="count(*)", name="minutes")
    >>> _ = minutes.window("1 hour").agg(n="sum(n)", name="hours").output("out")
    >>> marks = BatchMarks(net.graph, {"minutes": Mark(3_620_000_000, 3_590_000_000)})
    >>> marks.closing("minutes", oldest_us=0), marks.closing("hours", oldest_us=0)
    ((3540000000, 3540000000), (0, 0))
    """

    def __init__(self, graph: Graph, before: Mapping[str, Mark]) -> None:
        self._windows: dict[str, WindowSpec] = {each.name: each.window for each in graph.aggregates}
        self._before = {name: before.get(name, Mark()) for name in self._windows}
        self._reach = {name: reach_of(graph, name) for name in self._windows}
        self._alike = _alike({name: graph.sources_above(name) for name in self._windows})
        self._nested: dict[str, bool] = {}
        self._marks: dict[str, int | None] = {}
        for name, window in self._windows.items():
            above, rows = results_above(graph, name)
            self._nested[name] = bool(above)
            comes = [self.open_us(each.name) for each in above]
            reached = watermark_us(window, self._before[name].newest_us, comes, rows=rows)
            self._marks[name] = max((e for e in (reached, self._before[name].mark_us) if e is not None), default=None)

    def nested(self, name: str) -> bool:
        """Whether results of other aggregates come to this one."""
        return self._nested[name]

    def open_us(self, name: str) -> int | None:
        """Where the first window begins that is open after this batch; None while none has closed.

        Slices from there on are needed later, and it is the event time of the next result.
        """
        mark = self._marks[name]
        return None if mark is None else self._windows[name].first_open_us(mark)

    def watermarks_us(self) -> dict[str, int]:
        """The watermark of this batch, by aggregate, where there is one."""
        return {name: mark for name, mark in self._marks.items() if mark is not None}

    def closing_from_us(self, name: str) -> int | None:
        """Where the first window begins that was open before this batch; None when all were."""
        mark = self._before[name].mark_us
        return None if mark is None else self._windows[name].first_open_us(mark)

    def late_before_us(self, name: str) -> int | None:
        """Rows of this batch before this time are late; None while none is."""
        mark = self._before[name].mark_us if self._nested[name] else self._marks[name]
        return None if mark is None else self._windows[name].first_open_us(mark)

    @property
    def newest_us(self) -> int | None:
        """The largest event time of all batches before this one, shed rows included; None before the first."""
        return self._largest_us(self._before)

    def largest_us(self, name: str) -> int | None:
        """The same of an aggregate by itself."""
        return self._before[name].largest_us

    @property
    def apart(self) -> bool:
        """Whether some aggregates have no source in common with others."""
        return len(set(self._alike.values())) > 1

    def newest_of(self, name: str) -> int | None:
        """The same of the sources of an aggregate, and of all others that it has sources in common with: a stream of
        old event times does not wait for one of new ones that it has nothing to do with."""
        return self._largest_us(self._alike[name])

    def _largest_us(self, names: Iterable[str]) -> int | None:
        times = [self._before[name].largest_us for name in names]
        return max((each for each in times if each is not None), default=None)

    def closing(self, name: str, oldest_us: int | None) -> tuple[int, int] | None:
        """The starts of the first and the last window that close in this batch; see `WindowSpec.closing`."""
        return self._windows[name].closing(self._before[name].mark_us, self._marks[name], oldest_us)

    def may_close(self, name: str, oldest_us: int | None) -> bool:
        """Whether there may be results in this batch, before it is known what comes in."""
        before, mark = self._before[name].mark_us, self._marks[name]
        if not self._nested[name]:
            return self.closing(name, oldest_us) is not None
        if before is None or mark is None:
            return mark is not None
        return self._windows[name].first_open_us(before) < self._windows[name].first_open_us(mark)

    def after(self, name: str, newest_us: Iterable[int | None], seen_us: Mapping[str, int] | None = None) -> Mark:
        """The mark after this batch, in which rows up to these times came in, and were seen before any drop.

        Pairs of streams do not count by themselves, for some may be missing. A checkpoint from before that was so goes
        on from where it had got to: the watermark never goes back.

        >>> from jettison.network import Network
        >>> net = Network("shop")
        >>> orders = net.source("orders", "order long, at timestamp", event_time="at")
        >>> paid = net.source("payments", "order long, paid timestamp", event_time="paid")
        >>> both = orders.join(paid, on="order", within="1 minute", name="both")
        >>> _ = both.window("1 minute").agg(n="count(*)", name="busy").output("out")
        >>> mark = BatchMarks(net.graph, {}).after("busy", [95], {"orders": 95, "payments": 70})
        >>> mark.newest_us, mark.largest_us
        (70, 95)
        """
        before, reach = self._before[name], self._reach[name]
        seen = {place: time for place, time in (seen_us or {}).items() if place in reach.places}
        if not reach.joined:
            times = [each for each in (before.newest_us, *newest_us, *seen.values()) if each is not None]
            return Mark(max(times, default=None), self._marks[name])
        seen = further(before.seen_us, seen)
        times = [each for each in (before.newest_us, reach.at_us(seen)) if each is not None]
        return Mark(max(times, default=None), self._marks[name], seen)


def first_mark(graph: Graph, name: str, before_us: Mapping[str, int]) -> Mark:
    """The mark of an aggregate that comes in mid-stream, when event times had got so far by place.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("1 minute").agg(n="count(*)", name="a").output("b")
    >>> first_mark(net.graph, "a", {"trips": 70, "others": 90})
    Mark(newest_us=70, mark_us=None, seen_us={})
    """
    reach = reach_of(graph, name)
    seen = {place: time for place, time in before_us.items() if place in reach.places}
    return Mark(reach.at_us(seen), None, seen if reach.joined else {})


def _alike(sources: Mapping[str, Iterable[Source]]) -> dict[str, frozenset[str]]:
    """By aggregate, all those that it has sources in common with, directly or through others."""
    groups: list[tuple[set[str], set[str]]] = []
    for name, above in sources.items():
        names, places = {name}, {source.name for source in above}
        for group in [each for each in groups if each[1] & places]:
            groups.remove(group)
            names, places = names | group[0], places | group[1]
        groups.append((names, places))
    return {name: frozenset(names) for names, _ in groups for name in names}
