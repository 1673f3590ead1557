"""DISSP's cost model: what a tuple takes on average, whichever query it is for (DISSP 5.3, eq. 5.1 to 5.3).

C_T = t / n             t: the measured interval, n: the tuples processed in it
N_tuples = delta / C_T  delta: the interval between two decisions
N_discard = IB_size - N_tuples
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

SAMPLES = 40
"""The moving average is over so many samples."""


@dataclass(frozen=True)
class TupleCosts:
    """The average cost of a tuple in milliseconds, over the last 40 samples.

    The seed's example: decisions are due every 250 ms, this one came after 300 ms, 5,000 tuples were processed:

    >>> costs = TupleCosts().after(300.0, 5000)
    >>> costs.tuple_ms, costs.tuples_in(250.0), costs.to_discard(6000, 250.0)
    (0.06, 4166, 1834)
    """

    samples_ms: tuple[float, ...] = ()

    def after(self, took_ms: float, tuples: float) -> TupleCosts:
        """With one more sample; an interval without tuples says nothing."""
        if not (tuples > 0 and 0 < took_ms < math.inf):
            return self
        return TupleCosts((*self.samples_ms, took_ms / tuples)[-SAMPLES:])

    @property
    def tuple_ms(self) -> float | None:
        """C_T; None before the first sample."""
        return _mean(self.samples_ms) if self.samples_ms else None

    def tuples_in(self, interval_ms: float) -> int | None:
        """N_tuples: how many tuples can be processed in an interval; None before the first sample."""
        cost_ms = self.tuple_ms
        return None if cost_ms is None else int(max(0.0, interval_ms) / cost_ms)

    def to_discard(self, waiting: float, interval_ms: float) -> int:
        """N_discard: how many of the tuples that wait are too many; 0 where all can be processed."""
        most = self.tuples_in(interval_ms)
        return 0 if most is None else max(0, math.ceil(waiting - most))


def _mean(numbers: Iterable[float]) -> float:
    every = list(numbers)
    return math.fsum(every) / len(every)
