"""A drop by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register


@register
@dataclass(frozen=True)
class Semantic:
    """Keep a tuple by its value: a share for every cell of the column's values (thesis 3.6, 3.7.2).

    `bounds` are the edges of the cells, each holding its lower edge, the last one both; the last of `keeps` is for all
    other values, null and NaN. Most cells are kept or dropped whole; in a cell with a share between, a hash of the
    tuple's identity judges. `keep` is the share of all tuples that is expected to pass.

    >>> print(Semantic("x", (0.0, 25.0, 50.0, 100.0), (0.0, 1.0, 1.0, 0.0), keep=0.8))
    x >= 25 AND x <= 100
    >>> print(Semantic("x", (0.0, 25.0, 50.0, 100.0), (0.4, 0.0, 1.0, 1.0), keep=0.7))
    NOT (x >= 25 AND x < 50), 40 % of x >= 0 AND x < 25
    """

    kind: ClassVar[str] = "semantic"
    judges: ClassVar[Judges] = "value"

    column: str
    bounds: tuple[float, ...]
    keeps: tuple[float, ...]
    keep: float

    def __post_init__(self) -> None:
        if len(self.keeps) != len(self.bounds) or len(self.bounds) < 2:
            raise PlanError(
                f"semantic drop on {self.column!r}: {len(self.keeps)} keep shares for {len(self.bounds)} bounds: give "
                f"one for every cell and one for all other values."
            )
        if list(self.bounds) != sorted(set(self.bounds)):
            raise PlanError(f"semantic drop on {self.column!r}: the bounds {self.bounds} do not rise.")
        for share in (*self.keeps, self.keep):
            if not 0.0 <= share <= 1.0:
                raise PlanError(f"semantic drop on {self.column!r} keeps {share}: a share must be within [0, 1].")

    def __str__(self) -> str:
        """The keep predicate, in words of SQL."""
        whole = [share if share in (0.0, 1.0) else 1.0 for share in self.keeps]
        if whole[-1] == 1.0:
            dropped = " OR ".join(self._ranges(whole, 0.0))
            text = f"NOT ({dropped})" if dropped else "true"
        else:
            text = " OR ".join(self._ranges(whole, 1.0)) or "false"
        return ", ".join([text, *self._partial()])

    def _ranges(self, keeps: Sequence[float], wanted: float) -> list[str]:
        """Runs of cells with this share, as conditions."""
        found: list[tuple[float, float]] = []
        for share, (low, high) in zip(keeps, pairwise(self.bounds), strict=False):
            if share == wanted:
                joins = bool(found) and found[-1][1] == low
                found[-1:] = [(found[-1][0], high)] if joins else [*found[-1:], (low, high)]
        return [self._range(low, high) for low, high in found]

    def _range(self, low: float, high: float) -> str:
        upper = "<=" if high == self.bounds[-1] else "<"
        return f"{self.column} >= {low:g} AND {self.column} {upper} {high:g}"

    def _partial(self) -> list[str]:
        cells = zip(self.keeps, pairwise(self.bounds), strict=False)
        parts = [f"{100 * share:.0f} % of {self._range(*edges)}" for share, edges in cells if 0.0 < share < 1.0]
        return parts + ([f"{100 * self.keeps[-1]:.0f} % of other values"] if 0.0 < self.keeps[-1] < 1.0 else [])

    @property
    def passes(self) -> PassShare:
        return self.keeps

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def named(self) -> str:
        return f" by {self.column}"

    def content(self) -> Any:
        return {
            "column": self.column,
            "bounds": list(self.bounds),
            "keeps": list(self.keeps),
            "keep": self.keep,
        }

    @classmethod
    def from_content(cls, content: Any) -> Semantic:
        return cls(content["column"], tuple(content["bounds"]), tuple(content["keeps"]), content["keep"])
