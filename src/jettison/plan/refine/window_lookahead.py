"""Window drops of a plan, made ready for one batch: which event times are needed, from where the batch begins on.

Watermark and newest event time are known before a batch and the same when it is repeated. Outside of what is worked out
every row is needed: that is always right, for what decides is the fate of results. So the first batch of a run drops
nothing early, and neither does one that reaches further ahead than is in sight. Where everything in sight is needed
there is no filter at all: to judge every row takes a few nanoseconds of the hundred that a simple aggregate takes.

Which windows close in a batch is known too. Where all of them are kept, their results need not be judged one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jettison.errors import PlanError
from jettison.network.event_time.watermarks import BatchMarks
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import Segment, kept
from jettison.plan.windows.group_gaps import column_at
from jettison.plan.windows.need_bits import Needed, needed_bits, together
from jettison.plan.windows.window_arcs import WindowArcs

_MOST_AHEAD = 4096
"""Granules behind the newest event time so far, at most: what a batch may bring."""
_MOST_GRANULES = 32_768
_MOST_CLOSING = 100_000


def for_batch(arcs: WindowArcs, plan: Plan, marks: BatchMarks, sight_us: int | None = None) -> Plan:
    """The plan with what its window drops need in this batch; inputs that need everything are whole.

    Inner arcs on which everything stays keep a drop that lets all pass, so that what passes is counted. `sight_us` is
    how far event times may get in this batch; None where nobody knows.
    """
    if not plan.fates:
        return plan
    arcs.check(plan)
    drops: dict[str, Drop] = {}
    for arc, drop in plan.drops.items():
        if not isinstance(drop, Window) or (drop.of is not None and not drop.fates):
            drops[arc] = drop
        elif drop.of is not None:
            drops[arc] = (
                replace(drop, fates={}) if _keeps_all(drop.fates[drop.of], drop.of, marks) else _told(arcs, arc, drop)
            )
        else:
            made = _early(arcs, arc, drop, marks, sight_us)
            if made is not None:
                drops[arc] = made
            elif ">" in arc:
                drops[arc] = drop
    return replace(plan, drops=drops)


def _told(arcs: WindowArcs, arc: str, drop: Window) -> Window:
    """The drop of results with the column by which groups are told apart."""
    column = _column(arcs, arc, drop.fates)
    if column is None and any(fate.apart for fate in drop.fates.values()):
        raise PlanError(f"window drop on {arc!r}: what groups are told apart by is not there.")
    return replace(drop, column=column)


def _early(arcs: WindowArcs, arc: str, drop: Window, marks: BatchMarks, sight_us: int | None) -> Window | None:
    """The drop with what it needs; None where that is everything."""
    apart = [fate.apart for fate in drop.fates.values() if fate.apart is not None]
    parts: list[Needed] = []
    known: dict[tuple[tuple[Segment, ...], ...], Needed | None] = {}
    for cell in range(max((len(each.shares) for each in apart), default=1)):
        fates = {name: fate.within(cell) if fate.apart else fate for name, fate in drop.fates.items()}
        lists = tuple(fate.schedule.segments for fate in fates.values())
        if lists not in known:
            known[lists] = _needed(arcs, arc, fates, marks, sight_us)
        needed = known[lists]
        if needed is None:
            return None
        parts.append(needed)
    column = _column(arcs, arc, drop.fates) if len({each.kind for each in apart}) == 1 else None
    if column is None:  # who cannot tell groups apart keeps what any of them needs
        needed = together(parts)
        return None if _all_pass(arcs, arc, needed, marks) else replace(drop, needed=needed)
    if all(_all_pass(arcs, arc, each, marks) for each in parts):
        return None
    return replace(drop, needed=replace(parts[0], sure_us=(0, 0)), parts=tuple(parts), column=column)


def _column(arcs: WindowArcs, arc: str, fates: Mapping[str, Fate]) -> str | None:
    """What groups are told apart by on an arc: the one column of all fates that do; None where there is none."""
    apart = {name: fate.apart.column for name, fate in fates.items() if fate.apart is not None}
    found = {column_at(arcs.graph, arc, name, column) for name, column in apart.items()}
    return found.pop() if len(found) == 1 else None


def _needed(
    arcs: WindowArcs, arc: str, fates: Mapping[str, Fate], marks: BatchMarks, sight_us: int | None
) -> Needed | None:
    below = arcs.below(arc)
    firsts = [marks.late_before_us(each.name) for each in below]
    known = [first for first in firsts if first is not None]
    newest_us = marks.newest_of(below[0].name) if known else None
    if newest_us is None:
        return None
    granule_us = arcs.granule_us(arc)
    low_us = min(known) // granule_us * granule_us
    ahead = _MOST_AHEAD if sight_us is None else min(_MOST_AHEAD, sight_us // granule_us + 1)
    count = min(_MOST_GRANULES, max(0, (newest_us - low_us) // granule_us) + ahead)
    high_us = low_us + count * granule_us
    return needed_bits(arcs.needs(arc, fates, low_us, high_us), low_us, high_us, granule_us, newest_us)


def _keeps_all(fate: Fate, of: str, marks: BatchMarks) -> bool:
    """Whether all windows of an aggregate that close in this batch are kept."""
    closing = None if fate.counts_rows or fate.apart is not None else _closing(of, marks)
    if closing is None:
        return False
    first, last = closing[0] // fate.slide_us, (closing[1] - 1) // fate.slide_us
    return last - first < _MOST_CLOSING and bool(kept(fate.schedule, np.arange(first, last + 1)).all())


def _all_pass(arcs: WindowArcs, arc: str, needed: Needed, marks: BatchMarks) -> bool:
    """Whether everything is needed, or an arc has nothing but results, and those of this batch are all needed."""
    if needed.everything:
        return True
    above = arcs.results_on(arc)
    timed = {each.name for each in arcs.graph.aggregates}
    closing = [_closing(name, marks) if name in timed else None for name in above]  # who knows when rows fill a window
    return bool(above) and all(each is not None and needed.all_within(*each) for each in closing)


def _closing(name: str, marks: BatchMarks) -> tuple[int, int] | None:
    """From where on, and up to where, windows begin that close in this batch; None while that is not known."""
    first, end = marks.closing_from_us(name), marks.open_us(name)
    return None if first is None or end is None else (first, end)
