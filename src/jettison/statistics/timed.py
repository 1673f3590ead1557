"""What was measured of an operator that is timed, in one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.sketches.cost_sketch import CostSketch


@dataclass(frozen=True)
class Waited:
    """What tuples have waited: how many there were, how long in all, and how many longer than the goal."""

    tuples: float = 0.0
    total_us: float = 0.0
    late: float = 0.0

    def scaled(self, share: float) -> Waited:
        return Waited(share * self.tuples, share * self.total_us, share * self.late)

    def within(self, goal_us: float, late_share: float) -> Waited:
        """No worse than a goal allows: what went wrong before must not keep out tuples that need not wait.

        >>> Waited(10.0, 500.0, 4.0).within(goal_us=20.0, late_share=0.1)
        Waited(tuples=10.0, total_us=200.0, late=1.0)
        """
        return Waited(self.tuples, min(self.total_us, goal_us * self.tuples), min(self.late, late_share * self.tuples))

    def plus(self, other: Waited) -> Waited:
        return Waited(self.tuples + other.tuples, self.total_us + other.total_us, self.late + other.late)


NOTHING_WAITED = Waited()


@dataclass(frozen=True)
class TimedSample:
    """The tuples that a timed operator executed, and those that came to it.

    `sketch` holds what was executed, added up over all tasks, each tuple once though its task was repeated. `lanes` is
    how many tasks shared the work. `estimated_us` is what the executed tuples were estimated to take, by the costs that
    the plan names and without its scale; 0 where nobody estimated. `waited` is how long they waited, as measured.
    `keys` names some of the dearest and most frequent keys, by their hash.
    `arrived` are all tuples that came to the operator, dropped ones included, by class of their estimated cost.
    """

    sketch: CostSketch
    lanes: int = 1
    estimated_us: float = 0.0
    waited: Waited = NOTHING_WAITED
    arrived: CostClasses | None = None
    keys: Mapping[int, str] = field(default_factory=dict)
