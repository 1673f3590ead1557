"""When shedding is worth it: rows are dropped only if that takes away a worthwhile part of the excess.

A plan that brings a batch within its budget takes away all of the excess: it always is. Where no plan does, each is
judged by the trade that it makes,

    gain = 2 x share of the excess that it takes away - share of the utility that it loses

and the best is taken, none where no gain is above 0. So a plan that loses everything must take away more than half of
the excess, and the last steps of a plan, which lose the most for the least, are left out where they do not pay.
Decision record 25 has the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from jettison.network.graph import Graph
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem, Shedder
from jettison.statistics.worth import utility_of

EXCESS_WEIGHT = 2.0
_MOST_FIXED_SHARE = 0.9
_PARTS = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)


def fixed_is_too_much(fixed_us: float, budget_us: float) -> bool:
    """Whether a batch's fixed part leaves next to nothing of the budget for rows: then no drop brings it within.

    >>> fixed_is_too_much(2.2e6, 0.9e6), fixed_is_too_much(0.85e6, 0.9e6), fixed_is_too_much(0.5e6, 0.9e6)
    (True, True, False)
    """
    return fixed_us >= _MOST_FIXED_SHARE * budget_us


def gain(problem: Problem, plan: Plan) -> float:
    """What a plan is worth beside shedding nothing, where it cannot bring the work within the budget."""
    excess_us = problem.load_us - problem.budget_us
    if excess_us <= 0:
        return 0.0
    whole = utility_of(problem.graph, _all(problem.graph))
    lost = 1.0 - plan.utility / whole if whole > 0 else 0.0
    return EXCESS_WEIGHT * min(1.0, plan.saves_us / excess_us) - lost


def most_worthwhile(problem: Problem, plans: Iterable[Plan]) -> Plan | None:
    """Of these plans the one with the best trade; None when shedding nothing is better than any."""
    best = max(plans, key=lambda plan: gain(problem, plan), default=None)
    return best if best is not None and gain(problem, best) > 0 else None


def lesser_plans(problem: Problem, shedder: Shedder, most_us: float) -> list[Plan]:
    """Plans of a shedder that save a part of the most that can be saved, an eighth to seven eighths."""
    asked = (shedder.plan(problem.with_budget(problem.load_us - part * most_us)) for part in _PARTS if most_us > 0)
    return [found for found in asked if not isinstance(found, Infeasible)]


def _all(graph: Graph) -> dict[str, float]:
    return {output.name: 1.0 for output in graph.outputs}
