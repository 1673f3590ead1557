"""What is measured of one shedder in one overload, and what follows from it for a user who has to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from jettison.network.graph import Graph

NO_SHEDDING = "none"
"""The run in which nothing is shed, for comparison."""
TOLERANCE = 0.005
"""Drops by chance keep a share that differs a little from the one that was planned."""


@dataclass(frozen=True)
class Measured:
    """One shedder as measured. Shares are from 0 to 1; None where nothing is declared, or nothing was measured.

    `worth` is the worth delivered in time as a share of what was offered (`statistics.worth`), `worth_by_rows` the same
    with outputs weighed by the rows offered to them. `sic` has, by output, the source information content: on Spark
    that of the last source time window (`statistics.sic`), simulated the share of source tuples that was processed;
    what was never read counts as lost.
    `minima_held` is the share of declared minimum accuracies that were held, `priorities_held` of pairs of outputs of
    different priority those of which the higher one was processed no less. Ages are of all results when they were
    written, `tuples` counts tuples processed for outputs, `decide_ms` is the median time to decide about a batch.
    """

    shedder: str
    worth: float
    worth_by_rows: float
    sic: Mapping[str, float]
    accuracy: Mapping[str, float]
    minima_held: float | None
    priorities_held: float | None
    age_p50_s: float | None
    age_p99_s: float | None
    tuples: float
    decide_ms: float | None

    @property
    def lowest_sic(self) -> float:
        return min(self.sic.values())

    @property
    def mean_sic(self) -> float:
        return sum(self.sic.values()) / len(self.sic)

    @property
    def jain(self) -> float:
        """Jain's index of the outputs' SIC."""
        return jain_index(self.sic.values())

    def row(self) -> dict[str, Any]:
        """One line of the table."""
        return {
            "shedder": self.shedder,
            "worth_in_time": round(self.worth, 4),
            "worth_by_rows": round(self.worth_by_rows, 4),
            "lowest_sic": round(self.lowest_sic, 4),
            "mean_sic": round(self.mean_sic, 4),
            "jain": round(self.jain, 4),
            "minima_held": "" if self.minima_held is None else round(self.minima_held, 3),
            "priorities_held": "" if self.priorities_held is None else round(self.priorities_held, 3),
            "age_p50_s": "" if self.age_p50_s is None else round(self.age_p50_s, 3),
            "age_p99_s": "" if self.age_p99_s is None else round(self.age_p99_s, 3),
            "tuples": round(self.tuples),
            "decide_ms": "" if self.decide_ms is None else round(self.decide_ms, 3),
            **{f"accuracy {name}": round(share, 4) for name, share in self.accuracy.items()},
        }


def jain_index(values: Iterable[float]) -> float:
    """Jain's index of fairness: (sum x)^2 / (n sum x^2), 1 where all have the same.

    >>> jain_index([0.5, 0.5]), jain_index([1.0, 0.0]), jain_index([0.0, 0.0])
    (1.0, 0.5, 1.0)
    """
    found = list(values)
    squares = len(found) * sum(value * value for value in found)
    return sum(found) ** 2 / squares if squares > 0 else 1.0


def minima_held(graph: Graph, accuracy: Mapping[str, float]) -> float | None:
    """The share of declared minimum accuracies that were held.

    >>> from jettison.network import Network, QoS
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.output("a", qos=QoS(min_accuracy=0.6)); _ = s.output("b", qos=QoS(min_accuracy=0.2, priority=2))
    >>> minima_held(net.graph, {"a": 0.5, "b": 0.3}), priorities_held(net.graph, {"a": 0.5, "b": 0.3})
    (0.5, 0.0)
    """
    wanted = {each.name: each.qos.min_accuracy for each in graph.outputs if each.qos.min_accuracy > 0}
    held = [accuracy[name] >= floor - TOLERANCE for name, floor in wanted.items()]
    return sum(held) / len(held) if held else None


def priorities_held(graph: Graph, accuracy: Mapping[str, float]) -> float | None:
    """Of pairs of outputs of different priority, the share in which the higher one was processed no less."""
    held = [
        accuracy[high.name] >= accuracy[low.name] - TOLERANCE
        for high, low in permutations(graph.outputs, 2)
        if high.qos.priority > low.qos.priority
    ]
    return sum(held) / len(held) if held else None


def best(found: Sequence[Measured], by: Callable[[Measured], float] = lambda each: each.worth) -> Measured:
    """The shedder that delivered the most worth in time; the run without shedding does not count."""
    return max((each for each in found if each.shedder != NO_SHEDDING), key=by)


def over_best(one: Measured, found: Sequence[Measured]) -> tuple[float, float]:
    """The worth of a shedder over that of the best: in time, and by rows, each over the best by that measure."""
    most, most_by_rows = best(found).worth, best(found, lambda each: each.worth_by_rows).worth_by_rows
    return one.worth / most if most > 0 else 1.0, one.worth_by_rows / most_by_rows if most_by_rows > 0 else 1.0
