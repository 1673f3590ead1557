"""Worth delivered in time: what an overload leaves of a run's results, in one number.

The planner's objective, applied to what arrived in time: the sum over outputs of priority x utility of that share,
times the rate that the sources offer. A row that is shed and one that comes too late are the same loss, and a row that
is still unread at the end is lost too. An output with a latency graph says itself what a late row is worth; the rows
of any other output are in time until a deadline.

Worth by rows weighs each output by the rows that are offered to it. It is reported beside, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from jettison.network.arc import arc_name
from jettison.network.graph import Graph
from jettison.network.qos import QoS
from jettison.statistics.samples import LATENCY_QUANTILES, BatchSample

DEADLINE_TRIGGERS = 3.0
"""How many triggers after its event time a row is still in time, unless its output has a latency graph."""
_SLOTS = 16


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


def timely_share(qos: QoS, quantiles_ms: Sequence[float] | None, deadline_ms: float) -> float:
    """What is left of the worth of rows at their age: by the latency graph of their output, else all until a deadline.

    Rows without an age count as in time.

    >>> ages_ms = (0, 100, 500, 1000, 1500, 1900, 1980, 2000)
    >>> timely_share(QoS(), ages_ms, 1000), timely_share(QoS(stale="500 milliseconds"), ages_ms, 1000)
    (0.5, 0.25)
    >>> timely_share(QoS(latency=[(0, 1.0), ("2 seconds", 0.0)]), (1000,) * 8, deadline_ms=500)
    0.5
    """
    if quantiles_ms is None:
        return 1.0
    if qos.stale is not None or not qos.latency:
        limit_s = qos.stale_s
        return share_within(quantiles_ms, deadline_ms if limit_s is None else 1000 * limit_s)
    left = 0.0
    for (low_ms, high_ms), (low, high) in zip(pairwise(quantiles_ms), pairwise(LATENCY_QUANTILES), strict=True):
        ages_ms = (low_ms + (high_ms - low_ms) * (slot + 0.5) / _SLOTS for slot in range(_SLOTS))
        left += (high - low) * sum(qos.latency_utility(age_ms / 1000) for age_ms in ages_ms) / _SLOTS
    return min(1.0, left)


def shares_in_time(graph: Graph, samples: Iterable[BatchSample], arrived: int, deadline_ms: float) -> dict[str, float]:
    """By output, the share of what the rows that arrived are worth to it that was delivered in time.

    `arrived`: rows of all sources together, those included that nobody has read yet. A batch counts by the rows that it
    read; for an output of windows of time, by the windows that closed.
    """
    batches = list(samples)
    read = sum(map(_read, batches))
    found = {}
    for output in graph.outputs:
        above = [each.name for each in graph.aggregates if output.name in graph.outputs_below(each.name)]
        timed = [name for name in above if any(name in sample.windows for sample in batches)]
        counted = [arc for each in graph.count_aggregates for arc in _arcs_behind(graph, each.name, output.name)]
        worth = whole = 0.0
        for sample in batches:
            weight, kept = _windows(sample, timed) if timed else (_read(sample), 1.0)
            kept *= 1.0 if output.name in sample.delivered else _results(sample, counted)
            share, seen = kept * _share(sample, output.name), sample.outputs.get(output.name)
            timely = timely_share(output.qos, None if seen is None else seen.latency_ms, deadline_ms)
            worth, whole = worth + weight * share * timely, whole + weight
        in_time = worth / whole if whole > 0 else 1.0
        found[output.name] = min(1.0, in_time * read / max(1, arrived))
    return found


def _read(sample: BatchSample) -> float:
    return sum(sample.rows_in.values()) + sum(sample.skipped.values())


def _share(sample: BatchSample, output: str) -> float:
    """The share of an output's worth that passed the drops, as counted; that of its rows where all are worth the same;
    all of it where nothing was shed."""
    return sample.worth.get(output, sample.delivered.get(output, 1.0))


def _windows(sample: BatchSample, aggregates: Iterable[str]) -> tuple[float, float]:
    """Windows that closed in a batch, and the share of them that was kept."""
    found = [sample.windows[name] for name in aggregates if name in sample.windows]
    closed, kept = sum(each[0] for each in found), sum(each[1] for each in found)
    return closed, kept / closed if closed > 0 else 1.0


def _arcs_behind(graph: Graph, aggregate: str, output: str) -> list[str]:
    heads = graph.consumers[aggregate]
    return [arc_name(aggregate, head) for head in heads if head == output or output in graph.outputs_below(head)]


def _results(sample: BatchSample, arcs: Iterable[str]) -> float:
    """The share of results that passed the drops behind aggregates whose windows are not numbered by time."""
    kept = 1.0
    for arc in arcs:
        came, passed = sample.arcs.get(arc, (0, 0))
        kept *= min(1.0, passed / came) if came else 1.0
    return kept


def utility_of(graph: Graph, shares: Mapping[str, float]) -> float:
    """Sum of priority x utility over the outputs when these shares, of what rows are worth, are delivered (thesis 3.4).

    Planners maximise it, and worth in time is measured by it.

    >>> from jettison.network import Network, QoS
    >>> net = Network("n")
    >>> s = net.source("s", "x int")
    >>> outputs = s.output("all", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)])), s.output("alerts", qos=QoS(priority=5))
    >>> utility_of(net.graph, {"all": 0.5, "alerts": 1.0})
    5.8
    """
    return sum(output.qos.priority * output.qos.utility(shares[output.name]) for output in graph.outputs)


def share_of_worth(graph: Graph, shares: Mapping[str, float]) -> float:
    """Worth of the shares in time, as a share of the worth of everything.

    >>> from jettison.network import Network, QoS
    >>> net = Network("n")
    >>> s = net.source("s", "x int")
    >>> outputs = s.output("all"), s.output("alerts", qos=QoS(priority=4))
    >>> share_of_worth(net.graph, {"all": 0.0, "alerts": 0.5})
    0.4
    """
    return utility_of(graph, shares) / utility_of(graph, _all_of(graph))


def worth_per_s(graph: Graph, shares: Mapping[str, float], offered_rows_per_s: float) -> float:
    """Rows that the sources offer per second x priority x utility of the share in time, over all outputs.

    The rate is the same factor for every output: it makes runs at different loads comparable.

    >>> from jettison.network import Network, QoS
    >>> net = Network("n")
    >>> s = net.source("s", "x int")
    >>> outputs = s.output("all", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)])), s.output("alerts", qos=QoS(priority=5))
    >>> worth_per_s(net.graph, {"all": 0.5, "alerts": 1.0}, 100.0)
    580.0
    """
    return offered_rows_per_s * utility_of(graph, shares)


def worth_by_rows_per_s(graph: Graph, shares: Mapping[str, float], offered_per_s: Mapping[str, float]) -> float:
    """The same, each output weighed by the rows that are offered to it: the measure before record 49.

    >>> from jettison.network import Network, QoS
    >>> net = Network("n")
    >>> s = net.source("s", "x int")
    >>> outputs = s.output("all", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)])), s.output("alerts", qos=QoS(priority=5))
    >>> worth_by_rows_per_s(net.graph, {"all": 0.5, "alerts": 1.0}, {"all": 100.0, "alerts": 2.0})
    90.0
    """
    return sum(
        output.qos.priority * offered_per_s[output.name] * output.qos.utility(shares[output.name])
        for output in graph.outputs
    )


def share_of_worth_by_rows(graph: Graph, shares: Mapping[str, float], offered: Mapping[str, float]) -> float:
    """The worth by rows of the shares in time, as a share of the worth by rows of everything; 1 if nothing was offered.

    >>> from jettison.network import Network
    >>> net = Network("n")
    >>> s = net.source("s", "x int")
    >>> outputs = s.output("all"), s.output("alerts")
    >>> share_of_worth_by_rows(net.graph, {"all": 0.5, "alerts": 1.0}, {"all": 90.0, "alerts": 10.0})
    0.55
    """
    whole = worth_by_rows_per_s(graph, _all_of(graph), offered)
    return worth_by_rows_per_s(graph, shares, offered) / whole if whole > 0 else 1.0


def _all_of(graph: Graph) -> dict[str, float]:
    return {output.name: 1.0 for output in graph.outputs}
