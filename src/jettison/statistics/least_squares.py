"""Recursive least squares with forgetting, whose coefficients are never negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


class LeastSquares:
    """Fit y = x . theta one sample at a time.

        gain = P x / (noise^2 + x' P x)
        theta += gain * (y - x . theta)
        P = P - gain x' P                                        what was learned
        P = P + (1 / forgetting - 1) * P x x' P / (x' P x)       what is forgotten, along x alone

    Older samples count less by `forgetting` per step, only in the direction of the sample: what no sample excites is
    neither learned nor forgotten. (Were all of P to grow, the directions that batches never excite would, for ever; a
    bound on that would in time freeze the others.) When samples are all alike, the estimate follows them by
    1 - forgetting per step.

    >>> fit = LeastSquares(start=[1.0, 1.0], uncertainty=0.5)
    >>> for rows in (100, 200, 50, 400, 10, 300):
    ...     fit.update([10.0, rows], y=10.0 * 3 + rows * 0.5, noise=0.1)
    >>> [round(value, 1) for value in fit.get()]
    [3.0, 0.5]
    """

    def __init__(
        self, start: Sequence[float], *, uncertainty: float | Sequence[float] = 0.5, forgetting: float = 0.92
    ) -> None:
        """`uncertainty` is how far off a start may well be: of all coefficients, or of each."""
        self._theta: Vector = np.array(start, dtype=float)
        self._variance: Vector = np.broadcast_to(np.square(uncertainty), self._theta.shape).astype(float)
        self._covariance = np.diag(self._variance)
        self._forgetting = forgetting

    def update(self, x: Sequence[float], y: float, noise: float) -> None:
        features = np.array(x, dtype=float)
        spread = self._covariance @ features
        gain = spread / (noise**2 + float(features @ spread))
        self._theta = np.maximum(0.0, self._theta + gain * (y - float(features @ self._theta)))
        self._covariance = self._covariance - np.outer(gain, spread)
        left = self._covariance @ features
        along = float(features @ left)
        if along > 0:
            forgotten = (1 / self._forgetting - 1) * np.outer(left, left) / along
            grown = self._covariance + forgotten
            if float((np.diag(grown) / self._variance).sum()) <= len(self._theta):
                self._covariance = grown

    def get(self) -> tuple[float, ...]:
        return tuple(float(value) for value in self._theta)
