"""Window drops of a plan, made ready for one batch: which event times are needed, from where the batch begins on.

Watermark and newest event time are known before a batch and the same when it is repeated. Outside of what is worked out
every row is needed: that is always right, for what decides is the fate of results. So the first batch of a run drops
nothing early, and neither does one that reaches further ahead than any sensible clock.
"""

from __future__ import annotations

from dataclasses import replace

from jettison.network.marks import BatchMarks
from jettison.plan.plan import Drop, Plan, Window
from jettison.plan.window_arcs import WindowArcs
from jettison.plan.window_bits import Needed, needed_bits

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
            needed = _needed(arcs, arc, drop, marks)
            if needed is not None and not needed.everything:
                drops[arc] = replace(drop, needed=needed)
            elif ">" in arc:
                drops[arc] = drop  # so that what passes is counted
        else:
            drops[arc] = drop
    return replace(plan, drops=drops)


def _needed(arcs: WindowArcs, arc: str, drop: Window, marks: BatchMarks) -> Needed | None:
    firsts = [marks.late_before_us(each.name) for each in arcs.below(arc)]
    known = [first for first in firsts if first is not None]
    newest_us, granule_us = marks.newest_us, arcs.granule_us(arc)
    if not known or newest_us is None:
        return None
    low_us = min(known) // granule_us * granule_us
    count = min(_MOST_GRANULES, max(0, (newest_us - low_us) // granule_us) + _AHEAD)
    high_us = low_us + count * granule_us
    return needed_bits(arcs.needs(arc, drop.fates, low_us, high_us), low_us, high_us, granule_us)
