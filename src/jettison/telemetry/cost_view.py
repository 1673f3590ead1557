"""What a run has learned about the costs of operators that are timed, for report and `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jettison.statistics.sketches.telling_keys import SHOWN, KeyCost


@dataclass(frozen=True)
class CostsReport:
    """One timed operator: the learner's state, how often costs were published, work estimated and measured.

    `estimated_us` and `measured_us` are of all batches whose work was estimated by the plan's costs, `skew_us` is how
    far the last one was apart.

    >>> print(CostsReport("START", 2, 1.9e6, 2.0e6, -3e4).line("score"))
    map score: costs published 2 times (START); work estimated 1.9 s, measured 2.0 s; skew of the last batch -0.030 s
    """

    state: str
    published: int
    estimated_us: float = 0.0
    measured_us: float = 0.0
    skew_us: float = 0.0
    keys: tuple[KeyCost, ...] = ()

    def line(self, operator: str) -> str:
        """In words."""
        times = "once" if self.published == 1 else f"{self.published} times"
        text = f"map {operator}: costs published {times} ({self.state})"
        if not self.measured_us:
            return text
        estimated, measured = f"{self.estimated_us / 1e6:.1f} s", f"{self.measured_us / 1e6:.1f} s"
        skew = f"skew of the last batch {self.skew_us / 1e6:+.3f} s"
        return f"{text}; work estimated {estimated}, measured {measured}; {skew}"


def shown_keys(keys: Sequence[KeyCost]) -> tuple[list[KeyCost], list[KeyCost]]:
    """The dearest keys, and the most frequent ones."""
    dearest = sorted(keys, key=lambda each: -each.cost_us)[:SHOWN]
    return dearest, sorted(keys, key=lambda each: -each.count)[:SHOWN]
