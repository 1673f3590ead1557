"""What arrives and when: rates cut into trains. A train is the tuples of a short slice of time, counted by cell."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.sim.cells import CellGrid
from jettison.sim.chance import Chance
from jettison.sim.trains import Trains
from jettison.synthetic.rates import Constant, Rate

LONGEST_SLICE_MS = 100.0
"""No train spans more time than this; its tuples count as arriving in the middle of it."""


class Arrivals:
    """Tuples of every source, up to `end_ms`.

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("n"); _ = net.source("trips", "fare double").output("fares")
    >>> cells = CellGrid(net.graph, Profile({}, {}))
    >>> found = Arrivals(net.graph, {"trips": 1000}, 60_000, cells, Chance(seed=0)).between(1000, 1150)
    >>> found.times_ms, found.counts["trips"].ravel()
    (array([1037.5, 1112.5]), array([75., 75.]))
    """

    def __init__(
        self, graph: Graph, rates: Mapping[str, Rate | float], end_ms: float, cells: CellGrid, chance: Chance
    ) -> None:
        names = [source.name for source in graph.sources]
        for name in rates:
            if name not in names:
                raise StartError(f"rates: {name!r} is not a source of network {graph.name!r}: {', '.join(names)}.")
        for name in names:
            if name not in rates:
                raise StartError(f"rates: source {name!r} has none: give rows per second, such as {{{name!r}: 1000}}.")
        self._rates = {name: _as_rate(rates[name]) for name in names}
        self._shares = {name: cells.arriving(name) for name in names}
        self._chance = chance
        self.end_ms = end_ms

    def rows(self, from_ms: float, to_ms: float) -> dict[str, int]:
        """How many tuples arrive from one moment to another, nothing after the end."""
        begin_s, until_s = min(from_ms, self.end_ms) / 1000, min(to_ms, self.end_ms) / 1000
        return {name: rate.rows_until(until_s) - rate.rows_until(begin_s) for name, rate in self._rates.items()}

    def between(self, from_ms: float, to_ms: float) -> Trains:
        """What arrives from one moment to another, nothing after the end."""
        slices = max(1, math.ceil((to_ms - from_ms) / LONGEST_SLICE_MS - 1e-9))
        edges = np.linspace(from_ms, to_ms, slices + 1)
        counts = {}
        for name, rate in self._rates.items():
            until = [rate.rows_until(min(edge, self.end_ms) / 1000) for edge in edges.tolist()]
            counts[name] = self._chance.spread(np.diff(np.array(until, dtype=float)), self._shares[name])
        return Trains((edges[:-1] + edges[1:]) / 2, counts)


def _as_rate(given: Rate | float) -> Rate:
    return Constant(given) if isinstance(given, int | float) else given
