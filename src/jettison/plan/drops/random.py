"""A drop by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register


@register
@dataclass(frozen=True)
class Random:
    """Keep each tuple with this probability, judged by a hash of the tuple's identity (thesis 3.6, random drop)."""

    kind: ClassVar[str] = "random"
    judges: ClassVar[Judges] = "chance"

    keep: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.keep <= 1.0:
            raise PlanError(f"random drop keeps {self.keep}: a share must be within [0, 1].")

    @property
    def passes(self) -> PassShare:
        return self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        return ()

    @property
    def named(self) -> str:
        return ""

    def content(self) -> Any:
        return self.keep

    @classmethod
    def from_content(cls, content: Any) -> Random:
        return cls(content)
