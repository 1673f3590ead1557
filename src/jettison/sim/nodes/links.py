"""Rows between nodes: what one sends is what the next one reads, after a delay and as fast as the link carries it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from jettison.network.nodes.fragments import Fragment
from jettison.sim.account import Account
from jettison.sim.arrivals import Arrivals
from jettison.sim.cells import CellGrid, Matrix, Vector
from jettison.sim.chance import Chance
from jettison.sim.trains import Trains, by_train, rows_in
from jettison.synthetic.rates import Constant, Rate


class LinkQueue:
    """Trains on their way over one link. Each keeps the time at which it arrived at the network.

    >>> link = LinkQueue(delay_ms=20.0, rows_per_s=1000.0)
    >>> link.put(np.array([5.0]), np.array([[100.0]]), now_ms=1000.0)
    >>> [(until, float(rows.sum())) for until, _, rows in link.ready(1120.0)]
    [(1120.0, 100.0)]
    """

    def __init__(self, delay_ms: float, rows_per_s: float = math.inf) -> None:
        self._delay_ms, self._rows_per_s = delay_ms, rows_per_s
        self._free_ms = 0.0
        self._waiting: list[tuple[float, Vector, Matrix]] = []

    def put(self, times_ms: Vector, trains: Matrix, now_ms: float) -> None:
        """Send trains: behind those before them, and never faster than the link."""
        rows = rows_in(trains)
        if rows <= 0:
            return
        self._free_ms = max(now_ms, self._free_ms) + 1000 * rows / self._rows_per_s
        self._waiting.append((self._free_ms + self._delay_ms, times_ms, trains))

    def ready(self, now_ms: float) -> list[tuple[float, Vector, Matrix]]:
        """Take what has come over by now."""
        found = [each for each in self._waiting if each[0] <= now_ms]
        self._waiting = [each for each in self._waiting if each[0] > now_ms]
        return found

    def rows(self, now_ms: float = math.inf) -> float:
        """Rows that are under way, or have come over and were not read yet."""
        return sum(rows_in(trains) for until, _, trains in self._waiting if until <= now_ms)

    def waiting(self) -> list[tuple[Vector, Vector]]:
        """Rows that were not read yet, by the time at which they arrived at the network."""
        return [(times_ms, by_train(trains)) for _, times_ms, trains in self._waiting]


class NodeArrivals(Arrivals):
    """What comes to one node: rows of its own sources, and trains of its links."""

    def __init__(
        self,
        part: Fragment,
        rates: Mapping[str, Rate | float],
        end_ms: float,
        cells: CellGrid,
        chance: Chance,
        links: Mapping[str, LinkQueue],
    ) -> None:
        own = {source.name: rates.get(source.name, Constant(0.0)) for source in part.graph.sources}
        super().__init__(part.graph, own, end_ms, cells, chance)
        self.links = links

    def between(self, from_ms: float, to_ms: float) -> Trains:
        base = super().between(from_ms, to_ms)
        times, counts = [base.times_ms], {name: [each] for name, each in base.counts.items()}
        for name, link in self.links.items():
            for _, at_ms, trains in link.ready(to_ms):
                times.append(at_ms)
                for other in counts:
                    counts[other].append(trains if other == name else np.zeros_like(trains))
        return Trains(np.concatenate(times), {name: np.concatenate(each) for name, each in counts.items()})


class SendingAccount(Account):
    """An account that also hands on what was delivered, to links and to whoever judges outputs, and what was dropped.

    `dropped` are rows by arc and train of the last batch.
    """

    def __init__(self, part: Fragment, cells: int) -> None:
        super().__init__(part.graph, cells)
        self.out: list[tuple[str, Vector, Matrix]] = []
        self.dropped: dict[str, Vector] = {}

    def drop(self, arc: str, trains: Matrix, kept: Matrix) -> None:
        super().drop(arc, trains, kept)
        self.dropped[arc] = by_train(trains - kept)

    def deliver(self, output: str, late_ms: Vector, trains: Matrix) -> None:
        super().deliver(output, late_ms, trains)
        self.out.append((output, late_ms, trains))
