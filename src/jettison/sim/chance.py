"""Chance: which tuples pass a filter or a drop, and how much longer a batch takes than it should. All of it seeded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from jettison.sim.cells import Matrix, Vector


class Chance:
    """Draws from a seed. With `noise=False` nothing is drawn: counts are what is expected, and need not be whole.

    Work and outcomes draw from streams of their own, so that a run with shedding and one without are slow at the
    same moments.

    >>> Chance(seed=1, noise=False).passing(np.array([[100.0, 10.0]]), np.array([0.5, 2.0]))
    array([[50., 20.]])
    >>> Chance(seed=1).passing(np.array([[100.0, 10.0]]), np.array([0.5, 2.0]))
    array([[45., 20.]])
    """

    def __init__(
        self,
        seed: int,
        *,
        noise: bool = True,
        slowness_share: float = 0.0,
        pace: Sequence[tuple[float, float]] = (),
    ) -> None:
        self._outcomes = np.random.default_rng([seed, 0])
        self._slowness = np.random.default_rng([seed, 1])
        self.noise = noise
        self._slowness_share = slowness_share
        self._pace = pace

    def passing(self, counts: Matrix, shares: Vector) -> Matrix:
        """How many of `counts` (trains x cells) pass, when each tuple of a cell becomes `shares` tuples on average.

        A share of 2.3 makes two of each tuple, and a third with a chance of .3: a binomial draw for the broken part.
        """
        if not self.noise:
            return counts * shares
        if counts.size == 1:  # drawing for a single number takes a twentieth of the time
            rows, share = counts.item(), shares.item()
            whole, rest = (0.0, share) if share < 1 else divmod(share, 1.0)
            return np.array([[whole * rows + self._outcomes.binomial(int(rows), rest)]])
        wholes = np.floor(shares)
        drawn: Matrix = wholes * counts + self._outcomes.binomial(counts.astype(np.int64), shares - wholes)
        return drawn

    def spread(self, rows: Vector, shares: Vector) -> Matrix:
        """Trains of `rows` tuples, spread over the cells by their shares."""
        if not self.noise or shares.size == 1:
            return rows[:, np.newaxis] * shares
        return self._outcomes.multinomial(rows.astype(np.int64), shares).astype(float)

    def slowness(self, now_ms: float) -> float:
        """How many times as long as it should work takes now: the machine's pace, by chance some more or less."""
        spread, begun = self._slowness_share, bisect_right(self._pace, now_ms / 1000, key=lambda point: point[0])
        pace = self._pace[begun - 1][1] if begun else 1.0
        # log-normal, 1 on average
        return pace * (float(np.exp(spread * self._slowness.standard_normal() - spread**2 / 2)) if spread else 1.0)
