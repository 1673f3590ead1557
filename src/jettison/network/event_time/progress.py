"""How far the event times of an operator's rows have got, seen at sources, before any drop or filter.

Where streams merge, the one that is furthest on counts. A pair of a join of streams has the later of two times, so once
both sides have passed a time no pair before it can come but of late rows: there the side that is behind counts,

    source: its newest time    union: max over inputs    join of streams: min over sides

and it is the same whatever is shed. The newest pair would not be: with drops above, pairs are missing. A function in
`apply` may change times: there it is what it gives that counts, and nothing goes by window above it. Results of windows
are left out here: what comes next of those is known from the watermark of their aggregate (`side_us`, `watermarks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Apply, StreamJoin


@dataclass(frozen=True)
class Reach:
    """Where the times of some rows are seen: at one `place`, or in `parts`, of which with `both` the slowest counts.

    >>> sides = Reach(parts=(Reach("orders"), Reach(parts=(Reach("cards"), Reach("cash")))), both=True)
    >>> sides.at_us({"orders": 70, "cards": 40, "cash": 50}), sides.at_us({"orders": 70}), sides.places
    (50, None, ('cards', 'cash', 'orders'))
    """

    place: str | None = None
    parts: tuple[Reach, ...] = ()
    both: bool = False

    @property
    def places(self) -> tuple[str, ...]:
        below = {place for part in self.parts for place in part.places}
        return tuple(sorted(below | ({self.place} if self.place is not None else set())))

    @property
    def joined(self) -> bool:
        """Whether some of the rows are pairs of streams."""
        return self.both or any(part.joined for part in self.parts)

    def at_us(self, seen_us: Mapping[str, int]) -> int | None:
        """How far the rows have got, by the newest time so far at every place; None while that cannot be told."""
        if self.place is not None:
            return seen_us.get(self.place)
        times = [part.at_us(seen_us) for part in self.parts]
        known = [each for each in times if each is not None]
        if self.both:
            return min(known) if known and len(known) == len(times) else None
        return max(known, default=None)


def reach_of(graph: Graph, name: str) -> Reach:
    """The reach of the rows that come to an operator; without places where results of windows alone do.

    >>> from jettison.network import Network
    >>> net = Network("shop")
    >>> orders = net.source("orders", "order long, at timestamp", event_time="at")
    >>> paid = net.source("payments", "order long, paid timestamp", event_time="paid")
    >>> both = orders.join(paid, on="order", within="1 minute", name="both")
    >>> _ = both.window("1 minute").agg(n="count(*)", name="busy").output("out")
    >>> reach_of(net.graph, "busy").at_us({"orders": 90, "payments": 60})
    60
    """
    operator = graph.by_name[name]
    parts = [_of_rows(graph, tail) for tail in operator.inputs]
    found = tuple(part for part in parts if part.places)
    if isinstance(operator, StreamJoin):
        return Reach(parts=found, both=True)
    return found[0] if len(found) == 1 else Reach(parts=found)


def _of_rows(graph: Graph, name: str) -> Reach:
    """The reach of the rows that an operator gives."""
    operator = graph.by_name[name]
    if isinstance(operator, Aggregate):
        return Reach()
    if isinstance(operator, Apply) or not operator.inputs:
        return Reach(name)
    return reach_of(graph, name)


def time_places(graph: Graph, name: str) -> tuple[str, ...]:
    """The operators at which it is seen how far the rows of an aggregate or of a join of streams have got: sources, and
    functions in `apply`."""
    return reach_of(graph, name).places


def further(before_us: Mapping[str, int], seen_us: Mapping[str, int]) -> dict[str, int]:
    """The newest times by place after some more rows.

    >>> further({"orders": 70, "payments": 40}, {"orders": 60, "cash": 50})
    {'orders': 70, 'payments': 40, 'cash': 50}
    """
    return {
        place: max(each[place] for each in (before_us, seen_us) if place in each)
        for place in dict.fromkeys([*before_us, *seen_us])
    }


def results_in(graph: Graph, names: Sequence[str]) -> tuple[tuple[Aggregate, ...], bool]:
    """The aggregates whose results are in what these operators give, the nearest on every way, and whether other rows
    are too."""
    found: dict[str, Aggregate] = {}
    rows = False
    waiting = list(names)
    while waiting:
        operator = graph.by_name[waiting.pop()]
        if isinstance(operator, Aggregate):
            found[operator.name] = operator
        else:
            waiting += operator.inputs
            rows = rows or not operator.inputs
    return tuple(found[each] for each in sorted(found)), rows


def side_us(
    graph: Graph, join: StreamJoin, side: int, seen_us: Mapping[str, int], open_us: Callable[[str], int | None]
) -> int | None:
    """How far a side of a join of streams has got; None while that cannot be told.

    Of results it is the event time of the next one (`open_us`, by aggregate). Of all that comes the slowest counts, so
    that no row of the other side goes for which a partner may still come.
    """
    tail = join.inputs[side]
    results, rows = results_in(graph, [tail])
    reached = [open_us(each.name) for each in results]
    if rows:
        reached.append(_of_rows(graph, tail).at_us(seen_us))
    known = [each for each in reached if each is not None]
    return min(known) if known and len(known) == len(reached) else None
