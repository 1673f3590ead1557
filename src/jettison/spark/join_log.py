"""What joins of streams keep, batch by batch: which parts are live, how far each side has got, what may be deleted.

checkpoint/state/<join>/7.json     after batch 7
checkpoint/state/<join>/left/7     the rows that batch 7 brought on the left, as parquet
checkpoint/state/<join>/left/7-1   parts that batch 7 merged into one of level 1

A batch begins with what was written for the batches before it, whatever a broken try of its own has left.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from jettison.errors import CheckpointError
from jettison.network.band import Part
from jettison.spark.files import Folder

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


class JoinLog:
    """The records of one join. Only the last two are kept: no batch but the last one can be repeated."""

    def __init__(self, folder: Folder, join: str) -> None:
        self._folder = folder
        self._join = join
        self._last: Record | None = None

    def latest(self, before: int | None = None) -> Record | None:
        """The last record of a batch before this one (of all, when left out); None where there is none."""
        if self._last is not None and (before is None or self._last.batch < before):
            return self._last
        names = [name for name in self._folder.names(self._join) if name.endswith(".json")]
        batches = sorted(int(name.removesuffix(".json")) for name in names)
        fitting = [batch for batch in batches if before is None or batch < before]
        if fitting:
            return self._read(fitting[-1])
        if batches and (kept := self._read(batches[0])).before is not None:
            raise CheckpointError(
                f"join {self._join!r}: what batch {before} needs of the batches before it is gone, because batch "
                f"{kept.before} was committed long ago: start with a new checkpoint."
            )
        return None

    def write(self, record: Record, base: Record | None) -> None:
        """Make a record the last one, then delete what neither it nor the one before it refers to."""
        self._folder.write(f"{self._join}/{record.batch}.json", record.to_json())
        self._last = record
        if base is not None:
            for name in base.gone:
                self._folder.delete(f"{self._join}/{name}")
            if base.before is not None:
                self._folder.delete(f"{self._join}/{base.before}.json")

    def _read(self, batch: int) -> Record:
        text = self._folder.read(f"{self._join}/{batch}.json")
        assert text is not None
        return Record.from_json(text)
