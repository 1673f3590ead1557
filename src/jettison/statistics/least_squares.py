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

    A coefficient that would become negative is 0, and the others are those that fit best given that. (Were it only cut
    off at 0, what it should have taken would be missing: others, which rise to balance it, would rise for ever.)

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
        self._theta = self._fitted(features, y, noise)
        self._covariance = self._covariance - np.outer(gain, spread)
        left = self._covariance @ features
        along = float(features @ left)
        if along > 0:
            forgotten = (1 / self._forgetting - 1) * np.outer(left, left) / along
            grown = self._covariance + forgotten
            if float((np.diag(grown) / self._variance).sum()) <= len(self._theta):
                self._covariance = grown

    def _fitted(self, features: Vector, y: float, noise: float) -> Vector:
        """The coefficients after a sample: one after the other, those below 0 become 0 and the rest is fitted again."""
        at_zero = np.zeros(len(self._theta), dtype=bool)
        while True:
            free, found = ~at_zero, np.zeros(len(self._theta))
            mean, covariance, x = self._theta[free], self._covariance[np.ix_(free, free)], features[free]
            if at_zero.any():  # what is likely of the others when these are 0; they stay as uncertain as they were
                across = self._covariance[np.ix_(free, at_zero)]
                mean = mean - across @ np.linalg.pinv(self._covariance[np.ix_(at_zero, at_zero)]) @ self._theta[at_zero]
            spread = covariance @ x
            found[free] = mean + spread / (noise**2 + float(x @ spread)) * (y - float(x @ mean))
            if not (found < 0).any():
                return found
            at_zero |= found < 0

    def get(self) -> tuple[float, ...]:
        return tuple(float(value) for value in self._theta)
