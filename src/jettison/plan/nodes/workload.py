"""How likely rates are: the probability of a box of rates, input by input (thesis 5.4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jettison.errors import NetworkError
from jettison.plan.nodes.structure import Matrix, Vector


class Workload(Protocol):
    """Says how likely it is that rates lie in boxes."""

    def probability(self, low: Matrix, high: Matrix) -> Vector:
        """The probability of boxes: a row of lower and of upper rates each."""


@dataclass(frozen=True)
class Exponential:
    """Rates are exponential, independent of each other, with this mean.

    The thesis calls the scale lambda: the larger, the higher the rates.

    >>> float(Exponential(5.0).probability(np.array([[0.0, 0.0]]), np.array([[5.0, 5.0]])).round(4)[0])
    0.3996
    """

    scale: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise NetworkError(f"workload: the scale is {self.scale}: give a mean rate above 0.")

    def probability(self, low: Matrix, high: Matrix) -> Vector:
        return np.asarray(np.prod(np.exp(-low / self.scale) - np.exp(-high / self.scale), axis=1))


@dataclass(frozen=True)
class Seen:
    """Rates as they were seen: a trace, or all ticks so far. A box is as likely as the share of ticks that lie in it.

    >>> trace = Seen([[1.0, 2.0], [3.0, 9.0], [3.0, 1.0], [8.0, 1.0]])
    >>> trace.probability(np.array([[0.0, 0.0]]), np.array([[4.0, 4.0]])).tolist()
    [0.5]
    """

    ticks: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        table = np.asarray(self.ticks, dtype=float)
        if table.ndim != 2 or not len(table) or not np.isfinite(table).all() or (table < 0).any():
            raise NetworkError("workload: give ticks as rows of rates, one per source, finite and at least 0.")
        object.__setattr__(self, "ticks", table)

    def probability(self, low: Matrix, high: Matrix) -> Vector:
        ticks = np.asarray(self.ticks)[None]
        if ticks.shape[2] != low.shape[1]:
            raise NetworkError(
                f"workload: ticks have {ticks.shape[2]} rates, and the network has {low.shape[1]} sources: give one "
                f"each."
            )
        inside = ((ticks >= low[:, None]) & (ticks < high[:, None])).all(axis=2)
        return np.asarray(inside.mean(axis=1))
