"""Drops on the way to a join of streams: whole keys, the same on both sides (thesis 3.7.3).

Dropping k of both inputs by chance leaves k x k of the pairs, and which those are depends on luck twice. Dropping the
same keys on both leaves k of the pairs, each key with all of its own: a subset of the true result whose size is known.
So above a join a drop is by the join's key, and the inputs of a join move together.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from jettison.network.arc import Arc, arc_head, arc_name
from jettison.network.columns.lineage import origins
from jettison.network.graph import Graph
from jettison.network.operators import StreamJoin
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.drops.stratified import Stratified
from jettison.plan.placement.ladder import LOWEST_KEEP_SHARE
from jettison.plan.placement.strata import estimates_below, strata_at
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile

SEED = "key"
"""One seed for all drops by key: what is kept further down is a part of what is kept further up, on either side."""
KEYS_TOLERANCE = 1e-9


def joins_below(graph: Graph, arc: str) -> tuple[StreamJoin, ...]:
    """The joins of streams that an arc's tuples come to."""
    if not graph.stream_joins:
        return ()
    found, waiting = set(), [arc_head(arc)]
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting.extend(graph.consumers[name])
    return tuple(join for join in graph.stream_joins if join.name in found)


def key_at(graph: Graph, arc: str) -> tuple[str, ...] | None:
    """What the key of the joins below is called on an arc; None without joins, or where it cannot be told.

    >>> from jettison.network import Network
    >>> net = Network("shop")
    >>> orders = net.source("orders", "id long, at timestamp", event_time="at").select("id AS order", name="named")
    >>> paid = net.source("paid", "order long, at timestamp, sum double", event_time="at").select("order", "sum")
    >>> _ = orders.join(paid, on="order", within="1 minute", name="both").output("o")
    >>> key_at(net.graph, "orders"), key_at(net.graph, "paid"), key_at(net.graph, "both>o")
    (('id',), ('order',), None)
    """
    head, tail = Arc(arc).head, Arc(arc).origin
    keys: set[tuple[str, ...] | None] = set()
    for join in joins_below(graph, arc):
        for side in join.inputs:
            names = tuple(_name(graph, side, column, tail, join, head) for column in join.on)
            if any(names):
                keys.add(None if None in names else tuple(name for name in names if name is not None))
    return next(iter(keys)) if len(keys) == 1 else None


def _name(graph: Graph, side: str, column: str, tail: str, join: StreamJoin, head: str) -> str | None:
    """What a column of one input of a join is called at an operator above it."""
    if head == join.name:
        return column if side == tail else None
    return origins(graph, side, column).get(tail)


def droppable(graph: Graph, arc: str) -> bool:
    """Whether tuples may be dropped by chance on an arc: not where that would thin out a join from one side only, nor
    where windows would be made of what is left."""
    if not decisions_of(graph).by_chance(arc):
        return False
    if not joins_below(graph, arc):
        return True
    return key_at(graph, arc) is not None and not estimates_below(graph, arc)  # whole keys say nothing of the others


def by_chance(graph: Graph, arc: str, keep: float, of: float = 1.0) -> Drop:
    """A drop of this share: by key above a join, by group above what is estimated, which is never closed, else tuple by
    tuple. `of` is what is left by key from above."""
    if estimates_below(graph, arc):
        keep, strata = max(keep, LOWEST_KEEP_SHARE), strata_at(graph, arc)
        return Random(keep) if strata is None else Stratified(strata[1], keep)
    key = key_at(graph, arc)
    return Random(keep) if key is None else ByKey(key, keep, SEED, of)


def with_keys_left(
    graph: Graph, profile: Profile, rows: Mapping[str, float], drops: Mapping[str, Drop]
) -> dict[str, Drop]:
    """Drops by key with the share of keys that drops by key above them leave.

    Half of the keys go at the source, and half of the rest on one branch: there a quarter of all stays.

    >>> from jettison.network import Network
    >>> net = Network("shop")
    >>> orders = net.source("orders", "id long, at timestamp", event_time="at").where("id > 0", name="sound")
    >>> paid = net.source("paid", "id long, sum double, at timestamp", event_time="at").select("id", "sum")
    >>> _ = orders.join(paid, on="id", within="1 minute", name="both").output("o"); _ = orders.output("all")
    >>> half = {arc: ByKey(("id",), 0.5, SEED) for arc in ("orders", "sound>both")}
    >>> with_keys_left(net.graph, Profile({}, {}), {"orders": 100.0, "paid": 100.0}, half)["sound>both"]
    ByKey(columns=('id',), keep=0.5, seed='key', of=0.5)
    """
    by_key = {arc: drop for arc, drop in drops.items() if isinstance(drop, ByKey) and drop.keep > 0}
    left = dict.fromkeys(by_key, 1.0)
    for arc, drop in by_key.items() if len(by_key) > 1 else ():
        alike = {each: other.keep for each, other in by_key.items() if _same_key(graph, arc, drop, each, other)}
        if len(alike) > 1:
            full, now = (flows(graph, profile, rows, keeps)[arc] for keeps in ({}, alike))
            left[arc] = now / drop.keep / full if full > 0 else 1.0
    found = dict(drops)
    for arc, share in left.items():
        if abs(by_key[arc].of - share) > KEYS_TOLERANCE:
            found[arc] = replace(by_key[arc], of=min(1.0, share))
    return found


def _same_key(graph: Graph, arc: str, drop: ByKey, other_arc: str, other: ByKey) -> bool:
    """Whether two drops judge rows by one hash of one key: by columns of the same names, or by the key of a join below
    both, however it is called there."""
    mine, theirs = ([name.lower() for name in each.columns] for each in (drop, other))
    if drop.seed != other.seed:
        return False
    joins = {join.name for join in joins_below(graph, arc)} & {join.name for join in joins_below(graph, other_arc)}
    return mine == theirs or bool(joins)


def moving_together(graph: Graph, arcs: tuple[str, ...]) -> list[frozenset[str]]:
    """Sets of these arcs that must go down together so that both sides of every join do."""
    groups: list[frozenset[str]] = []
    for join in graph.stream_joins:
        nearest = frozenset(arc for tail in join.inputs for arc in _nearest(graph, arc_name(tail, join.name), arcs))
        sources = frozenset(source.name for source in graph.sources_above(join.name))
        for group in (nearest, _closed(graph, sources)):
            if group not in groups and all(droppable(graph, arc) for arc in group):
                groups.append(group)
    return groups


def by_key_alone(graph: Graph, arcs: tuple[str, ...], judged: Container[str]) -> frozenset[str]:
    """Arcs above joins that move with one that cannot be judged by value: there whole keys go, on all of them."""
    groups = moving_together(graph, arcs)
    return frozenset(arc for group in groups if any(each not in judged for each in group) for arc in group)


def _nearest(graph: Graph, arc: str, arcs: tuple[str, ...]) -> list[str]:
    """The droppable arcs right above a place: itself, or those that lead to the operator before it."""
    if arc in arcs:
        return [arc]
    return [found for above in graph.arcs_into(Arc(arc).origin) for found in _nearest(graph, above, arcs)]


def _closed(graph: Graph, sources: frozenset[str]) -> frozenset[str]:
    """With all sources that share a join with one of these."""
    while True:
        joined = [graph.sources_above(j.name) for name in sources for j in joins_below(graph, name)]
        more = sources | {source.name for each in joined for source in each}
        if more == sources:
            return sources
        sources = more
