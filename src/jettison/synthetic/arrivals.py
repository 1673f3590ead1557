"""N(t), the rows that have arrived by t under a piecewise constant rate: piecewise linear, with an exact inverse.

Row i (counted from 0) arrives at the last t with N(t) <= i. So at 1,000 rows/s rows 0 to 999 arrive within the
half-open second [0, 1), a row that falls on a pause arrives when the pause ends, and no row is later than its count.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Piece(NamedTuple):
    """A stretch of rows that arrive at one rate: the numbers that `Arrived.seconds_at` computes with."""

    rows_before_period: float
    rows_before: float
    rows_per_s: float
    start_s: float
    period_start_s: float
    period_s: float


@dataclass(frozen=True)
class Arrived:
    """N(t): from starts_s[k] on, with rows[k] rows before, rows arrive at rates[k]; after period_s it repeats.

    >>> burst = Arrived.of(starts_s=[0, 10, 12], rates=[0, 500, 100])
    >>> burst.rows_at(11), burst.seconds_at(np.array([0.0, 500.0, 1100.0]))
    (500.0, array([10., 11., 13.]))
    """

    starts_s: NDArray[np.float64]
    rates: NDArray[np.float64]
    rows: NDArray[np.float64]
    period_s: float
    period_rows: float

    @classmethod
    def of(cls, starts_s: ArrayLike, rates: ArrayLike, period_s: float = math.inf) -> "Arrived":
        """From the second at which each rate begins; the first is 0."""
        starts, slopes = np.asarray(starts_s, np.float64), np.asarray(rates, np.float64)
        rows = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(starts))])
        period_rows = float(rows[-1] + slopes[-1] * (period_s - starts[-1])) if period_s < math.inf else math.inf
        return cls(starts, slopes, rows, period_s, period_rows)

    def rows_at(self, seconds: float) -> float:
        """N(t)."""
        repeats, within_s = divmod(seconds, self.period_s) if self.period_s < math.inf else (0.0, seconds)
        k = int(np.searchsorted(self.starts_s, within_s, side="right")) - 1
        whole = repeats * self.period_rows if repeats else 0.0
        return float(whole + self.rows[k] + self.rates[k] * (within_s - self.starts_s[k]))

    def seconds_at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """When each row arrives; infinity if the rate stays 0 before it does."""
        if self.period_rows == 0 or rows.size == 0:
            return np.full(rows.shape, math.inf)
        repeats, k = self._piece_of(np.array([rows.min(), rows.max()]))
        if repeats[0] == repeats[1] and k[0] == k[1]:
            repeats, k = repeats[:1], k[:1]  # all rows on one piece, as most ranges are: three times as fast
        else:
            repeats, k = self._piece_of(rows)
        periodic = self.period_s < math.inf
        within = np.maximum(rows - repeats * self.period_rows, 0.0) if periodic else rows
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = (within - self.rows[k]) / self.rates[k]
        seconds += self.starts_s[k]
        if not self.rates.all():
            seconds[np.broadcast_to(self.rates[k] == 0, seconds.shape)] = math.inf
        return np.minimum(seconds, self.period_s) + repeats * self.period_s if periodic else seconds

    def pieces(self, from_row: int, to_row: int) -> Iterator[tuple[int, int, Piece]]:
        """Rows `from_row` to `to_row` - 1, cut where the rate changes: first row, row behind the last one, piece.

        >>> burst = Arrived.of(starts_s=[0, 10, 12], rates=[0, 500, 100])
        >>> [(first, end, piece.rows_per_s) for first, end, piece in burst.pieces(900, 1200)]
        [(900, 1000, 500.0), (1000, 1200, 100.0)]
        """
        while from_row < to_row:
            here = self._place(from_row)
            end = bisect_right(range(from_row, to_row), here, key=self._place) + from_row
            yield from_row, end, self._piece(*here)
            from_row = end

    def _place(self, row: int) -> tuple[float, int]:
        """In which repetition, and on which piece of it, a row arrives."""
        repeats, k = self._piece_of(np.array([row], np.float64))
        return float(repeats[0]), int(k[0])

    def _piece(self, repeats: float, k: int) -> Piece:
        periodic = self.period_s < math.inf
        before, begins_s = (repeats * self.period_rows, repeats * self.period_s) if periodic else (0.0, 0.0)
        numbers = float(self.rows[k]), float(self.rates[k]), float(self.starts_s[k])
        return Piece(before, *numbers, begins_s, self.period_s)

    def _piece_of(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """In which repetition, and on which piece of it, each row arrives."""
        repeats = np.floor(rows / self.period_rows)
        within = rows - repeats * self.period_rows if self.period_s < math.inf else rows
        return repeats, np.maximum(np.searchsorted(self.rows, within, side="right") - 1, 0)
