"""What operators cost and let through: the numbers that every plan is computed from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.network.columns.words import meant
from jettison.network.graph import Graph


@checked_init("jt.Profile")
@dataclass(frozen=True)
class Profile:
    """Costs in microseconds of batch time per input row, selectivities in rows out per row in.

    `fixed_ms` is the part of a batch's time that no drop can save, `read_us` the cost of reading a source's row up
    to the first place where it can be dropped, and `drop_us` the cost of judging one row at a drop. To judge by value
    at a source, that one value may have to be parsed: `look_us`. `values` tells how an operator's rows are spread
    over the cells of a column, under "operator.column" (see `network.columns.value_tracks`).
    """

    cost_us: Mapping[str, float]
    selectivity: Mapping[str, float]
    fixed_ms: float = 0.0
    read_us: Mapping[str, float] = field(default_factory=dict)
    drop_us: float = 0.0
    look_us: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise NetworkError(f"profile values is {self.values!r}: give shares under 'operator.column'.")
        for word in ("cost_us", "selectivity", "read_us", "look_us"):
            numbers = getattr(self, word)
            if not isinstance(numbers, Mapping):
                raise NetworkError(f"profile {word} is {numbers!r}: give numbers by operator, such as {{'paid': 2.5}}.")
            for name, number in numbers.items():
                if type(number) is not float or not 0.0 <= number < math.inf:  # plans make many of these: be quick
                    _check_number(f"{word} of {name!r}", number)
        _check_number("fixed_ms", self.fixed_ms)
        _check_number("drop_us", self.drop_us)

    def cost(self, operator: str) -> float:
        return self.cost_us.get(operator, 0.0)

    def passes(self, operator: str) -> float:
        return self.selectivity.get(operator, 1.0)

    def completed(self, graph: Graph) -> Profile:
        """With what the network itself says: windows that count rows give one result for so many rows."""
        counted = {each.name: 1.0 / each.window.slide_rows for each in graph.count_aggregates}
        return replace(self, selectivity={**counted, **self.selectivity}) if counted else self

    def check(self, graph: Graph) -> None:
        """Raise when a number belongs to no operator."""
        for word in ("cost_us", "selectivity", "read_us", "look_us"):
            for name in getattr(self, word):
                if name not in graph.by_name:
                    raise NetworkError(
                        f"profile {word}: {name!r} is not an operator of network {graph.name!r}"
                        f"{meant(name, graph.by_name)}: it has {', '.join(graph.by_name)}."
                    )

    def to_dict(self) -> dict[str, Any]:
        return {
            "cost_us": dict(self.cost_us),
            "selectivity": dict(self.selectivity),
            "fixed_ms": self.fixed_ms,
            "read_us": dict(self.read_us),
            "drop_us": self.drop_us,
            "look_us": dict(self.look_us),
            "values": {place: list(shares) for place, shares in self.values.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Profile:
        return cls(**content)


def _check_number(what: str, number: object) -> None:
    number = number.item() if isinstance(number, np.number) else number
    if isinstance(number, bool) or not isinstance(number, int | float) or not (math.isfinite(number) and number >= 0):
        raise NetworkError(f"profile {what} is {number!r}: give a finite number that is not below 0.")
