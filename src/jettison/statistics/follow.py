"""How far an estimated histogram follows a sample: slowly while the two differ by chance, at once after a change.

The distance of two histograms is the largest difference of their cumulated shares (Kolmogorov and Smirnov): the share
that a range of values holds is wrong by at most twice that. By chance alone a sample of n rows is about 0.6 / sqrt(n)
from the truth. With D the distance of sample and estimate, the estimate moves by

    1 - 0.6 / sqrt(n) / D,  but at least 0.3,

of the way: what is left of the distance is no more than chance explains, whatever the change was.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_CHANCE = 0.6
_LEAST_WEIGHT = 0.3
_PRIOR_ROWS = 200.0


def distance(one: Vector, other: Vector) -> float:
    """The largest difference of cumulated shares.

    >>> distance(np.array([0.5, 0.5, 0.0]), np.array([0.1, 0.5, 0.4]))
    0.4
    """
    return float(np.abs(np.cumsum(one) - np.cumsum(other)).max())


def weight(estimate: Vector, sample: Vector, rows: float) -> float:
    """How far an estimate follows a sample of so many rows, both as shares.

    >>> half, same = np.array([0.5, 0.5]), np.array([0.51, 0.49])
    >>> weight(half, same, 3600), round(weight(half, np.array([0.0, 1.0]), 3600), 2)
    (0.3, 0.98)
    """
    least = min(_LEAST_WEIGHT, rows / (rows + _PRIOR_ROWS))
    apart = distance(estimate, sample)
    return max(least, 1.0 - _CHANCE / math.sqrt(rows) / apart) if apart > 0 else least


def followed(estimate: Vector, sample: Vector, rows: float) -> Vector:
    """The estimate, moved towards a sample of so many rows."""
    share = weight(estimate, sample, rows)
    return np.asarray((1.0 - share) * estimate + share * sample)
