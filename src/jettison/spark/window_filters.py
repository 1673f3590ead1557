"""Window drops of a plan, made ready for one batch: which event times are needed, from where the batch begins on.

Watermark and newest event time are known before a batch and the same when it is repeated. Outside of what is worked out
every row is needed: that is always right, for what decides is the fate of results. So the first batch of a run drops
nothing early, and neither does one that reaches further ahead than any sensible clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.errors import PlanError
from jettison.network.marks import BatchMarks
from jettison.plan.fate import Segment
from jettison.plan.group_gaps import column_at
from jettison.plan.plan import Drop, Fate, Plan, Window
from jettison.plan.window_arcs import WindowArcs
from jettison.plan.window_bits import Needed, needed_bits, together

_AHEAD = 4096
"""Granules behind the newest event time so far: what a batch may bring."""
_MOST_GRANULES = 32_768


def for_batch(arcs: WindowArcs, plan: Plan, marks: BatchMarks) -> Plan:
    """The plan with what its window drops need in this batch; inputs that need everything are whole."""
    if not plan.fates:
        return plan
    arcs.check(plan)
    drops: dict[str, Drop] = {}
    for arc, drop in plan.drops.items():
        if isinstance(drop, Window) and drop.of is None:
            made = _early(arcs, arc, drop, marks)
            if made is not None:
                drops[arc] = made
            elif ">" in arc:
                drops[arc] = drop  # so that what passes is counted
        elif isinstance(drop, Window) and drop.fates:
            column = _column(arcs, arc, drop.fates)
            if column is None and any(fate.apart for fate in drop.fates.values()):
                raise PlanError(f"window drop on {arc!r}: what groups are told apart by is not there.")
            drops[arc] = replace(drop, column=column)
        else:
            drops[arc] = drop
    return replace(plan, drops=drops)


def _early(arcs: WindowArcs, arc: str, drop: Window, marks: BatchMarks) -> Window | None:
    """The drop with what it needs; None where that is everything."""
    apart = [fate.apart for fate in drop.fates.values() if fate.apart is not None]
    parts: list[Needed] = []
    known: dict[tuple[tuple[Segment, ...], ...], Needed | None] = {}
    for cell in range(max((len(each.shares) for each in apart), default=1)):
        fates = {name: fate.within(cell) if fate.apart else fate for name, fate in drop.fates.items()}
        lists = tuple(fate.schedule.segments for fate in fates.values())
        if lists not in known:
            known[lists] = _needed(arcs, arc, fates, marks)
        needed = known[lists]
        if needed is None:
            return None
        parts.append(needed)
    column = _column(arcs, arc, drop.fates) if len({each.kind for each in apart}) == 1 else None
    if column is None:  # who cannot tell groups apart keeps what any of them needs
        needed = together(parts)
        return None if needed.everything else replace(drop, needed=needed)
    everything = all(each.everything for each in parts)
    return None if everything else replace(drop, needed=parts[0], parts=tuple(parts), column=column)


def _column(arcs: WindowArcs, arc: str, fates: Mapping[str, Fate]) -> str | None:
    """What groups are told apart by on an arc: the one column of all fates that do; None where there is none."""
    apart = {name: fate.apart.column for name, fate in fates.items() if fate.apart is not None}
    found = {column_at(arcs.graph, arc, name, column) for name, column in apart.items()}
    return found.pop() if len(found) == 1 else None


def _needed(arcs: WindowArcs, arc: str, fates: Mapping[str, Fate], marks: BatchMarks) -> Needed | None:
    firsts = [marks.late_before_us(each.name) for each in arcs.below(arc)]
    known = [first for first in firsts if first is not None]
    newest_us, granule_us = marks.newest_us, arcs.granule_us(arc)
    if not known or newest_us is None:
        return None
    low_us = min(known) // granule_us * granule_us
    count = min(_MOST_GRANULES, max(0, (newest_us - low_us) // granule_us) + _AHEAD)
    high_us = low_us + count * granule_us
    return needed_bits(arcs.needs(arc, fates, low_us, high_us), low_us, high_us, granule_us)
