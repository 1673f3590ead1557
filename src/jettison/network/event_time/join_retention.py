"""What a join of two streams must remember: rows that may still find a partner within the band, and no others.

A row of one side at time t pairs with rows of the other side from t - within to t + within. The other side's
watermark is its largest event time so far less the delay; rows before it are late. So a row whose t + within lies
before the other side's watermark has met all of its partners, but for late ones, and goes. Times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

MOST_PARTS = 16
"""So many parts of one level are kept before they are merged into one of the next."""


@dataclass(frozen=True)
class Part:
    """Rows of one side that were written together: those of a batch (level 0), or several parts merged."""

    name: str
    rows: int
    from_us: int
    to_us: int
    level: int = 0
    files: tuple[tuple[str, int, str], ...] = field(default=(), kw_only=True, repr=False)
    """What was written: name, bytes and checksum of each file. Parts from before that was noted have none."""

    @staticmethod
    def listed(files: Iterable[Iterable[object]]) -> tuple[tuple[str, int, str], ...]:
        """Files as JSON gives them.

        >>> Part.listed([["a.parquet", 5, "crc32:01"]])
        (('a.parquet', 5, 'crc32:01'),)
        """
        return tuple((str(name), int(str(size)), str(checksum)) for name, size, checksum in files)


P = TypeVar("P", bound=Part)


def watermark_us(newest_us: int | None, delay_us: int) -> int | None:
    """Where a side has got to: its largest event time less the delay; None before it has any row.

    >>> watermark_us(60_000_000, 10_000_000)
    50000000
    """
    return None if newest_us is None else newest_us - delay_us


def horizon_us(other_newest_us: int | None, within_us: int, delay_us: int) -> int | None:
    """The first event time of a side that may still find a partner; None while all may.

    The other side has got to second 60, its rows may be 10 s late and the band is 20 s: rows before second 30 go.

    >>> horizon_us(60_000_000, within_us=20_000_000, delay_us=10_000_000)
    30000000
    """
    mark = watermark_us(other_newest_us, delay_us)
    return None if mark is None else mark - within_us


def still_needed(parts: Iterable[P], first_us: int | None) -> tuple[P, ...]:
    """The parts with a row that is not before the horizon.

    >>> still_needed([Part("0", 5, 0, 29), Part("1", 5, 20, 30)], first_us=30)
    (Part(name='1', rows=5, from_us=20, to_us=30, level=0),)
    """
    return tuple(part for part in parts if first_us is None or part.to_us >= first_us)


def in_reach(parts: Iterable[Part], of: Part | None, within_us: int) -> tuple[Part, ...]:
    """The parts with a row that may pair with one of the other side's part; none where that side has no rows.

    >>> in_reach([Part("0", 5, 0, 10), Part("1", 5, 11, 20)], of=Part("2", 1, 25, 25), within_us=5)
    (Part(name='1', rows=5, from_us=11, to_us=20, level=0),)
    """
    if of is None:
        return ()
    first_us, last_us = of.from_us - within_us, of.to_us + within_us
    return tuple(part for part in parts if part.to_us >= first_us and part.from_us <= last_us)


def to_merge(parts: Sequence[P]) -> tuple[P, ...]:
    """Parts to merge into one: those of the lowest level that has more than `MOST_PARTS`; none while there is no such.

    A row is written again once per level, and a level is 17 times as large as the one before it: with n batches in
    the band that is log17(n) times, and a side has at most 16 parts per level.
    """
    for level in sorted({part.level for part in parts}):
        same = tuple(part for part in parts if part.level == level)
        if len(same) > MOST_PARTS:
            return same
    return ()
