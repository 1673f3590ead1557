"""Drops agreed with other nodes: what a node sheds for nodes downstream, beside what it sheds for itself (thesis 5.6).

While the agreed drops bring the batch near its budget, they are the plan. Where they do not (rates have risen since, or
the plan is old), they are scaled until they do: the node is safe, and what it gives on stays as mixed as agreed. Where
even that is not enough, each arc keeps the smaller share of the agreed plan and of the node's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.control.deciding import Certified
from jettison.errors import PlanError
from jettison.plan.certify import certify
from jettison.plan.drops.kind import Drop
from jettison.plan.placement.join_keys import by_chance, droppable
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.safe import ScaledPlan

AGREED = "agreed with other nodes"

_SLACK_SHARE = 0.05
"""Agreed drops aim at the budget itself, and counted rows scatter: so far above it they stay as they are."""


def with_agreed(found: Certified, problem: Problem, keeps: Mapping[str, float]) -> Certified:
    """The node's own plan and the agreed shares, as one certified plan; its own where that cannot be."""
    graph = problem.graph
    places = [arc for arc in drop_arcs(graph) if keeps.get(arc, 1.0) < 1.0 and droppable(graph, arc)]
    if not places:
        return found
    agreed: dict[str, Drop] = {arc: by_chance(graph, arc, keeps[arc]) for arc in places}
    plan = claimed(problem, agreed, AGREED)
    enough = True
    if over_budget_us(problem.with_budget((1 + _SLACK_SHARE) * problem.budget_us), plan):
        scaled = ScaledPlan(plan).plan(problem)
        enough = isinstance(scaled, Plan)
        plan = scaled if isinstance(scaled, Plan) else claimed(problem, _both(found.plan, agreed), found.plan.reason)
    asked = problem.with_budget(problem.load_us - plan.saves_us)
    try:
        certify(asked, plan)
    except PlanError:
        return found  # floors or windows of this node come first
    context = replace(found.context, problem=asked)
    infeasible = None if enough else found.infeasible
    return replace(found, plan=plan, chosen=plan, context=context, infeasible=infeasible, stays=False)


def _both(own: Plan, agreed: Mapping[str, Drop]) -> dict[str, Drop]:
    """Of each arc the drop that keeps less."""
    drops = dict(own.drops)
    for arc, drop in agreed.items():
        if arc not in drops or drop.keep < drops[arc].keep:
            drops[arc] = drop
    return drops
