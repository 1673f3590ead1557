"""A plan is a value: which drop stands on which arc, and why. It serialises, so it can be logged and obeyed again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jettison.errors import PlanError
from jettison.plan.stratified import Stratified
from jettison.plan.windows.fates import Schedule
from jettison.plan.windows.need_bits import Needed


@dataclass(frozen=True)
class Random:
    """Keep each tuple with this probability, judged by a hash of the tuple's identity (thesis 3.6, random drop)."""

    keep: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.keep <= 1.0:
            raise PlanError(f"random drop keeps {self.keep}: a share must be within [0, 1].")


@dataclass(frozen=True)
class ByKey:
    """Keep whole keys, this share of them, judged by a hash of these columns and of the seed.

    A random drop that keeps k of both inputs of a join leaves k x k of its pairs. With the same key and seed on both,
    a key stays on both or on neither: k of the pairs are left, and each kept key has all of its own. `of` is the share
    of keys that drops above, by the same key and seed, have left: of these, `keep` stay.
    """

    columns: tuple[str, ...]
    keep: float
    seed: str
    of: float = 1.0

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError(f"drop by key with seed {self.seed!r}: name at least one column.")
        if not (0.0 <= self.keep <= 1.0 and 0.0 < self.of <= 1.0):
            raise PlanError(f"drop by {', '.join(self.columns)} keeps {self.keep}: a share must be within [0, 1].")


@dataclass(frozen=True)
class Semantic:
    """Keep a tuple by its value: a share for every cell of the column's values (thesis 3.6, 3.7.2).

    `bounds` are the edges of the cells, each holding its lower edge, the last one both; the last of `keeps` is for all
    other values, null and NaN. Most cells are kept or dropped whole; in a cell with a share between, a hash of the
    tuple's identity judges. `keep` is the share of all tuples that is expected to pass.

    >>> print(Semantic("x", (0.0, 25.0, 50.0, 100.0), (0.0, 1.0, 1.0, 0.0), keep=0.8))
    x >= 25 AND x <= 100
    >>> print(Semantic("x", (0.0, 25.0, 50.0, 100.0), (0.4, 0.0, 1.0, 1.0), keep=0.7))
    NOT (x >= 25 AND x < 50), 40 % of x >= 0 AND x < 25
    """

    column: str
    bounds: tuple[float, ...]
    keeps: tuple[float, ...]
    keep: float

    def __post_init__(self) -> None:
        if len(self.keeps) != len(self.bounds) or len(self.bounds) < 2:
            raise PlanError(
                f"semantic drop on {self.column!r}: {len(self.keeps)} keep shares for {len(self.bounds)} bounds: give "
                f"one for every cell and one for all other values."
            )
        if list(self.bounds) != sorted(set(self.bounds)):
            raise PlanError(f"semantic drop on {self.column!r}: the bounds {self.bounds} do not rise.")
        for share in (*self.keeps, self.keep):
            if not 0.0 <= share <= 1.0:
                raise PlanError(f"semantic drop on {self.column!r} keeps {share}: a share must be within [0, 1].")

    def __str__(self) -> str:
        """The keep predicate, in words of SQL."""
        whole = [share if share in (0.0, 1.0) else 1.0 for share in self.keeps]
        if whole[-1] == 1.0:
            dropped = " OR ".join(self._ranges(whole, 0.0))
            text = f"NOT ({dropped})" if dropped else "true"
        else:
            text = " OR ".join(self._ranges(whole, 1.0)) or "false"
        return ", ".join([text, *self._partial()])

    def _ranges(self, keeps: Sequence[float], wanted: float) -> list[str]:
        """Runs of cells with this share, as conditions."""
        found: list[tuple[float, float]] = []
        for share, (low, high) in zip(keeps, pairwise(self.bounds), strict=False):
            if share == wanted:
                joins = bool(found) and found[-1][1] == low
                found[-1:] = [(found[-1][0], high)] if joins else [*found[-1:], (low, high)]
        return [self._range(low, high) for low, high in found]

    def _range(self, low: float, high: float) -> str:
        upper = "<=" if high == self.bounds[-1] else "<"
        return f"{self.column} >= {low:g} AND {self.column} {upper} {high:g}"

    def _partial(self) -> list[str]:
        cells = zip(self.keeps, pairwise(self.bounds), strict=False)
        parts = [f"{100 * share:.0f} % of {self._range(*edges)}" for share, edges in cells if 0.0 < share < 1.0]
        return parts + ([f"{100 * self.keeps[-1]:.0f} % of other values"] if 0.0 < self.keeps[-1] < 1.0 else [])


