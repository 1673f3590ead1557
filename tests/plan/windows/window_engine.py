"""A tiny engine for windowed queries on ticks, run with and without shedding: a second opinion on fates and needs.

A row is (tick, group, value). A query is a chain of filters and aggregates with an aggregate at its end. Rows come in
batches, late and twice as they may; what is behind the watermark is out, in both runs alike, so the watermark moves
with all rows, shed or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jettison.plan.windows.fates import Schedule, extend, keep
from jettison.plan.windows.needs import WinDrop, last_touched, needed_intervals, pipeline

Row = tuple[int, str, int]
LOW, HIGH = -150, 350
"""All rows lie well inside."""


@dataclass(frozen=True)
class Filter:
    """Lets values pass that this number does not divide."""

    divisor: int

    def __call__(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if row[2] % self.divisor]


@dataclass(frozen=True)
class Aggregate:
    """A result per group and window that has any row; its time is the window's start."""

    window: WinDrop
    function: Callable[[list[int]], int] = sum

    def __call__(self, rows: Iterable[Row]) -> list[Row]:
        inside: dict[tuple[int, str], list[int]] = defaultdict(list)
        for tick, group, value in rows:
            for index in self.window.covering(tick):
                inside[index * self.window.slide, group].append(value)
        return sorted((start, group, self.function(values)) for (start, group), values in inside.items())


Stage = Filter | Aggregate


@dataclass(frozen=True)
class Values:
    """What a plan says from a batch on."""

    drop_share: float
    gap: int
    seed: str = "s"


def windows_of(stages: Sequence[Stage]) -> list[WinDrop]:
    return [stage.window for stage in stages if isinstance(stage, Aggregate)]


def run(stages: Sequence[Stage], rows: Iterable[Row]) -> list[Row]:
    """What comes out at the end when nothing is shed."""
    for stage in stages:
        rows = stage(rows)
    return list(rows)


def needed_ticks(schedule: Schedule, windows: Sequence[WinDrop], group: str, how: str) -> set[int]:
    """The ticks that these aggregates need, one behind the other: exactly, or by a rule of thesis 4.5."""
    if how == "exact":
        needs = needed_intervals(schedule, windows[-1], LOW, HIGH, group, above=windows[:-1])
    else:
        needs = needed_intervals(schedule, pipeline(*windows, aligned=how == "aligned"), LOW, HIGH, group)
    return {tick for low, high in needs for tick in range(low, high)}


def run_shed(stages: Sequence[Stage], rows: Iterable[Row], schedule: Schedule, how: str = "exact") -> list[Row]:
    """What comes out when an aggregate delivers only what is needed below it, and the last one only what is kept."""
    for number, stage in enumerate(stages):
        rows = stage(rows)
        below = windows_of(stages[number + 1 :])
        if isinstance(stage, Aggregate) and below:
            wanted = {group: needed_ticks(schedule, below, group, how) for group in {row[1] for row in rows}}
            rows = [row for row in rows if row[0] in wanted[row[1]]]
    slide = windows_of(stages)[-1].slide
    return [row for row in rows if keep(schedule, row[0] // slide, row[1])]


@dataclass
class Shedding:
    """Batches go in; `schedule` grows with the plan, `passed` are the rows that were neither late nor shed."""

    stages: Sequence[Stage]
    delay: int
    how: str = "exact"
    schedule: Schedule = field(default_factory=Schedule)
    newest: int | None = None
    in_time: list[Row] = field(default_factory=list)
    passed: list[Row] = field(default_factory=list)

    def take(self, batch: Sequence[Row], values: Values | None, own: Mapping[str, Values] | None = None) -> None:
        windows = windows_of(self.stages)
        now = None if self.newest is None else last_touched(self.newest, windows[-1].slide)
        for group, new in [(None, values), *(own or {}).items()]:
            if new is not None:
                self.schedule = extend(
                    self.schedule, now, drop_share=new.drop_share, gap=new.gap, seed=new.seed, group=group
                )
        fresh = [row for row in batch if self.newest is None or row[0] >= self.newest - self.delay]
        wanted = {group: needed_ticks(self.schedule, windows, group, self.how) for group in {row[1] for row in fresh}}
        self.in_time += fresh
        self.passed += [row for row in fresh if row[0] in wanted[row[1]]]
        self.newest = max([row[0] for row in batch] + ([] if self.newest is None else [self.newest]), default=None)
