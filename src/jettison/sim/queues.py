"""A queue on an arc: trains that wait, first in, first out."""

from __future__ import annotations

from collections import deque

import numpy as np

from jettison.sim.cells import Matrix, Vector
from jettison.sim.trains import by_train, rows_in

_SLACK_SHARE = 1e-9


class ArcQueue:
    """Trains in the order in which they came, with the time at which each one arrived at the network.

    Trains that come together stay together, and are never copied: whoever puts them in must not change them. With
    `whole` no tuple is cut in two; else (counts that are expected, not drawn) any part of a train can be taken.

    >>> queue = ArcQueue()
    >>> queue.put(np.array([50.0, 150.0]), np.array([[10.0], [20.0]]), rows=30.0)
    >>> queue.take(most=12)
    (array([ 50., 150.]), array([[10.],
           [ 2.]]))
    >>> queue.rows, queue.take(most=100)
    (18.0, (array([150.]), array([[18.]])))
    """

    __slots__ = ("_blocks", "_whole", "rows")

    def __init__(self, *, whole: bool = True) -> None:
        self._whole = whole
        self._blocks: deque[tuple[Vector, Matrix]] = deque()
        self.rows = 0.0

    def put(self, times_ms: Vector, trains: Matrix, rows: float) -> None:
        """Add trains; `rows` is how many tuples they are."""
        if rows > 0:
            self._blocks.append((times_ms, trains))
            self.rows += rows

    def take(self, most: float) -> tuple[Vector, Matrix]:
        """The oldest `most` tuples (above 0), and a few more where whole ones do not come out even."""
        taken: list[tuple[Vector, Matrix]] = []
        if most >= self.rows * (1 - _SLACK_SHARE):
            taken.extend(self._blocks)
            self._blocks.clear()
            self.rows = 0.0
        else:
            missing = most
            while self._blocks and missing > 0:
                times_ms, trains = self._blocks.popleft()
                rows = rows_in(trains)
                if rows > missing:
                    first = _oldest(trains, missing, self._whole)
                    self._put_back(times_ms, trains, first)
                    taken.append((times_ms[: len(first)], first))
                    missing -= rows_in(first)
                    break  # a sum of floats may miss by a trifle: there is no use in going after it
                taken.append((times_ms, trains))
                missing -= rows
            self.rows = max(0.0, self.rows - (most - missing)) if self._blocks else 0.0
        if len(taken) == 1:
            return taken[0]
        return np.concatenate([times_ms for times_ms, _ in taken]), np.concatenate([trains for _, trains in taken])

    def _put_back(self, times_ms: Vector, trains: Matrix, taken: Matrix) -> None:
        left = trains[len(taken) - 1 :].copy()
        left[0] -= taken[-1]
        begin = 0 if left[0].any() else 1
        if begin < len(left):
            self._blocks.appendleft((times_ms[len(taken) - 1 + begin :], left[begin:]))


def _oldest(trains: Matrix, most: float, whole: bool) -> Matrix:
    """Whole trains, and a part of the last: as large a share of each of its cells, rounded up to `whole` tuples."""
    sizes = by_train(trains)
    until = np.cumsum(sizes)
    last = min(int(np.searchsorted(until, most, side="right")), len(until) - 1)
    taken = trains[: last + 1].copy()
    part = min(1.0, (most - float(until[last] - sizes[last])) / float(sizes[last]))
    taken[last] *= part
    if whole:
        np.ceil(taken[last], out=taken[last])
    return taken
