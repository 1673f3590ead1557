"""Since when operators that keep state watch their streams, and which windows they have seen from the first row on.

An operator that was not in the network for some batches has not seen their rows. Their event times are at most T, the
newest event time of all batches before it came (back). So a window is whole when it begins after T:

    aggregate       rows and results after T are whole, or after what the operators above it give whole
    join of streams pairs have the later of two times, and the earlier one is up to `within` before: after T + within

An aggregate that comes below a join that was there before waits for the band too: rows that wait at the join may have
been shed by key, which only windows of its pairs forbid. Windows that are not whole are withheld. What was shed is no
hole otherwise: a window drop leaves the windows whole that it keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Apply, CountAggregate, StreamJoin
from jettison.network.windows.time_windows import WindowSpec


@dataclass(frozen=True)
class Watch:
    """An operator watches from batch `from_batch` on. `before_us` has the newest event time of all earlier batches, by
    place (sources, and functions in `apply`); it is not `settled` where nobody has written that down."""

    from_batch: int = 0
    before_us: Mapping[str, int] = field(default_factory=dict)
    settled: bool = True

    @property
    def after_us(self) -> float:
        """Rows after this time were all seen.

        >>> Watch().after_us, Watch(3, {"trips": 70, "cards": 90}).after_us, Watch(3, settled=False).after_us
        (-inf, 90, inf)
        """
        if not self.settled:
            return math.inf
        return max(self.before_us.values(), default=-math.inf) if self.from_batch else -math.inf


def places_above(graph: Graph, name: str) -> tuple[str, ...]:
    """Where event times of an operator's rows are seen: sources, and functions in `apply`, which may change them."""
    found, waiting = set(), [name]
    while waiting:
        operator = graph.by_name[waiting.pop()]
        if isinstance(operator, Apply) or not operator.inputs:
            found.add(operator.name)
        waiting += operator.inputs
    return tuple(each.name for each in graph.operators if each.name in found)


def whole_after_us(graph: Graph, watches: Mapping[str, Watch]) -> dict[str, float]:
    """By operator, the event time after which its rows, or its results, are whole.

    Orders and payments are paired from batch 5 on, when both had got to second 60, and the pairs go into windows:

    >>> from jettison.network import Network
    >>> net = Network("shop")
    >>> orders = net.source("orders", "order long, at timestamp", event_time="at")
    >>> paid = net.source("payments", "order long, paid timestamp", event_time="paid")
    >>> both = orders.join(paid, on="order", within="10 seconds", name="both")
    >>> _ = both.window("20 seconds").agg(n="count(*)", name="busy").output("out")
    >>> watch = Watch(5, {"orders": 60_000_000, "payments": 58_000_000})
    >>> whole_after_us(net.graph, {"both": watch, "busy": watch})["busy"]
    70000000
    """
    found: dict[str, float] = {}
    bands_us: dict[str, int] = {}
    for operator in graph.operators:
        within_us = operator.within_us if isinstance(operator, StreamJoin) else 0
        above_us = max((bands_us[tail] for tail in operator.inputs), default=0)
        own = watches[operator.name].after_us + above_us if operator.name in watches else -math.inf
        found[operator.name] = max([own, *(found[tail] for tail in operator.inputs)]) + within_us
        bands_us[operator.name] = above_us + within_us
    return found


def withheld(window: WindowSpec, closing: tuple[int, int], after_us: float) -> tuple[int, tuple[int, int] | None]:
    """How many of the windows that close, from the first start to the last, are not whole, and which ones are left.

    Windows of 20 s every 10 s; rows up to second 25 were not seen. Those that begin at 10 and 20 are withheld:

    >>> spec = WindowSpec(20, 10)
    >>> withheld(spec, (10, 50), 25), withheld(spec, (10, 20), 25), withheld(spec, (30, 50), 25)
    ((2, (30, 50)), (2, None), (0, (30, 50)))
    """
    first, last = closing
    if after_us < first:
        return 0, closing
    whole = math.inf if after_us == math.inf else window.slide_us * (int(after_us) // window.slide_us + 1)
    if whole > last:
        return (last - first) // window.slide_us + 1, None
    return (int(whole) - first) // window.slide_us, (int(whole), last)


def keeping(graph: Graph) -> tuple[Aggregate | CountAggregate | StreamJoin, ...]:
    """The operators that keep state from batch to batch."""
    return (*graph.stream_joins, *graph.aggregates, *graph.count_aggregates)
