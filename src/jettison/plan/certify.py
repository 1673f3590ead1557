"""Judging a plan without trusting who made it: loads and utilities are computed again, arc by arc."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from jettison.errors import PlanError
from jettison.network.arc import Arc
from jettison.network.graph import Graph
from jettison.network.operators import Map
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.kind import Drop, PassShare, pass_shares
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.drops.semantic import Semantic
from jettison.plan.floors import below_floor, floor_at, floors
from jettison.plan.placement.key_checks import check_keys
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.placement.nested_buckets import check_buckets
from jettison.plan.placement.strata import estimates_below
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.staleness import Fresh, fresh_shares, left_when_fresh, saved_by_stale_us
from jettison.plan.refine.unread import Unread, after_skipping
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.drop_checks import check_named_groups, check_row_schedules, check_window_drops
from jettison.plan.windows.fates import most_drop_share
from jettison.statistics.load import flows
from jettison.statistics.spread import flows_by_value
from jettison.statistics.worth import utility_of

Vector = npt.NDArray[np.float64]

_TOLERANCE = 1e-6
_LEAST_KEEP = 2.0**-20
"""Shares are judged by in whole parts of this."""


def kept_flows(problem: Problem, plan: Plan) -> dict[str, Vector]:
    """Tuples that pass each arc's drop: in all, or by cell where tuples of different value are told apart."""
    if problem.graph.tracks.all:
        keeps = pass_shares(plan.drops)
        return flows_by_value(problem.graph, problem.profile, problem.rows, keeps, problem.spread)
    return {arc: np.array([flow]) for arc, flow in _plain_flows(problem, plan).items()}


def _plain_flows(problem: Problem, plan: Plan) -> dict[str, float]:
    """The same where no values are told apart, as numbers."""
    shares = {arc: keep for arc, keep in pass_shares(plan.drops).items() if isinstance(keep, float | int)}
    return flows(problem.graph, problem.profile, problem.rows, shares)


def _whole_flows(problem: Problem) -> dict[str, Vector]:
    """Tuples that pass each arc when nothing is dropped; worked out once for a problem."""
    known: dict[str, Vector] = problem.shared.setdefault("whole flows", {})
    if not known:
        known.update(kept_flows(problem, Plan()))
    return known


def planned_load_us(problem: Problem, plan: Plan, kept: Mapping[str, float] | None = None) -> float:
    """The work that is left under a plan, drops paid for; `kept` are tuples that pass its drops, where known."""
    if kept is None:
        kept = _totals(problem, plan)
    work = sum(kept[arc] * cost_us for arc, cost_us in _costs(problem))
    for arc, drop in plan.drops.items():
        if isinstance(drop, CostBound):  # those that pass are cheaper than the mean
            work += kept[arc] * problem.profile.cost(drop.operator) * (drop.cost_factor - 1.0)
    judged, places = 0.0, drop_arcs(problem.graph)
    for arc, drop in plan.drops.items():
        if drop.judges == "window" and (drop.keep >= 1.0 or arc not in places):
            continue  # nothing goes; or results, which are few, or what is judged again further down
        if drop.keep > 0:  # a drop that keeps nothing does not judge: its branch is not run at all
            arriving = _arriving(problem, plan, kept, arc)
            look_us = problem.profile.look_us.get(arc, 0.0) if drop.judges in ("value", "group") else 0.0
            judged += (problem.profile.drop_us + look_us) * arriving
    return problem.unavoidable_us + work + judged


def _totals(problem: Problem, plan: Plan) -> dict[str, float]:
    """Tuples that pass each arc's drop, in all."""
    if not problem.graph.tracks.all:
        return _plain_flows(problem, plan)
    return {arc: float(flow.sum()) for arc, flow in kept_flows(problem, plan).items()}


def _costs(problem: Problem) -> Sequence[tuple[str, float]]:
    """Arcs with the work that a tuple on them causes in the next operator, where it causes any."""
    known: list[tuple[str, float]] | None = problem.shared.get("costs")
    if known is None:
        costs = [(each, problem.profile.cost(each.name)) for each in problem.graph.operators]
        known = [(arc, cost) for each, cost in costs if cost for arc in problem.graph.arcs_into(each.name)]
        problem.shared["costs"] = known
    return known


