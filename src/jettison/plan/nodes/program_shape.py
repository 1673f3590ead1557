"""The matrix of a program, in units that suit every rate: shares of what can pass, of capacities, of outputs.

Without such units a node far downstream, to which a millionth of the rows comes, lies below the tolerance of the
solver: it was left with half as much again as it can do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jettison.plan.nodes.structure import Matrix, Structure, Vector


class ProgramShape:
    """Rows: load of nodes, branches, outputs, floors; columns: locations, then pieces of outputs.

    `owner` is the output of every piece, `floored` are the outputs with a floor.
    """

    def __init__(self, made: Structure, owner: npt.NDArray[np.intp], floored: npt.NDArray[np.intp]) -> None:
        self._made, self._floored = made, floored
        self._branches = np.flatnonzero(~made.is_input)
        self.load = made.work_us / made.capacity_us[:, None]
        """Of every node's capacity, per tuple behind each location's drop."""
        count, pieces = len(made.arcs), len(owner)
        self._branch = (np.eye(count) - made.reaches)[self._branches]
        owned = (owner[None, :] == np.arange(len(made.gives))[:, None]).astype(float)
        matrix = np.vstack(
            [
                np.hstack([self.load, np.zeros((len(self.load), pieces))]),
                np.hstack([self._branch, np.zeros((len(self._branches), pieces))]),
                np.hstack([-made.gives, owned]),
                np.hstack([made.gives[floored], np.zeros((len(floored), pieces))]),
            ]
        )
        filled = matrix != 0
        self.size = matrix.shape
        self._rows, columns = np.nonzero(filled)
        self._columns, self._value, self._owner = columns, matrix[filled], owner
        self.start = np.concatenate([[0], np.cumsum(filled.sum(axis=1))[:-1]]).astype(np.int32)
        self.index = columns.astype(np.int32)
        self._limits = _limits(self.load, np.ones(len(self.load)))
        # lists: of single numbers Python is faster than NumPy
        self._above = [(int(at), _filled(made.reaches[at])) for at in self._branches]
        single = (made.reaches > 0).sum(axis=1) <= 1
        below = [(at, _filled(made.reaches[:, at])) for at in reversed(range(count))]
        self._below = [(at, feeds) for at, feeds in below if feeds and all(single[each] for each, _ in feeds)]

    def most(self, rates: Vector, room: Vector) -> Vector:
        """The most tuples per second that can pass each location: what comes, and what its nodes have room for."""
        coming = np.zeros(len(self._made.arcs))
        coming[self._made.inputs] = rates
        bound = self._limits if (room == 1).all() else _limits(self.load, room)
        found, limits = np.minimum(coming, bound).tolist(), bound.tolist()
        for at, above in self._above:
            found[at] = min(limits[at], sum([found[each] * share for each, share in above]))
        return np.array(found)

    def values(self, most: Vector, got: Vector) -> Vector:
        """The entries of the matrix for locations that pass `most` and outputs that get `got` of that."""
        per_branch, per_output = inverse(most[self._branches]), inverse(got)
        by_row = np.concatenate([np.ones(len(self.load)), per_branch, per_output, per_output[self._floored]])
        whole = np.where(got > 0, got, 1.0)[self._owner]
        value: Vector = self._value * by_row[self._rows] * np.concatenate([most, whole])[self._columns]
        return value

    def scaled(self, most: Vector, full: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """The rows of loads, branches and outputs, of locations alone."""
        branch = self._branch * inverse(most[self._branches])[:, None] * most
        return self.load * most, branch, self._made.gives * inverse(full)[:, None] * most

    def consistent(self, passing: Vector) -> Vector:
        """With no more behind a branch than comes to it, to the last digit."""
        found = passing.tolist()
        for at, above in self._above:
            found[at] = min(found[at], sum([found[each] * share for each, share in above]))
        return np.array(found)

    def without_waste(self, passing: Vector) -> Vector:
        """With no more at a location than its most demanding branch lets pass: nobody works for what is dropped."""
        found = passing.tolist()
        for at, below in self._below:
            found[at] = min(found[at], max([found[each] / share for each, share in below]))
        return np.array(found)


def _limits(load: Matrix, room: Vector) -> Vector:
    """Tuples per second at each location that fill the first of its nodes."""
    full = np.divide(room[:, None], load, out=np.full_like(load, np.inf), where=load > 0)
    return np.asarray(full.min(axis=0))


def _filled(values: Vector) -> list[tuple[int, float]]:
    return [(int(at), float(values[at])) for at in np.flatnonzero(values)]


def inverse(values: Vector) -> Vector:
    """One over each value; 1 for 0 and for what is too small to divide by, of which nothing is asked."""
    return np.divide(1.0, values, out=np.ones_like(values), where=values >= np.finfo(float).tiny)
