"""Quantiles of values that stand for many tuples each."""

from __future__ import annotations

import numpy as np

from jettison.sim.cells import Vector

_SLACK_SHARE = 1e-12


def weighted_quantiles(values: Vector, weights: Vector, shares: tuple[float, ...]) -> tuple[float, ...] | None:
    """The smallest value that at least each share of the weight is within; None when there is no weight.

    >>> weighted_quantiles(np.array([300.0, 100.0, 200.0]), np.array([1.0, 97.0, 2.0]), (0.5, 0.99, 1.0))
    (100.0, 200.0, 300.0)
    """
    some = weights > 0
    if not some.any():
        return None
    order = np.argsort(values[some], kind="stable")
    ordered, until = values[some][order], np.cumsum(weights[some][order])
    places = np.searchsorted(until, (np.array(shares) - _SLACK_SHARE) * until[-1])
    return tuple(ordered[np.minimum(places, len(ordered) - 1)].tolist())
