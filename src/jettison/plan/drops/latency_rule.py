"""The seed's rule: tuples in order of arrival, dropped when waiting would exceed a goal (LAS 3.1).

A tuple waits until those kept before it are done. As estimated, the operator is free again at

    free = max(free, arrival) + cost        after every tuple that is kept,

so a tuple waits  max(0, free - arrival).  The seed subtracts the time since the first tuple from the work of all kept
ones, which is the same while the operator never runs dry; the maximum forgets time in which it had nothing to do, which
cannot be used later. CHECK says whether the tuple may wait that long. Only estimates and planned times decide, never a
clock: the same tuples are dropped when a batch is repeated.

In a micro-batch all tuples have arrived when it starts: the operator is free at `start_us`, the start as planned. Where
several tasks share the work, each is a queue of its own, a lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jettison.errors import PlanError
from jettison.statistics.timed import NOTHING_WAITED, Waited

CHECKS = ("average", "each", "p99")
"""What must not exceed tau: the average of all tuples kept so far, every tuple's own latency, or that of 99 in 100."""
LATE_SHARE = 0.01


@dataclass(frozen=True)
class LatencyRule:
    """A goal for queueing latency, and where the queue stands when the first tuple is judged.

    `scale` is what estimates are multiplied by: measured over estimated work of late. `most_work_us` is the work that a
    lane may take on, where there is a limit beside tau. Where arrivals are only known by event time, tuples of a batch
    came no more than `span_us` before it begins: old data does not wait longer for being old. `least_keep` of the
    tuples of a lane are let in, however long they wait: an output's floor.

    >>> gate = LatencyRule(tau_us=20.0, check="average").gate()
    >>> [gate.admits(arrived_us, 30.0) for arrived_us in (0.0, 10.0, 20.0, 60.0, 71.0)]
    [True, True, True, False, True]
    >>> gate.waited
    Waited(tuples=4.0, total_us=79.0, late=1.0)
    """

    tau_us: float
    check: str = "average"
    lanes: int = 1
    start_us: float = -math.inf
    scale: float = 1.0
    waited: Waited = NOTHING_WAITED
    most_work_us: float = math.inf
    span_us: float = math.inf
    least_keep: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.tau_us < math.inf:
            raise PlanError(f"cost bound: tau is {self.tau_us} us: give a latency above 0, such as '2 seconds'.")
        if self.check not in CHECKS:
            raise PlanError(f"cost bound: check is {self.check!r}: say one of {', '.join(map(repr, CHECKS))}.")
        if self.lanes < 1:
            raise PlanError(f"cost bound: {self.lanes} tasks share the work: give 1 or more.")
        if not 0 < self.scale < math.inf:
            raise PlanError(f"cost bound: estimates are scaled by {self.scale}: give a number above 0.")
        if not 0 <= self.least_keep <= 1:
            raise PlanError(f"cost bound keeps at least {self.least_keep}: a share must be within [0, 1].")

    @property
    def since_us(self) -> float:
        """When the first tuple of the batch can have come; -inf where that is not known."""
        return self.start_us - self.span_us if math.isfinite(self.start_us) else -math.inf

    def gate(self) -> LatencyGate:
        """What judges the tuples of one lane, one after the other."""
        return LatencyGate(self)

    def content(self) -> dict[str, Any]:
        waited = [self.waited.tuples, self.waited.total_us, self.waited.late]
        given = {"tau_us": self.tau_us, "check": self.check, "lanes": self.lanes, "scale": self.scale, "waited": waited}
        limits = {"start_us": self.start_us, "most_work_us": self.most_work_us, "span_us": self.span_us}
        given |= {"least_keep": self.least_keep} if self.least_keep else {}
        return given | {word: number for word, number in limits.items() if math.isfinite(number)}

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> LatencyRule:
        return cls(**{**content, "waited": Waited(*content["waited"])})


class LatencyGate:
    """The rule at work in one lane: `admits` judges the next tuple. Counts begin with the lane's part of the rule's."""

    def __init__(self, rule: LatencyRule) -> None:
        self.free_us = rule.start_us
        """When the operator has done all that was let in, as estimated."""
        before = rule.waited if rule.lanes == 1 else rule.waited.scaled(1 / rule.lanes)
        self._tuples, self._total_us, self._late = before.tuples, before.total_us, before.late
        self._tau_us, self._check, self._scale = rule.tau_us, rule.check, rule.scale
        self._left_us = rule.most_work_us
        self._least_keep, self._seen, self._admitted = rule.least_keep, 0, 0

    @property
    def waited(self) -> Waited:
        return Waited(self._tuples, self._total_us, self._late)

    def admits(self, arrived_us: float, cost_us: float) -> bool:
        """Whether a tuple that arrived then is let in; it is then counted and its work waited for."""
        wait_us = self.free_us - arrived_us
        if wait_us < 0.0:
            wait_us = 0.0
        late, tuples, work_us = wait_us > self._tau_us, self._tuples + 1, cost_us * self._scale
        if self._check == "average":
            fits = self._total_us + wait_us <= self._tau_us * tuples
        else:
            fits = not late or (self._check == "p99" and self._late + 1 <= LATE_SHARE * tuples)
        if not (fits and work_us <= self._left_us) and not self._is_owed():
            return False
        self._seen += 1
        self._admitted += 1
        self._left_us -= work_us
        self._tuples, self._total_us = tuples, self._total_us + wait_us
        self._late += late
        self.free_us = arrived_us + wait_us + work_us
        return True

    def _is_owed(self) -> bool:
        """Whether a tuple that should be dropped must be let in, so that no more are dropped than may be."""
        if self._admitted < self._least_keep * (self._seen + 1):
            return True
        self._seen += 1
        return False
