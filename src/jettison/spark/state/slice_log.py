"""What a group of aggregates keeps, batch by batch: parts with slices, and how far each aggregate has got.

checkpoint/state/<group>/7.json   after batch 7; the folder is called after the first aggregate that the group had
checkpoint/state/<group>/7-0      the slices that batch 7 brought, as parquet: `by` columns, slice, partials
checkpoint/state/<group>/7-m0     parts that batch 7 merged into one of the next level
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from jettison.errors import CheckpointError
from jettison.network.event_time.join_retention import Part
from jettison.network.event_time.watermarks import Mark
from jettison.network.windows.estimate_context import Context
from jettison.network.windows.user_aggregates import pickled_before
from jettison.plan.refine.thinning import Thinned
from jettison.spark.state.presence import Presence


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
    `context` has what is known of the values of estimated columns, `thinned` by aggregate when its rows were dropped.
    """

    batch: int
    shape: Mapping[str, str]
    marks: Mapping[str, Mark] = field(default_factory=dict)
    parts: tuple[SlicePart, ...] = ()
    gone: tuple[str, ...] = ()
    before: int | None = None
    unwanted: tuple[str, ...] = ()
    context: Mapping[str, Context] = field(default_factory=dict)
    thinned: Mapping[str, tuple[Thinned, ...]] = field(default_factory=dict)
    every: bool = True
    """Whether every batch leaves a record, whatever comes to it: one that is missing is gone then."""

    @property
    def live(self) -> tuple[str, ...]:
        """The names of its parts."""
        return tuple(part.name for part in self.parts)

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if name != "unwanted"})

    @classmethod
    def from_json(cls, text: str) -> SliceRecord:
        content = json.loads(text)
        marks = {name: Mark(**each) for name, each in content["marks"].items()}
        files = [SlicePart.listed(each.get("files", ())) for each in content["parts"]]
        parts = tuple(
            SlicePart(**{**each, "of": tuple(each["of"]), "files": listed})
            for each, listed in zip(content["parts"], files, strict=True)
        )
        context = {name: Context(**each) for name, each in content.get("context", {}).items()}
        thinned = {name: tuple(map(Thinned.from_dict, each)) for name, each in content.get("thinned", {}).items()}
        made = cls(content["batch"], content["shape"], marks, parts, tuple(content["gone"]), content["before"])
        return replace(made, context=context, thinned=thinned, every=content.get("every", False))


def still_wanted(record: SliceRecord | None, names: Collection[str]) -> SliceRecord | None:
    """A record without what was kept for aggregates that are declared no more."""
    if record is None:
        return None
    parts = [replace(part, of=tuple(name for name in part.of if name in names)) for part in record.parts]
    unwanted = tuple(part.name for part in parts if not part.of)
    marks = {name: mark for name, mark in record.marks.items() if name in names}
    thinned = {name: each for name, each in record.thinned.items() if name in names}
    kept = tuple(part for part in parts if part.of)
    return replace(record, marks=marks, parts=kept, unwanted=unwanted, thinned=thinned)


def check_shape(last: SliceRecord | None, shape: Mapping[str, str], presence: Presence | None = None) -> None:
    """What is kept must be of use to aggregates as they are now; those without a name begin anew where it is not."""
    before = {} if last is None else last.shape
    if presence is not None:  # what others have left is deleted when a batch runs
        shape = {name: now for name, now in shape.items() if presence.keeps(name)}
    for name, now in shape.items():
        if pickled_before(before.get(name, now), now):
            raise CheckpointError(
                f"aggregate {name!r}: the checkpoint keeps values that pickle wrote ({before[name]}), which could run "
                f"any code when they are read: if nobody else can write to the checkpoint, go on with "
                f"jt.aggregate(..., encoding='pickle'), else start with a new checkpoint."
            )
        if before.get(name, now) != now:
            if presence is not None and presence.unnamed(name):
                presence.begin_anew(name, f"the checkpoint keeps {before[name]}, and now it is {now}")
                continue
            raise CheckpointError(
                f"aggregate {name!r}: the checkpoint keeps {before[name]}, and now it is {now}: declare the aggregate "
                f"as it was, or start with a new checkpoint."
            )
