"""Drops by group are filled in: which groups are large enough to be thinned out, and how much of each stays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jettison.network.arc import Arc
from jettison.network.graph import Graph
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.stratified import LEAST_ROWS, Stratified, allocate
from jettison.plan.placement.strata import strata_at
from jettison.plan.plan import Plan
from jettison.statistics.groups import GroupSizes

Shares = tuple[tuple[int, float], ...]


def stratified(graph: Graph, plan: Plan, sizes: GroupSizes, batch_us: Mapping[str, float]) -> Plan:
    """The plan with shares for large groups in its drops by group; `batch_us` is the event time that a batch covers,
    by aggregate, as far as it is known; else what the last batch said of itself counts.

    Where the sizes of groups are not known yet all have the same share.
    """
    if not any(drop.judges == "group" for drop in plan.drops.values()):
        return plan
    filled: dict[str, Stratified] = {}
    for arc in graph.arcs:
        drop = plan.drops.get(arc)
        if isinstance(drop, Stratified):
            above = [each for other, each in filled.items() if _leads_to(graph, other, arc)]
            filled[arc] = _filled(graph, arc, drop, above, sizes, batch_us)
    drops: dict[str, Drop] = {arc: filled.get(arc, drop) for arc, drop in plan.drops.items()}
    return replace(plan, drops=drops)


def _filled(
    graph: Graph,
    arc: str,
    drop: Stratified,
    above: Sequence[Stratified],
    sizes: GroupSizes,
    batch_us: Mapping[str, float],
) -> Stratified:
    """One drop with its shares: those that are to be left behind it, over those that drops above have left."""
    at = strata_at(graph, arc)
    rows = None if at is None else sizes.rows(at[0].name)
    if at is None or not rows:
        return Stratified(drop.columns, drop.keep)
    covered_us = batch_us.get(at[0].name) or sizes.span_us(at[0].name)
    in_window = rows * (at[0].window.size_us / covered_us if covered_us else 1.0)
    keep = drop.keep * math.prod(each.keep for each in above)
    groups, others = _allocated(sizes.of(at[0].name), keep, max(in_window, 1.0))
    left = [(dict(each.groups), each.rest) for each in above]
    named = {group for group, _ in groups} | {group for shares, _ in left for group in shares}
    wanted = dict(groups)
    # of groups that drops above tell apart and this one does not, and the other way round, the rest is what counts
    here = {
        group: min(1.0, wanted.get(group, others) / math.prod(shares.get(group, rest) for shares, rest in left))
        for group in sorted(named)
    }
    rest_here = min(1.0, others / math.prod(rest for _, rest in left))
    return Stratified(drop.columns, drop.keep, tuple((g, s) for g, s in here.items() if s != rest_here), rest_here)


def _allocated(sizes: Mapping[int, float], keep: float, in_window: float) -> tuple[Shares, float]:
    """Shares of groups. Large groups are left fewer rows than they should have, half or a quarter, before small ones
    are thinned: of 10 rows none is left in one window of 20,000, of 5 in one of 150, but of a group with one row as
    often as that row is dropped. With an eighth some of the small ones go, before all are thinned alike.

    Of 1,000 rows in a window two groups have 960. With 70 of them kept, 40 are of other groups, which stay whole:

    >>> groups, others = _allocated({1: 0.5, 2: 0.46}, 0.07, 1000.0)
    >>> [(group, round(share, 3)) for group, share in groups], others
    ([(1, 0.03), (2, 0.033)], 1.0)
    """
    found = [allocate(sizes, keep, LEAST_ROWS / part / in_window) for part in (1, 2, 4, 8)]
    whole = (each for each in found[:3] if each[1] == 1.0)
    thinned = (each for each in found if each[0])
    return next(whole, None) or next(thinned, found[0])


def _leads_to(graph: Graph, above: str, arc: str) -> bool:
    """Whether tuples of one arc come to another further down."""
    tail, waiting, seen = Arc(arc).origin, [Arc(above).head], set[str]()
    while waiting:
        name = waiting.pop()
        if name == tail:
            return True
        if name not in seen:
            seen.add(name)
            waiting += graph.consumers[name]
    return False