@dataclass(frozen=True)
class Cells:
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
    cells: Cells | None = None
    counts_rows: bool = False

    def __post_init__(self) -> None:
        if self.slide_us <= 0:
            raise PlanError(f"windows are judged in steps of {self.slide_us} us: give more than 0.")
        if not 0.0 <= self.drop_share <= 1.0:
            raise PlanError(f"window drop of {self.drop_share}: a share must be within [0, 1].")

    @property
    def apart(self) -> Cells | None:
        """By what groups fare differently, where they do."""
        return self.cells if self.schedule.groups else None

    def within(self, cell: int) -> Fate:
        """The fate of windows whose group is in a cell."""
        return Fate(self.slide_us, Schedule(self.schedule.of(str(cell))))


@dataclass(frozen=True)
class Window:
    """Keep what kept windows need, so that every window that is delivered is as if nothing was shed (thesis 4).

    `fates` has, by aggregate, which of its windows are kept. Above the aggregates tuples go that no kept window needs.
    Behind one, on a way to an output, results go that its own fate, `of`, does not keep. `keep` is the share of tuples
    that is expected to pass in the long run, `cells` that share in every cell of values, where groups are told apart.
    `needed` (by cell: `parts`) and `column`, what groups are told apart by on the arc, are worked out anew for every
    batch, and are no part of the log.
    """

    fates: Mapping[str, Fate]
    keep: float
    of: str | None = None
    needed: Needed | None = field(default=None, compare=False)
    cells: tuple[float, ...] = ()
    column: str | None = field(default=None, compare=False)
    parts: tuple[Needed, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.keep <= 1.0:
            raise PlanError(f"window drop keeps {self.keep}: a share must be within [0, 1].")
        if self.of is not None and self.fates and self.of not in self.fates:
            raise PlanError(f"window drop on results of {self.of!r}: there is no fate for them.")


Drop = Random | ByKey | Semantic | Window | Stratified
"""Every kind of drop; later ones join here."""

Keep = float | tuple[float, ...]
"""What passes a drop: a share, or one for every cell of a track."""


def keeps_of(drops: Mapping[str, Drop]) -> dict[str, Keep]:
    """What passes each drop, cell by cell where that differs.

    >>> keeps_of({"a": Random(0.5), "b": Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.9)})
    {'a': 0.5, 'b': (1.0, 0.0)}
    """
    by_cell = {arc: _by_cell(drop) for arc, drop in drops.items()}
    return {arc: by_cell[arc] or drop.keep for arc, drop in drops.items()}


def _by_cell(drop: Drop) -> tuple[float, ...]:
    if isinstance(drop, Semantic):
        return drop.keeps
    return drop.cells if isinstance(drop, Window) else ()


_BESIDE = ("reason", "row", "delivered", "utility", "saves_us", "worth", "stale")


@dataclass(frozen=True)
class Plan:
    """Drops by arc, with the reason.

    `row` is the place on the road map (0 sheds nothing, 2.5 is half of the way from row 2 to row 3), `delivered` the
    share of each output's tuples that is expected to arrive, `worth` the share of what they are worth, where that is
    another, `utility` the sum of priority x utility over the outputs, `saves_us` the work that the drops save. `stale`
    says, by arc, the event time in seconds since 1970 before which tuples are worth nothing any more: they go first,
    whatever the drops.

    >>> Plan({"trips": Random(0.5)}, reason="overload", row=3).to_json()
    '{"drops": {"trips": {"random": 0.5}}, "reason": "overload", "row": 3}'
    """

    drops: Mapping[str, Drop] = field(default_factory=dict)
    reason: str = ""
    row: float = 0
    delivered: Mapping[str, float] = field(default_factory=dict)
    utility: float = 0.0
    saves_us: float = 0.0
    worth: Mapping[str, float] = field(default_factory=dict)
    stale: Mapping[str, float] = field(default_factory=dict)

    def keep(self, arc: str) -> float:
        """The share that passes the drop on an arc; 1 where there is none."""
        drop = self.drops.get(arc)
        return 1.0 if drop is None else drop.keep

    def closes(self, arc: str) -> bool:
        """Whether nothing passes an arc. Of windows, those that were begun are finished first."""
        return self.keep(arc) == 0 and not isinstance(self.drops[arc], Window)

    @property
    def fates(self) -> dict[str, Fate]:
        """The fates of windows, by aggregate, wherever drops by window stand."""
        return {
            name: fate for drop in self.drops.values() if isinstance(drop, Window) for name, fate in drop.fates.items()
        }

    @property
    def sheds(self) -> bool:
        """Whether anything is dropped."""
        return bool(self.drops or self.stale)

    @property
    def arcs(self) -> tuple[str, ...]:
        """Arcs on which something is dropped."""
        return tuple(dict.fromkeys((*self.drops, *self.stale)))

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "drops": {arc: _content(drop) for arc, drop in self.drops.items()},
            "reason": self.reason,
            "row": self.row,
        }
        if self.delivered or self.utility or self.saves_us:
            content |= {"delivered": dict(self.delivered), "utility": self.utility, "saves_us": self.saves_us}
        content |= {name: dict(given) for name, given in (("worth", self.worth), ("stale", self.stale)) if given}
        return content

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        drops = {arc: _drop(arc, kind) for arc, kind in content["drops"].items()}
        rest = {key: content[key] for key in _BESIDE if key in content}
        return cls(drops, **rest)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        return cls.from_dict(json.loads(text))


