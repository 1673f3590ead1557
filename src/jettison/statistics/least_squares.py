"""Recursive least squares with forgetting, whose coefficients are never negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


class LeastSquares:
    """Fit y = x . theta one sample at a time.

        gain = P x / (forgetting * noise^2 + x' P x)
        theta += gain * (y - x . theta)
        P = (P - gain x' P) / forgetting

    Older samples count less by `forgetting` per step. P may not grow beyond its start: without that bound, directions
    that no sample excites would grow for ever and the first odd sample would throw the estimate far off.

    >>> fit = LeastSquares(start=[1.0, 1.0], uncertainty=0.5)
    >>> for rows in (100, 200, 50, 400, 10, 300):
    ...     fit.update([10.0, rows], y=10.0 * 3 + rows * 0.5, noise=0.1)
    >>> [round(value, 1) for value in fit.get()]
    [3.0, 0.5]
    """

    def __init__(self, start: Sequence[float], *, uncertainty: float = 0.5, forgetting: float = 0.97) -> None:
        self._theta: Vector = np.array(start, dtype=float)
        self._covariance = np.eye(len(self._theta)) * uncertainty**2
        self._largest = float(np.trace(self._covariance))
        self._forgetting = forgetting

    def update(self, x: Sequence[float], y: float, noise: float) -> None:
        features = np.array(x, dtype=float)
        spread = self._covariance @ features
        gain = spread / (self._forgetting * noise**2 + float(features @ spread))
        self._theta = np.maximum(0.0, self._theta + gain * (y - float(features @ self._theta)))
        self._covariance = (self._covariance - np.outer(gain, spread)) / self._forgetting
        size = float(np.trace(self._covariance))
        if size > self._largest:
            self._covariance *= self._largest / size

    def get(self) -> tuple[float, ...]:
        return tuple(float(value) for value in self._theta)
