"""How much event time a batch covers, of late, by estimated aggregate."""

from __future__ import annotations

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.statistics.estimators import Smoothed

_WEIGHT = 0.5


class CoveredTime:
    """Follows the newest event times from batch to batch."""

    def __init__(self, graph: Graph) -> None:
        self._covered_us = {each.name: Smoothed(_WEIGHT) for each in graph.aggregates if each.estimated}
        self._newest_us: dict[str, int | None] = {}

    def update(self, marks: BatchMarks | None) -> None:
        """Take in how far event times have got before a batch."""
        for name, covered in self._covered_us.items():
            newest_us, before_us = None if marks is None else marks.newest_of(name), self._newest_us.get(name)
            if newest_us is not None and before_us is not None and newest_us > before_us:
                covered.update(newest_us - before_us)
            self._newest_us[name] = newest_us

    def get(self) -> dict[str, float]:
        """Microseconds by aggregate, where they are known."""
        return {name: known for name, covered in self._covered_us.items() if (known := covered.get()) is not None}
