"""Shares of windows become schedules: what a plan asks for holds from the first window on that nobody has touched yet.

A window drop does not help the batch at hand, for its windows have begun. So where windows are dropped, plans are made
for the rate at which tuples arrive, and for a part of what is left over from before, not for the batch as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from jettison.network.marks import BatchMarks
from jettison.plan.fate import Schedule, extend, forget
from jettison.plan.needs import last_touched
from jettison.plan.plan import Drop, Fate, Plan, Window
from jettison.plan.window_decisions import Decision, WindowDecisions


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


def most_without_closing(
    decisions: WindowDecisions, plan: Plan | None, spared: Collection[str] = ()
) -> dict[str, Drop]:
    """A plan's drops, with as many windows as may go in place of all of them; without a plan, of all aggregates but
    those that are spared."""
    asked = {name: 1.0 for name in decisions.by_aggregate if name not in spared}
    if plan is not None:
        asked = {name: fate.drop_share for name, fate in plan.fates.items()}
    shares = {name: min(share, decisions.by_aggregate[name].most_drop_share) for name, share in asked.items()}
    others = {} if plan is None else {arc: drop for arc, drop in plan.drops.items() if not isinstance(drop, Window)}
    return {**others, **decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares))}


def scheduled(decisions: WindowDecisions, plan: Plan, before: Mapping[str, Fate], marks: BatchMarks) -> Plan:
    """The plan with schedules in its window drops: those of the plan before, changed from the next window on.

    Where no window goes any more, drops stay until the windows that were decided have closed.
    """
    asked = {name: fate.drop_share for name, fate in plan.fates.items()}
    fates: dict[str, Fate] = {}
    for name in decisions.arcs.fate_arcs:
        decision, old = decisions.by_aggregate.get(name), before.get(name)
        if decision is not None and decision.counts_rows:
            fates |= {name: plan.fates[name]} if name in asked else {}
        elif decision is not None or old is not None:
            fate = _extended(decision, old, asked.get(name, 0.0), marks.newest_us, marks.closing_from_us(name))
            if any(segment.drop_share > 0 for segment in fate.schedule.segments):
                fates[name] = fate
    others = {arc: drop for arc, drop in plan.drops.items() if not isinstance(drop, Window)}
    drops = {**others, **decisions.arcs.drops(fates, decisions.keeps(asked))}
    reason = plan.reason
    if closed(plan):
        outputs = sorted({output for name in closed(plan) for output in decisions.outputs(name)})
        reason = f"{reason}: dropping as many windows as may go is not enough, {', '.join(outputs)} closed"
    return replace(plan, drops=drops, reason=reason)


def _extended(
    decision: Decision | None, old: Fate | None, share: float, newest_us: int | None, open_us: int | None
) -> Fate:
    """A fate with another share from the first window on that no tuple was in; windows that have closed are forgotten.

    What was decided in other steps goes on in those, and what must not lose windows any more finishes what it has.
    """
    schedule = Schedule() if old is None else old.schedule
    last = schedule.segments[-1] if schedule.segments else None
    step_us = old.slide_us if old is not None else decision.step_us if decision is not None else 1
    gap = decision.gap if decision is not None else last.gap if last is not None else 0
    seed = decision.seed if decision is not None else last.seed if last is not None else ""
    now = None if newest_us is None else last_touched(newest_us, step_us)
    schedule = extend(schedule, now, drop_share=share, gap=gap, seed=seed)
    return Fate(step_us, schedule if open_us is None else forget(schedule, open_us // step_us), share)
