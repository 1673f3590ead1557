"""Records of what an operator keeps in the checkpoint, batch by batch.

checkpoint/state/<operator>/7.json   after batch 7

A batch begins with what was written for the batches before it, whatever a broken try of its own has left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.sealed import damaged, read_sealed, write_sealed
from jettison.spark.checkpoint.small_files import Folder

_KEPT_BY = "kept_by"
_SIDES = ("left", "right")
_PART = re.compile(rf"(?:(?:{'|'.join(_SIDES)})/)?(\d+)(?:-m?\d+)?")
_RECORD = re.compile(r"(\d+)\.json")


class StateRecord(Protocol):
    """A record: what was kept after a batch. `live` names folders that it refers to, `gone` those that it does no
    more."""

    @property
    def batch(self) -> int: ...

    @property
    def before(self) -> int | None: ...

    @property
    def gone(self) -> tuple[str, ...]: ...

    @property
    def every(self) -> bool: ...

    @property
    def live(self) -> tuple[str, ...]: ...

    def to_json(self) -> str: ...


R = TypeVar("R", bound=StateRecord)


class StateLog(Generic[R]):
    """The records of one operator. Only the last two are kept: no batch but the last one can be repeated."""

    def __init__(self, folder: Folder, kind: str, name: str, from_json: Callable[[str], R]) -> None:
        self._folder = folder
        self._kind = kind
        self._name = name
        self._from_json = from_json
        self._last: R | None = None
        self._swept = False

    def latest(self, before: int | None = None) -> R | None:
        """The last record of a batch before this one (of all, when left out); None where there is none."""
        if self._last is not None and (before is None or self._last.batch < before):
            return self._last
        names = map(_RECORD.fullmatch, self._folder.names(self._name))
        batches = sorted(int(found[1]) for found in names if found)
        fitting = [batch for batch in batches if before is None or batch < before]
        if fitting:
            return self._read(fitting[-1])
        if batches and (kept := self._read(batches[0])).before is not None:
            raise CheckpointError(
                f"{self._kind} {self._name!r}: what batch {before} needs of the batches before it is gone, because "
                f"batch {kept.before} was committed long ago: start with a new checkpoint."
            )
        return None

    def base(self, batch: int) -> R:
        """The record of the batch before this one, where every batch leaves one; refused where it is gone."""
        record = self.latest(batch)
        if record is None or (record.every and record.batch != batch - 1):
            raise self.gone(batch - 1)
        return record

    def write(self, record: R, base: R | None) -> None:
        """Make a record the last one, then delete what neither it nor the one before it refers to."""
        self._put(record)
        self._last = record
        if base is not None:
            for name in base.gone:
                self._folder.delete(f"{self._name}/{name}")
            if base.before is not None:
                self._folder.delete(f"{self._name}/{base.before}.json")
        if not self._swept:
            self._swept = True
            self._sweep(record)

    def _sweep(self, record: R) -> None:
        """Delete what a crash has left, once a run: records and parts from before the last record, which it does not
        refer to. What is newer may be of a batch that is being run."""
        if record.before is None:
            return
        for found in filter(None, map(_RECORD.fullmatch, self._folder.names(self._name))):
            if int(found[1]) < record.before:
                self._folder.delete(f"{self._name}/{found[0]}")
        parts = list(self._folder.folders(self._name))
        parts += [f"{side}/{part}" for side in _SIDES for part in self._folder.folders(f"{self._name}/{side}")]
        needed = {*record.live, *record.gone}
        for found in filter(None, map(_PART.fullmatch, parts)):
            if int(found[1]) < record.before and found[0] not in needed:
                self._folder.delete(f"{self._name}/{found[0]}")

    def _put(self, record: R) -> None:
        content = {**json.loads(record.to_json()), _KEPT_BY: self._name}
        write_sealed(self._folder, f"{self._name}/{record.batch}.json", json.dumps(content))

    def _of(self, batch: int, text: str) -> R:
        record, kept_by = self._from_json(text), json.loads(text).get(_KEPT_BY, self._name)
        if record.batch != batch:
            raise ValueError(f"it is that of batch {record.batch}")
        if kept_by != self._name:
            raise ValueError(f"it is that of {kept_by!r}")
        return record

    def gone(self, batch: int) -> CheckpointError:
        """What to raise when the record after a batch is missing."""
        place = f"{self._folder.path}/{self._name}/{batch}.json"
        return CheckpointError(
            f"{self._kind} {self._name!r}: {place}, what it keeps after batch {batch}, is gone. Restore it from a "
            f"copy, or start with a new checkpoint: results would be wrong without it."
        )

    def _read(self, batch: int) -> R:
        name = f"{self._name}/{batch}.json"
        try:
            text = read_sealed(self._folder, name)
            assert text is not None
            json.loads(text)
        except ValueError as error:
            remedy = "Restore it from a copy, or start with a new checkpoint: results would be wrong without it."
            what = f"what {self._kind} {self._name!r} keeps after batch {batch}"
            raise damaged(self._folder, name, what, error, remedy) from error
        try:
            return self._of(batch, text)
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
            reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            raise CheckpointError(
                f"{self._kind} {self._name!r}: {self._folder.path}/{name} is no record of what it keeps after batch "
                f"{batch} ({reason}): restore it from a copy, declare the {self._kind} as it was, give it another "
                f"name, or start with a new checkpoint."
            ) from error
