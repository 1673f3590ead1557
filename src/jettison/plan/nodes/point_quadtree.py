"""A point quadtree over the rows of a table: which row gives most, of those that ask for no more than given rates?

A row in the middle is the root; it divides the others into quadrants, by whether they ask for at least as much on each
input (thesis 5.5.4). Every quadrant knows its best score. So a search that follows the best quadrant first, and skips
those that ask for more than there is, ends at the first row that comes up. The rows of small quadrants are compared all
at once: of 64 rows NumPy compares all as fast as two.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from jettison.plan.nodes.structure import Matrix, Vector

_BUCKET = 64
_SLACK = 1e-9
_ROW, _TREE = 0, 1

Rows = npt.NDArray[np.intp]


class PointQuadtree:
    """Rows by rates and score.

    >>> tree = PointQuadtree(np.array([[0.0, 0.0], [0.0, 0.4], [0.2, 0.4]]), np.array([0.0, 0.4, 0.6]))
    >>> tree.find(np.array([1.0, 1.0])), tree.find(np.array([0.1, 1.0])), tree.find(np.array([0.1, 0.1]))
    (2, 1, 0)
    """

    def __init__(self, rates: Matrix, score: Vector) -> None:
        self._rates, self._score = rates, score
        self._powers = 1 << np.arange(rates.shape[1])
        self._members: list[Rows] = [np.lexsort((rates.sum(axis=1), -score))]
        self._quadrants: list[list[tuple[int, float, int]]] = [[]]
        """By number of a subtree: its rows, the best first, or its root alone; and (code, best score, number)."""
        self.depth = 0
        largest = rates.max(axis=0, initial=0.0)
        self._size = (rates / np.where(largest > 0, largest, 1.0)).sum(axis=1)
        waiting = [(0, 0)]
        while waiting:  # no recursion: trees of a single input may be deep
            at, depth = waiting.pop()
            self.depth = max(self.depth, depth)
            waiting += [(child, depth + 1) for child in self._divide(at)]

    def find(self, rates: Vector) -> int:
        """The best row that asks for no more than `rates`; -1 where there is none."""
        limit = rates + _SLACK * np.maximum(1.0, rates)
        waiting = [(-np.inf, _TREE, 0)]
        while waiting:
            _, kind, at = heapq.heappop(waiting)
            if kind == _ROW:
                return at
            members, quadrants = self._members[at], self._quadrants[at]
            fits = (self._rates[members] <= limit).all(axis=1)
            if fits.any():
                row = int(members[int(np.argmax(fits))])
                heapq.heappush(waiting, (-float(self._score[row]), _ROW, row))
            if quadrants:
                beyond = int(self._powers @ (self._rates[members[0]] > limit))
                for code, best, child in quadrants:
                    if not code & beyond:
                        heapq.heappush(waiting, (-best, _TREE, child))
        return -1

    def _divide(self, at: int) -> list[int]:
        """Cut a subtree into its root and quadrants, unless it is small; the numbers of the quadrants."""
        members = self._members[at]
        if len(members) <= _BUCKET:
            return []
        middle = int(np.argpartition(self._size[members], len(members) // 2)[len(members) // 2])
        root, rest = members[middle], np.delete(members, middle)
        codes = (self._rates[rest] >= self._rates[root]) @ self._powers
        order = np.argsort(codes, kind="stable")
        found, starts = np.unique(codes[order], return_index=True)
        first = len(self._members)
        for code, rows in zip(found.tolist(), np.split(rest[order], starts[1:]), strict=True):
            self._quadrants[at].append((code, float(self._score[rows[0]]), len(self._members)))
            self._members.append(rows)
            self._quadrants.append([])
        self._members[at] = members[[middle]]
        return list(range(first, len(self._members)))
