"""Rows on their way through a network, by where they come from, as weights: what drops and rejections take of each.

`statistics.account` and `statistics.sic` follow a batch by these steps, operator by operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.network.graph import Graph


@dataclass
class RowStream:
    """Rows of one origin on their way: their weight, and the weight of one row (0 rows where it is 0).

    >>> RowStream(weight=50.0, unit=0.5).rows
    100.0
    """

    weight: float
    unit: float

    @property
    def rows(self) -> float:
        return self.weight / self.unit if self.unit else 0.0


def leading_to(graph: Graph, name: str) -> frozenset[str]:
    """An operator and all above it."""
    found, waiting = set(), [name]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += graph.by_name[at].inputs
    return frozenset(found)


def drop_rows(
    streams: Mapping[str, RowStream], counted: tuple[int, int] | None, shed: dict[str, float], closed: bool
) -> None:
    """Let the streams of an arc pass its drop: of the rows that were counted there, those that were not kept are shed.

    Fewer rows than came in mean a filter before, whose rows are processed. More mean that rows became several rows.
    """
    if counted is None:
        for source, each in streams.items() if closed else ():
            shed[source] = shed.get(source, 0.0) + each.weight
            each.weight = 0.0
        return
    expected = sum(each.rows for each in streams.values())
    for source, each in streams.items():
        part = each.rows / expected if expected else 0.0
        rows, kept = counted[0] * part, min(counted) * part
        unit = min(each.unit, each.weight / rows) if rows else each.unit
        shed[source] = shed.get(source, 0.0) + (rows - kept) * unit
        each.weight, each.unit = kept * unit, unit


def take_rows(streams: Mapping[str, RowStream], rows: float, into: dict[str, float]) -> None:
    """Take so many rows out of streams, in proportion."""
    expected = sum(each.rows for each in streams.values())
    for source, each in streams.items():
        taken = min(each.weight, rows * each.rows / expected * each.unit) if expected else 0.0
        into[source] = into.get(source, 0.0) + taken
        each.weight -= taken


def merge_streams(into: dict[str, RowStream], streams: Mapping[str, RowStream]) -> None:
    """Add streams to others; rows of one origin become one stream of their common weight."""
    for source, each in streams.items():
        before = into.get(source)
        if before is None:
            into[source] = each
        elif each.weight:
            rows, weight = before.rows + each.rows, before.weight + each.weight
            into[source] = RowStream(weight, weight / rows if rows else each.unit)
