"""Shares of windows become schedules: what a plan asks for holds from the first window on that nobody has touched yet.

A window drop does not help the batch at hand, for its windows have begun. So where windows are dropped, plans are made
for the rate at which tuples arrive, and for a part of what is left over from before, not for the batch as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.network.event_time.watermarks import BatchMarks
from jettison.plan.drops.window import Fate, GroupCells
from jettison.plan.plan import Plan
from jettison.plan.reasons import with_windows_decided_earlier
from jettison.plan.windows.decisions import Decision, WindowDecisions
from jettison.plan.windows.fates import Schedule, Segment, extend, forget
from jettison.plan.windows.group_gaps import allowed
from jettison.plan.windows.group_values import window_drops
from jettison.plan.windows.needs import last_touched


def planned_rows(rows: Mapping[str, float], arriving: Mapping[str, float], melt_rate: float) -> dict[str, float]:
    """What to plan for: what arrives in one interval, and a part of what the batch has more than that.

    >>> planned_rows({"trips": 5000}, {"trips": 2000.0}, melt_rate=0.1)
    {'trips': 2300.0}
    >>> planned_rows({"trips": 5000}, {"trips": 0.0}, melt_rate=0.1)
    {'trips': 5000.0}
    """
    if not any(arriving.values()):
        return {name: float(count) for name, count in rows.items()}
    usual = {name: min(float(count), arriving.get(name, 0.0)) for name, count in rows.items()}
    return {name: usual[name] + melt_rate * (count - usual[name]) for name, count in rows.items()}


def closed(plan: Plan) -> tuple[str, ...]:
    """The aggregates of which a plan lets no window stay."""
    return tuple(sorted(name for name, fate in plan.fates.items() if fate.drop_share == 1.0))


def running_out(decisions: WindowDecisions, plan: Plan, before: Mapping[str, Fate]) -> frozenset[str]:
    """The aggregates of which nothing more goes for now: an earlier run decided by other rules, and that ends first."""
    asked = plan.fates
    return frozenset(
        name
        for name, decision in decisions.by_aggregate.items()
        if name in asked and name in before and not decision.counts_rows
        if _ruled_otherwise(before[name], decision, asked[name])
    )


def scheduled(decisions: WindowDecisions, plan: Plan, before: Mapping[str, Fate], marks: BatchMarks) -> Plan:
    """The plan with schedules in its window drops: those of the plan before, changed from the next window on.

    Where no window goes any more, drops stay until the windows that were decided have closed.
    """
    asked = plan.fates
    fates: dict[str, Fate] = {}
    for name in decisions.arcs.fate_arcs:
        decision, old = decisions.by_aggregate.get(name), before.get(name)
        rule = decision or old
        if rule is not None and rule.counts_rows:
            fates |= {name: asked[name]} if name in asked else {}
        elif rule is not None:
            times = (marks.newest_of(name), decisions.band_us(name), marks.closing_from_us(name))
            together = 0 if decision is None else decisions.together(name)
            fate = _extended(decision, old, asked.get(name), together, *times)
            if any(segment.drop_share > 0 for each in _lists(fate.schedule) for segment in each):
                fates[name] = fate
    others = {arc: drop for arc, drop in plan.drops.items() if drop.judges != "window"}
    drops = {**others, **window_drops(decisions.graph, decisions, fates)}
    reason = with_windows_decided_earlier(plan.reason) if drops and not plan.sheds else plan.reason
    if closed(plan):
        outputs = sorted({output for name in closed(plan) for output in decisions.outputs(name)})
        reason = f"{reason}: dropping as many windows as may go is not enough, {', '.join(outputs)} closed"
        spared = sorted({value for name in closed(plan) for value in _spared(plan.fates[name])})
        if spared:
            reason += f" but for {', '.join(map(repr, spared))}"
    return replace(plan, drops=drops, reason=reason)


def _spared(fate: Fate) -> list[str]:
    """The named groups of which windows stay though all others go."""
    cells = fate.cells
    return [] if cells is None else [name for name, share in zip(cells.names, cells.shares, strict=False) if share < 1]


def _extended(
    decision: Decision | None,
    old: Fate | None,
    asked: Fate | None,
    together: int,
    newest_us: int | None,
    band_us: int,
    open_us: int | None,
) -> Fate:
    """A fate with other shares from the first window on that no tuple was in, nor within `band_us` before it; windows
    that have closed are forgotten.

    What must not lose windows any more finishes what it has. So does what an earlier run decided in other steps, or by
    other groups: nothing more goes by that, and when its last window has closed the new rules begin.
    """
    if decision is None or (old is not None and _ruled_otherwise(old, decision, asked)):
        asked = None
    share = 0.0 if asked is None else asked.drop_share
    schedule = Schedule() if old is None else old.schedule
    last = schedule.segments[-1] if schedule.segments else None
    step_us = old.slide_us if old is not None else decision.step_us if decision is not None else 1
    gap = decision.gap if decision is not None else last.gap if last is not None else 0
    seed = decision.seed if decision is not None else last.seed if last is not None else ""
    now = None if newest_us is None else last_touched(newest_us, step_us, within=band_us)
    wanted = None if asked is None else asked.cells
    cells = wanted if old is None or old.apart is None else old.apart
    same_cells = wanted is not None and cells is not None and cells.kind == wanted.kind
    if same_cells:
        cells = wanted
    elif cells is not None:
        gaps = cells.gaps or (gap,) * len(cells.shares)
        cells = replace(cells, shares=tuple(allowed(share, each) for each in gaps))
    for cell, of_cell in enumerate(() if cells is None else cells.shares):
        if (same_cells and of_cell > 0) or str(cell) in schedule.groups:
            own = cells.gaps[cell] if cells is not None and cells.gaps else gap
            once = together if together <= 1 else own
            schedule = extend(schedule, now, drop_share=of_cell, gap=own, seed=seed, group=str(cell), together=once)
    schedule = extend(schedule, now, drop_share=0.0 if same_cells else share, gap=gap, seed=seed, together=together)
    if open_us is not None:
        schedule = forget(schedule, open_us // step_us)
    groups = {group: own for group, own in schedule.groups.items() if not _same(own, schedule.segments)}
    return Fate(step_us, Schedule(schedule.segments, groups), share, cells)


def _ruled_otherwise(old: Fate, decision: Decision, asked: Fate | None) -> bool:
    """Whether a fate is in other steps, or tells groups apart otherwise, than what is asked for."""
    if old.slide_us != decision.step_us:
        return True
    if asked is None or old.apart is None:
        return False
    if asked.cells is None:  # where values are known, plans that tell groups apart and plans that do not take turns
        return bool(old.apart.names)
    return _rule(old.apart) != _rule(asked.cells)


def _rule(cells: GroupCells) -> tuple[object, ...]:
    """What must be the same for windows that have begun to be judged as they were."""
    return (*cells.kind, cells.column.lower())


def _lists(schedule: Schedule) -> tuple[tuple[Segment, ...], ...]:
    return (schedule.segments, *schedule.groups.values())


def _same(some: tuple[Segment, ...], others: tuple[Segment, ...]) -> bool:
    """Whether two lists judge alike for sure: they are the same, or no window goes by either."""
    return some == others or not any(segment.drop_share > 0 for segment in (*some, *others))
