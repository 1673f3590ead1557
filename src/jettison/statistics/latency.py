"""Latency over a whole run in bounded memory: per-batch quantiles are poured into a histogram with 2 % wide bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jettison.statistics.samples import LATENCY_QUANTILES

_GROWTH = math.log(1.02)


class LatencyHistogram:
    """Counts by logarithmic bin, with the largest value kept exactly.

    >>> seen = LatencyHistogram()
    >>> seen.add(rows=1000, quantiles_ms=(0, 50, 250, 500, 750, 950, 990, 1000))
    >>> abs(seen.quantile(0.5) - 500) < 15, seen.quantile(1.0)
    (True, 1000)
    """

    def __init__(self) -> None:
        self._counts: dict[int, float] = {}
        self._largest = 0.0
        self.rows = 0

    def add(self, rows: int, quantiles_ms: Sequence[float]) -> None:
        """Pour `rows` rows, spread as the quantiles of `LATENCY_QUANTILES` say, evenly between two of them."""
        self.rows += rows
        self._largest = max(self._largest, *quantiles_ms)
        for index in range(len(LATENCY_QUANTILES) - 1):
            share = LATENCY_QUANTILES[index + 1] - LATENCY_QUANTILES[index]
            low, high = quantiles_ms[index], quantiles_ms[index + 1]
            slots = 8
            for slot in range(slots):
                value = low + (high - low) * (slot + 0.5) / slots
                bin_ = _bin(value)
                self._counts[bin_] = self._counts.get(bin_, 0.0) + rows * share / slots

    def quantile(self, share: float) -> float | None:
        """The latency that `share` of the rows stay within, in milliseconds; None before the first row."""
        if self.rows == 0:
            return None
        if share >= 1.0:
            return self._largest
        wanted, seen = share * sum(self._counts.values()), 0.0
        for bin_ in sorted(self._counts):
            seen += self._counts[bin_]
            if seen >= wanted - 1e-9:
                return min(self._largest, math.exp((bin_ + 0.5) * _GROWTH))
        return self._largest

    def mean_of(self, worth: Callable[[float], float]) -> float:
        """The mean over all rows of a function of their age in seconds; 1 before the first row.

        >>> seen = LatencyHistogram()
        >>> seen.add(rows=100, quantiles_ms=(1000,) * 8)
        >>> seen.mean_of(lambda age_s: 1.0 if age_s < 2 else 0.0)
        1.0
        """
        whole = sum(self._counts.values())
        worths = (worth(math.exp((bin_ + 0.5) * _GROWTH) / 1000) * count for bin_, count in self._counts.items())
        return sum(worths) / whole if whole else 1.0


def _bin(value_ms: float) -> int:
    return math.floor(math.log(max(1.0, value_ms)) / _GROWTH)
