"""The refinements of a plan, in order: each is a pure function (plan, context) -> plan with a name.

A shedder says how much to drop where. Refinements make of that what one batch needs. `ANSWERING` are applied to every
answer of a shedder, which may be asked several times for one batch; `FINISHING` once, to the plan that was chosen;
`OBEYING` to the certified plan, before it is logged: what it does in one batch, while the plan itself stays in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Resolved, Window
from jettison.plan.placement.join_keys import with_keys_left
from jettison.plan.placement.nested_buckets import with_buckets_left
from jettison.plan.plan import Plan
from jettison.plan.refine.compensation import compensate
from jettison.plan.refine.context import Context
from jettison.plan.refine.doubt import by_chance_instead
from jettison.plan.refine.floor_repair import hold_floors
from jettison.plan.refine.probing import most_without_closing
from jettison.plan.refine.schedules import closed, running_out, scheduled
from jettison.plan.refine.staleness import with_stale
from jettison.plan.refine.strata import stratified
from jettison.plan.refine.unread import after_skipping
from jettison.plan.refine.window_lookahead import resolve_window_drops
from jettison.plan.windows.group_values import window_drops, with_groups_apart

_ROUNDING = 1e-6


@dataclass(frozen=True)
class Refinement:
    """`gives_back`: whether it may leave more work than the plan was to leave, because something is worth that."""

    name: str
    apply: Callable[[Plan, Context], Plan]
    gives_back: bool = False


@dataclass(frozen=True)
class Step:
    """What one refinement made of a plan."""

    name: str
    before: Plan
    after: Plan
    gave_back: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(differences(self.before, self.after)) or 'nothing changed'}"


def floors(plan: Plan, context: Context) -> Plan:
    """Give every output its minimum accuracy; stale and unread tuples count as not processed."""
    read, fresh = context.read_shares, {} if context.fresh is None else context.fresh.shares
    besides = {**read, **{arc: share * read.get(arc, 1.0) for arc, share in fresh.items()}}
    arrived = {name: count / read.get(name, 1.0) for name, count in context.problem.rows.items()}
    return hold_floors(context.left, plan, besides, arrived)


def staleness(plan: Plan, context: Context) -> Plan:
    """Drop what is worth nothing any more, beside what the plan drops of the rest."""
    return plan if context.fresh is None else with_stale(context.problem, context.fresh, plan)


def probing(plan: Plan, context: Context) -> Plan:
    """Let aggregates in now and then that the plan closes: costs of what never runs cannot be measured."""
    if context.marks is None:
        return plan
    names = context.probes.after(context.decisions, closed(plan), context.marks.newest_of).let_in
    return context.restated(plan, most_without_closing(context.decisions, plan, names)) if names else plan


def groups(plan: Plan, context: Context) -> Plan:
    """Take windows from the groups that are worth least, and of no group more than its own gap allows."""
    if context.marks is None:
        return plan
    apart = with_groups_apart(context.problem, plan, context.named, by_value=context.by_value)
    return apart if apart is plan or context.fresh is None else context.restated(plan, apart.drops)


def expiry(plan: Plan, context: Context) -> Plan:
    """Remove window drops of aggregates whose earlier schedule, made by other rules, must expire first."""
    names = frozenset() if context.marks is None else running_out(context.decisions, plan, context.fates)
    if not names:
        return plan
    fates = {name: fate for name, fate in plan.fates.items() if name not in names}
    others: dict[str, Drop] = {arc: drop for arc, drop in plan.drops.items() if drop.judges != "window"}
    drops = {**others, **window_drops(context.graph, context.decisions, fates)}
    reason = f"{plan.reason}; {', '.join(sorted(names))}: what was decided by other rules runs out first"
    return context.restated(plan, drops, reason)


def schedules(plan: Plan, context: Context) -> Plan:
    """Turn shares of windows into fates, from the first window on that nobody has touched."""
    if context.marks is None:
        return plan
    made = scheduled(context.decisions, plan, context.fates, context.marks)
    if _shares(made) == _shares(plan):
        return made
    return context.restated(made, made.drops)


def doubt(plan: Plan, context: Context) -> Plan:
    """Replace drops by value with drops by chance, where values cannot be trusted or were never seen."""
    by_value = [arc for arc, drop in plan.drops.items() if drop.judges == "value"]
    doubted = [arc for arc in by_value if context.by_chance or arc in context.unseen]
    if not doubted:
        return plan
    made = by_chance_instead(context.left, plan, doubted)
    return made if context.fresh is None else context.restated(plan, made.drops)


def keys(plan: Plan, context: Context) -> Plan:
    """Tell every drop by key, and by bucket, which share those above it leave."""
    told = (context.graph, context.problem.profile, context.problem.rows)
    drops = with_buckets_left(*told, with_keys_left(*told, plan.drops))
    return plan if drops == plan.drops else replace(plan, drops=drops)


def strata(plan: Plan, context: Context) -> Plan:
    """Turn a share that is kept above estimates into shares of groups."""
    return stratified(context.graph, plan, context.sizes, context.covered_us)


def unread(plan: Plan, context: Context) -> Plan:
    """Count records that are skipped as not delivered."""
    return after_skipping(context.graph, plan, context.rows, context.unread)


def early_window_drops(plan: Plan, context: Context) -> Plan:
    """Work out which event times kept windows need in this batch, so that others go early."""
    if context.marks is None:
        return plan
    return resolve_window_drops(context.decisions.arcs, plan, context.marks, context.ahead_us)


ANSWERING = (Refinement("floors", floors, gives_back=True), Refinement("staleness", staleness))

FINISHING = (
    Refinement("compensation", compensate),
    Refinement("probing", probing, gives_back=True),
    Refinement("groups", groups, gives_back=True),
    Refinement("expiry", expiry, gives_back=True),
    Refinement("schedules", schedules, gives_back=True),
    Refinement("doubt", doubt, gives_back=True),
    Refinement("keys", keys),
    Refinement("strata", strata),
    Refinement("unread", unread),
)


OBEYING = (Refinement("early window drops", early_window_drops),)


def refine(plan: Plan, context: Context, refinements: Iterable[Refinement]) -> tuple[Plan, tuple[Step, ...]]:
    """Apply refinements one after another; the steps are those that changed something."""
    steps = []
    for each in refinements:
        refined = each.apply(plan, context)
        if refined is not plan and refined != plan:
            less = refined.saves_us < plan.saves_us - _ROUNDING * max(1.0, context.problem.load_us)
            steps.append(Step(each.name, plan, refined, each.gives_back and less))
        plan = refined
    return plan, tuple(steps)


def differences(before: Plan, after: Plan) -> list[str]:
    """What is different in a plan, in words.

    >>> from jettison.plan.drops.random import Random
    >>> differences(Plan({"a": Random(0.5)}, "overload"), Plan({"a": Random(0.25), "b": Random(0.9)}, "stale"))
    ['a keeps 25.0 % instead of 50.0 %', 'b keeps 90.0 %', 'reason stale instead of overload']
    """
    found = []
    for arc in dict.fromkeys((*before.drops, *after.drops)):
        was, now = before.drops.get(arc), after.drops.get(arc)
        if was == now:
            continue
        if now is None:
            found.append(f"{arc} keeps all")
        elif was is None or abs(was.keep - now.keep) > _ROUNDING:
            instead = "" if was is None else f" instead of {100 * was.keep:.1f} %"
            found.append(f"{arc} keeps {100 * now.keep:.1f} %{now.named}{instead}")
        else:
            found.append(f"{arc} keeps the same share{now.named}, {_instead(was, now)}")
    found += [f"{arc} without stale rows" for arc in after.stale if arc not in before.stale]
    if after.reason != before.reason:
        found.append(f"reason {after.reason} instead of {before.reason}")
    delivered = [
        f"{name} gets {100 * share:.1f} %"
        for name, share in after.delivered.items()
        if abs(before.delivered.get(name, 1.0) - share) > _ROUNDING
    ]
    return found + delivered


def _instead(was: Drop, now: Drop) -> str:
    if isinstance(now, Window) and now.resolved is not None and was == replace(now, resolved=None):
        return "all that comes in this batch" if now.resolved.everything else _in_this_batch(now.resolved)
    return "chosen anew" if was.kind == now.kind else f"{now.kind} instead of {was.kind}"


def _in_this_batch(resolved: Resolved) -> str:
    if resolved.needed is None:
        return "by the fates of its windows in this batch"
    needed = resolved.needed
    return f"by event time in this batch, known from {needed.low_us / 1e6:g} s to {needed.high_us / 1e6:g} s"


def _shares(plan: Plan) -> dict[str, object]:
    """What passes by plan, on arcs where anything is to go."""
    return {arc: drop.passes for arc, drop in plan.drops.items() if drop.keep < 1.0}
