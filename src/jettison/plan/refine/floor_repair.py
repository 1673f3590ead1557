"""A plan made to hold every floor: drops on the way to an output that gets too little keep more, just enough.

Shedders keep to floors by themselves as well as they can (a road map knows proportions of sources that may have changed
since). This step is for whatever they made, and for plans that nobody searched for: a trickle, windows as gaps allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.semantic import Semantic
from jettison.plan.drops.window import Window
from jettison.plan.floors import below_floor, floors, plan_accuracies
from jettison.plan.placement.join_keys import by_chance, joins_below, with_keys_left
from jettison.plan.placement.nested_buckets import by_chance_instead_of_buckets
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed, not_enough, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.group_values import window_drops

_HALVINGS = 40
_WHOLE = 1.0 - 1e-12


def hold_floors(
    problem: Problem,
    plan: Plan,
    besides: Mapping[str, float] | None = None,
    rows: Mapping[str, float] | None = None,
) -> Plan:
    """The plan with every floor held; the same plan where it does already.

    `besides` are shares that pass what is no drop of the plan (`floors.plan_accuracies`), `rows` the tuples that
    arrived, where those of the problem are fewer.

    >>> from jettison.network import Network, QoS
    >>> from jettison.plan.drops.random import Random
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("one")
    >>> _ = net.source("s", "x int").where("x > 0", name="w").output("o", qos=QoS(min_accuracy=0.3))
    >>> problem = Problem(net.graph, Profile({"w": 10.0}, {}), {"s": 100}, 50.0)
    >>> held = hold_floors(problem, claimed(problem, {"s": Random(0.05)}, "overload"))
    >>> round(held.drops["s"].keep, 6), round(held.saves_us, 3)
    (0.3, 700.0)
    """
    graph, arrived = problem.graph, problem.rows if rows is None else rows
    short = below_floor(graph, arrived, plan, besides)
    if not short:
        return plan
    drops = by_chance_instead_of_buckets(plan.drops)
    for name in sorted(short, key=lambda each: short[each] - floors(graph)[each]):
        drops = _raised_for(problem, drops, name, besides, arrived)
    return replace(claimed(problem, drops, plan.reason), row=plan.row, below_minimum=plan.below_minimum)


def with_floors(problem: Problem, found: Plan | Infeasible) -> Plan | Infeasible:
    """A shedder's answer with every floor held; infeasible where they leave too much work."""
    plan = found if isinstance(found, Plan) else found.best
    held = hold_floors(problem, plan)
    if held is plan:
        return found
    return not_enough(problem, held) if isinstance(found, Infeasible) or over_budget_us(problem, held) else held


def _raised_for(
    problem: Problem,
    drops: dict[str, Drop],
    output: str,
    besides: Mapping[str, float] | None,
    rows: Mapping[str, float],
) -> dict[str, Drop]:
    """Drops that keep so much more on all ways to an output that its floor is held, found by halving."""
    graph, floor = problem.graph, floors(problem.graph)[output]
    heads = {arc: arc_head(arc) for arc in graph.arcs}
    arcs = frozenset(arc for arc, head in heads.items() if head == output or output in graph.outputs_below(head))

    def holds(tried: Mapping[str, Drop]) -> bool:
        return plan_accuracies(graph, rows, Plan(tried), besides)[output] >= floor

    if holds(drops):
        return drops
    low, high, found = 0.0, 1.0, _raised(problem, drops, arcs, 1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tried = _raised(problem, drops, arcs, middle)
        if holds(tried):
            high, found = middle, tried
        else:
            low = middle
    return found


def _raised(problem: Problem, drops: Mapping[str, Drop], arcs: frozenset[str], part: float) -> dict[str, Drop]:
    """Drops on these arcs with this part of what they take away given back."""
    graph = problem.graph
    raised: dict[str, Drop] = {}
    for arc, drop in drops.items():
        if isinstance(drop, Window):
            continue
        keep = drop.keep + part * (1.0 - drop.keep)
        if arc not in arcs:
            raised[arc] = drop
        elif isinstance(drop, Semantic):
            if joins_below(graph, arc) and part > 0:
                continue  # a part of a cell, by chance, would leave k x k of a join's pairs: nothing is dropped there
            cells = tuple(share + part * (1.0 - share) for share in drop.keeps)
            raised |= {arc: replace(drop, keeps=cells, keep=keep)} if keep < _WHOLE else {}
        elif isinstance(drop, CostBound):
            raised |= {arc: drop.raised(part)} if keep < _WHOLE else {}
        elif keep < _WHOLE:
            raised[arc] = by_chance(graph, arc, keep)
    return {**with_keys_left(graph, problem.profile, problem.rows, raised), **_windows(graph, drops, arcs, part)}


def _windows(graph: Graph, drops: Mapping[str, Drop], arcs: frozenset[str], part: float) -> dict[str, Window]:
    """Window drops with this part of the windows given back, of aggregates on these ways and all decided with them."""
    fates = Plan(drops).fates
    if not fates:
        return {}
    decisions = decisions_of(graph)
    known = {name: decision.seed for name, decision in decisions.by_aggregate.items()}
    seeds = {known.get(name) for name in fates if not arcs.isdisjoint(graph.arcs_into(name))}
    changed = {}
    for name, fate in fates.items():
        share = fate.drop_share * (1.0 - part) if known.get(name) in seeds else fate.drop_share
        if share != fate.drop_share:
            fate = decisions.fates({name: share}).get(name, replace(fate, drop_share=0.0))
        if fate.drop_share > 0:
            changed[name] = fate
    return window_drops(graph, decisions, changed)
