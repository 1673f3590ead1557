"""Quality of service: what an output is worth, as a function of how much of it is delivered.

The loss-tolerance graph maps the percent of tuples delivered to a utility in [0, 1] (thesis 2.1.4). It is piecewise
linear, starts at (100, 1), never rises as less is delivered, and is concave: each further percent lost hurts at
least as much as the one before. Concavity is what makes the greedy road map optimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jettison.errors import NetworkError

Point = tuple[float, float]

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class QoS:
    """What an output wants.

    `loss` holds points (percent delivered, utility) from (100, 1) down to percent 0; `priority` multiplies the
    utility when outputs are compared.

    >>> qos = QoS(loss=[(100, 1.0), (50, 0.8), (0, 0.0)], priority=2)
    >>> qos.utility(1.0), qos.utility(0.75), qos.utility(0.25)
    (1.0, 0.9, 0.4)
    """

    loss: Sequence[Point] = ((100.0, 1.0), (0.0, 0.0))
    priority: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", _points(self.loss))
        if not (isinstance(self.priority, int | float) and math.isfinite(self.priority) and self.priority > 0):
            raise NetworkError(f"QoS priority is {self.priority!r}: give a number above 0 (1 is the usual weight).")
        object.__setattr__(self, "priority", float(self.priority))
        _check(self.loss)

    def utility(self, delivered_share: float) -> float:
        """Utility when `delivered_share` (0 to 1) of the output's tuples are delivered, priority left out."""
        percent = min(100.0, max(0.0, 100.0 * delivered_share))
        for (right, high), (left, low) in pairwise(self.loss):
            if percent >= left:
                weight = (percent - left) / (right - left)
                return weight * high + (1.0 - weight) * low
        return self.loss[-1][1]


def _points(points: Iterable[Iterable[float]]) -> tuple[Point, ...]:
    try:
        return tuple((float(percent), float(utility)) for percent, utility in points)
    except (TypeError, ValueError) as error:
        raise NetworkError(
            f"QoS loss is {points!r}: give points (percent delivered, utility), such as [(100, 1.0), (0, 0.0)]."
        ) from error


def _check(loss: Sequence[Point]) -> None:
    if len(loss) < 2:
        raise NetworkError(f"QoS loss has {len(loss)} point(s): at least (100, 1.0) and (0, utility) are needed.")
    for point in loss:
        percent, utility = point
        if not 0 <= percent <= 100:
            raise NetworkError(f"QoS loss: the percent of point {point} is outside [0, 100].")
        if not 0 <= utility <= 1:
            raise NetworkError(f"QoS loss: the utility of point {point} is outside [0, 1].")
    if loss[0] != (100.0, 1.0):
        raise NetworkError(
            f"QoS loss: the first point is {loss[0]}, but full delivery is worth 1: start at (100, 1.0)."
        )
    if loss[-1][0] != 0.0:
        raise NetworkError(f"QoS loss: the last point is {loss[-1]}: end at percent 0, such as (0, 0.0).")
    steepness = 0.0
    for before, after in pairwise(loss):
        if after[0] >= before[0]:
            raise NetworkError(f"QoS loss: the percent of point {after} does not fall below that of {before}.")
        if after[1] > before[1] + _TOLERANCE:
            raise NetworkError(f"QoS loss is not monotone: the utility rises from {before} to {after}.")
        slope = (before[1] - after[1]) / (before[0] - after[0])
        if slope < steepness - _TOLERANCE:
            raise NetworkError(
                f"QoS loss is not concave at point {before}: utility falls by {steepness:.4g} per percent before it "
                f"and by only {slope:.4g} after it. Raise the utility of {before} or lower that of {after}."
            )
        steepness = slope
