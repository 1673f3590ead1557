"""What a group of aggregates keeps, batch by batch: parts with slices, and how far each aggregate has got.

checkpoint/state/slices.json      by aggregate, the group that keeps its slices
checkpoint/state/<group>/7.json   after batch 7; the group is called as its first aggregate
checkpoint/state/<group>/7-0      the slices that batch 7 brought, as parquet: `by` columns, slice, partials
checkpoint/state/<group>/7-m0     parts that batch 7 merged into one of the next level
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from jettison.errors import CheckpointError
from jettison.network.band import Part
from jettison.network.marks import Mark
from jettison.spark.files import Folder
from jettison.spark.sealed import load, write_sealed

_GROUPS = "slices.json"
_RESTORE = "Restore it from a copy, or delete it if the aggregates are declared as before: it is written anew."


@dataclass(frozen=True)
class SlicePart(Part):
    """Slices that were written together, from the slice that begins at `from_us` to that at `to_us`.

    `of` names the aggregates whose rows they hold: all of the group, unless a drop on the way to one differs.
    """

    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class SliceRecord:
    """A group's state after a batch; `shape` says in words what slices hold and which windows are made of them.

    `unwanted` names parts that were kept for aggregates that are declared no more: they go with the next record.
    """

    batch: int
    shape: Mapping[str, str]
    marks: Mapping[str, Mark] = field(default_factory=dict)
    parts: tuple[SlicePart, ...] = ()
    gone: tuple[str, ...] = ()
    before: int | None = None
    unwanted: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if name != "unwanted"})

    @classmethod
    def from_json(cls, text: str) -> SliceRecord:
        content = json.loads(text)
        marks = {name: Mark(**each) for name, each in content["marks"].items()}
        parts = tuple(SlicePart(**{**each, "of": tuple(each["of"])}) for each in content["parts"])
        return cls(content["batch"], content["shape"], marks, parts, tuple(content["gone"]), content["before"])


def still_wanted(record: SliceRecord | None, names: Collection[str]) -> SliceRecord | None:
    """A record without what was kept for aggregates that are declared no more."""
    if record is None:
        return None
    parts = [replace(part, of=tuple(name for name in part.of if name in names)) for part in record.parts]
    unwanted = tuple(part.name for part in parts if not part.of)
    return replace(record, parts=tuple(part for part in parts if part.of), unwanted=unwanted)


def check_groups(folder: Folder, now: Mapping[str, str]) -> None:
    """Slices are found under the name of their group: an aggregate that changes its group would lose what it has."""
    before: dict[str, str] = load(folder, _GROUPS, "which aggregates share slices", _RESTORE) or {}
    for name, group in now.items():
        if before.get(name, group) != group:
            raise CheckpointError(
                f"aggregate {name!r}: the checkpoint keeps its slices under {before[name]!r}, and now it shares those "
                f"of {group!r}: let {before[name]!r} stay the first of its stream, put new ones behind it, or start "
                f"with a new checkpoint."
            )
    if now != before:
        write_sealed(folder, _GROUPS, json.dumps(dict(now)))


def check_shape(last: SliceRecord | None, told: Mapping[str, str]) -> None:
    """What is kept must be of use to aggregates as they are now."""
    before = {} if last is None else last.shape
    for name, now in told.items():
        if before.get(name, now) != now:
            raise CheckpointError(
                f"aggregate {name!r}: the checkpoint keeps {before[name]}, and now it is {now}: declare the aggregate "
                f"as it was, or start with a new checkpoint."
            )