def _arriving(problem: Problem, plan: Plan, kept: Mapping[str, float], arc: str) -> float:
    """Tuples that come to a drop."""
    drop = plan.drops[arc]
    if drop.judges == "chance":
        return kept[arc] / drop.keep
    others = {other: each for other, each in plan.drops.items() if other != arc}
    return _totals(problem, replace(plan, drops=others))[arc]


def delivered_shares(problem: Problem, plan: Plan) -> dict[str, float]:
    """Share of each output's tuples that a plan delivers."""
    return sums(problem, plan)[0]


def worth_shares(problem: Problem, plan: Plan) -> dict[str, float]:
    """Share of what each output's tuples are worth that a plan delivers; as above where all are worth the same."""
    return sums(problem, plan)[1]


def sums(problem: Problem, plan: Plan) -> tuple[dict[str, float], dict[str, float], float]:
    """Delivered shares, what they are worth, and the work that is left, all at once."""
    graph = problem.graph
    arcs = {output.name: graph.arcs_into(output.name)[0] for output in graph.outputs}
    if not graph.tracks.all:
        plain = problem.shared.setdefault("plain flows", {})
        if not plain:
            plain.update(_plain_flows(problem, Plan()))
        now = _plain_flows(problem, plan)
        delivered = {name: _share(now[arc], plain[arc]) for name, arc in arcs.items()}
        return delivered, delivered, planned_load_us(problem, plan, now)
    kept, whole = kept_flows(problem, plan), _whole_flows(problem)
    delivered = {name: _share(float(kept[arc].sum()), float(whole[arc].sum())) for name, arc in arcs.items()}
    worth = dict(delivered)
    for output in graph.outputs:
        track, value = graph.tracks.below(output.name), output.qos.value
        if track is not None and value is not None:
            weights, arc = track.worth(value), arcs[output.name]
            worth[output.name] = _share(float((weights * kept[arc]).sum()), float((weights * whole[arc]).sum()))
    return delivered, worth, planned_load_us(problem, plan, {arc: float(flow.sum()) for arc, flow in kept.items()})


def offered_rows(problem: Problem) -> dict[str, float]:
    """Tuples that would come to each output if nothing were dropped."""
    whole = _whole_flows(problem)
    return {
        output.name: float(whole[problem.graph.arcs_into(output.name)[0]].sum()) for output in problem.graph.outputs
    }


def _share(part: float, full: float) -> float:
    return part / full if full > 0 else 1.0


def plan_utility(problem: Problem, plan: Plan) -> float:
    """Sum of priority x utility over the outputs."""
    return utility_of(problem.graph, worth_shares(problem, plan))


@dataclass(frozen=True)
class Beside:
    """What a plan is judged with: `fresh` says what is stale, `unread` records came beside the `rows` that are read."""

    fresh: Fresh | None = None
    unread: Unread = field(default_factory=Unread)
    rows: Mapping[str, int] = field(default_factory=dict)


ALONE = Beside()


def certify(problem: Problem, plan: Plan, *, within_budget: bool = True, beside: Beside = ALONE) -> None:
    """Raise PlanError unless the plan obeys every rule. Nothing that the plan says of itself is believed.

    The rules:

    - drops stand only at inputs and splits, those by window where needs change, and judge by what is there;
    - a drop by cost stands in front of the timed operator that it names, and judges by its key;
    - nothing is dropped while the load is within the budget, but windows that were decided earlier, and what a goal for
      latency asks for;
    - with the drops the load is within the budget, unless `within_budget` is False: the plan of an infeasible problem,
      or one that gives something back on purpose (a probe, a schedule that expires, drops by value not trusted);
    - no drop takes an output below its floor, stale and unread tuples included;
    - both sides of a join lose the same keys, and drops by key say what is left of keys above them;
    - drops by bucket say what those above them leave, and stand above no join of streams and no estimate;
    - no more windows go than their gaps allow, those of named groups included, and all drops agree about them;
    - delivered shares, what they are worth, utility and savings are as claimed.
    """
    allowed = drop_arcs(problem.graph)
    for arc in plan.drops:
        if plan.drops[arc].judges == "window" and arc in problem.coefficients:
            continue  # those stand where needs change
        drop = plan.drops[arc]
        if isinstance(drop, CostBound):
            _check_cost_bound(problem, arc, drop)
            _check_judged(problem, plan, arc)
            continue
        if arc not in allowed:
            raise PlanError(f"a drop stands on arc {arc!r}; allowed are inputs and splits: {', '.join(allowed)}.")
        _check_judged(problem, plan, arc)
    check_buckets(problem.graph, problem.profile, problem.rows, plan.drops)
    check_keys(problem, plan)
    check_fates(problem.graph, plan)
    _check_floors(problem, plan, beside)
    slack_us = _TOLERANCE * max(1.0, problem.load_us)
    budgeted = {arc: drop for arc, drop in plan.drops.items() if not _has_goal(drop)}
    dropping = [arc for arc, drop in budgeted.items() if drop.keep < 1.0 or _takes(drop.passes)]
    if (dropping or plan.stale) and problem.load_us <= problem.budget_us - slack_us:
        raise PlanError(
            f"the load of {problem.load_us:.0f} us is within the budget of {problem.budget_us:.0f} us, "
            f"yet the plan drops on {', '.join((*dropping, *plan.stale))}."
        )
    _check_claims(problem, plan, beside, within_budget=within_budget, slack_us=slack_us)


