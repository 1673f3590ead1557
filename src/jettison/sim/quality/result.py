"""What a simulation under the controller gave, cycle by cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.plan.quality.controller import Move
from jettison.plan.quality.unmeetable import Unmeetable


@dataclass(frozen=True)
class Cycle:
    """One interval: what was decided at its begin, and what happened until its end.

    `accuracy` is the share of source tuples that load shedders let through to each query, `processed` the share that
    was processed within the interval. `machine_cpu` is the cores in use, `others_cpu` those of others among them.
    `lag_s` is how many seconds of arrivals wait at most in front of a task.
    """

    second: float
    accuracy: Mapping[str, float]
    processed: Mapping[str, float]
    arriving: Mapping[str, float]
    throughput: Mapping[str, float]
    machine_cpu: Mapping[str, float]
    others_cpu: Mapping[str, float]
    where: Mapping[str, str | None]
    warming: tuple[str, ...]
    moves: tuple[Move, ...]
    stuck: tuple[str, ...]
    below_minimum: tuple[str, ...]
    inverted: tuple[str, ...]
    unmeetable: tuple[Unmeetable, ...]
    lag_s: float


@dataclass(frozen=True)
class QualityResult:
    """All cycles of a run, with the minimum accuracy of every query."""

    cycles: tuple[Cycle, ...]
    minima: Mapping[str, float]

    @property
    def steady(self) -> tuple[Cycle, ...]:
        """The cycles in which no instance warms up."""
        return tuple(cycle for cycle in self.cycles if not cycle.warming)

    @property
    def moves(self) -> tuple[tuple[float, Move], ...]:
        """Instances that changed their machine, with the second: those that were placed first are not among them."""
        return tuple((cycle.second, move) for cycle in self.cycles for move in cycle.moves if move.origin is not None)

    def minima_held(self) -> float:
        """The share of cycles outside warm-up in which every query got its minimum accuracy."""
        steady = self.steady
        held = [all(cycle.accuracy[name] >= least - 1e-6 for name, least in self.minima.items()) for cycle in steady]
        return sum(held) / len(held) if held else 0.0

    def inversions(self) -> int:
        """How many times a query had to do with less while one of lower priority had more than its minimum."""
        return sum(len(cycle.inverted) for cycle in self.cycles)

    def warm_up_s(self, instance: str, since_s: float) -> float:
        """How long an instance that was placed at `since_s` took to warm up, to the end of the cycle."""
        for cycle in self.cycles:
            if cycle.second > since_s and instance not in cycle.warming:
                return cycle.second - since_s
        return self.cycles[-1].second - since_s

    def processed_held(self, tolerance: float = 0.02) -> float:
        """The share of cycles outside warm-up in which every query processed its minimum, within a tolerance.

        While load rises, tuples wait until the next cycle sheds more: they are processed later, not dropped.
        """
        least = {name: (1 - tolerance) * minimum for name, minimum in self.minima.items()}
        held = [all(cycle.processed[name] >= share for name, share in least.items()) for cycle in self.steady]
        return sum(held) / len(held) if held else 0.0
