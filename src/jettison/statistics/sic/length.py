"""How long a source time window is: longer than any row waits for the result that it becomes part of."""

from __future__ import annotations

import math

from jettison.errors import StartError
from jettison.network.durations import duration_text
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, StreamJoin

LEAST_BATCHES = 10
"""By default the window covers at least so many intervals of the trigger, so that one batch is a small part of it."""


def longest_wait_ms(graph: Graph) -> tuple[float, str]:
    """The longest time that windows, delays and bands make a row wait on one way through the network, and the operators
    of that way. Windows that count rows wait for rows, not for time: they add nothing.

    >>> from jettison.network import Network
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> minutes = trips.window("1 minute", delay="5 seconds").agg(n="count(*)", name="minutes")
    >>> _ = minutes.window("10 minutes").agg(n="sum(n)", name="tens").output("out")
    >>> longest_wait_ms(net.graph)
    (665000.0, 'minutes, tens')
    """
    found: dict[str, tuple[float, tuple[str, ...]]] = {}
    for operator in graph.operators:
        waits, names = max((found[tail] for tail in operator.inputs), default=(0.0, ()))
        own_us = 0
        if isinstance(operator, Aggregate):
            own_us = operator.window.size_us + operator.window.delay_us
        elif isinstance(operator, StreamJoin):
            own_us = operator.within_us + operator.delay_us
        found[operator.name] = (waits + own_us / 1000, (*names, operator.name)) if own_us else (waits, names)
    longest, names = max(found.values(), default=(0.0, ()))
    return longest, ", ".join(names)


def default_stw_ms(graph: Graph, trigger_ms: float) -> float:
    """The length of the source time window where nobody says: the longest wait, and one batch beyond it for the result
    to come out; 10 intervals of the trigger at least.

    >>> from jettison.network import Network
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.output("all")
    >>> default_stw_ms(net.graph, 1000.0)
    10000.0
    >>> _ = trips.window("1 minute", delay="5 seconds").agg(n="count(*)", name="minutes").output("out")
    >>> default_stw_ms(net.graph, 1000.0)
    67000.0
    """
    waits = longest_wait_ms(graph)[0]
    return max(LEAST_BATCHES * trigger_ms, waits + 2 * trigger_ms if waits else 0.0)


def check_stw(graph: Graph, stw_ms: float, trigger_ms: float) -> None:
    """Raise StartError unless a source time window is longer than a batch and than what rows wait in windows.

    >>> from jettison.network import Network
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("1 minute", delay="5 seconds").agg(n="count(*)", name="minutes").output("out")
    >>> check_stw(net.graph, 60_000.0, 1000.0)
    Traceback (most recent call last):
    jettison.errors.StartError: stw is 1 minute: rows of network 'taxi' wait up to 65 seconds (minutes) for their \
result, and the source time window must be longer: leave it out, or say 67 seconds or more.
    """
    if not (math.isfinite(stw_ms) and stw_ms > 0):
        raise StartError(f"stw is {stw_ms} ms: give the length of the source time window, such as '10 seconds'.")
    if stw_ms < trigger_ms:
        raise StartError(
            f"stw is {duration_text(stw_ms)}, shorter than one batch (trigger {duration_text(trigger_ms)}): leave it "
            f"out, or say {duration_text(default_stw_ms(graph, trigger_ms))} or more."
        )
    waits, names = longest_wait_ms(graph)
    if stw_ms <= waits:
        raise StartError(
            f"stw is {duration_text(stw_ms)}: rows of network {graph.name!r} wait up to {duration_text(waits)} "
            f"({names}) for their result, and the source time window must be longer: leave it out, or say "
            f"{duration_text(waits + 2 * trigger_ms)} or more."
        )
