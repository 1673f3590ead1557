"""What joins of streams keep, batch by batch: which parts are live, how far each side has got, what may be deleted.

checkpoint/state/<join>/7.json     after batch 7
checkpoint/state/<join>/left/7     the rows that batch 7 brought on the left, as parquet
checkpoint/state/<join>/left/7-1   parts that batch 7 merged into one of level 1

A batch begins with what was written for the batches before it, whatever a broken try of its own has left.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from jettison.network.band import Part

SIDES = ("left", "right")


@dataclass(frozen=True)
class Side:
    """One side of a join: its live parts, its largest event time so far and the shape of its rows."""

    schema: str
    parts: tuple[Part, ...] = ()
    newest_us: int | None = None


@dataclass(frozen=True)
class Record:
    """A join's state after a batch.

    `gone` names parts that are live no more; `before` is the batch whose record came before this one.
    """

    batch: int
    sides: tuple[Side, Side]
    gone: tuple[str, ...] = ()
    before: int | None = None

    def to_json(self) -> str:
        sides = {name: asdict(side) for name, side in zip(SIDES, self.sides, strict=True)}
        return json.dumps({"batch": self.batch, "before": self.before, "gone": list(self.gone), **sides})

    @classmethod
    def from_json(cls, text: str) -> Record:
        content = json.loads(text)
        left, right = (_side(content[name]) for name in SIDES)
        return cls(content["batch"], (left, right), tuple(content["gone"]), content["before"])


def _side(content: dict[str, object]) -> Side:
    parts = content["parts"]
    newest = content["newest_us"]
    assert isinstance(parts, list)
    assert newest is None or isinstance(newest, int)
    return Side(str(content["schema"]), tuple(Part(**part) for part in parts), newest)
