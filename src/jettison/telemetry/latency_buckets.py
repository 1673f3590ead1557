"""Latencies as a Prometheus histogram: whole batches are poured into its buckets, of which quantiles are known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from jettison.statistics.samples import LATENCY_QUANTILES

BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


def share_within(quantiles: Sequence[float], bound: float) -> float:
    """The share of rows up to a bound, when rows are spread evenly between the quantiles of `LATENCY_QUANTILES`.

    >>> share_within((0, 50, 250, 500, 750, 950, 990, 1000), 375.0), share_within((7.0,) * 8, 7.0)
    (0.375, 1.0)
    """
    at = bisect_right(quantiles, bound)
    if at == 0 or at == len(quantiles):
        return 0.0 if at == 0 else 1.0
    low, high = quantiles[at - 1], quantiles[at]
    share = (bound - low) / (high - low)
    return LATENCY_QUANTILES[at - 1] + share * (LATENCY_QUANTILES[at] - LATENCY_QUANTILES[at - 1])


class LatencyBuckets(Collector):
    """A histogram with labels to which a batch of rows is added at once."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._about = (name, documentation)
        self._labels = tuple(labels)
        self._counts: dict[tuple[str, ...], list[float]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def add(self, labels: Iterable[str], rows: int, quantiles_s: Sequence[float]) -> None:
        """Pour so many rows in; how old they are is said by quantiles."""
        key = tuple(labels)
        counts = self._counts.get(key, [0.0] * (len(BUCKETS_S) + 1))
        within = [rows * share_within(quantiles_s, bound) for bound in BUCKETS_S]
        self._counts[key] = [before + new for before, new in zip(counts, (*within, float(rows)), strict=True)]
        parts = zip(LATENCY_QUANTILES, LATENCY_QUANTILES[1:], quantiles_s, quantiles_s[1:], strict=False)
        mean = sum((upper - lower) * (first + last) / 2 for lower, upper, first, last in parts)
        self._sums[key] = self._sums.get(key, 0.0) + rows * mean

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._about, labels=self._labels)
        bounds = [*(f"{bound:g}" for bound in BUCKETS_S), "+Inf"]
        for key, counts in list(self._counts.items()):
            family.add_metric(key, list(zip(bounds, counts, strict=True)), self._sums[key])
        yield family
