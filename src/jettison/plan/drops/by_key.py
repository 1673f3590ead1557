"""A drop of whole keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register


@register
@dataclass(frozen=True)
class ByKey:
    """Keep whole keys, this share of them, judged by a hash of these columns and of the seed.

    A random drop that keeps k of both inputs of a join leaves k x k of its pairs. With the same key and seed on both,
    a key stays on both or on neither: k of the pairs are left, and each kept key has all of its own. `of` is the share
    of keys that drops above, by the same key and seed, have left: of these, `keep` stay.
    """

    kind: ClassVar[str] = "by_key"
    judges: ClassVar[Judges] = "key"

    columns: tuple[str, ...]
    keep: float
    seed: str
    of: float = 1.0

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError(f"drop by key with seed {self.seed!r}: name at least one column.")
        if not (0.0 <= self.keep <= 1.0 and 0.0 < self.of <= 1.0):
            raise PlanError(f"drop by {', '.join(self.columns)} keeps {self.keep}: a share must be within [0, 1].")

    @property
    def passes(self) -> PassShare:
        return self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def named(self) -> str:
        return ""

    def content(self) -> Any:
        key = {"columns": list(self.columns), "keep": self.keep, "seed": self.seed}
        return key if self.of == 1.0 else {**key, "of": self.of}

    @classmethod
    def from_content(cls, content: Any) -> ByKey:
        return cls(tuple(content["columns"]), content["keep"], content["seed"], content.get("of", 1.0))
