"""The last refinements of a plan, batch by batch: what it does in the batch at hand, before it is logged and obeyed."""

from __future__ import annotations

import logging

from jettison.network.event_time.lookahead import Sight
from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.context import Context
from jettison.plan.refine.refinements import OBEYING, refine
from jettison.plan.refine.window_lookahead import is_resolved
from jettison.statistics.profile import Profile

_log = logging.getLogger("jettison")


class WindowDropResolver:
    """Applies `OBEYING` to the plans of one run: what it remembers is how far batches have got.

    It stands behind the control loop, whose plan stays in force from batch to batch (decision record 35).
    """

    def __init__(self, graph: Graph) -> None:
        self._problem = Problem(graph, Profile({}, {}), {}, 0.0)
        self._sight = Sight()

    def resolve(self, plan: Plan, marks: BatchMarks | None, rows: int) -> Plan:
        """The plan of a batch of so many rows, resolved; one that was logged so stays as it is. Call it for every
        batch. `marks` are None where there are no windows of time."""
        if marks is None:
            return plan
        graph = self._problem.graph
        ahead_us = self._sight.before(marks.newest_us, rows)
        if graph.stream_joins or marks.apart:  # one stream may be far ahead of what another has reached
            ahead_us = None
        if is_resolved(plan):
            return plan
        obeyed, steps = refine(plan, Context(self._problem, marks=marks, ahead_us=ahead_us), OBEYING)
        for step in steps:
            _log.debug("network %s: %s", graph.name, step)
        return obeyed
