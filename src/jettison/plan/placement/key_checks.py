"""Whether the drops by key of a plan agree with each other and with the joins below them."""

from __future__ import annotations

from jettison.errors import PlanError
from jettison.network.arc import arc_name
from jettison.network.graph import Graph
from jettison.plan.drops.by_key import ByKey
from jettison.plan.placement.join_keys import joins_below, key_at, with_keys_left
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem

_TOLERANCE = 1e-6


def check_keys(problem: Problem, plan: Plan) -> None:
    """Raise unless drops keep the same keys on both sides of a join, and those by key say what is left of keys above.

    Above a join they judge by its key, in its order, all with one seed. Else a key could stay on one side and go on the
    other, and fewer pairs would be left than the plan says.
    """
    _check_chance(problem.graph, plan)
    by_key = {arc: drop for arc, drop in plan.drops.items() if isinstance(drop, ByKey)}
    if not by_key:
        return
    graph = problem.graph
    seeds: dict[str, tuple[str, str]] = {}
    for arc, drop in by_key.items():
        joins, key = joins_below(graph, arc), key_at(graph, arc)
        if joins and (key is None or _lower(drop.columns) != _lower(key)):
            named = "is not there" if key is None else f"is {', '.join(key)}"
            raise PlanError(
                f"the drop on arc {arc!r} is by {', '.join(drop.columns)}; the key of join {joins[0].name!r} below it "
                f"{named}: both sides must lose the same keys."
            )
        for join in joins:
            other, seed = seeds.setdefault(join.name, (arc, drop.seed))
            if seed != drop.seed:
                raise PlanError(
                    f"above join {join.name!r} the drop on arc {arc!r} has the seed {drop.seed!r}, that on arc "
                    f"{other!r} has {seed!r}: use one, so that both sides lose the same keys."
                )
    right = with_keys_left(graph, problem.profile, problem.rows, plan.drops)
    for arc, drop in by_key.items():
        expected = right[arc]
        if drop.keep > 0 and isinstance(expected, ByKey) and not abs(expected.of - drop.of) <= _TOLERANCE:
            raise PlanError(
                f"the drop on arc {arc!r} says that drops above leave {drop.of:.4f} of the keys, it is "
                f"{expected.of:.4f}: it would keep another share than {drop.keep:g}."
            )


def _check_chance(graph: Graph, plan: Plan) -> None:
    """Raise where rows go by chance on the way to a join whose other side loses rows too: k x k of the pairs would be
    left where the plan counts on k. From one side alone rows may go by chance."""
    for join in graph.stream_joins:
        sides = [_partly(graph, plan, side, join.name) for side in join.inputs]
        for arc in sorted(set().union(*sides)) if all(sides) else ():
            if plan.drops[arc].judges == "chance":
                raise PlanError(
                    f"the drop on arc {arc!r} is by chance, and both sides of join {join.name!r} below it lose rows: "
                    f"drop by its key ({', '.join(join.on)}) on both, so that they lose the same keys."
                )


def _partly(graph: Graph, plan: Plan, side: str, join: str) -> set[str]:
    """Arcs on the way to one side of a join whose drop keeps a part of the rows."""
    found: set[str] = set()
    waiting = [arc_name(side, join)]
    while waiting:
        arc = waiting.pop()
        drop = plan.drops.get(arc)
        if drop is not None and drop.judges != "window" and 0.0 < drop.keep < 1.0:
            found.add(arc)
        if not arc.is_input:
            waiting += graph.arcs_into(arc.origin)
    return found


def _lower(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(column.lower() for column in columns)
