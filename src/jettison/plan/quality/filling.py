"""One round of filling machines: at which share of cores each one is full, if all its queries grow together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.plan.quality.instances import Groups
from jettison.plan.quality.tasks import Index, Mask, TaskGraph, Vector

TOLERANCE = 1e-9
"""Shares of tuples and of a machine: differences below it are none."""
_STEPS = 200


@dataclass(frozen=True, eq=False)
class Entries:
    """Every query of every group of instances, sorted by group, and the cores of a group at accuracy 1."""

    group: Index
    query: Index
    machine: Index
    work: Vector

    @classmethod
    def of(cls, graph: TaskGraph, placed: Groups, slope: Vector) -> Entries:
        counts = graph.pair_counts[placed.task]
        group = np.repeat(np.arange(len(counts)), counts)
        inside = np.arange(len(group)) - (np.cumsum(counts) - counts)[group]
        query = graph.pair_query[graph.pair_starts[placed.task][group] + inside]
        return cls(group, query, placed.machine[group], placed.count * slope[placed.task])

    def only(self, chosen: Mask) -> Entries:
        return Entries(self.group[chosen], self.query[chosen], self.machine[chosen], self.work)


@dataclass(frozen=True, eq=False)
class Round:
    """The share at which every machine is full (inf: it is not short), and what groups reach there."""

    shares: Vector
    least: Vector
    first: Mask
    groups: Index
    accuracy: Vector


class Filling:
    """Queries of one priority that grow on machines that are not settled, as functions of every machine's share."""

    def __init__(
        self,
        growing: Entries,
        minima: Vector,
        ceiling: Vector,
        dearest: Vector,
        floor: Vector,
        rest: Vector,
        cores: Vector,
    ) -> None:
        """`floor` is what groups process anyway, `rest` what this leaves of the `cores` of every machine."""
        self._query, self._machine = growing.query, growing.machine
        self._starts = np.flatnonzero(np.diff(growing.group, prepend=-1))
        self._counts = np.diff(self._starts, append=len(growing.group))
        self.groups = growing.group[self._starts]
        self._at, self._work = growing.machine[self._starts], growing.work[self.groups]
        self._floor, self._rest, self._queries = floor[self.groups], rest, len(minima)
        self._ceiling, self._minima = ceiling[growing.query], minima[growing.query]
        self._pace = 1.0 / dearest[growing.query]
        self._tolerance = TOLERANCE * cores + 1e-300

    def round(self, guess: Vector) -> Round | None:
        """Fill machines; `guess` has shares at which none of them is full yet. None: all of it fits everywhere."""
        most, _ = self._excess(np.maximum.reduceat(self._ceiling, self._starts), np.zeros(len(self.groups)))
        short = (most > self._tolerance) & (np.bincount(self._at, minlength=len(most)) > 0)
        if not short.any():
            return None
        shares = np.where(short, self._full_at(guess, short), np.inf)
        accuracy = self._accuracy(np.where(short, shares, 0.0))[0]
        least = np.full(self._queries, np.inf)
        np.minimum.at(least, self._query, shares[self._machine])
        later = shares[self._machine] > least[self._query] * (1 + TOLERANCE)
        waits = np.bincount(self._machine[later], minlength=len(shares)) > 0
        return Round(shares, least, short & ~waits, self.groups, accuracy)

    def _accuracy(self, shares: Vector) -> tuple[Vector, Vector]:
        """What every group reaches, and by how much more with every core more for its queries."""
        grown = self._minima + shares[self._machine] * self._pace
        open_ = grown < self._ceiling
        grown = np.where(open_, grown, self._ceiling)
        top = np.maximum.reduceat(grown, self._starts)
        leads = open_ & (grown >= np.repeat(np.maximum(top, self._floor), self._counts))
        return np.maximum(top, self._floor), np.maximum.reduceat(np.where(leads, self._pace, 0.0), self._starts)

    def _excess(self, accuracy: Vector, pace: Vector) -> tuple[Vector, Vector]:
        """Cores beyond what is there, and how fast they grow with the share, on every machine."""
        above = self._work * np.maximum(accuracy - self._floor, 0.0)
        used = np.bincount(self._at, weights=above, minlength=len(self._rest))
        grows = np.bincount(self._at, weights=self._work * pace, minlength=len(self._rest)).astype(float)
        return used - self._rest, grows

    def _full_at(self, guess: Vector, short: Mask) -> Vector:
        """Where the excess of every short machine is 0: Newton's steps inside a bracket, halved where they leave it."""
        low, high = np.zeros(len(guess)), np.zeros(len(guess))
        np.maximum.at(high, self._machine, (self._ceiling - self._minima) / self._pace)
        found = np.clip(guess, low, high)
        open_ = short & (self._rest > self._tolerance)
        found[short & ~open_] = 0.0
        for step in range(_STEPS):
            value, grows = self._excess(*self._accuracy(found))
            open_ = open_ & (np.abs(value) > self._tolerance) & (high - low > 1e-15 * high)
            if not open_.any():
                break
            low = np.where(open_ & (value <= 0), found, low)
            high = np.where(open_ & (value > 0), found, high)
            after = found - np.divide(value, grows, out=np.full(len(value), np.inf), where=grows > 0)
            inside = (after > low) & (after < high) & (step % 8 != 7)
            found = np.where(open_, np.where(inside, after, (low + high) / 2), found)
        return np.where(value <= self._tolerance, found, low)