def _takes(passes: PassShare) -> bool:
    """Whether anything is to go."""
    return min(passes) < 1.0 if isinstance(passes, tuple) else passes < 1.0


def _has_goal(drop: Drop) -> bool:
    """Whether a drop has a goal beside the budget."""
    return isinstance(drop, CostBound) and (isinstance(drop.rule, LatencyRule) or drop.rule.goal_us is not None)


def _check_cost_bound(problem: Problem, arc: str, drop: CostBound) -> None:
    """A drop by cost stands in front of its operator, which is timed by the same key."""
    operator = problem.graph.by_name.get(drop.operator)
    if not isinstance(operator, Map) or arc not in problem.graph.arcs_into(drop.operator):
        raise PlanError(f"the drop by cost on arc {arc!r} does not stand in front of a map called {drop.operator!r}.")
    if operator.key != drop.columns:
        key = ", ".join(operator.key)
        raise PlanError(f"the drop on arc {arc!r} judges by {', '.join(drop.columns)}; map {drop.operator!r} by {key}.")
    floor = floor_at(problem.graph, arc)
    if isinstance(drop.rule, LatencyRule) and drop.rule.least_keep < floor - _TOLERANCE:
        raise PlanError(
            f"the drop by cost on arc {arc!r} lets at least {drop.rule.least_keep:g} of its tuples in, and an output "
            f"below it has a floor of {floor:g}."
        )


def _check_judged(problem: Problem, plan: Plan, arc: str) -> None:
    """A drop by value stands only where the value is, and all that it affects are valued by it (table 3.1)."""
    drop = plan.drops[arc]
    if not decisions_of(problem.graph).by_chance(arc):
        raise PlanError(f"the drop on arc {arc!r} makes windows of what is left, whose results must be right.")
    columns = problem.graph.columns.get(Arc(arc).tail or arc)
    known = None if columns is None else {column.lower() for column in columns}
    for column in drop.reads:
        if known is not None and column.lower() not in known:
            raise PlanError(f"the drop on arc {arc!r} reads column {column!r}, which is not there.")
    if estimates_below(problem.graph, arc) and (drop.judges not in ("chance", "group") or drop.keep < _LEAST_KEEP):
        raise PlanError(
            f"the drop on arc {arc!r} stands above estimates, where a row that is kept stands for others: drop by "
            f"chance or by group, and keep {_LEAST_KEEP:g} or more."
        )
    if not isinstance(drop, Semantic):
        return
    at = problem.graph.tracks.at(arc)
    if at is None or at[1].lower() != drop.column.lower() or at[0].bounds != drop.bounds:
        raise PlanError(
            f"a drop by the value of {drop.column!r} stands on arc {arc!r}, where rows cannot be told apart by it."
        )


