"""A plan is a value: which drop stands on which arc, and why. It serialises, so it can be logged and obeyed again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jettison.errors import PlanError


@dataclass(frozen=True)
class Random:
    """Keep each tuple with this probability, judged by a hash of the tuple's identity (thesis 3.6, random drop)."""

    keep: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.keep <= 1.0:
            raise PlanError(f"random drop keeps {self.keep}: a share must be within [0, 1].")


@dataclass(frozen=True)
class ByKey:
    """Keep whole keys, this share of them, judged by a hash of these columns and of the seed.

    A random drop that keeps k of both inputs of a join leaves k x k of its pairs. With the same key and seed on both,
    a key stays on both or on neither: k of the pairs are left, and each kept key has all of its own. `of` is the share
    of keys that drops above, by the same key and seed, have left: of these, `keep` stay.
    """

    columns: tuple[str, ...]
    keep: float
    seed: str
    of: float = 1.0

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError(f"drop by key with seed {self.seed!r}: name at least one column.")
        if not (0.0 <= self.keep <= 1.0 and 0.0 < self.of <= 1.0):
            raise PlanError(f"drop by {', '.join(self.columns)} keeps {self.keep}: a share must be within [0, 1].")


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


Drop = Random | ByKey | Semantic
"""Every kind of drop; later ones join here."""

Keep = float | tuple[float, ...]
"""What passes a drop: a share, or one for every cell of a track."""


def keeps_of(drops: Mapping[str, Drop]) -> dict[str, Keep]:
    """What passes each drop, cell by cell where that differs.

    >>> keeps_of({"a": Random(0.5), "b": Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.9)})
    {'a': 0.5, 'b': (1.0, 0.0)}
    """
    return {arc: drop.keeps if isinstance(drop, Semantic) else drop.keep for arc, drop in drops.items()}


_BESIDE = ("reason", "row", "delivered", "utility", "saves_us", "worth", "stale")


@dataclass(frozen=True)
class Plan:
    """Drops by arc, with the reason.

    `row` is the place on the road map (0 sheds nothing, 2.5 is half of the way from row 2 to row 3), `delivered` the
    share of each output's tuples that is expected to arrive, `worth` the share of what they are worth, where that is
    another, `utility` the sum of priority x utility over the outputs, `saves_us` the work that the drops save. `stale`
    says, by arc, the event time in seconds since 1970 before which tuples are worth nothing any more: they go first,
    whatever the drops.

    >>> Plan({"trips": Random(0.5)}, reason="overload", row=3).to_json()
    '{"drops": {"trips": {"random": 0.5}}, "reason": "overload", "row": 3}'
    """

    drops: Mapping[str, Drop] = field(default_factory=dict)
    reason: str = ""
    row: float = 0
    delivered: Mapping[str, float] = field(default_factory=dict)
    utility: float = 0.0
    saves_us: float = 0.0
    worth: Mapping[str, float] = field(default_factory=dict)
    stale: Mapping[str, float] = field(default_factory=dict)

    def keep(self, arc: str) -> float:
        """The share that passes the drop on an arc; 1 where there is none."""
        drop = self.drops.get(arc)
        return 1.0 if drop is None else drop.keep

    @property
    def sheds(self) -> bool:
        """Whether anything is dropped."""
        return bool(self.drops or self.stale)

    @property
    def arcs(self) -> tuple[str, ...]:
        """Arcs on which something is dropped."""
        return tuple(dict.fromkeys((*self.drops, *self.stale)))

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "drops": {arc: _content(drop) for arc, drop in self.drops.items()},
            "reason": self.reason,
            "row": self.row,
        }
        if self.delivered or self.utility or self.saves_us:
            content |= {"delivered": dict(self.delivered), "utility": self.utility, "saves_us": self.saves_us}
        content |= {name: dict(given) for name, given in (("worth", self.worth), ("stale", self.stale)) if given}
        return content

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        drops = {arc: _drop(arc, kind) for arc, kind in content["drops"].items()}
        rest = {key: content[key] for key in _BESIDE if key in content}
        return cls(drops, **rest)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        return cls.from_dict(json.loads(text))


@dataclass(frozen=True)
class Infeasible:
    """No plan fits: `reason` says why, `best` is the plan that comes nearest."""

    reason: str
    best: Plan


def _content(drop: Drop) -> dict[str, Any]:
    if isinstance(drop, Random):
        return {"random": drop.keep}
    if isinstance(drop, ByKey):
        key = {"columns": list(drop.columns), "keep": drop.keep, "seed": drop.seed}
        return {"by_key": key if drop.of == 1.0 else {**key, "of": drop.of}}
    return {"semantic": {**vars(drop), "bounds": list(drop.bounds), "keeps": list(drop.keeps)}}


def _drop(arc: str, content: Mapping[str, Any]) -> Drop:
    if set(content) == {"random"}:
        return Random(content["random"])
    if set(content) == {"by_key"}:
        key = content["by_key"]
        return ByKey(tuple(key["columns"]), key["keep"], key["seed"], key.get("of", 1.0))
    if set(content) == {"semantic"}:
        given = content["semantic"]
        return Semantic(given["column"], tuple(given["bounds"]), tuple(given["keeps"]), given["keep"])
    raise PlanError(f"the plan's drop on arc {arc!r} is of an unknown kind: {dict(content)}.")
