"""Small online estimators: `update(x)` takes a measurement, `get()` gives the estimate."""

from __future__ import annotations

from collections import deque


class Smoothed:
    """Exponentially smoothed mean; `weight` is the share of the newest value.

    >>> rate = Smoothed(weight=0.5)
    >>> for value in (100.0, 200.0, 200.0):
    ...     rate.update(value)
    >>> rate.get()
    175.0
    """

    def __init__(self, weight: float, start: float | None = None) -> None:
        self._weight = weight
        self._mean = start

    def update(self, value: float) -> None:
        self._mean = value if self._mean is None else self._mean + self._weight * (value - self._mean)

    def get(self) -> float | None:
        return self._mean


class TupleCost:
    """Mean cost of a tuple over the last samples, and how many tuples fit into an interval (DISSP 5.2, 5.3).

    >>> cost = TupleCost(window=40)
    >>> cost.update(elapsed_ms=300, tuples=5000)
    >>> cost.get(), int(cost.tuples_in(250)), int(cost.excess(5000, interval_ms=250))
    (0.06, 4166, 833)
    """

    def __init__(self, window: int = 40) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=window)

    def update(self, elapsed_ms: float, tuples: int) -> None:
        if tuples > 0:
            self._samples.append((elapsed_ms, tuples))

    def get(self) -> float | None:
        """Milliseconds per tuple; None before the first sample."""
        tuples = sum(count for _, count in self._samples)
        return sum(elapsed for elapsed, _ in self._samples) / tuples if tuples else None

    def tuples_in(self, interval_ms: float) -> float:
        """How many tuples the next interval can take (5.3)."""
        cost_ms = self.get()
        return interval_ms / cost_ms if cost_ms else float("inf")

    def excess(self, waiting: int, interval_ms: float) -> float:
        """How many of the waiting tuples must go (5.1); 0 when all fit."""
        return max(0.0, waiting - self.tuples_in(interval_ms))
