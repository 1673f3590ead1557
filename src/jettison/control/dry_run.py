"""Who plans in a dry run: what a run that sheds would do with the same stream.

A dry run drops nothing, so in a burst its batches fall behind: one holds what came while the one before it ran. A run
that sheds keeps up: its batches hold what one trigger interval brings. So a batch is cut into the intervals in which
its rows came, and each of these is planned as a batch of its own, while time passes for the planner as it would then.
Told of the rows of one interval and of the time of several, it took the rate for a part of what it was, and a burst of
five times the usual rate, which the backlog absorbed, for a single large batch: nothing would have been dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from jettison.control.loop import Controller
from jettison.network.event_time.watermarks import BatchMarks
from jettison.plan.plan import Plan
from jettison.plan.would_shed import would_shed
from jettison.statistics.samples import BatchSample

_MOST_PLANS = 20


class DryRun:
    """Plans that are not obeyed, made by `controller`, and what they would drop.

    Without `learn` the clock does not count: rows came while the batch before them ran, as long as costs say that took.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.dropped: Mapping[str, tuple[int, int]] = {}
        """By arc, the rows of the last batch that would have come to a drop, and those that it would have taken."""
        self.delivered: Mapping[str, float] = {}
        """By output, the share of the last batch that would have come through."""
        self._now_ms = 0.0
        self._took_ms = 0.0
        self._ran_ms = 0.0

    def decide(
        self, rows: Mapping[str, int], interval_ms: float, marks: BatchMarks | None = None, held: str | None = None
    ) -> Plan:
        """The last of the plans that a run that sheds would have for what came in `interval_ms`."""
        settings, trigger_ms = self.controller.settings, self.controller.settings.trigger_ms
        # rows came while the batch before them ran; what was idle before that brought none
        interval_ms = min(interval_ms, max(trigger_ms, self._ran_ms)) if self._ran_ms else interval_ms
        if not settings.learn or interval_ms <= 0:
            interval_ms = max(trigger_ms, self._took_ms)
        intervals = max(1.0, interval_ms / trigger_ms)
        count = min(_MOST_PLANS, math.ceil(intervals - 0.5))
        came = {name: round(each / intervals) for name, each in rows.items()}
        part = {name: each / count for name, each in rows.items()}
        plans = []
        for _ in range(count):
            self._now_ms += min(interval_ms, trigger_ms)
            plans.append(self.controller.decide(came, self._now_ms, marks=marks, held=held))
        self._took_ms = self.controller.costs.predict_ms(rows, {})
        found = [would_shed(self.controller.graph, self.controller.profile, plan, part) for plan in plans]
        arcs = dict.fromkeys(arc for each in found for arc in each)
        self.dropped = {arc: _sums([each.get(arc, (0, 0)) for each in found]) for arc in arcs}
        names = [output.name for output in self.controller.graph.outputs]
        self.delivered = {name: sum(plan.delivered.get(name, 1.0) for plan in plans) / count for name in names}
        return plans[-1]

    def resume(self, plan: Plan, rows: Mapping[str, int]) -> None:
        """Go on from a plan that was logged for so many rows."""
        self.controller.resume(plan)
        self.dropped = would_shed(self.controller.graph, self.controller.profile, plan, rows)
        self.delivered = dict(plan.delivered)

    def record(self, sample: BatchSample) -> None:
        """Learn from a batch that has run, nothing dropped."""
        self._ran_ms = sample.duration_ms
        self.controller.record(sample)


def _sums(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(came for came, _ in pairs), sum(gone for _, gone in pairs)
