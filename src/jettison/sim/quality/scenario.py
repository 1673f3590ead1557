"""What happens in a simulation: applications that start, rates, machines that come and go, load of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from jettison.errors import NetworkError
from jettison.sim.quality.applications import Application
from jettison.sim.quality.curve import Curve

__all__ = ["Curve", "Host", "Scenario"]


@dataclass(frozen=True)
class Host:
    """A machine: its cores, when it is there, and what others do on it (cores)."""

    name: str
    cores: float = 1.0
    from_s: float = 0.0
    until_s: float = math.inf
    others: Curve = field(default_factory=lambda: Curve([(0, 0)]))

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cores) and self.cores > 0):
            raise NetworkError(f"machine {self.name!r}: cores is {self.cores!r}: give a number above 0.")
        if not self.from_s < self.until_s:
            raise NetworkError(
                f"machine {self.name!r} is there from {self.from_s:g} s until {self.until_s:g} s: let it end later."
            )


@dataclass(frozen=True)
class Scenario:
    """Applications and machines over time.

    `restart_s` is how long an instance processes nothing after it was placed, `cold_s` how long it is slower after that
    (twice the cost at first). Metrics are moving averages over `window_s`. `headroom` is the share of cores to fill.
    After `most_moves` nothing moves any more, so that runs with and without a move can be compared.
    """

    applications: Sequence[Application]
    machines: Sequence[Host]
    duration_s: float
    headroom: float = 0.95
    restart_s: float = 8.0
    cold_s: float = 10.0
    window_s: float = 5.0
    interval_s: float = 5.0
    warm_up_timeout_s: float = 60.0
    most_moves: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "applications", tuple(self.applications))
        object.__setattr__(self, "machines", tuple(self.machines))
        if not self.applications or not self.machines:
            raise NetworkError("a scenario needs at least one application and one machine.")
        if not any(host.from_s <= 0 for host in self.machines):
            raise NetworkError("no machine is there at 0 s: let one begin with from_s=0.")
        if not (math.isfinite(self.duration_s) and self.duration_s > 0):
            raise NetworkError(f"duration_s is {self.duration_s!r}: give seconds above 0.")
