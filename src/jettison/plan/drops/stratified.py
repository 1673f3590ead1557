"""A drop by chance with a share for every large group: rare groups are kept whole, large ones are thinned out.

A random drop of 10 % loses half of all groups that have 6 rows. StreamApprox (Quoc et al., 2017) keeps a sample of
equal size of every group instead. Here a group that is known to be large is kept with a share such that it leaves about
as many rows as the other large ones; all others, known to be small or not known at all, have a share of their own,
which is 1 wherever the large groups can spare enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register

MOST_GROUPS = 1024
"""So many large groups are told apart."""
_MOST_SLOTS = 8 * MOST_GROUPS
"""A group is found by the last bits of its hash: of two with the same bits only the larger is told apart."""
LEAST_ROWS = 20.0
"""So many rows of a large group are to be left in a window: that none is then has a chance of e^-20."""
_LEAST_SHARE = 1e-6


@register
@dataclass(frozen=True)
class Stratified:
    """Keep each tuple with the probability of its group, judged by a hash of the tuple's identity.

    `columns` make the group. `groups` are hashes of large groups with their shares, `others` is the share of all other
    groups (by default `keep`: then it is a plain random drop), `keep` the share of all tuples that is to pass.
    """

    kind: ClassVar[str] = "stratified"
    judges: ClassVar[Judges] = "group"

    columns: tuple[str, ...]
    keep: float
    groups: tuple[tuple[int, float], ...] = ()
    others: float | None = None

    def __post_init__(self) -> None:
        element = f"drop by group of {', '.join(self.columns)}"
        if not self.columns:
            raise PlanError("drop by group: name at least one column.")
        for share in (self.keep, self.rest, *(share for _, share in self.groups)):
            if not 0.0 < share <= 1.0:
                raise PlanError(f"{element} keeps {share}: what is estimated needs a share above 0, at most 1.")
        if len({each % _MOST_SLOTS for each, _ in self.groups}) < len(self.groups):
            raise PlanError(f"{element}: two groups have the same place among {_MOST_SLOTS}.")

    @property
    def rest(self) -> float:
        """The share of groups that are not told apart."""
        return self.keep if self.others is None else self.others

    @property
    def slots(self) -> int:
        """How many places there must be, a power of 2, so that each group has one of its own."""
        slots = 1
        while len({group % slots for group, _ in self.groups}) < len(self.groups):
            slots *= 2
        return slots

    @property
    def passes(self) -> PassShare:
        return self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def named(self) -> str:
        return f" by group of {', '.join(self.columns)}"

    def content(self) -> Any:
        groups = [list(each) for each in self.groups]
        return {"columns": list(self.columns), "keep": self.keep, "others": self.rest, "groups": groups}

    @classmethod
    def from_content(cls, content: Any) -> Stratified:
        groups = tuple((group, share) for group, share in content["groups"])
        return cls(tuple(content["columns"]), content["keep"], groups, content["others"])


def allocate(sizes: Mapping[int, float], keep: float, least: float) -> tuple[tuple[tuple[int, float], ...], float]:
    """Shares of large groups and of all others, so that `keep` of all tuples is left.

    `sizes` are the shares of all tuples that large groups have. Each leaves the same, t, unless it has less: the t with
    sum(min(size, t)) + what others have = keep. It is no less than `least`, or some windows of a group would be left
    without a row; then others are thinned out as well, as little as is enough.

    Two groups with 60 % and 30 %, and 10 % in others; half is to be kept:

    >>> groups, others = allocate({1: 0.6, 2: 0.3}, 0.5, 0.001)
    >>> [(group, round(share, 3)) for group, share in groups], others
    ([(1, 0.333), (2, 0.667)], 1.0)
    >>> groups, others = allocate({1: 0.6, 2: 0.3}, 0.05, 0.01)
    >>> [(group, round(share, 3)) for group, share in groups], round(others, 3)
    ([(1, 0.017), (2, 0.033)], 0.3)
    >>> allocate({}, 0.2, 0.01)
    ((), 0.2)
    """
    known, least = _apart(sizes), max(least, _LEAST_SHARE)
    rest = max(0.0, 1.0 - sum(known.values()))
    level = _level(list(known.values()), keep - rest)
    if level >= least:
        return _shares(known, level), 1.0
    large = {group: size for group, size in known.items() if size > least}
    rest = 1.0 - sum(large.values())
    left = keep - least * len(large)
    if rest <= 0 or left <= keep * rest:
        return (), keep  # nobody can spare anything: all alike
    return _shares(large, least), min(1.0, left / rest)


def _apart(sizes: Mapping[int, float]) -> dict[int, float]:
    """The largest groups, one for every place."""
    found: dict[int, tuple[int, float]] = {}
    for group, size in sorted(sizes.items(), key=lambda each: (-each[1], each[0]))[:MOST_GROUPS]:
        found.setdefault(group % _MOST_SLOTS, (group, size))
    return dict(found.values())


def _level(sizes: list[float], wanted: float) -> float:
    """The t with sum(min(size, t)) = wanted; infinite when all of them together are no more than that."""
    left, count = wanted, len(sizes)
    for size in sorted(sizes):
        if size * count >= left:
            return left / count
        left -= size
        count -= 1
    return math.inf if left >= 0 else -math.inf


def _shares(sizes: Mapping[int, float], level: float) -> tuple[tuple[int, float], ...]:
    """Those that have more than a level, with the share that leaves it."""
    return tuple((group, level / size) for group, size in sizes.items() if size > level)
