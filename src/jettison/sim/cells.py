"""Value cells: the axis of values cut into pieces, within which all tuples are treated alike.

A train of tuples is a vector of counts over the cells. An operator lets a share of each cell through, a drop keeps a
share of each cell, and both come from here: `pass_vector` and `keep_vector` are the only places that know how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError
from jettison.network.graph import Graph
from jettison.plan.plan import Drop
from jettison.statistics.profile import Profile

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Cells:
    """How many cells there are, and how values lie in them.

    `arriving` gives the share of a source's tuples in each cell (evenly spread unless given), `passes` an operator's
    selectivity in each cell (that of the profile in all of them unless given).

    >>> halves = Cells(2, arriving={"trips": (0.9, 0.1)}, passes={"dear": (0.0, 1.0)})
    >>> arriving_vector("trips", halves), pass_vector("dear", Profile({}, {}), halves)
    (array([0.9, 0.1]), array([0., 1.]))
    """

    count: int = 1
    arriving: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    passes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise NetworkError(f"there are {self.count} value cells: give at least 1.")
        for what, vectors in (("arriving", self.arriving), ("passes", self.passes)):
            for name, vector in vectors.items():
                if len(vector) != self.count or not all(0 <= share < float("inf") for share in vector):
                    raise NetworkError(
                        f"cells {what} of {name!r} is {vector}: give {self.count} numbers that are not below 0."
                    )
        for name, vector in self.arriving.items():
            if abs(sum(vector) - 1) > _TOLERANCE:
                raise NetworkError(f"cells arriving of {name!r} sums to {sum(vector):g}: shares of a whole sum to 1.")

    def check(self, graph: Graph) -> None:
        """Raise when a vector belongs to no source or operator."""
        sources = [source.name for source in graph.sources]
        for what, vectors, names in (("arriving", self.arriving, sources), ("passes", self.passes, graph.by_name)):
            for name in vectors:
                if name not in names:
                    raise NetworkError(
                        f"cells {what}: network {graph.name!r} has no {name!r} there; it has: {', '.join(names)}."
                    )


def arriving_vector(source: str, cells: Cells) -> Vector:
    """The share of a source's tuples that lies in each cell."""
    return np.array(cells.arriving.get(source, (1 / cells.count,) * cells.count))


def pass_vector(operator: str, profile: Profile, cells: Cells) -> Vector:
    """Tuples out per tuple in, for each cell."""
    return np.array(cells.passes.get(operator, (profile.passes(operator),) * cells.count))


def keep_vector(drop: Drop, cells: Cells) -> Vector:
    """The share of each cell that a drop keeps.

    >>> from jettison.plan.plan import Random
    >>> keep_vector(Random(0.25), Cells(3))
    array([0.25, 0.25, 0.25])
    """
    return np.full(cells.count, drop.keep)
