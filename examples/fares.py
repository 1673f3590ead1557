"""The functions that examples/fares.yaml names."""

from __future__ import annotations

import math
from typing import Any

Value = tuple[float, int]
"""The sum of the logarithms of fares, and how many there were."""


def nothing() -> Value:
    return 0.0, 0


def added(value: Value, fare: float) -> Value:
    return value[0] + math.log(fare), value[1] + 1


def joined(value: Value, later: Value) -> Value:
    return value[0] + later[0], value[1] + later[1]


def geometric_mean(value: Value) -> float:
    return math.exp(value[0] / value[1])


def trend(rows: Any) -> float:
    """By how much a fare is above the one before it, on average; `rows` is a pandas DataFrame."""
    return float(rows["fare"].diff().mean())
