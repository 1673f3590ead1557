"""Judging a plan without trusting who made it: loads and utilities are computed again, arc by arc."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.errors import PlanError
from jettison.network.graph import Graph
from jettison.plan.locations import drop_arcs
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.statistics.load import flows

_TOLERANCE = 1e-6


def kept_flows(problem: Problem, plan: Plan) -> dict[str, float]:
    """Tuples that pass each arc's drop."""
    keeps = {arc: drop.keep for arc, drop in plan.drops.items()}
    return flows(problem.graph, problem.profile, problem.rows, keeps)


def planned_load_us(problem: Problem, plan: Plan) -> float:
    """The work that is left under a plan, drops paid for."""
    kept = kept_flows(problem, plan)
    work = sum(
        kept[arc] * problem.profile.cost(operator.name)
        for operator in problem.graph.operators
        for arc in problem.graph.arcs_into(operator.name)
    )
    # A drop that keeps nothing does not judge: its branch is not run at all.
    judged = sum(kept[arc] / plan.keep(arc) for arc in plan.drops if plan.keep(arc) > 0)
    return problem.unavoidable_us + work + problem.profile.drop_us * judged


def delivered_shares(problem: Problem, plan: Plan) -> dict[str, float]:
    """Share of each output's tuples that a plan delivers."""
    with_plan, without = kept_flows(problem, plan), kept_flows(problem, Plan())
    shares = {}
    for output in problem.graph.outputs:
        (arc,) = problem.graph.arcs_into(output.name)
        shares[output.name] = with_plan[arc] / without[arc] if without[arc] > 0 else 1.0
    return shares


def plan_utility(problem: Problem, plan: Plan) -> float:
    """Sum of priority x utility over the outputs."""
    return utility_of(problem.graph, delivered_shares(problem, plan))


def utility_of(graph: Graph, delivered: Mapping[str, float]) -> float:
    """Sum of priority x utility over the outputs when these shares are delivered."""
    return sum(output.qos.priority * output.qos.utility(delivered[output.name]) for output in graph.outputs)


def certify(problem: Problem, plan: Plan, *, within_budget: bool = True) -> None:
    """Raise PlanError unless the plan obeys every rule.

    The rules: drops stand only at inputs and splits; nothing is dropped while the load is within the budget; with
    the drops the load is within the budget (unless `within_budget` is False, for the best plan of an infeasible
    problem); delivered shares, utility and savings are as claimed, where the plan claims any.
    """
    allowed = drop_arcs(problem.graph)
    for arc in plan.drops:
        if arc not in allowed:
            raise PlanError(f"a drop stands on arc {arc!r}; allowed are inputs and splits: {', '.join(allowed)}.")
    slack_us = _TOLERANCE * max(1.0, problem.load_us)
    if plan.drops and problem.load_us <= problem.budget_us - slack_us:
        raise PlanError(
            f"the load of {problem.load_us:.0f} us is within the budget of {problem.budget_us:.0f} us, "
            f"yet the plan drops on {', '.join(plan.drops)}."
        )
    left_us = planned_load_us(problem, plan)
    if within_budget and left_us > problem.budget_us + slack_us:
        raise PlanError(f"the plan leaves {left_us:.0f} us of work, the budget is {problem.budget_us:.0f} us.")
    _check_claims(problem, plan, saved_us=problem.load_us - left_us, slack_us=slack_us)


def _check_claims(problem: Problem, plan: Plan, *, saved_us: float, slack_us: float) -> None:
    shares = delivered_shares(problem, plan)
    for output, claimed in plan.delivered.items():
        if output not in shares:
            raise PlanError(f"the plan claims to deliver {output!r}, which is no output; outputs: {', '.join(shares)}.")
        if not abs(shares[output] - claimed) <= _TOLERANCE:
            raise PlanError(f"output {output!r}: the plan claims to deliver {claimed:.4f}, it is {shares[output]:.4f}.")
    utility = plan_utility(problem, plan)
    claims_utility = bool(plan.delivered) or plan.utility != 0.0
    if claims_utility and not abs(utility - plan.utility) <= _TOLERANCE * max(1.0, utility):
        raise PlanError(f"the plan claims a utility of {plan.utility:.4f}, it is {utility:.4f}.")
    if plan.saves_us != 0.0 and not abs(saved_us - plan.saves_us) <= slack_us:
        raise PlanError(f"the plan claims to save {plan.saves_us:.1f} us, it is {saved_us:.1f} us.")
