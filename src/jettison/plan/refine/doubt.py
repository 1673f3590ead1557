"""Drops by chance in place of drops by value, where values cannot be trusted (`control.trust` says when)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace

from jettison.plan.certify import planned_load_us
from jettison.plan.drops.kind import Drop
from jettison.plan.floors import floor_at
from jettison.plan.placement.join_keys import by_chance
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem

_TRIES = 14
_NEAR_SHARE = 0.01
_LEAST_FACTOR = 0.6


def by_chance_instead(problem: Problem, plan: Plan, arcs: Collection[str]) -> Plan:
    """The plan with drops by chance in place of those by value on these arcs, saving as much as floors allow.

    Of the rows that a drop by value keeps, filters below may pass more or less than of others: by chance, as many are
    kept as cost the same.

    >>> from jettison.network import Network
    >>> from jettison.plan.drops.semantic import Semantic
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> problem = Problem(net.graph, Profile({"w": 10.0}, {}), {"s": 100}, 400.0)
    >>> by_value = Plan({"s": Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.4)}, "overload", 7, saves_us=600.0)
    >>> plan = by_chance_instead(problem, by_value, ["s"])
    >>> plan.drops, plan.row, plan.delivered
    ({'s': Random(keep=0.4)}, 7, {'o': 0.4})
    """
    keeps = {arc: drop.keep for arc, drop in plan.drops.items() if arc in arcs and drop.judges == "value"}
    if not keeps:
        return plan

    def changed(factor: float) -> dict[str, Drop]:
        # floors are of rows, and held by the shares that they were given
        found = {
            arc: keep * (max(1.0, factor) if floor_at(problem.graph, arc) > 0 else factor)
            for arc, keep in keeps.items()
        }
        return {**plan.drops, **{arc: by_chance(problem.graph, arc, min(1.0, keep)) for arc, keep in found.items()}}

    if plan.stale:  # what is saved with stale tuples is not for drops by chance to make up
        return replace(plan, drops=changed(1.0))

    def saves_us(factor: float) -> float:
        return problem.load_us - planned_load_us(problem, Plan(changed(factor)))

    factor, wanted_us = 1.0, plan.saves_us
    if abs(saves_us(1.0) - wanted_us) > _NEAR_SHARE * wanted_us:
        factor = _largest(lambda each: saves_us(each) >= wanted_us, _LEAST_FACTOR, 1.0 / max(1e-6, min(keeps.values())))
    return replace(claimed(problem, changed(factor), plan.reason), row=plan.row, below_minimum=plan.below_minimum)


def _largest(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The largest factor that is enough, between one that is taken to be and one that may not be."""
    for _ in range(_TRIES):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low
