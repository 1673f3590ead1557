"""Window drops of a plan, resolved for one batch: which event times are needed, from where the batch begins on.

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
from jettison.network.arc import Arc
from jettison.network.event_time.watermarks import BatchMarks
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Fate, Resolved, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.drop_checks import check_window_drops
from jettison.plan.windows.fates import Segment, kept
from jettison.plan.windows.group_gaps import column_apart
from jettison.plan.windows.need_bits import Needed, needed_bits, together
from jettison.plan.windows.window_arcs import WindowArcs

_MOST_AHEAD = 4096
"""Granules behind the newest event time so far, at most: what a batch may bring."""
_MOST_GRANULES = 32_768
_MOST_CLOSING = 100_000


def resolve_window_drops(arcs: WindowArcs, plan: Plan, marks: BatchMarks, ahead_us: int | None = None) -> Plan:
    """The plan with what its window drops do in the batch that begins at these marks. A pure function, applied before
    a plan is logged: a batch that is repeated obeys what the log says.

    `ahead_us` is how far event times may get in this batch; None where nobody knows.
    """
    if not plan.fates:
        return plan
    check_window_drops(arcs, plan)
    drops: dict[str, Drop] = {}
    for arc, drop in plan.drops.items():
        if isinstance(drop, Window) and drop.fates:
            by_fate = drop.of is not None
            found = _results(arcs, arc, drop, marks) if by_fate else _early(arcs, arc, drop, marks, ahead_us)
            drops[arc] = replace(drop, resolved=found)
        else:
            drops[arc] = drop
    return replace(plan, drops=drops)


def is_resolved(plan: Plan) -> bool:
    """Whether a plan says of all window drops what they do in its batch; logs of earlier versions do not."""
    drops = [drop for drop in plan.drops.values() if isinstance(drop, Window)]
    return all(drop.resolved is not None or not drop.fates for drop in drops)


def unresolved(plan: Plan) -> Plan:
    """The plan as the control loop has it, for any batch."""
    if not any(isinstance(drop, Window) for drop in plan.drops.values()):
        return plan
    drops = {
        arc: replace(drop, resolved=None) if isinstance(drop, Window) else drop for arc, drop in plan.drops.items()
    }
    return replace(plan, drops=drops)


def without_idle(plan: Plan) -> Plan:
    """The plan without window drops at inputs that let everything pass: there every row is whole, and nothing is
    judged. Inner arcs keep theirs, so that what passes is counted."""
    idle = {arc for arc, drop in plan.drops.items() if Arc(arc).is_input and _is_idle(drop)}
    return replace(plan, drops={arc: drop for arc, drop in plan.drops.items() if arc not in idle}) if idle else plan


def _is_idle(drop: Drop) -> bool:
    return isinstance(drop, Window) and drop.resolved is not None and drop.resolved.everything


def _results(arcs: WindowArcs, arc: str, drop: Window, marks: BatchMarks) -> Resolved:
    """What a drop of results does: with the column by which groups are told apart, unless all windows are kept."""
    assert drop.of is not None
    if _keeps_all(drop.fates[drop.of], drop.of, marks):
        return Resolved(everything=True)
    column = _column(arcs, arc, drop.fates)
    if column is None and any(fate.apart for fate in drop.fates.values()):
        raise PlanError(f"window drop on {arc!r}: what groups are told apart by is not there.")
    return Resolved(column=column)


def _early(arcs: WindowArcs, arc: str, drop: Window, marks: BatchMarks, ahead_us: int | None) -> Resolved:
    """What a drop above aggregates does: which event times are needed."""
    everything = Resolved(everything=True)
    apart = [fate.apart for fate in drop.fates.values() if fate.apart is not None]
    parts: list[Needed] = []
    known: dict[tuple[tuple[Segment, ...], ...], Needed | None] = {}
    for cell in range(max((len(each.shares) for each in apart), default=1)):
        fates = {name: fate.within(cell) if fate.apart else fate for name, fate in drop.fates.items()}
        lists = tuple(fate.schedule.segments for fate in fates.values())
        if lists not in known:
            known[lists] = _needed(arcs, arc, fates, marks, ahead_us)
        needed = known[lists]
        if needed is None:
            return everything
        parts.append(needed)
    column = _column(arcs, arc, drop.fates)
    if column is None:  # who cannot tell groups apart keeps what any of them needs
        needed = together(parts)
        return everything if _all_pass(arcs, arc, needed, marks) else Resolved(needed=needed)
    if all(_all_pass(arcs, arc, each, marks) for each in parts):
        return everything
    return Resolved(needed=replace(parts[0], sure_us=(0, 0)), parts=tuple(parts), column=column)


def _column(arcs: WindowArcs, arc: str, fates: Mapping[str, Fate]) -> str | None:
    """What groups are told apart by on an arc, by all fates that do."""
    return column_apart(arcs.graph, arc, {name: fate.apart for name, fate in fates.items() if fate.apart is not None})


def _needed(
    arcs: WindowArcs, arc: str, fates: Mapping[str, Fate], marks: BatchMarks, ahead_us: int | None
) -> Needed | None:
    below = arcs.below(arc)
    firsts = [marks.late_before_us(each.name) for each in below]
    known = [first for first in firsts if first is not None]
    newest_us = marks.newest_of(below[0].name) if known else None
    if newest_us is None:
        return None
    granule_us = arcs.granule_us(arc)
    low_us = min(known) // granule_us * granule_us
    ahead = _MOST_AHEAD if ahead_us is None else min(_MOST_AHEAD, ahead_us // granule_us + 1)
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
