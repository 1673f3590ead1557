"""What was closed is tried again now and then: costs of what never runs cannot be measured.

An output is closed when dropping as many windows as its gap allows would not be enough, by the costs as they are known.
If those were measured too high, or have come down since, nobody would find out. So after some plans that keep it closed
it is let in again as the gap allows, until its first window has come whole. If plans would still have it closed then,
costs were right: it is closed again, and left alone twice as long as before.

A window that is let in takes as long as it takes, so one decision at a time is tried, and waiting grows from
`FIRST_WAIT` plans up to `LONGEST_WAIT`: what probes cost is soon a small share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from jettison.plan.windows.decisions import WindowDecisions

FIRST_WAIT = 20
LONGEST_WAIT = 640


@dataclass
class _Closed:
    """A decision that plans keep closed: how many plans still to wait, how long the next time, where a probe ends."""

    left: int = FIRST_WAIT
    wait: int = FIRST_WAIT
    until_us: int | None = None


class Probes:
    """Which closed aggregates to let in, plan by plan.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("5 seconds").agg(n="count(*)", name="busy").output("table", qos=QoS(gap=4))
    >>> probes = Probes(WindowDecisions(net.graph))
    >>> seconds = [second for second in range(100) if probes.tried(["busy"], lambda _: second * 1_000_000)]
    >>> seconds[0], seconds[-1]  # 20 plans after closing: the window from second 25 on, then again after twice as many
    (20, 80)
    """

    def __init__(self, decisions: WindowDecisions) -> None:
        self._decisions = decisions
        self._closed: dict[str, _Closed] = {}

    def tried(self, closed: Collection[str], newest_of: Callable[[str], int | None]) -> frozenset[str]:
        """Of the aggregates that a plan closes, those to let in all the same; `newest_of` tells of an aggregate how far
        times have got."""
        by_seed: dict[str, list[str]] = {}
        for name in closed:
            by_seed.setdefault(self._decisions.by_aggregate[name].seed, []).append(name)
        self._closed = {seed: self._closed.get(seed, _Closed()) for seed in sorted(by_seed)}
        times = {seed: newest_of(names[0]) for seed, names in by_seed.items()}
        for seed, each in self._closed.items():
            newest_us = times[seed]
            each.left -= each.until_us is None
            if each.until_us is not None and newest_us is not None and newest_us >= each.until_us:
                each.wait = min(LONGEST_WAIT, 2 * each.wait)
                each.left, each.until_us = each.wait, None
        if all(each.until_us is None for each in self._closed.values()):
            due = [(each.left, seed, now) for seed, each in self._closed.items() if (now := times[seed]) is not None]
            for left, seed, now_us in sorted(due)[:1]:
                if left < 0:
                    self._closed[seed].until_us = now_us + self._whole_us(by_seed[seed])
        return frozenset(
            name for seed, each in self._closed.items() if each.until_us is not None for name in by_seed[seed]
        )

    def _whole_us(self, names: Collection[str]) -> int:
        """From a time on, how long until a window that had not begun then is whole."""
        decisions = self._decisions
        return max(decisions.by_aggregate[name].step_us + decisions.reach_us(name) for name in names)