@dataclass(frozen=True)
class Infeasible:
    """No plan fits: `reason` says why, `best` is the plan that comes nearest."""

    reason: str
    best: Plan


def _content(drop: Drop) -> dict[str, Any]:
    if isinstance(drop, Random):
        return {"random": drop.keep}
    if isinstance(drop, ByKey):
        key = {"columns": list(drop.columns), "keep": drop.keep, "seed": drop.seed}
        return {"by_key": key if drop.of == 1.0 else {**key, "of": drop.of}}
    if isinstance(drop, Window):
        fates = {
            name: {
                "slide_us": each.slide_us,
                "drop_share": each.drop_share,
                **each.schedule.to_dict(),
                **({} if each.cells is None else {"cells": _listed(vars(each.cells))}),
                **({"counts_rows": True} if each.counts_rows else {}),
            }
            for name, each in drop.fates.items()
        }
        content = {"fates": fates, "keep": drop.keep, **({"cells": list(drop.cells)} if drop.cells else {})}
        return {"window": content if drop.of is None else {**content, "of": drop.of}}
    if isinstance(drop, Stratified):
        groups = [list(each) for each in drop.groups]
        return {"stratified": {"columns": list(drop.columns), "keep": drop.keep, "others": drop.rest, "groups": groups}}
    return {"semantic": {**vars(drop), "bounds": list(drop.bounds), "keeps": list(drop.keeps)}}


def _listed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Tuples as lists, as JSON has them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}


def _cells(content: Mapping[str, Any] | None) -> Cells | None:
    if content is None:
        return None
    bounds, shares, names, gaps = (tuple(content[name]) for name in ("bounds", "shares", "names", "gaps"))
    return Cells(content["column"], bounds, shares, names, gaps, tuple(content.get("masses", ())))


def _drop(arc: str, content: Mapping[str, Any]) -> Drop:
    if set(content) == {"random"}:
        return Random(content["random"])
    if set(content) == {"by_key"}:
        key = content["by_key"]
        return ByKey(tuple(key["columns"]), key["keep"], key["seed"], key.get("of", 1.0))
    if set(content) == {"semantic"}:
        given = content["semantic"]
        return Semantic(given["column"], tuple(given["bounds"]), tuple(given["keeps"]), given["keep"])
    if set(content) == {"stratified"}:
        given = content["stratified"]
        groups = tuple((group, share) for group, share in given["groups"])
        return Stratified(tuple(given["columns"]), given["keep"], groups, given["others"])
    if set(content) == {"window"}:
        given = content["window"]
        fates = {
            name: Fate(
                each["slide_us"],
                Schedule.from_dict(each),
                each["drop_share"],
                _cells(each.get("cells")),
                each.get("counts_rows", False),
            )
            for name, each in given["fates"].items()
        }
        return Window(fates, given["keep"], given.get("of"), cells=tuple(given.get("cells", ())))
    raise PlanError(f"the plan's drop on arc {arc!r} is of an unknown kind: {dict(content)}.")
