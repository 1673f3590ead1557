"""What joins of streams keep, batch by batch: which parts are live, how far each side has got, what may be deleted.

checkpoint/state/<join>/7.json     after batch 7
checkpoint/state/<join>/left/7     the rows that batch 7 brought on the left, as parquet
checkpoint/state/<join>/left/7-1   parts that batch 7 merged into one of level 1

A batch begins with what was written for the batches before it, whatever a broken try of its own has left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from jettison.network.event_time.join_retention import Part

SIDES = ("left", "right")


@dataclass(frozen=True)
class Side:
    """One side of a join: its live parts, how far its event times have got and the shape of its rows."""

    schema: str
    parts: tuple[Part, ...] = ()
    newest_us: int | None = None


@dataclass(frozen=True)
class Record:
    """A join's state after a batch.

    `gone` names parts that are live no more; `before` is the batch whose record came before this one. `seen_us` has the
    largest event time so far at every place where those of its sides are seen (`progress`); records from before
    there were such places have none, and go on from where their sides had got to.
    """

    batch: int
    sides: tuple[Side, Side]
    gone: tuple[str, ...] = ()
    before: int | None = None
    seen_us: Mapping[str, int] = field(default_factory=dict)
    every: bool = True
    """Whether every batch leaves a record, whatever comes to it: one that is missing is gone then."""

    @property
    def live(self) -> tuple[str, ...]:
        """The names of the parts of both sides."""
        return tuple(part.name for side in self.sides for part in side.parts)

    def to_json(self) -> str:
        sides = {name: asdict(side) for name, side in zip(SIDES, self.sides, strict=True)}
        others = {"batch": self.batch, "before": self.before, "gone": list(self.gone), "seen_us": dict(self.seen_us)}
        others["every"] = self.every
        return json.dumps({**others, **sides})

    @classmethod
    def from_json(cls, text: str) -> Record:
        content = json.loads(text)
        left, right = (_side(content[name]) for name in SIDES)
        gone, seen_us = tuple(content["gone"]), content.get("seen_us", {})
        return cls(content["batch"], (left, right), gone, content["before"], seen_us, content.get("every", False))


def _side(content: dict[str, object]) -> Side:
    parts = content["parts"]
    newest = content["newest_us"]
    assert isinstance(parts, list)
    assert newest is None or isinstance(newest, int)
    made = tuple(Part(**{**part, "files": Part.listed(part.get("files", ()))}) for part in parts)
    return Side(str(content["schema"]), made, newest)
