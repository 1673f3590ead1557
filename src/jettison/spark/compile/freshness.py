"""What of a batch is stale, counted before it is planned: only when there may be something, as it reads the source.

A large batch is sampled: after an outage the backlog is many times a batch, and a time inside a payload must be parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from jettison.network.arc import Arc
from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.plan.refine.staleness import Fresh
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.raw_rows import BODY, dropped_raw, raw_time

_SAMPLE_ROWS = 50_000
_WORTH_LOOKING = 1.25
"""How many times its limit the oldest row may be old: with less, at most a fifth of a steady stream is stale."""


@dataclass
class Ages:
    """How old the rows of the next batch may be: they came after the last one was planned, and as late as rows of late.

    >>> ages, limits = Ages(), {"trips": 10.0}
    >>> ages.may_be_stale(limits, now_s=100.0)  # nothing is known yet
    True
    >>> ages.planned(100.0), ages.planned(102.0), ages.delivered(3.5, ended_s=103.0)  # half a second late, at most
    (None, None, None)
    >>> ages.may_be_stale(limits, now_s=104.0), ages.may_be_stale(limits, now_s=160.0)
    (False, True)
    """

    _before_s: float | None = None
    _planned_s: float | None = None
    _late_s: float = 0.0

    def may_be_stale(self, limits: Mapping[str, float], now_s: float) -> bool:
        """Whether enough rows may be older than a limit that they are worth looking for."""
        if not limits or self._planned_s is None:
            return bool(limits)
        return now_s - self._planned_s + self._late_s >= _WORTH_LOOKING * min(limits.values())

    def planned(self, now_s: float) -> None:
        """A batch is planned."""
        self._before_s, self._planned_s = self._planned_s, now_s

    def delivered(self, oldest_s: float, *, ended_s: float, cut: bool = False) -> None:
        """The oldest row that a batch delivered; of one without its stale rows that tells nothing."""
        waited_s = 0.0 if self._before_s is None else ended_s - self._before_s
        self._late_s = float("inf") if cut else max(0.0, oldest_s - waited_s)


def count_fresh(
    graph: Graph,
    raw: Mapping[str, DataFrame],
    rows: Mapping[str, int],
    limits: Mapping[str, float],
    now_s: float,
    known: ExpressionCache,
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
    tail = Arc(arc).tail
    names = [name for name in counts if name == (tail or arc) or (tail is not None and _above(graph, tail, name))]
    fresh = sum(counts[name][limit] for name in names)
    entering = sum(counts[name][limits[name]] if tail is not None and name in limits else rows[name] for name in names)
    return min(1.0, fresh / entering) if entering else 1.0


def _above(graph: Graph, operator: str, source: str) -> bool:
    waiting = [operator]
    while waiting:
        name = waiting.pop()
        if name == source:
            return True
        waiting.extend(graph.by_name[name].inputs)
    return False
