"""A plan is a value: which drop stands on which arc, and why. It serialises, so it can be logged and obeyed again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeGuard

from jettison.errors import PlanError
from jettison.plan.drops.kind import Drop, from_content, to_content
from jettison.plan.drops.window import Fate, Window

_INSIDE = {
    "drops": "drops",
    "delivered": "shares",
    "worth": "shares",
    "stale": "times in seconds",
    "below_minimum": "'paused' or 'degraded'",
}
_ROUNDING = 1e-6
_WHOLE = 1.0 + _ROUNDING
_BESIDE = ("reason", "row", "delivered", "utility", "saves_us", "worth", "stale", "below_minimum")

PAUSED, DEGRADED = "paused", "degraded"
"""Why an output may be below its minimum accuracy: it makes room for the minima of others, or all are below alike."""


@dataclass(frozen=True)
class Plan:
    """Drops by arc, with the reason.

    `row` is the place on the road map (0 sheds nothing, 2.5 is half of the way from row 2 to row 3), `delivered` the
    share of each output's rows that is expected to arrive, `worth` the share of what they are worth, where that is
    another, `utility` the sum of priority x utility over the outputs, `saves_us` the work that the drops save. `stale`
    says, by arc, the event time in seconds since 1970 before which rows are worth nothing any more: they go first,
    whatever the drops. `below_minimum` names outputs that the plan takes below their minimum accuracy on purpose:
    they are "paused" or "degraded". No other output may be below its own.

    >>> from jettison.plan.drops.random import Random
    >>> Plan({"trips": Random(0.5)}, reason="overload", row=3).to_json()
    '{"drops": {"trips": {"random": 0.5}}, "reason": "overload", "row": 3}'
    >>> Plan(delivered={"fares": 75.0})
    Traceback (most recent call last):
    jettison.errors.PlanError: plan: delivered of output 'fares' is 75.0: give a share from 0 to 1.
    """

    drops: Mapping[str, Drop] = field(default_factory=dict)
    reason: str = ""
    row: float = 0
    delivered: Mapping[str, float] = field(default_factory=dict)
    utility: float = 0.0
    saves_us: float = 0.0
    worth: Mapping[str, float] = field(default_factory=dict)
    stale: Mapping[str, float] = field(default_factory=dict)
    below_minimum: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("drops", "delivered", "worth", "stale", "below_minimum"):
            given: object = getattr(self, name)
            if type(given) is not dict and not isinstance(given, Mapping):
                raise PlanError(f"plan: {name} are {given!r}: give a mapping from names to {_INSIDE[name]}.")
        for arc, drop in self.drops.items():
            if not isinstance(getattr(drop, "kind", None), str):
                raise PlanError(f"plan: the drop on arc {arc!r} is {drop!r}: give one of plan.drops.")
            if not _is_share(drop.keep):
                raise PlanError(f"plan: the drop on arc {arc!r} keeps {drop.keep!r}: a share must be within [0, 1].")
        for name, shares in (("delivered", self.delivered), ("worth", self.worth)):
            for output, share in shares.items():
                if not _is_share(share):
                    raise PlanError(f"plan: {name} of output {output!r} is {share!r}: give a share from 0 to 1.")
        for output, how in self.below_minimum.items():
            if how not in (PAUSED, DEGRADED):
                raise PlanError(f"plan: output {output!r} is {how!r}: say {PAUSED!r} or {DEGRADED!r}.")
        for name, number in (("row", self.row), ("utility", self.utility), ("saves_us", self.saves_us)):
            if not _is_number(number) or not math.isfinite(number):
                raise PlanError(f"plan: {name} is {number!r}: give a finite number.")

    def keep(self, arc: str) -> float:
        """The share that passes the drop on an arc; 1 where there is none."""
        drop = self.drops.get(arc)
        return 1.0 if drop is None else drop.keep

    def closes(self, arc: str) -> bool:
        """Whether nothing passes an arc. Of windows, those that were begun are finished first."""
        return self.keep(arc) == 0 and self.drops[arc].judges != "window"

    @property
    def fates(self) -> dict[str, Fate]:
        """The fates of windows, by aggregate, wherever drops by window stand."""
        return {
            name: fate for drop in self.drops.values() if isinstance(drop, Window) for name, fate in drop.fates.items()
        }

    @property
    def paused(self) -> frozenset[str]:
        """The outputs that get nothing, so that there is room for the minima of others."""
        return frozenset(name for name, how in self.below_minimum.items() if how == PAUSED)

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
            "drops": {arc: to_content(drop) for arc, drop in self.drops.items()},
            "reason": self.reason,
            "row": self.row,
        }
        if self.delivered or self.utility or self.saves_us:
            content |= {"delivered": dict(self.delivered), "utility": self.utility, "saves_us": self.saves_us}
        beside = (("worth", self.worth), ("stale", self.stale), ("below_minimum", self.below_minimum))
        content |= {name: dict(given) for name, given in beside if given}
        return content

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        drops = {arc: from_content(arc, kind) for arc, kind in content["drops"].items()}
        rest = {key: content[key] for key in _BESIDE if key in content}
        return cls(drops, **rest)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        return cls.from_dict(json.loads(text))


def _is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number, one of NumPy's too."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_share(value: object) -> bool:
    return _is_number(value) and -_ROUNDING <= value <= _WHOLE


@dataclass(frozen=True)
class Infeasible:
    """No plan fits: `reason` says why, `best` is the plan that comes nearest."""

    reason: str
    best: Plan
