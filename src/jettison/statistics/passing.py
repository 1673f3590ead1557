"""What a filter passes of every cell of values, learned from the rows that came to it and those that came through.

Few rows fall into one cell: 30 rows over 40 cells say nothing of any of them, and a good deal of whole ranges. So a
range is judged before its halves. With `f` the factor by which a range passes more than was believed at first, `e` the
rows that were expected to come through it and `p` those that did,

    f = (m * f of the range around it + p) / (m + e),   m = 3 rows

down to single cells: what all of a range says together adds up from one level to the next, what a single cell says by
chance does not. The last cell, of other values, is no neighbour of any.

Evidence is kept, not estimates. Of a cell that a drop by value closes nothing new is seen, and what was seen of it
stays. Older rows count for less as new ones come, and for next to nothing where the new ones contradict them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_PRIOR_ROWS = 3.0
_REMEMBERED_ROWS = 100.0
"""Per cell; of rows that came to the filter."""
_CONTRADICTS = 4.0
"""In standard deviations."""
_LEFT_OF_CONTRADICTED = 0.1
_LEAST, _MOST = 1e-4, 1e4


@dataclass(frozen=True)
class Passing:
    """What was believed at first, and the rows seen since: how many came to the filter, how many came through.

    Half of all rows were believed to pass. Of 40 in the lower half none came through, and all of the upper:

    >>> start = Passing.believed(np.full(9, 0.5))
    >>> seen = start.seen(np.array([10.0] * 8 + [0.0]), np.array([0.0] * 4 + [10.0] * 4 + [0.0]), most=1.0)
    >>> seen.get(most=1.0).round(2).tolist()
    [0.01, 0.01, 0.01, 0.01, 0.99, 0.99, 0.99, 0.99, 0.5]
    """

    start: Vector
    came: Vector
    passed: Vector
    agreed: float = 0.0
    """Rows that came since the filter was last seen to pass other values than before."""

    @classmethod
    def believed(cls, shares: Vector, agreed: float = 0.0) -> Passing:
        """No rows seen yet; what somebody has measured counts as so many rows that `agreed`."""
        return cls(shares, np.zeros(len(shares)), np.zeros(len(shares)), agreed)

    def seen(self, came: Vector, passed: Vector, *, most: float) -> Passing:
        """With the rows of one more batch; `most` is the largest share that can pass."""
        expected = came * self.get(most=most)
        old = _REMEMBERED_ROWS / (_REMEMBERED_ROWS + came)
        rows, agreed = float(came.sum()), self.agreed
        for low, high in _ranges(len(came)):
            if contradicts(float(passed[low:high].sum()), float(expected[low:high].sum())):
                agreed = 0.0
                seen = came[low:high] > 0  # of cells that are closed nothing was contradicted
                new, before = float(came[low:high].sum()), float(self.came[low:high][seen].sum())
                left = _LEFT_OF_CONTRADICTED * min(1.0, new / max(before, 1.0))
                old[low:high] = np.where(seen, np.minimum(old[low:high], left), old[low:high])
        return replace(self, came=old * self.came + came, passed=old * self.passed + passed, agreed=agreed + rows)

    def get(self, *, most: float = _MOST) -> Vector:
        """Rows out per row in, by cell."""
        start = np.maximum(self.start, _LEAST)
        expected = np.concatenate([[0.0], np.cumsum(start * self.came)])
        through = np.concatenate([[0.0], np.cumsum(self.passed)])
        factors: dict[tuple[int, int], float] = {}
        found = np.ones(len(start))
        for low, high, around in _tree(len(start)):
            before = factors.get(around, 1.0)
            rows, got = expected[high] - expected[low], through[high] - through[low]
            factors[low, high] = (_PRIOR_ROWS * before + got) / (_PRIOR_ROWS + rows)
            if high - low == 1:
                found[low] = factors[low, high]
        return np.clip(start * found, _LEAST, most)


def contradicts(counted: float, expected: float) -> bool:
    """Whether so many rows, where so many were expected, are more or less than chance explains.

    >>> contradicts(27, 80.0), contradicts(60, 80.0)
    (True, False)
    """
    return abs(counted - expected) > _CONTRADICTS * math.sqrt(max(counted, expected) + 1.0)


@cache
def _tree(cells: int) -> tuple[tuple[int, int, tuple[int, int]], ...]:
    """Ranges of cells (from, to, the range around), from the whole to single cells."""
    whole = (0, cells)
    found = [(*whole, (-1, -1))]
    waiting = [(*part, whole) for part in ((0, cells - 1), (cells - 1, cells)) if part != whole and part[0] < part[1]]
    while waiting:
        low, high, around = waiting.pop(0)
        found.append((low, high, around))
        middle = (low + high) // 2
        if high - low > 1:
            waiting += [(low, middle, (low, high)), (middle, high, (low, high))]
    return tuple(found)


@cache
def _ranges(cells: int) -> tuple[tuple[int, int], ...]:
    return tuple((low, high) for low, high, _ in _tree(cells))
