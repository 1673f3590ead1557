"""A drop of whole windows: what a kept window needs passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register
from jettison.plan.windows.fates import Schedule
from jettison.plan.windows.need_bits import Needed


@dataclass(frozen=True)
class GroupCells:
    """Groups told apart by a `by` column: by the cell that its value is in (see `Semantic` for the bounds), or those
    whose value is one of `names`, which are cells 0, 1, ..., with all others in the last.

    `shares` are those of windows that are to go from now on, cell by cell, `gaps` how many in a row may, where that
    differs, `masses` the share of tuples in each cell, where names are cells and that is known.
    """

    column: str
    bounds: tuple[float, ...]
    shares: tuple[float, ...]
    names: tuple[str, ...] = ()
    gaps: tuple[int, ...] = ()
    masses: tuple[float, ...] = ()

    @property
    def kind(self) -> tuple[tuple[float, ...], tuple[str, ...], tuple[int, ...]]:
        """What must be the same for cells of two plans to be the same."""
        return self.bounds, self.names, self.gaps

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GroupCells:
        bounds, shares, names, gaps = (tuple(content[name]) for name in ("bounds", "shares", "names", "gaps"))
        return cls(content["column"], bounds, shares, names, gaps, tuple(content.get("masses", ())))


@dataclass(frozen=True)
class Fate:
    """Which windows of an aggregate are kept: those whose start, in steps of `slide_us`, the schedule keeps.

    `slide_us` is the aggregate's slide, or a multiple of it where one decision stands for several windows. `drop_share`
    is the share of windows that is to go from now on; the schedule knows what was decided before. With `cells`, lists
    of the schedule that are called after the number of a cell are for the groups in it.
    With `counts_rows` windows count rows: starts and steps are numbers of rows, not of microseconds.
    """

    slide_us: int
    schedule: Schedule = field(default_factory=Schedule)
    drop_share: float = 0.0
    cells: GroupCells | None = None
    counts_rows: bool = False

    def __post_init__(self) -> None:
        if self.slide_us <= 0:
            raise PlanError(f"windows are judged in steps of {self.slide_us} us: give more than 0.")
        if not 0.0 <= self.drop_share <= 1.0:
            raise PlanError(f"window drop of {self.drop_share}: a share must be within [0, 1].")

    @property
    def apart(self) -> GroupCells | None:
        """By what groups fare differently, where they do."""
        return self.cells if self.schedule.groups else None

    def within(self, cell: int) -> Fate:
        """The fate of windows whose group is in a cell."""
        return Fate(self.slide_us, Schedule(self.schedule.of(str(cell))))

    def to_dict(self) -> dict[str, Any]:
        return {
            "slide_us": self.slide_us,
            "drop_share": self.drop_share,
            **self.schedule.to_dict(),
            **({} if self.cells is None else {"cells": self.cells.to_dict()}),
            **({"counts_rows": True} if self.counts_rows else {}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Fate:
        cells = content.get("cells")
        return cls(
            content["slide_us"],
            Schedule.from_dict(content),
            content["drop_share"],
            None if cells is None else GroupCells.from_dict(cells),
            content.get("counts_rows", False),
        )


@dataclass(frozen=True)
class Resolved:
    """What a window drop does in one batch, of which watermarks are known: which event times are `needed`, by cell of
    groups in `parts`, where groups are told apart by `column`; or that `everything` passes. It is logged with the plan.

    >>> Resolved.from_dict(Resolved(everything=True).to_dict())
    Resolved(everything=True, needed=None, parts=(), column=None)
    """

    everything: bool = False
    needed: Needed | None = None
    parts: tuple[Needed, ...] = ()
    column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Cells that need the same times share an entry: most do."""
        kinds = list(dict.fromkeys(self.parts))
        return {
            **({"everything": True} if self.everything else {}),
            **({} if self.needed is None else {"needed": self.needed.to_dict()}),
            **({"kinds": [each.to_dict() for each in kinds]} if kinds else {}),
            **({"parts": [kinds.index(each) for each in self.parts]} if kinds else {}),
            **({} if self.column is None else {"column": self.column}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Resolved:
        kinds = [Needed.from_dict(each) for each in content.get("kinds", ())]
        needed = Needed.from_dict(content["needed"]) if "needed" in content else None
        parts = tuple(kinds[number] for number in content.get("parts", ()))
        return cls(content.get("everything", False), needed, parts, content.get("column"))


@register
@dataclass(frozen=True)
class Window:
    """Keep what kept windows need, so that every window that is delivered is as if nothing was shed (thesis 4).

    `fates` has, by aggregate, which of its windows are kept. Above the aggregates tuples go that no kept window needs.
    Behind one, on a way to an output, results go that its own fate, `of`, does not keep. `keep` is the share of tuples
    that is expected to pass in the long run, `cells` that share in every cell of values, where groups are told apart.
    What that means for one batch is `resolved` before the plan is logged (`plan.refine.window_lookahead`), so that a
    batch that is repeated drops the same rows.
    """

    kind: ClassVar[str] = "window"
    judges: ClassVar[Judges] = "window"

    fates: Mapping[str, Fate]
    keep: float
    of: str | None = None
    cells: tuple[float, ...] = ()
    resolved: Resolved | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.keep <= 1.0:
            raise PlanError(f"window drop keeps {self.keep}: a share must be within [0, 1].")
        if self.of is not None and self.fates and self.of not in self.fates:
            raise PlanError(f"window drop on results of {self.of!r}: there is no fate for them.")

    @property
    def passes(self) -> PassShare:
        return self.cells or self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.resolved is None or self.resolved.column is None else (self.resolved.column,)

    @property
    def named(self) -> str:
        return " by window"

    def content(self) -> Any:
        fates = {name: fate.to_dict() for name, fate in self.fates.items()}
        content = {"fates": fates, "keep": self.keep, **({"cells": list(self.cells)} if self.cells else {})}
        content |= {} if self.resolved is None else {"resolved": self.resolved.to_dict()}
        return content if self.of is None else {**content, "of": self.of}

    @classmethod
    def from_content(cls, content: Any) -> Window:
        fates = {name: Fate.from_dict(each) for name, each in content["fates"].items()}
        resolved = Resolved.from_dict(content["resolved"]) if "resolved" in content else None
        return cls(fates, content["keep"], content.get("of"), tuple(content.get("cells", ())), resolved)
