"""What a list of queries shows, the lowest SIC first (DISSP 4.3, statistics manager): from the records of a ledger.

Comes in: for every batch a record, as `query_record` makes it and the ledger keeps it.
Goes out: one `QueryLine` per output over the batches of a while, and the batches that a `SicWindow` is restored from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jettison.statistics.sic import SicWindow
from jettison.telemetry.events import BatchEvent


def query_record(event: BatchEvent, window: SicWindow) -> dict[str, Any]:
    """What the ledger keeps of a batch beside what was shed: what outputs got, and what their SIC rests on."""
    latest = {} if window.latest is None else {"sic": window.latest.to_dict(window.graph)}
    return {"stw_ms": window.stw_ms, "queries": event.queries(), **latest}


def sic_batches(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """What a `SicWindow` is restored from: of each record, the newest first, its part of the window and the outputs
    that there were."""
    return ((record["sic"], record["queries"]) for record in records)


def recent_records(records: Iterable[Mapping[str, Any]], stw_ms: float) -> Iterator[Mapping[str, Any]]:
    """The records of a source time window, which come the newest first; a record of an earlier version ends it.

    >>> batch = {"sic": {"interval_ms": 2000}, "queries": {}}
    >>> len(list(recent_records([batch] * 9, 5000.0)))
    3
    """
    ago_ms = 0.0
    for record in records:
        if "sic" not in record or "queries" not in record or ago_ms >= stw_ms:
            return
        yield record
        ago_ms += record["sic"]["interval_ms"]


@dataclass(frozen=True)
class QueryLine:
    """One query: its SIC now, and over a while source tuples processed and lost per second, rows delivered per second,
    and the latency of its rows in milliseconds (None: they have no time, or there were none): the median of the
    batches' medians, and the highest 95th percentile of a batch."""

    name: str
    sic: float
    tuples_per_s: float
    lost_per_s: float
    rows_per_s: float
    p50_ms: float | None
    p95_ms: float | None


def query_lines(records: Iterable[Mapping[str, Any]], seconds: float | None = None) -> list[QueryLine]:
    """A line per query of the newest record, the lowest SIC first; `records` come the newest first.

    Averages are over the last `seconds`, the source time window when left out; those of a query that came later, over
    the batches since then.

    >>> one = {"sic": 0.5, "processed": 50, "lost": 50, "rows": 10, "p50_ms": 800.0, "p95_ms": 900.0}
    >>> two = {"sic": 0.25, "processed": 25, "lost": 75, "rows": 5}
    >>> batch = {"stw_ms": 10_000, "sic": {"interval_ms": 2000}, "queries": {"one": one, "two": two}}
    >>> for line in query_lines([batch, batch]):
    ...     print(line)
    QueryLine(name='two', sic=0.25, tuples_per_s=12.5, lost_per_s=37.5, rows_per_s=2.5, p50_ms=None, p95_ms=None)
    QueryLine(name='one', sic=0.5, tuples_per_s=25.0, lost_per_s=25.0, rows_per_s=5.0, p50_ms=800.0, p95_ms=900.0)
    """
    found: list[tuple[Mapping[str, Any], float]] = []
    lasted_s, wanted_s = 0.0, seconds
    for record in records:
        if "sic" not in record or "queries" not in record:
            break
        wanted_s = record["stw_ms"] / 1000 if wanted_s is None else wanted_s
        interval_s = record["sic"]["interval_ms"] / 1000
        found.append((record["queries"], interval_s))
        lasted_s += interval_s
        if lasted_s >= wanted_s:
            break
    if not found:
        return []
    newest, _ = found[0]
    lines = [_line(name, [(each[name], lasted) for each, lasted in found if name in each]) for name in newest]
    return sorted(lines, key=lambda line: line.sic)


def _line(name: str, lasting: list[tuple[Mapping[str, float], float]]) -> QueryLine:
    """The line of a query, from its batches and how many seconds each lasted."""
    batches, seconds = [batch for batch, _ in lasting], sum(lasted_s for _, lasted_s in lasting)

    def rate(key: str) -> float:
        return sum(each[key] for each in batches) / seconds if seconds > 0 else 0.0

    medians = sorted(each["p50_ms"] for each in batches if "p50_ms" in each)
    return QueryLine(
        name,
        batches[0]["sic"],
        rate("processed"),
        rate("lost"),
        rate("rows"),
        medians[len(medians) // 2] if medians else None,
        max((each["p95_ms"] for each in batches if "p95_ms" in each), default=None),
    )
