"""What a plan says of itself, filled in for shedders that choose drops and leave the sums to others."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.graph import Graph
from jettison.plan.certify import sums
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.floors import floor_at, floors
from jettison.plan.placement.join_keys import by_chance
from jettison.plan.placement.ladder import LOWEST_KEEP_SHARE
from jettison.plan.placement.strata import estimates_below
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.worth import utility_of

WITHIN_BUDGET = "predicted within budget"
OVERLOAD = "overload"

_ROUNDING = 1e-7


def claimed(problem: Problem, drops: Mapping[str, Drop], reason: str) -> Plan:
    """A plan with these drops and what it delivers, is worth and saves.

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> plan = claimed(Problem(net.graph, Profile({"w": 10.0}, {}), {"s": 100}, 400.0), {"s": Random(0.4)}, OVERLOAD)
    >>> plan.delivered, plan.utility, plan.saves_us
    ({'o': 0.4}, 0.4, 600.0)
    """
    bare = Plan(drops, reason)
    delivered, worth, left_us = sums(problem, bare)
    saves_us = problem.load_us - left_us
    valued = {output.name: worth[output.name] for output in problem.graph.outputs if output.qos.value is not None}
    return Plan(drops, reason, 0, delivered, utility_of(problem.graph, worth), saves_us, valued)


def nothing_shed(graph: Graph, reason: str) -> Plan:
    """The plan without a drop: every output gets all of its tuples.

    >>> from jettison.network import Network
    >>> net = Network("one"); _ = net.source("s", "x int").output("o")
    >>> nothing_shed(net.graph, WITHIN_BUDGET).delivered
    {'o': 1.0}
    """
    all_of_it = {output.name: 1.0 for output in graph.outputs}
    valued = {output.name: 1.0 for output in graph.outputs if output.qos.value is not None}
    return Plan({}, reason, 0, all_of_it, utility_of(graph, all_of_it), 0.0, valued)


def everything(problem: Problem) -> Plan:
    """The plan that keeps nothing of any input that causes work, or next to nothing where it is to be estimated.

    Where windows must be right they are closed in place of inputs, so that those that have begun are finished. Floors
    are held.
    """
    decisions = decisions_of(problem.graph)
    names = [source.name for source in problem.graph.sources if decisions.by_chance(source.name)]
    working = [name for name in names if problem.coefficients[name] * problem.rows.get(name, 0.0) > 0]
    closed = {name: _most_drop_share(problem, name) for name in decisions.by_aggregate}
    windows = decisions.arcs.drops(decisions.fates(closed), decisions.keeps(closed))
    least = {name: LOWEST_KEEP_SHARE if estimates_below(problem.graph, name) else 0.0 for name in working}
    keeps = {name: max(keep, floor_at(problem.graph, name)) for name, keep in least.items()}
    drops = {name: _kept_of(problem, name, keep) for name, keep in keeps.items() if keep < 1.0}
    return claimed(problem, {**drops, **windows}, OVERLOAD)


def _kept_of(problem: Problem, source: str, keep: float) -> Drop:
    return by_chance(problem.graph, source, keep) if floor_at(problem.graph, source) > 0 else Random(keep)


def _most_drop_share(problem: Problem, aggregate: str) -> float:
    """All of its windows; what floors leave of them where an output needs some."""
    floor = max(floor_at(problem.graph, arc) for arc in problem.graph.arcs_into(aggregate))
    return 1.0 if floor == 0 else min(1.0 - floor, decisions_of(problem.graph).by_aggregate[aggregate].most_drop_share)


def over_budget_us(problem: Problem, plan: Plan) -> float:
    """How far a plan's claimed savings leave the work above the budget; 0 where that is a matter of rounding."""
    over_us = problem.load_us - plan.saves_us - problem.budget_us
    return over_us if over_us > _ROUNDING * max(1.0, problem.load_us) else 0.0


def not_enough(problem: Problem, best: Plan) -> Infeasible:
    """Even the best plan leaves too much work: why, and what to do."""
    left_us = problem.load_us - best.saves_us
    over_ms, held_ms = (left_us - problem.budget_us) / 1000, (left_us - problem.unavoidable_us) / 1000
    wanted = ", ".join(f"{name} {floor:g}" for name, floor in floors(problem.graph).items())
    most = f"shedding as much as min_accuracy allows ({wanted})" if wanted else "shedding everything"
    return Infeasible(
        f"{most} still leaves {over_ms:.0f} ms above the budget of {problem.budget_us / 1000:.0f} ms: "
        f"reading and fixed work take {problem.unavoidable_us / 1000:.0f} ms{_held(held_ms)}. "
        f"Use a longer trigger, more cores or a cheaper source.",
        best,
    )


def _held(held_ms: float) -> str:
    """The work on rows that the best plan leaves, where there is any."""
    return f", and the rows that this leaves {held_ms:.0f} ms" if held_ms >= 1 else ""
