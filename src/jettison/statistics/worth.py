"""Worth delivered in time: what an overload leaves of a run's results, in one number.

The sum over outputs of priority x rate offered x utility of the share that arrives within a deadline. A row that is
shed and one that comes too late are the same loss, and of a row that is still unread at the end nobody has anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from jettison.network.graph import Graph
from jettison.statistics.samples import LATENCY_QUANTILES, BatchSample

DEADLINE_TRIGGERS = 3.0
"""How many triggers after its arrival a row is still in time, unless said otherwise."""


def share_within(quantiles_ms: Sequence[float], limit_ms: float) -> float:
    """The share of rows that are at most so old, `LATENCY_QUANTILES` of their ages given: evenly between two of them.

    >>> ages_ms = (0, 100, 500, 1000, 1500, 1900, 1980, 2000)
    >>> [share_within(ages_ms, limit) for limit in (2000, 1000, 250, -1)]
    [1.0, 0.5, 0.125, 0.0]
    """
    if limit_ms >= quantiles_ms[-1]:
        return 1.0
    for (low_ms, high_ms), (low, high) in zip(pairwise(quantiles_ms), pairwise(LATENCY_QUANTILES), strict=True):
        if limit_ms < high_ms:
            inside = (limit_ms - low_ms) / (high_ms - low_ms) if high_ms > low_ms else 0.0
            return low + max(0.0, inside) * (high - low)
    return 1.0


def shares_in_time(graph: Graph, samples: Iterable[BatchSample], arrived: int, deadline_ms: float) -> dict[str, float]:
    """By output, the share of what the rows that arrived are worth to it that was delivered within the deadline.

    `arrived`: rows of all sources together, those included that nobody has read yet.
    """
    found = {output.name: 0.0 for output in graph.outputs}
    for sample in samples:
        read = sum(sample.rows_in.values()) + sum(sample.skipped.values())
        for name in found:
            seen = sample.outputs.get(name)
            ages_ms = None if seen is None else seen.latency_ms
            within = 1.0 if ages_ms is None else share_within(ages_ms, deadline_ms)
            found[name] += read * sample.worth.get(name, 1.0) * within
    return {name: min(1.0, worth / max(1, arrived)) for name, worth in found.items()}


def worth_per_s(graph: Graph, shares: Mapping[str, float], offered_per_s: Mapping[str, float]) -> float:
    """Priority x rows offered per second x utility of the share in time, over all outputs.

    >>> from jettison.network import Network, QoS
    >>> net = Network("n")
    >>> s = net.source("s", "x int")
    >>> outputs = s.output("all", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)])), s.output("alerts", qos=QoS(priority=5))
    >>> worth_per_s(net.graph, {"all": 0.5, "alerts": 1.0}, {"all": 100.0, "alerts": 2.0})
    90.0
    """
    return sum(
        output.qos.priority * offered_per_s[output.name] * output.qos.utility(shares[output.name])
        for output in graph.outputs
    )
