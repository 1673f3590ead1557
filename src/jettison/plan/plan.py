"""A plan is a value: which drop stands on which arc, and why. It serialises, so it can be logged and obeyed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    a key stays on both or on neither: k of the pairs are left, and each kept key has all of its own.
    """

    columns: tuple[str, ...]
    keep: float
    seed: str

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError(f"drop by key with seed {self.seed!r}: name at least one column.")
        if not 0.0 <= self.keep <= 1.0:
            raise PlanError(f"drop by {', '.join(self.columns)} keeps {self.keep}: a share must be within [0, 1].")


Drop = Random | ByKey
"""Every kind of drop; later ones join here."""


@dataclass(frozen=True)
class Plan:
    """Drops by arc, with the reason.

    `row` is the road map's row (0 sheds nothing), `delivered` the share of each output's tuples that is expected to
    arrive, `utility` the sum of priority x utility over the outputs, `saves_us` the work that the drops save.

    >>> Plan({"trips": Random(0.5)}, reason="overload", row=3).to_json()
    '{"drops": {"trips": {"random": 0.5}}, "reason": "overload", "row": 3}'
    """

    drops: Mapping[str, Drop] = field(default_factory=dict)
    reason: str = ""
    row: int = 0
    delivered: Mapping[str, float] = field(default_factory=dict)
    utility: float = 0.0
    saves_us: float = 0.0

    def keep(self, arc: str) -> float:
        """The share that passes the drop on an arc; 1 where there is none."""
        drop = self.drops.get(arc)
        return 1.0 if drop is None else drop.keep

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "drops": {arc: _content(drop) for arc, drop in self.drops.items()},
            "reason": self.reason,
            "row": self.row,
        }
        if self.delivered or self.utility or self.saves_us:
            content |= {"delivered": dict(self.delivered), "utility": self.utility, "saves_us": self.saves_us}
        return content

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        drops = {arc: _drop(arc, kind) for arc, kind in content["drops"].items()}
        rest = {key: content[key] for key in ("reason", "row", "delivered", "utility", "saves_us") if key in content}
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
    if isinstance(drop, ByKey):
        return {"by_key": {"columns": list(drop.columns), "keep": drop.keep, "seed": drop.seed}}
    return {"random": drop.keep}


def _drop(arc: str, content: Mapping[str, Any]) -> Drop:
    if set(content) == {"by_key"}:
        key = content["by_key"]
        return ByKey(tuple(key["columns"]), key["keep"], key["seed"])
    if set(content) != {"random"}:
        raise PlanError(f"the plan's drop on arc {arc!r} is of an unknown kind: {dict(content)}.")
    return Random(content["random"])
