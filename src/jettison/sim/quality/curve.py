"""A value over time: straight lines between points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jettison.errors import NetworkError


@dataclass(frozen=True)
class Curve:
    """A value over time, by points (second, value): straight lines between them, level before and after.

    >>> rate = Curve([(0, 100), (60, 100), (120, 400)])
    >>> rate.at(30), rate.at(90), rate.at(500)
    (100.0, 250.0, 400.0)
    """

    points: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        given = tuple((float(second), float(value)) for second, value in self.points)
        object.__setattr__(self, "points", given)
        seconds = [second for second, _ in given]
        if not given or seconds != sorted(seconds) or not all(math.isfinite(v) and v >= 0 for _, v in given):
            raise NetworkError(f"curve {given!r}: give points (second, value) in order of time, values from 0 on.")

    def at(self, second: float) -> float:
        return float(np.interp(second, [at for at, _ in self.points], [value for _, value in self.points]))
