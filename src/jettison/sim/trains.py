"""Trains: tuples that arrived within a short slice of time are not followed one by one, but counted by cell.

Trains are a matrix, trains x cells, and most are a single number. Summing that takes ten times as long as reading it,
and a round-robin scheduler does little else: hence the short ways here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.sim.cells import Matrix, Vector


@dataclass(frozen=True)
class Trains:
    """Trains of all sources over the same slices of time: `counts[source]` is trains x cells."""

    times_ms: Vector
    counts: Mapping[str, Matrix]

    @property
    def rows(self) -> dict[str, int]:
        return {source: round(rows_in(counts)) for source, counts in self.counts.items()}


def rows_in(trains: Matrix) -> float:
    """All tuples together.

    >>> import numpy as np
    >>> two = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> rows_in(two), by_cell(two), by_train(two)
    (21.0, array([5., 7., 9.]), array([ 6., 15.]))
    """
    return trains.item() if trains.size == 1 else float(trains.sum())


def by_cell(trains: Matrix) -> Vector:
    """Tuples in each cell."""
    found: Vector = trains[0] if len(trains) == 1 else trains.sum(axis=0)
    return found


def by_train(trains: Matrix) -> Vector:
    """Tuples of each train."""
    found: Vector = trains[:, 0] if trains.shape[1] == 1 else trains.sum(axis=1)
    return found
