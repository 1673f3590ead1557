"""What of a batch is stale, counted before it is planned: only when there may be something, as it reads the source.

A large batch is sampled: after an outage the backlog is many times a batch, and a time inside a payload must be parsed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.plan.stale import Fresh
from jettison.spark.compile import BODY, Known, dropped_raw, raw_time

_SAMPLE_ROWS = 50_000


def may_be_stale(limits: Mapping[str, float], since_last_s: float | None, oldest_s: float | None) -> bool:
    """Whether rows of the next batch may be older than a limit.

    They may when nothing is known yet, when the batch before was planned that long ago, or when its own rows came near.

    >>> limits = {"trips": 10.0}
    >>> may_be_stale(limits, None, None), may_be_stale(limits, 1.0, 2.0), may_be_stale(limits, 30.0, 2.0)
    (True, False, True)
    """
    if not limits:
        return False
    least_s = min(limits.values())
    return since_last_s is None or since_last_s + (oldest_s or 0.0) >= least_s


def count_fresh(
    graph: Graph,
    raw: Mapping[str, DataFrame],
    rows: Mapping[str, int],
    limits: Mapping[str, float],
    now_s: float,
    known: Known,
) -> Fresh:
    """The shares of a batch that are not stale, by arc. On an inner arc they are those of the sources above it."""
    counts: dict[str, dict[float, int]] = {}
    ages = sorted(set(limits.values()))
    for source in graph.sources:
        if not rows.get(source.name) or source.event_time is None:
            continue
        frame, columns, all_rows = raw[source.name], raw[source.name].columns, rows[source.name]
        if all_rows > 2 * _SAMPLE_ROWS:
            frame = frame.sample(fraction=_SAMPLE_ROWS / all_rows, seed=1)
        moment = raw_time(source, columns)
        if moment is None:
            frame = dropped_raw(source, frame, columns, Plan(), known)
            moment = f"{BODY}.`{source.event_time}`"
        metrics = [
            f"count_if(coalesce(unix_micros({moment}) >= {round(1e6 * (now_s - age))}L, true)) AS n{index}"
            for index, age in enumerate(ages)
        ]
        row = frame.selectExpr("count(1) AS rows", *metrics).first()
        seen = 0 if row is None else int(row["rows"])
        counts[source.name] = {
            age: round(all_rows * row[f"n{index}"] / seen) if row is not None and seen else 0
            for index, age in enumerate(ages)
        }
    shares = {arc: _share(graph, arc, rows, counts, limit, limits) for arc, limit in limits.items()}
    return Fresh({arc: now_s - limit for arc, limit in limits.items()}, shares)


def _share(
    graph: Graph,
    arc: str,
    rows: Mapping[str, int],
    counts: Mapping[str, Mapping[float, int]],
    limit: float,
    limits: Mapping[str, float],
) -> float:
    """Of what enters an arc, behind the limits of the sources above it, the share that is within its own."""
    tail, inner, _ = arc.rpartition(">")
    names = [name for name in counts if name == (tail if inner else arc) or (inner and _above(graph, tail, name))]
    fresh = sum(counts[name][limit] for name in names)
    entering = sum(counts[name][limits[name]] if inner and name in limits else rows[name] for name in names)
    return min(1.0, fresh / entering) if entering else 1.0


def _above(graph: Graph, operator: str, source: str) -> bool:
    waiting = [operator]
    while waiting:
        name = waiting.pop()
        if name == source:
            return True
        waiting.extend(graph.by_name[name].inputs)
    return False
