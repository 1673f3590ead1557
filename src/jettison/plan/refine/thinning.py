"""Times in which rows of an estimated aggregate were dropped by chance, so that a group may have lost all of them.

A row that was kept carries its weight. A batch that drops every row of a group leaves no weight behind: if another
batch kept rows of the same window whole, the result would look exact. The record of an aggregate's state therefore has
a short list of `Thinned` entries: which event times a drop may have touched, and the share that each group was kept
with. A result without a weight above 1 is exact only if no entry that overlaps its window has a share below 1 for it.

An entry begins at the first window that is open in the batch. How far the dropped rows reached is not observed: nothing
of them is parsed. It ends at the newest event time after the next batch that advances event time; until then it is open
(`to_us` None).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from jettison.network.arc import arc_name
from jettison.network.columns.lineage import origins
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate
from jettison.plan.drops.random import Random
from jettison.plan.drops.stratified import Stratified
from jettison.plan.plan import Plan

MOST_ENTRIES = 4
"""If there are more, the two oldest become one: an entry may hold the shares of a thousand groups."""
_LEAST_SHARE = 2.0**-20
"""Drops judge by whole parts of 2^20."""


@dataclass(frozen=True)
class GroupShares:
    """The share of rows that is kept: `groups` by hash of `columns`, `others` for all other groups."""

    columns: tuple[str, ...] = ()
    groups: tuple[tuple[int, float], ...] = ()
    others: float = 1.0

    @property
    def lowest(self) -> float:
        return min([self.others, *(share for _, share in self.groups)])

    def times(self, other: GroupShares) -> GroupShares:
        """The shares behind two drops.

        >>> GroupShares(("zone",), ((7, 0.5),)).times(GroupShares(others=0.5))
        GroupShares(columns=('zone',), groups=((7, 0.25),), others=0.5)
        """
        one, two = _of_same_columns(self, other)
        left, right = dict(one.groups), dict(two.groups)
        names = sorted({*left, *right})
        groups = tuple((each, left.get(each, one.others) * right.get(each, two.others)) for each in names)
        return GroupShares(one.columns or two.columns, groups, one.others * two.others)

    def or_lower(self, other: GroupShares) -> GroupShares:
        """The lower of two shares, group by group.

        >>> GroupShares(("zone",), ((7, 0.5),)).or_lower(GroupShares(("zone",), ((8, 0.1),)))
        GroupShares(columns=('zone',), groups=((7, 0.5), (8, 0.1)), others=1.0)
        """
        one, two = _of_same_columns(self, other)
        left, right = dict(one.groups), dict(two.groups)
        names = sorted({*left, *right})
        groups = tuple((each, min(left.get(each, one.others), right.get(each, two.others))) for each in names)
        return GroupShares(one.columns or two.columns, groups, min(one.others, two.others))


@dataclass(frozen=True)
class Thinned:
    """Rows with event times from `from_us` (None: from the beginning) to `to_us` (None: open) may have been dropped."""

    shares: GroupShares
    from_us: int | None = None
    to_us: int | None = None

    def touches(self, first_us: int, last_us: int, size_us: int) -> bool:
        """Whether it overlaps any window that begins between two times."""
        return (self.from_us is None or last_us + size_us > self.from_us) and (
            self.to_us is None or first_us <= self.to_us
        )

    def covers(self, first_us: int, last_us: int, size_us: int) -> bool:
        """Whether it overlaps all of them."""
        return (self.from_us is None or first_us + size_us > self.from_us) and (
            self.to_us is None or last_us <= self.to_us
        )

    def joined(self, other: Thinned) -> Thinned:
        """One entry for two: both time spans, the lower share of each group."""
        from_us = None if self.from_us is None or other.from_us is None else min(self.from_us, other.from_us)
        to_us = None if self.to_us is None or other.to_us is None else max(self.to_us, other.to_us)
        return Thinned(self.shares.or_lower(other.shares), from_us, to_us)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Thinned:
        shares = content["shares"]
        groups = tuple((int(group), float(share)) for group, share in shares["groups"])
        return cls(
            GroupShares(tuple(shares["columns"]), groups, shares["others"]), content["from_us"], content["to_us"]
        )


def shares_above(graph: Graph, plan: Plan, aggregate: Aggregate) -> tuple[GroupShares, ...]:
    """What drops by chance keep of an aggregate's rows, once for each way from a source on which they drop any.

    The columns are those of the aggregate. If it does not have those that a drop judges by, the lowest share counts.
    """
    found = [share for share in _ways(graph, plan, aggregate, aggregate.name) if share.lowest < 1.0]
    return tuple(dict.fromkeys(found))


def thinned_after(
    before: Sequence[Thinned],
    shares: Sequence[GroupShares],
    first_us: int | None,
    newest_us: tuple[int | None, int | None],
    open_us: int | None,
) -> tuple[Thinned, ...]:
    """The entries after a batch with these shares, whose rows before `first_us` are late. `newest_us` is how far event
    times had got before and after it; windows that begin before `open_us` have closed.

    >>> half = GroupShares(others=0.5)
    >>> thinned = thinned_after((), [half], 10, (None, 15), 10)
    >>> thinned
    (Thinned(shares=GroupShares(columns=(), groups=(), others=0.5), from_us=10, to_us=None),)
    >>> thinned_after(thinned, [], 10, (15, 25), 10)[0].to_us
    25
    >>> thinned_after(thinned, [], 10, (15, 25), 30)
    ()
    """
    earlier, now = newest_us
    advanced = now is not None and (earlier is None or now > earlier)
    same = [each for each in before if each.to_us is None and each.shares in shares]
    ended = [
        replace(each, to_us=now) if each.to_us is None and advanced and each not in same else each for each in before
    ]
    known = {each.shares for each in same}
    found = [*ended, *(Thinned(share, first_us) for share in shares if share not in known)]
    found = [each for each in found if open_us is None or each.to_us is None or each.to_us >= open_us]
    while len(found) > MOST_ENTRIES:
        found[:2] = [found[0].joined(found[1])]
    return tuple(found)


def touching(entries: Sequence[Thinned], closing: tuple[int, int] | None, size_us: int) -> tuple[Thinned, ...]:
    """The entries that matter to closing windows; those that overlap all of them become one."""
    if closing is None:
        return tuple(entries)
    whole = [each for each in entries if each.covers(*closing, size_us)]
    parts = [each for each in entries if each not in whole and each.touches(*closing, size_us)]
    return (*([reduce(Thinned.joined, whole)] if whole else []), *parts)


def _ways(graph: Graph, plan: Plan, aggregate: Aggregate, name: str) -> list[GroupShares]:
    tails = graph.by_name[name].inputs
    if not tails:
        return [_shares_on(graph, plan, aggregate, name, name)]
    return [
        above.times(_shares_on(graph, plan, aggregate, arc_name(tail, name), tail))
        for tail in tails
        for above in _ways(graph, plan, aggregate, tail)
    ]


def _shares_on(graph: Graph, plan: Plan, aggregate: Aggregate, arc: str, tail: str) -> GroupShares:
    """What a drop on an arc keeps, in terms of the aggregate's columns."""
    drop = plan.drops.get(arc)
    if isinstance(drop, Random):
        return GroupShares(others=max(drop.keep, _LEAST_SHARE))
    if not isinstance(drop, Stratified):
        return GroupShares()
    groups = tuple(sorted((group, max(share, _LEAST_SHARE)) for group, share in drop.groups))
    shares = GroupShares(drop.columns, groups, max(drop.rest, _LEAST_SHARE))
    by = aggregate.window.by
    here = {origins(graph, aggregate.inputs[0], column).get(tail, "").lower(): column for column in by}
    columns = [here.get(column.lower()) for column in drop.columns]
    if None in columns:
        return GroupShares(others=shares.lowest)
    return replace(shares, columns=tuple(column for column in columns if column is not None))


def _of_same_columns(one: GroupShares, other: GroupShares) -> tuple[GroupShares, GroupShares]:
    """Both as they are if they tell the same groups apart or one tells none apart; else the lowest share of each."""
    if one.columns == other.columns or not one.groups or not other.groups:
        return one, other
    return GroupShares(others=one.lowest), GroupShares(others=other.lowest)
