"""Window drops of a plan, made ready for one batch: which event times are needed, from where the batch begins on.

Watermark and newest event time are known before a batch and the same when it is repeated. Outside of what is worked out
every row is needed: that is always right, for what decides is the fate of results. So the first batch of a run drops
nothing early, and neither does one that reaches further ahead than any sensible clock.

Which windows close in a batch is known too. Where all of them are kept, their results need not be judged one by one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jettison.network.marks import BatchMarks
from jettison.plan.fate import kept
from jettison.plan.plan import Drop, Plan, Window
from jettison.plan.window_arcs import WindowArcs
from jettison.plan.window_bits import Needed, needed_bits

_AHEAD = 4096
"""Granules behind the newest event time so far: what a batch may bring."""
_MOST_GRANULES = 32_768
_MOST_CLOSING = 100_000


def for_batch(arcs: WindowArcs, plan: Plan, marks: BatchMarks) -> Plan:
    """The plan with what its window drops need in this batch; inputs that need everything are whole.

    Inner arcs on which everything stays keep a drop that lets all pass, so that what passes is counted.
    """
    if not plan.fates:
        return plan
    arcs.check(plan)
    drops: dict[str, Drop] = {}
    for arc, drop in plan.drops.items():
        if not isinstance(drop, Window):
            drops[arc] = drop
        elif drop.of is not None:
            drops[arc] = replace(drop, fates={}) if _keeps_all(drop, drop.of, marks) else drop
        else:
            needed = _needed(arcs, arc, drop, marks)
            if needed is not None and not needed.everything and not _needs_all_results(arcs, arc, needed, marks):
                drops[arc] = replace(drop, needed=needed)
            elif ">" in arc:
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
    return needed_bits(arcs.needs(arc, drop.fates, low_us, high_us), low_us, high_us, granule_us, newest_us)


def _keeps_all(drop: Window, of: str, marks: BatchMarks) -> bool:
    """Whether all windows of an aggregate that close in this batch are kept."""
    closing = _closing(of, marks)
    if closing is None:
        return False
    fate = drop.fates[of]
    first, last = closing[0] // fate.slide_us, (closing[1] - 1) // fate.slide_us
    return last - first < _MOST_CLOSING and bool(kept(fate.schedule, np.arange(first, last + 1)).all())


def _needs_all_results(arcs: WindowArcs, arc: str, needed: Needed, marks: BatchMarks) -> bool:
    """Whether an arc has nothing but results, and those that come in this batch are all needed."""
    above = arcs.results_on(arc)
    closing = [_closing(name, marks) for name in above]
    return bool(above) and all(each is not None and needed.all_within(*each) for each in closing)


def _closing(name: str, marks: BatchMarks) -> tuple[int, int] | None:
    """From where on, and up to where, windows begin that close in this batch; None while that is not known."""
    first, end = marks.closing_from_us(name), marks.open_us(name)
    return None if first is None or end is None else (first, end)
