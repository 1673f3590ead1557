"""Drops by bucket one below the other: what of the tuples that come to each of them passes.

All of them judge by one hash. A drop that keeps the first 12 of 64 buckets, below one that keeps the first 48, takes
three quarters of what is left: its share depends on what stands above, as with drops by key (`join_keys`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.errors import PlanError
from jettison.network.graph import Graph
from jettison.network.operators import StreamJoin
from jettison.plan.drops.buckets import Buckets
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.placement.join_keys import joins_below
from jettison.plan.placement.strata import estimates_below
from jettison.statistics.profile import Profile

_LEAST_ROWS = 1e-9
"""A source without rows in a batch weighs next to nothing, but not nothing."""
_TOLERANCE = 1e-6


def with_buckets_left(
    graph: Graph, profile: Profile, rows: Mapping[str, float], drops: Mapping[str, Drop]
) -> dict[str, Drop]:
    """Drops by bucket with the share of tuples that drops by bucket above them leave.

    >>> from jettison.network import Network
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.where("x > 0", name="a").output("left"); _ = s.where("x > 5", name="b").output("right")
    >>> drops = {"s": Buckets(48), "s>b": Buckets(12)}
    >>> with_buckets_left(net.graph, Profile({}, {}), {"s": 100.0}, drops)["s>b"]
    Buckets(kept=12, buckets=64, of=0.75)
    """
    by_bucket = {arc: drop for arc, drop in drops.items() if isinstance(drop, Buckets)}
    found = dict(drops)
    if len(by_bucket) < 2:
        alone = ((arc, drop) for arc, drop in by_bucket.items() if drop.of != 1.0)
        return {**found, **{arc: replace(drop, of=1.0) for arc, drop in alone}}
    on: dict[str, dict[float, float]] = {}  # by arc: tuples, by the share of buckets that is left of them
    for operator, into, out_of in graph.wiring:
        if not operator.inputs:
            arc = into[0]
            coming = on[arc] = _passed(arc, {1.0: max(_LEAST_ROWS, rows.get(operator.name, 0.0))}, drops, found)
        elif isinstance(operator, StreamJoin):  # no drop by bucket stands above: keys are kept or dropped whole
            coming = {1.0: sum(sum(on[arc].values()) for arc in into)}
        else:
            coming = on[into[0]] if len(into) == 1 else _merged([on[arc] for arc in into])
        passes = profile.passes(operator.name)
        given = coming if passes == 1.0 else {share: passes * amount for share, amount in coming.items()}
        for arc in out_of:
            on[arc] = _passed(arc, given, drops, found)
    return found


def _passed(
    arc: str, coming: Mapping[float, float], drops: Mapping[str, Drop], found: dict[str, Drop]
) -> dict[float, float]:
    """What passes an arc; the arc's drop by bucket is noted with what is left above it."""
    drop = drops.get(arc)
    if drop is None:
        return dict(coming)
    if not isinstance(drop, Buckets):
        return {share: drop.keep * amount for share, amount in coming.items()}
    level = drop.kept / drop.buckets
    left: dict[float, float] = {}
    for share, amount in coming.items():
        after = min(share, level)
        left[after] = left.get(after, 0.0) + (amount * after / share if share > 0 else 0.0)
    before, behind = sum(coming.values()), sum(left.values())
    of = min(1.0, level * before / behind) if behind > 0 else 1.0
    if abs(drop.of - of) > 1e-12:
        found[arc] = replace(drop, of=of)
    return left


def _merged(streams: list[dict[float, float]]) -> dict[float, float]:
    together: dict[float, float] = {}
    for each in streams:
        for share, amount in each.items():
            together[share] = together.get(share, 0.0) + amount
    return together


def by_chance_instead_of_buckets(drops: Mapping[str, Drop]) -> dict[str, Drop]:
    """The same shares of what comes to each drop, drawn by chance: for who wants to change one drop by itself."""
    return {arc: Random(drop.keep) if isinstance(drop, Buckets) else drop for arc, drop in drops.items()}


def check_buckets(graph: Graph, profile: Profile, rows: Mapping[str, float], drops: Mapping[str, Drop]) -> None:
    """Raise unless drops by bucket say what those above them leave, and none stands above a join of streams or an
    estimate: there whole keys are dropped, or a row that is kept stands for others."""
    by_bucket = {arc: drop for arc, drop in drops.items() if isinstance(drop, Buckets)}
    for arc in by_bucket:
        if estimates_below(graph, arc):
            raise PlanError(f"the drop by bucket on arc {arc!r} stands above estimates: drop by chance or by group.")
        if joins_below(graph, arc):
            raise PlanError(f"the drop by bucket on arc {arc!r} stands above a join of streams: drop by its key.")
    right = with_buckets_left(graph, profile, rows, drops) if by_bucket else {}
    for arc, drop in by_bucket.items():
        expected = right[arc]
        if drop.kept > 0 and isinstance(expected, Buckets) and not abs(expected.of - drop.of) <= _TOLERANCE:
            raise PlanError(
                f"the drop on arc {arc!r} says that drops above leave {drop.of:.4f} of the tuples, it is "
                f"{expected.of:.4f}: it would keep another share than {drop.keep:g}."
            )
