"""Plans to fall back to, when the one that a shedder made cannot be certified."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jettison.plan.drops.kind import Drop
from jettison.plan.floors import floor_at
from jettison.plan.placement.join_keys import by_chance
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed, not_enough, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.refine.floor_repair import with_floors

_TRIES = 20
_LEAST_KEEP = 1e-3


@dataclass(frozen=True)
class ScaledPlan:
    """A shedder that answers with one plan, its drops scaled so that they save enough and little more.

    What drops keep is multiplied by one factor, and goes by chance; drops by window stay as they are.

    >>> from jettison.network import Network
    >>> from jettison.plan.drops.random import Random
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> problem = Problem(net.graph, Profile({"w": 10.0}, {}), {"s": 100}, 400.0)
    >>> answer = ScaledPlan(Plan({"s": Random(0.9)}, "overload")).plan(problem)
    >>> round(answer.drops["s"].keep, 3), round(answer.saves_us, -1)
    (0.4, 600.0)
    """

    last: Plan

    def plan(self, problem: Problem) -> Plan | Infeasible:
        keeps = [drop.keep for drop in self.last.drops.values() if drop.judges != "window" and drop.keep > 0]
        if not keeps:
            plan = claimed(problem, self.last.drops, self.last.reason)
            return with_floors(problem, plan if not over_budget_us(problem, plan) else not_enough(problem, plan))
        low, high = _LEAST_KEEP, 1.0 / min(keeps)
        best = claimed(problem, self._scaled(problem, low), self.last.reason)
        if over_budget_us(problem, best):
            return with_floors(problem, not_enough(problem, best))
        for _ in range(_TRIES):
            middle = math.sqrt(low * high)
            tried = claimed(problem, self._scaled(problem, middle), self.last.reason)
            if over_budget_us(problem, tried):
                high = middle
            else:
                low, best = middle, tried
        return with_floors(problem, best)

    def _scaled(self, problem: Problem, factor: float) -> dict[str, Drop]:
        drops: dict[str, Drop] = {}
        for arc, drop in self.last.drops.items():
            keep = min(1.0, max(drop.keep * factor, floor_at(problem.graph, arc)))
            if drop.judges == "window":
                drops[arc] = drop
            elif keep < 1.0:
                drops[arc] = by_chance(problem.graph, arc, keep)
        return drops
