"""How fast a topic fills and how far behind its reader is, from offsets alone: no record is read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_LEAST_INTERVAL_S = 0.05


@dataclass(frozen=True)
class TopicSample:
    """One topic at the end of a batch: arrivals per second, and how many records, and seconds, its reader is behind.

    The rate is that up to `at_s` (of a clock that never jumps), since the look before. `lag_s` is None where records
    wait and none arrive: how long they have waited cannot be told from offsets.
    """

    rows_per_s: float
    lag_rows: int
    lag_s: float | None
    at_s: float = 0.0


class TopicRate:
    """Rows per second between two looks at a topic's end offsets (the seed's 4.6 takes it from consumer metrics).

    A partition that is new since the last look counts from its first record. When offsets went back, the topic was made
    anew: that interval tells nothing.

    >>> rate = TopicRate()
    >>> rate.update(10.0, {"0": 1000, "1": 500}), rate.update(12.0, {"0": 3000, "1": 700})
    (None, 1100.0)
    >>> rate.update(13.0, {"0": 10, "1": 0}), rate.update(14.0, {"0": 30, "1": 0, "2": 5})
    (1100.0, 25.0)
    """

    def __init__(self) -> None:
        self._at_s: float | None = None
        self._ends: Mapping[str, int] = {}
        self._rows_per_s: float | None = None

    def update(self, at_s: float, ends: Mapping[str, int]) -> float | None:
        """The rate after a look at `at_s` that saw these end offsets, by partition."""
        if self._at_s is not None and at_s - self._at_s < _LEAST_INTERVAL_S:
            return self._rows_per_s
        if self._at_s is not None:
            arrived = [end - self._ends.get(partition, 0) for partition, end in ends.items()]
            if all(count >= 0 for count in arrived):
                self._rows_per_s = sum(arrived) / (at_s - self._at_s)
        self._at_s, self._ends = at_s, dict(ends)
        return self._rows_per_s

    def get(self) -> float | None:
        return self._rows_per_s

    def behind(self, lag_rows: int) -> TopicSample:
        """A sample, given the records that wait. By Little's law they came within lag / rate seconds.

        >>> TopicRate().behind(28_924).lag_s is None, TopicRate().behind(0).lag_s
        (True, 0.0)
        """
        rate = self._rows_per_s or 0.0
        lag_s = lag_rows / rate if rate > 0 else (0.0 if lag_rows == 0 else None)
        return TopicSample(rate, lag_rows, lag_s, self._at_s or 0.0)


@dataclass(frozen=True)
class SourceLag:
    """What waits at a source; None where it does not tell."""

    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
