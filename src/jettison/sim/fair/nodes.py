"""Nodes that shed fairly side by side: by what they know themselves, or with what a coordinator spreads.

In every interval each node decides for its own sources. A query's SIC is over the source time window, of all its
sources. A coordinator adds up what each query got on all nodes and tells each of its nodes what it has elsewhere: a
message per query and node. It may come late or not at all; then the node goes by the last one that came.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from jettison.errors import StartError
from jettison.plan.shedders.fair.admission import admit
from jettison.plan.shedders.fair.competition import Competition
from jettison.sim.fair.federation import Federation, Numbers, Vector


@dataclass(frozen=True)
class Spreading:
    """How SIC values come to nodes: whether at all, the share of messages that is lost, and how many intervals late."""

    coordinated: bool = True
    lost_share: float = 0.0
    late_intervals: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.lost_share <= 1.0:
            raise StartError(f"spreading: lost_share is {self.lost_share}: give a share from 0 to 1.")
        if self.late_intervals < 0:
            raise StartError(f"spreading: late_intervals is {self.late_intervals}: give 0 or more.")


LOCAL = Spreading(coordinated=False)


@dataclass(frozen=True)
class FairRun:
    """`sic` has a row per interval and a column per query; `messages` were sent by the coordinator."""

    sic: Vector
    messages: int

    def jain(self, last: int) -> float:
        """Jain's index of the SIC that queries have, on average over the last intervals."""
        return jain_index(self.sic[-last:].mean(axis=0))


def jain_index(shares: Vector) -> float:
    """How alike numbers are: 1 when all are the same, 1 / n when one has everything.

    >>> jain_index(np.array([0.5, 0.5])), jain_index(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    total, squares = float(shares.sum()), float((shares**2).sum())
    return total * total / (len(shares) * squares) if squares > 0 else 1.0


def simulate_fair(
    federation: Federation,
    spreading: Spreading,
    *,
    intervals: int,
    seed: int,
    window: int = 10,
    buckets: int = 64,
    noise: float = 0.2,
) -> FairRun:
    """Let all nodes shed for so many intervals. `window` is the source time window in intervals; `noise` is by how much
    the tuples of a source differ from interval to interval.

    >>> from jettison.sim.fair.federation import random_federation
    >>> made = random_federation(np.random.default_rng(1), nodes=4, queries=20)
    >>> alone = simulate_fair(made, LOCAL, intervals=20, seed=1).jain(10)
    >>> together = simulate_fair(made, Spreading(), intervals=20, seed=1).jain(10)
    >>> alone < together
    True
    """
    draw = np.random.default_rng(seed)
    sources = [np.flatnonzero(federation.node == node) for node in range(len(federation.capacity_us))]
    read: deque[Vector] = deque()
    kept: deque[Vector] = deque()
    on_nodes = _QueryNodes(federation)
    told = _Messages(spreading, on_nodes, draw)
    found = []
    for _ in range(intervals):
        rows = federation.rows * draw.lognormal(0.0, noise, len(federation.rows))
        if len(read) == window:  # this interval pushes the oldest one out
            read.popleft()
            kept.popleft()
        before, used = _sums(read, rows), _sums(kept, rows)
        levels = np.zeros(len(rows), np.int64)
        elsewhere = told.known()
        for node, mine in enumerate(sources):
            if len(mine):
                levels[mine] = _decide(federation, on_nodes, node, mine, rows, before, used, elsewhere, buckets)
        read.append(rows)
        kept.append(rows * levels / buckets)
        shares = _sums(kept, rows) / _sums(read, rows)
        found.append(np.bincount(federation.query, shares, federation.queries) / federation.sources_of)
        told.spread(shares)
    return FairRun(np.array(found), told.sent)


def _sums(history: deque[Vector], like: Vector) -> Vector:
    return np.sum(history, axis=0) if history else np.zeros(len(like))


class _QueryNodes:
    """Pairs of a query and a node that it is on."""

    def __init__(self, federation: Federation) -> None:
        nodes = len(federation.capacity_us)
        keys, self.of_source = np.unique(federation.query * nodes + federation.node, return_inverse=True)
        self.query, self.node = keys // nodes, keys % nodes
        self.sources = np.bincount(self.of_source)
        """How many sources the query has on the node."""
        self.elsewhere = federation.sources_of[self.query] - self.sources
        self.federation = federation

    def sic_elsewhere(self, shares: Vector) -> Vector:
        """What each query has on all nodes but this one, on average over its sources there."""
        here = np.bincount(self.of_source, shares)
        every = np.bincount(self.federation.query, shares)[self.query]
        found: Vector = (every - here) / np.maximum(1, self.elsewhere)
        return found


class _Messages:
    """What nodes were told last of what queries have elsewhere; nothing is known (NaN) before the first message."""

    def __init__(self, spreading: Spreading, pairs: _QueryNodes, draw: np.random.Generator) -> None:
        self._spreading, self._pairs, self._draw = spreading, pairs, draw
        self._known = np.full(len(pairs.query), np.nan)
        self._way: deque[Vector] = deque()
        self.sent = 0

    def spread(self, shares: Vector) -> None:
        """Send a message per query and node, where the query is on other nodes too."""
        if not self._spreading.coordinated:
            return
        value = np.where(self._pairs.elsewhere > 0, self._pairs.sic_elsewhere(shares), np.nan)
        self.sent += int((self._pairs.elsewhere > 0).sum())
        self._way.append(np.where(self._draw.random(len(value)) < self._spreading.lost_share, np.nan, value))

    def known(self) -> Vector:
        """By pair, what the node knows now."""
        while len(self._way) > self._spreading.late_intervals:
            came = self._way.popleft()
            self._known = np.where(np.isnan(came), self._known, came)
        return self._known


def _decide(
    federation: Federation,
    pairs: _QueryNodes,
    node: int,
    mine: Numbers,
    rows: Vector,
    before: Vector,
    used: Vector,
    elsewhere: Vector,
    buckets: int,
) -> Numbers:
    """One node's decision: the levels of its sources."""
    here, local = np.unique(pairs.of_source[mine], return_inverse=True)
    known = ~np.isnan(elsewhere[here])
    beside = np.where(known, pairs.elsewhere[here], 0)
    every = pairs.sources[here] + beside
    brought = before[mine] + rows[mine]
    had = np.bincount(local, used[mine] / brought, len(here)) / every
    had += np.where(known, np.nan_to_num(elsewhere[here]) * beside, 0.0) / every
    sic = rows[mine] / brought / every[local]
    competition = Competition.of(had, local, sic, rows[mine] * federation.tuple_us[mine], buckets=buckets)
    return admit(competition, float(federation.capacity_us[node])).levels
