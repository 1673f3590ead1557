"""How far event times may get in a batch, judged by the batches before it."""

from __future__ import annotations

from collections import deque

_REMEMBERED = 8
_MORE = 4
"""A batch may get so many times as far as the one, of those remembered, that got furthest for its rows."""


class Sight:
    """Told before every batch how far all before it have got, and how many rows it has.

    Batches of 100 rows got 10 s further each; one of 300 rows, more than usual, may get 120 s further:

    >>> sight = Sight()
    >>> [sight.before(newest_us, rows) for newest_us, rows in ((None, 100), (5_000_000, 100), (15_000_000, 300))]
    [None, None, 120000000]
    """

    def __init__(self) -> None:
        self._newest_us: int | None = None
        self._rows = 0
        self._ways: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)

    def before(self, newest_us: int | None, rows: int) -> int | None:
        """How far the next batch may get behind the newest event time so far; None while nothing is known."""
        if newest_us is not None and self._newest_us is not None and newest_us > self._newest_us:
            self._ways.append((newest_us - self._newest_us, self._rows))
        self._newest_us, self._rows = newest_us, rows
        if not self._ways:
            return None
        return round(_MORE * max(way_us * max(1.0, rows / max(1, then)) for way_us, then in self._ways))
