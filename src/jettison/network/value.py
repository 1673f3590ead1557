"""Value utility: which values of an output's column matter how much (thesis 2.1.4, 3.7.1).

Utility is given by interval of the column, constant or linear. Linear intervals are cut into chunks, and every value
of a chunk counts as worth the chunk's mean (the thesis' footnote 5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from jettison.errors import NetworkError
from jettison.network.calls import checked_init

Interval = tuple[float, float, float, float]
"""From, to, utility at the lower end, utility at the upper end."""

_CHUNKS = 10
_MOST_PIECES = 400


class Piece(NamedTuple):
    """Values from `low` up to `high` (which is the next piece's) are worth `utility` each."""

    low: float
    high: float
    utility: float


@checked_init("jt.Value")
@dataclass(frozen=True)
class Value:
    """What the values of a column are worth.

    `intervals` are (from, to, utility) or, for a linear piece, (from, to, utility at from, utility at to): in order,
    without gap or overlap, each holding its lower end and not its upper (the last holds both). A value outside of them,
    null or NaN is worth `otherwise`. `chunk` is the width of a step on linear pieces. `histogram`, (from, to, share),
    says how values are spread before any was seen; left out, evenly.

    >>> value = Value("x", [(0, 50, 0.2), (50, 100, 0.6, 1.0)], chunk=25)
    >>> [value.of(x) for x in (10, 50, 74, 75, 100, 101, float("nan"), None)]
    [0.2, 0.7, 0.7, 0.9, 0.9, 0.0, 0.0, 0.0]
    """

    column: str
    intervals: Sequence[Sequence[float]]
    chunk: float | None = None
    otherwise: float = 0.0
    histogram: Sequence[tuple[float, float, float]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise NetworkError(f"value utility: the column is {self.column!r}: name the column that is valued.")
        object.__setattr__(self, "intervals", _intervals(self._element, self.intervals))
        if not isinstance(self.otherwise, int | float) or not 0 <= self.otherwise <= 1:
            raise NetworkError(f"{self._element}: otherwise is {self.otherwise}: give a utility within [0, 1].")
        if not any(max(interval[2:]) > 0 for interval in self.intervals):
            raise NetworkError(f"{self._element}: no interval is worth anything: give at least one a utility above 0.")
        number = isinstance(self.chunk, int | float)
        if self.chunk is not None and not (number and math.isfinite(self.chunk) and self.chunk > 0):
            raise NetworkError(f"{self._element}: chunk is {self.chunk}: give the width of a step, above 0.")
        pieces = sum(self._steps(low, high) if one != other else 1 for low, high, one, other in self.intervals)
        if pieces > _MOST_PIECES:
            raise NetworkError(
                f"{self._element}: chunk {self.chunk} cuts the intervals into {pieces} pieces, more than "
                f"{_MOST_PIECES}: give a wider one."
            )
        if self.histogram is not None:
            object.__setattr__(self, "histogram", _histogram(self._element, self.histogram))

    @property
    def _element(self) -> str:
        return f"value utility of {self.column!r}"

    def _steps(self, low: float, high: float) -> int:
        """Into how many chunks a linear interval is cut."""
        return _CHUNKS if self.chunk is None else max(1, math.ceil((high - low) / self.chunk - 1e-9))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Intervals of constant utility, in order of value."""
        found: list[Piece] = []
        for low, high, at_low, at_high in self.intervals:
            if at_low == at_high:
                found.append(Piece(low, high, at_low))
                continue
            width = self.chunk or (high - low) / _CHUNKS
            edges = [low + number * width for number in range(self._steps(low, high))] + [high]
            for left, right in pairwise(edges):
                middle = ((left + right) / 2 - low) / (high - low)
                found.append(Piece(left, right, round(at_low + middle * (at_high - at_low), 12)))
        return tuple(found)

    def of(self, x: float | None) -> float:
        """The utility of one value."""
        if x is None or math.isnan(x) or not self.pieces[0].low <= x <= self.pieces[-1].high:
            return self.otherwise
        return next((piece.utility for piece in self.pieces if x < piece.high), self.pieces[-1].utility)


def loss_graph(utilities: Sequence[float], shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """The loss-tolerance graph that follows from value utility and a histogram (thesis 3.7.1).

    Values go from the least worth on. With u the utility and f the share of an interval, w = u f, n = w / sum(w):
    losing it takes 100 f percent of the rows and n of the utility.

    >>> [(round(percent), round(utility, 2)) for percent, utility in loss_graph([0.2, 1.0], [0.4, 0.6])]
    [(100, 1.0), (60, 0.88), (0, 0.0)]
    """
    worth = sum(u * f for u, f in zip(utilities, shares, strict=True))
    if worth <= 0:
        raise NetworkError(
            "a value utility needs values that are worth something: the histogram has no mass where utility is above 0."
        )
    whole = sum(shares)
    points, percent, utility = [(100.0, 1.0)], 100.0, 1.0
    for u, f in sorted(zip(utilities, shares, strict=True)):
        if f > 0:
            percent, utility = percent - 100 * f / whole, utility - u * f / worth
            points.append((max(0.0, percent), max(0.0, utility)))
    points[-1] = (0.0, 0.0)
    return tuple(points)


def _intervals(element: str, given: Iterable[Sequence[float]]) -> tuple[Interval, ...]:
    try:
        rows = [tuple(float(number) for number in row) for row in given]
        found: list[Interval] = [(r[0], r[1], r[2], r[3] if len(r) == 4 else r[2]) for r in rows if 3 <= len(r) <= 4]
        if len(found) < len(rows) or not rows:
            raise ValueError
    except (TypeError, ValueError, IndexError) as error:
        raise NetworkError(
            f"{element}: intervals are {given!r}: give (from, to, utility), or for a linear piece (from, to, utility "
            f"at from, utility at to), such as [(0, 50, 0.2), (50, 100, 1.0)]."
        ) from error
    for interval in found:
        low, high, *utilities = interval
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise NetworkError(f"{element}: the interval from {low:g} to {high:g} holds no values: let it rise.")
        for utility in utilities:
            if not 0 <= utility <= 1:
                raise NetworkError(f"{element}: from {low:g} to {high:g} the utility is {utility:g}: stay in [0, 1].")
    _check_adjacent(element, found)
    return tuple(found)


def _histogram(element: str, given: Iterable[Sequence[float]]) -> tuple[tuple[float, float, float], ...]:
    try:
        found = [(float(low), float(high), float(share)) for low, high, share in given]
    except (TypeError, ValueError) as error:
        raise NetworkError(
            f"{element}: the histogram is {given!r}: give (from, to, share), such as [(0, 50, 0.4), (50, 100, 0.6)]."
        ) from error
    for low, high, share in found:
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(share) and share >= 0):
            raise NetworkError(
                f"{element}: the histogram's ({low:g}, {high:g}, {share:g}) is no share of an interval: let it rise, "
                f"with a share of at least 0."
            )
    if sum(share for *_, share in found) <= 0:
        raise NetworkError(f"{element}: the histogram has no mass: give some interval a share above 0.")
    _check_adjacent(f"{element}: histogram", found)
    return tuple(found)


def _check_adjacent(element: str, rows: Sequence[Sequence[float]]) -> None:
    for before, after in pairwise(rows):
        if after[0] < before[1]:
            raise NetworkError(
                f"{element}: the intervals overlap from {after[0]:g} to {before[1]:g}: let each begin where the one "
                f"before ends."
            )
        if after[0] > before[1]:
            raise NetworkError(
                f"{element}: there is a gap from {before[1]:g} to {after[0]:g}: let each begin where the one before "
                f"ends (an interval holds its lower end, not its upper)."
            )
