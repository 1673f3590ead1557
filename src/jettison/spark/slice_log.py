"""What a group of aggregates keeps, batch by batch: parts with slices, and how far each aggregate has got.

checkpoint/state/<group>/7.json   after batch 7; the group is called as its first aggregate
checkpoint/state/<group>/7-0      the slices that batch 7 brought, as parquet: `by` columns, slice, partials
checkpoint/state/<group>/7-m1     parts that batch 7 merged into one of level 1
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from jettison.network.band import Part


@dataclass(frozen=True)
class SlicePart(Part):
    """Slices that were written together, from the slice that begins at `from_us` to that at `to_us`.

    `of` names the aggregates whose rows they hold: all of the group, unless a drop on the way to one differs.
    """

    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """One aggregate: its largest event time so far, and the watermark of the last batch."""

    newest_us: int | None = None
    mark_us: int | None = None


@dataclass(frozen=True)
class SliceRecord:
    """A group's state after a batch; `shape` says in words what slices hold and which windows are made of them."""

    batch: int
    shape: Mapping[str, str]
    marks: Mapping[str, Mark] = field(default_factory=dict)
    parts: tuple[SlicePart, ...] = ()
    gone: tuple[str, ...] = ()
    before: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SliceRecord:
        content = json.loads(text)
        marks = {name: Mark(**each) for name, each in content["marks"].items()}
        parts = tuple(SlicePart(**{**each, "of": tuple(each["of"])}) for each in content["parts"])
        return cls(content["batch"], content["shape"], marks, parts, tuple(content["gone"]), content["before"])
