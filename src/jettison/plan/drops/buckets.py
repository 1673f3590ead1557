"""A drop of hash buckets of a source's rows, nested from arc to arc (DISSP 5.3).

A row's identity is hashed, with one seed for all arcs, into one of `buckets` buckets; the first `kept` of them pass. So
what a branch keeps is a part of what is kept above it: a row that no query needs is dropped at the source, before it is
parsed, and each split drops what its own query does not need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register

BUCKETS = 64
"""Buckets per source and micro-batch, unless a shedder is told otherwise."""
MOST_BUCKETS = 1 << 20
"""A hash has so many values."""
SEED = "buckets"
"""One seed for all drops by bucket, so that they are nested."""


@register
@dataclass(frozen=True)
class Buckets:
    """Keep the tuples of the first `kept` of `buckets` hash buckets, judged by a hash of the tuple's identity.

    `of` is the share of tuples that drops by bucket further up have left: of these, `keep` pass. Where streams merge
    that have lost different shares, `of` is the one share with the same effect.

    A source keeps 48 of 64 buckets, one branch behind it 12: of the tuples that come to the branch, a quarter passes.

    >>> Buckets(48).keep, Buckets(12, of=0.75).keep
    (0.75, 0.25)
    """

    kind: ClassVar[str] = "buckets"
    judges: ClassVar[Judges] = "chance"

    kept: int
    buckets: int = BUCKETS
    of: float = 1.0

    def __post_init__(self) -> None:
        for name, number in (("kept", self.kept), ("buckets", self.buckets)):
            if isinstance(number, bool) or not isinstance(number, int):
                raise PlanError(f"drop by bucket: {name} is {number!r}: give a whole number, such as 48.")
        if not 1 <= self.buckets <= MOST_BUCKETS:
            raise PlanError(f"drop by bucket: {self.buckets} buckets: give a number from 1 to {MOST_BUCKETS}.")
        if not 0 <= self.kept <= self.buckets:
            raise PlanError(f"drop by bucket keeps {self.kept} of {self.buckets} buckets: keep from 0 to all of them.")
        if not 0.0 < self.of <= 1.0:
            raise PlanError(f"drop by bucket: {self.of} is left from above: a share must be above 0 and at most 1.")

    @property
    def keep(self) -> float:
        return min(1.0, self.kept / self.buckets / self.of)

    @property
    def passes(self) -> PassShare:
        return self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        return ()

    @property
    def named(self) -> str:
        return " by bucket"

    def content(self) -> Any:
        buckets = {"kept": self.kept, "buckets": self.buckets}
        return buckets if self.of == 1.0 else {**buckets, "of": self.of}

    @classmethod
    def from_content(cls, content: Any) -> Buckets:
        return cls(content["kept"], content["buckets"], content.get("of", 1.0))
