"""The rows that come to an operator with state in one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Arriving:
    """The rows that come to an operator in a batch, by the arcs that no drop tells apart. Closed arcs are left out.

    `tried`: the arguments of aggregates were tried first, and are columns of these rows.
    """

    rows: Mapping[tuple[str, ...], DataFrame] = field(default_factory=dict)
    tried: bool = False

    def on(self, arc: str) -> DataFrame | None:
        """The rows on one arc; None where it is closed."""
        return next((frame for arcs, frame in self.rows.items() if arc in arcs), None)
