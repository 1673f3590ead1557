"""A point quadtree over the rows of a table: which row gives most, of those that ask for no more than given rates?

The row with the highest score is the root; it divides the others into quadrants, by whether they ask for at least as
much on each input. Every subtree's root is its best row. So a search that follows the best root first, and skips
quadrants that ask for more than there is, ends at the first row that fits (thesis 5.5.4). Rows of small quadrants are
looked through one after the other: of sixteen rows NumPy compares all as fast as two.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from jettison.plan.nodes.structure import Matrix, Vector

_BUCKET = 64
_SLACK = 1e-9


class PointQuadtree:
    """Rows by rates and score.

    >>> tree = PointQuadtree(np.array([[0.0, 0.0], [0.0, 0.4], [0.2, 0.4]]), np.array([0.0, 0.4, 0.6]))
    >>> tree.find(np.array([1.0, 1.0])), tree.find(np.array([0.1, 1.0])), tree.find(np.array([0.1, 0.1]))
    (2, 1, 0)
    """

    def __init__(self, rates: Matrix, score: Vector) -> None:
        self._rates, self._score = rates, score
        self._powers = 1 << np.arange(rates.shape[1])
        self._nodes: list[tuple[int, list[tuple[int, float, int]]]] = []
        self._buckets: list[npt.NDArray[np.intp]] = []
        self.depth = 0
        order = np.lexsort((rates.sum(axis=1), -score))
        self._root = self._built(order, 0)

    def find(self, rates: Vector) -> int:
        """The best row that asks for no more than `rates`; -1 where there is none."""
        limit = rates + _SLACK * np.maximum(1.0, rates)
        waiting = [(-float(self._score.max()), self._root)]
        while waiting:
            _, at = heapq.heappop(waiting)
            if at < -len(self._buckets):
                return ~(at + len(self._buckets))  # a row of a bucket, which had to wait for better ones
            if at < 0:
                rows = self._buckets[-1 - at]
                fits = (self._rates[rows] <= limit).all(axis=1)
                if not fits.any():
                    continue
                found = int(rows[int(np.argmax(fits))])
                if not waiting or -float(self._score[found]) <= waiting[0][0]:
                    return found
                heapq.heappush(waiting, (-float(self._score[found]), ~found - len(self._buckets)))
                continue
            row, quadrants = self._nodes[at]
            beyond = int(self._powers @ (self._rates[row] > limit))
            if not beyond:
                return row
            for code, best, child in quadrants:
                if not code & beyond:
                    heapq.heappush(waiting, (-best, child))
        return -1

    def _built(self, order: npt.NDArray[np.intp], depth: int) -> int:
        """The tree of rows that are given best first; negative numbers are buckets."""
        self.depth = max(self.depth, depth)
        if len(order) <= _BUCKET:
            self._buckets.append(order)
            return -len(self._buckets)
        at, row, rest = len(self._nodes), int(order[0]), order[1:]
        self._nodes.append((row, []))
        codes = (self._rates[rest] >= self._rates[row]) @ self._powers
        for code in np.unique(codes):
            members = rest[codes == code]
            if code == self._powers.sum():
                continue  # these ask for more of everything, and give less
            self._nodes[at][1].append((int(code), float(self._score[members[0]]), self._built(members, depth + 1)))
        return at
