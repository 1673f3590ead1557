"""What a plan that is not obeyed would have dropped: the figures of a dry run."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile


def would_shed(graph: Graph, profile: Profile, plan: Plan, rows: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """By arc, the rows that would reach a drop of this plan and those that it would take, of so many rows read.

    On the arcs of sources these are counted rows; behind them, as many as selectivities tell.

    >>> from jettison.network import Source, Where, Output
    >>> from jettison.plan.drops.random import Random
    >>> graph = Graph("flat", (Source("s", (("a", "int"),)), Where("w", ("s",), "a > 0"), Output("o", ("w",))))
    >>> plan = Plan({"s": Random(0.8), "w>o": Random(0.5)})
    >>> would_shed(graph, Profile({}, {"w": 0.5}), plan, {"s": 1000})
    {'s': (1000, 200), 'w>o': (400, 200)}
    """
    keeps = {arc: plan.keep(arc) for arc in plan.drops}
    found = {}
    for arc, keep in keeps.items():
        others = {other: share for other, share in keeps.items() if other != arc}
        reaching = flows(graph, profile, rows, others)[arc]
        found[arc] = (round(reaching), round(reaching * (1.0 - keep)))
    return found
