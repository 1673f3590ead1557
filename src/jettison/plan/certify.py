"""Judging a plan without trusting who made it: loads and utilities are computed again, arc by arc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jettison.errors import PlanError
from jettison.network.graph import Graph
from jettison.plan.drops.kind import pass_shares
from jettison.plan.drops.semantic import Semantic
from jettison.plan.floors import below_floor, floors
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.load import flows
from jettison.statistics.spread import flows_by_value

Vector = npt.NDArray[np.float64]

_TOLERANCE = 1e-6


def kept_flows(problem: Problem, plan: Plan) -> dict[str, Vector]:
    """Tuples that pass each arc's drop: in all, or by cell where tuples of different value are told apart."""
    keeps = pass_shares(plan.drops)
    if problem.graph.tracks.all:
        return flows_by_value(problem.graph, problem.profile, problem.rows, keeps, problem.spread)
    shares = {arc: keep for arc, keep in keeps.items() if isinstance(keep, float | int)}
    return {arc: np.array([flow]) for arc, flow in flows(problem.graph, problem.profile, problem.rows, shares).items()}


def planned_load_us(problem: Problem, plan: Plan) -> float:
    """The work that is left under a plan, drops paid for."""
    kept = kept_flows(problem, plan)
    work = sum(
        float(kept[arc].sum()) * problem.profile.cost(operator.name)
        for operator in problem.graph.operators
        for arc in problem.graph.arcs_into(operator.name)
    )
    judged = 0.0
    for arc, drop in plan.drops.items():
        if drop.judges == "window" and arc not in drop_arcs(problem.graph):
            continue  # results are few, and what is judged again further down was judged above
        if drop.keep > 0:  # a drop that keeps nothing does not judge: its branch is not run at all
            arriving = _arriving(problem, plan, kept, arc)
            look_us = problem.profile.look_us.get(arc, 0.0) if drop.judges in ("value", "group") else 0.0
            judged += (problem.profile.drop_us + look_us) * arriving
    return problem.unavoidable_us + work + judged


def _arriving(problem: Problem, plan: Plan, kept: Mapping[str, Vector], arc: str) -> float:
    """Tuples that come to a drop."""
    drop = plan.drops[arc]
    if drop.judges == "chance":
        return float(kept[arc].sum()) / drop.keep
    others = {other: each for other, each in plan.drops.items() if other != arc}
    return float(kept_flows(problem, replace(plan, drops=others))[arc].sum())


def delivered_shares(problem: Problem, plan: Plan) -> dict[str, float]:
    """Share of each output's tuples that a plan delivers."""
    return _shares(problem, plan, worth=False)


def worth_shares(problem: Problem, plan: Plan) -> dict[str, float]:
    """Share of what each output's tuples are worth that a plan delivers; as above where all are worth the same."""
    return _shares(problem, plan, worth=True)


def _shares(problem: Problem, plan: Plan, *, worth: bool) -> dict[str, float]:
    with_plan, without = kept_flows(problem, plan), kept_flows(problem, Plan())
    shares = {}
    for output in problem.graph.outputs:
        (arc,) = problem.graph.arcs_into(output.name)
        track, value = problem.graph.tracks.below(output.name), output.qos.value
        weights = track.worth(value) if worth and track is not None and value is not None else np.ones(1)
        full = float((weights * without[arc]).sum())
        shares[output.name] = float((weights * with_plan[arc]).sum()) / full if full > 0 else 1.0
    return shares


def plan_utility(problem: Problem, plan: Plan) -> float:
    """Sum of priority x utility over the outputs."""
    return utility_of(problem.graph, worth_shares(problem, plan))


def utility_of(graph: Graph, shares: Mapping[str, float]) -> float:
    """Sum of priority x utility over the outputs when these shares, of what tuples are worth, are delivered."""
    return sum(output.qos.priority * output.qos.utility(shares[output.name]) for output in graph.outputs)


def certify(problem: Problem, plan: Plan, *, within_budget: bool = True) -> None:
    """Raise PlanError unless the plan obeys every rule.

    The rules: drops stand only at inputs and splits; nothing is dropped while the load is within the budget; with
    the drops the load is within the budget (unless `within_budget` is False, for the best plan of an infeasible
    problem); no output gets less than its floor; delivered shares, utility and savings are as claimed, where the plan
    claims any.
    """
    allowed = drop_arcs(problem.graph)
    for arc in plan.drops:
        if plan.drops[arc].judges == "window":
            continue  # those stand where needs change
        if arc not in allowed:
            raise PlanError(f"a drop stands on arc {arc!r}; allowed are inputs and splits: {', '.join(allowed)}.")
        _check_judged(problem, plan, arc)
    _check_windows(problem, plan)
    for name, accuracy in below_floor(problem.graph, problem.rows, plan).items():
        floor = floors(problem.graph)[name]
        raise PlanError(f"output {name!r}: {accuracy:.4f} of its source tuples are processed, its floor is {floor:g}.")
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


def _check_judged(problem: Problem, plan: Plan, arc: str) -> None:
    """A drop by value stands only where the value is, and all that it affects are valued by it (table 3.1)."""
    drop = plan.drops[arc]
    if not isinstance(drop, Semantic):
        return
    at = problem.graph.tracks.at(arc)
    if at is None or at[1].lower() != drop.column.lower() or at[0].bounds != drop.bounds:
        raise PlanError(
            f"a drop by the value of {drop.column!r} stands on arc {arc!r}, where tuples cannot be told apart by it."
        )


def _check_windows(problem: Problem, plan: Plan) -> None:
    """Gaps are held: no tuple of windows that must be right goes by chance, and no more windows go than may."""
    decisions = decisions_of(problem.graph)
    decisions.arcs.check(plan)
    for arc, drop in plan.drops.items():
        if drop.judges != "window" and not decisions.by_chance(arc):
            raise PlanError(f"the drop on arc {arc!r} makes windows of what is left, whose results must be right.")
    for name, fate in plan.fates.items():
        decision = decisions.by_aggregate.get(name)
        if decision is None or decision.most_drop_share + _TOLERANCE < fate.drop_share < 1.0:
            raise PlanError(f"{fate.drop_share:.4f} of the windows of {name!r} go: its gap does not allow it.")


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
