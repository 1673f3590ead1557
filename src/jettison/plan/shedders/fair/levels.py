"""Levels of parts as the drops of a plan: nested buckets, whole keys, sampling shares, whole windows.

An arc keeps the largest level of the queries behind it. A row that nobody needs is dropped at the source; a split drops
what its own branch does not need.
"""

from __future__ import annotations

from collections.abc import Sequence

from jettison.network.graph import Graph
from jettison.plan.drops.buckets import Buckets
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.placement.join_keys import by_chance, joins_below, with_keys_left
from jettison.plan.placement.nested_buckets import with_buckets_left
from jettison.plan.placement.strata import estimates_below
from jettison.plan.problem import Problem
from jettison.plan.shedders.fair.parts import Parts
from jettison.plan.windows.decisions import decisions_of


def drops_for(problem: Problem, parts: Parts, levels: Sequence[int], buckets: int) -> dict[str, Drop]:
    """The drops that give every part its level, of so many buckets.

    >>> from jettison.network import Network
    >>> from jettison.plan.shedders.fair.parts import parts_of
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.where("x > 0", name="a").output("left"); _ = s.where("x > 5", name="b").output("right")
    >>> problem = Problem(net.graph, Profile({}, {}), {"s": 100.0}, 100.0)
    >>> drops_for(problem, parts_of(net.graph), [32, 48], 64)
    {'s': Buckets(kept=48, buckets=64, of=1.0), 's>a': Buckets(kept=32, buckets=64, of=0.75)}
    """
    graph = problem.graph
    drops: dict[str, Drop] = {}
    nested: dict[str, bool] = {}  # whether all drops above, and on, an arc are by bucket
    on = {
        key: max((levels[number] for number in deciding), default=buckets) for key, deciding in parts.needed_by.items()
    }
    for operator, into, out_of in graph.wiring:
        if not operator.inputs:
            _place(graph, parts, into[0], buckets, levels, buckets, True, drops)
            nested[into[0]] = isinstance(drops.get(into[0], Buckets(0)), Buckets)
        above = max(on[arc, source] for arc in into for source in parts.above[operator.name] if (arc, source) in on)
        alike = all(nested[arc] for arc in into)
        for arc in out_of:
            _place(graph, parts, arc, above, levels, buckets, alike, drops)
            nested[arc] = alike and isinstance(drops.get(arc, Buckets(0)), Buckets)
    told = (graph, problem.profile, problem.rows)
    drops = with_buckets_left(*told, with_keys_left(*told, drops))
    return {**drops, **_windows(graph, parts, levels, buckets)}


def _place(
    graph: Graph,
    parts: Parts,
    arc: str,
    above: int,
    levels: Sequence[int],
    buckets: int,
    nested: bool,
    drops: dict[str, Drop],
) -> None:
    """Put a drop on an arc where one may stand and less is needed than comes."""
    needed = parts.needed_on.get(arc)
    if needed is None:
        return
    level = max((levels[number] for number in needed), default=buckets)
    if level >= above:
        return
    if estimates_below(graph, arc):
        drops[arc] = by_chance(graph, arc, level / above)
    elif level == 0:
        drops[arc] = Random(0.0)
    elif joins_below(graph, arc):
        drops[arc] = by_chance(graph, arc, level / above)
    else:
        drops[arc] = Buckets(level, buckets) if nested else Random(level / above)


def _windows(graph: Graph, parts: Parts, levels: Sequence[int], buckets: int) -> dict[str, Drop]:
    """Drops of whole windows: an aggregate keeps the largest share that any query wants of it."""
    kept: dict[str, int] = {}
    for part, level in zip(parts.all, levels, strict=True):
        for name in part.windows:
            kept[name] = max(kept.get(name, 0), level)
    shares = {name: 1.0 - level / buckets for name, level in kept.items() if level < buckets}
    if not shares:
        return {}
    decisions = decisions_of(graph)
    return dict(decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares)))