def _check_floors(problem: Problem, plan: Plan, beside: Beside) -> None:
    """No output is below its floor, unless stale and unread tuples alone take it there: then nothing else may go."""
    read = beside.unread.read_shares(beside.rows)
    fresh = {} if beside.fresh is None or not plan.stale else beside.fresh.shares
    besides = {arc: fresh.get(arc, 1.0) * read.get(arc, 1.0) for arc in {**fresh, **read}}
    arrived = {name: count / read.get(name, 1.0) for name, count in problem.rows.items()}
    short = below_floor(problem.graph, arrived, plan, besides)
    if not short:
        return
    without = below_floor(problem.graph, arrived, Plan(), besides)
    for name, accuracy in short.items():
        if name in without and accuracy >= without[name] - _TOLERANCE:
            continue
        floor = floors(problem.graph)[name]
        raise PlanError(f"output {name!r}: {accuracy:.4f} of its source rows are processed, its floor is {floor:g}.")


def check_fates(graph: Graph, plan: Plan) -> None:
    """Raise PlanError unless gaps are held: no more windows of an aggregate go than may, all of them, or none."""
    fates = plan.fates
    if not fates:
        return
    decisions = decisions_of(graph)
    check_window_drops(decisions.arcs, plan)
    check_row_schedules(decisions, plan)
    check_named_groups(decisions, plan)
    for name, fate in fates.items():
        decision, cells = decisions.by_aggregate.get(name), fate.cells
        shares = [(fate.drop_share, None if decision is None else decision.gap)]
        if cells is not None and cells.gaps:
            shares += list(zip(cells.shares, cells.gaps, strict=True))
        elif cells is not None and fate.drop_share > 0:
            shares += [(share, None if decision is None else decision.gap) for share in cells.shares]
        for share, gap in shares:
            most = 0.0 if gap is None else most_drop_share(gap)
            closes = share == 1.0 and bool(gap)
            if share > most + _TOLERANCE and not closes:
                raise PlanError(f"{share:.4f} of the windows of {name!r} go: its gap of {gap or 0} does not allow it.")


def _check_claims(problem: Problem, plan: Plan, beside: Beside, *, within_budget: bool, slack_us: float) -> None:
    left, stale_us, fresh = problem, 0.0, dict.fromkeys((output.name for output in problem.graph.outputs), 1.0)
    if plan.stale:
        if beside.fresh is None:
            raise PlanError(f"rows on {', '.join(plan.stale)} go as stale, and nobody has said that any are.")
        left, fresh = left_when_fresh(problem, beside.fresh), fresh_shares(problem, beside.fresh)
        stale_us = saved_by_stale_us(problem, beside.fresh.shares)
    delivered, worth, left_us = sums(left, plan)
    saved_us = left.load_us - left_us + stale_us
    if within_budget and problem.load_us - saved_us > problem.budget_us + slack_us:
        over_us = problem.load_us - saved_us
        raise PlanError(f"the plan leaves {over_us:.0f} us of work, the budget is {problem.budget_us:.0f} us.")
    utility = utility_of(problem.graph, worth)
    expected = Plan(
        plan.drops,
        delivered={name: share * fresh[name] for name, share in delivered.items()},
        worth=worth if not plan.stale else {**delivered, **worth},
    )
    expected = after_skipping(problem.graph, expected, beside.rows, beside.unread)
    for output, claimed in plan.delivered.items():
        if output not in fresh:
            raise PlanError(f"the plan claims to deliver {output!r}, which is no output; outputs: {', '.join(fresh)}.")
        if not abs(expected.delivered[output] - claimed) <= _TOLERANCE:
            is_so = expected.delivered[output]
            raise PlanError(f"output {output!r}: the plan claims to deliver {claimed:.4f}, it is {is_so:.4f}.")
    for output, claimed in plan.worth.items():
        if output not in expected.worth or not abs(expected.worth[output] - claimed) <= _TOLERANCE:
            is_so = expected.worth.get(output, math.nan)
            raise PlanError(f"output {output!r}: the plan claims a worth of {claimed:.4f}, it is {is_so:.4f}.")
    claims = bool(plan.delivered) or plan.utility != 0.0
    if claims and not abs(utility - plan.utility) <= _TOLERANCE * max(1.0, utility):
        raise PlanError(f"the plan claims a utility of {plan.utility:.4f}, it is {utility:.4f}.")
    if (claims or plan.saves_us != 0.0) and not abs(saved_us - plan.saves_us) <= slack_us:
        raise PlanError(f"the plan claims to save {plan.saves_us:.1f} us, it is {saved_us:.1f} us.")
