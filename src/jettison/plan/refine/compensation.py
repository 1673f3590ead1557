"""Guaranteed groups shed less than planned, so the plan sheds more elsewhere.

Groups that `QoS(gaps=...)` names keep windows that a plan counts on. While the plan saves too little with them, the
shedder is asked for more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jettison.plan.plan import Plan
from jettison.plan.windows.group_values import with_groups_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from jettison.plan.refine.context import AskAgain, Context

_MOST_TRIES = 5


def compensate(plan: Plan, context: Context) -> Plan:
    """Shed more of others for what guaranteed groups keep, as far as they can."""
    if not _applies(plan, context) or context.ask_again is None:
        return plan
    best = made_up(
        plan,
        context.ask_again,
        lambda each: _saves_us(each, context),
        needed_us=context.needed_us,
        slack_us=context.slack_us,
    )
    return replace(best, reason=plan.reason)


def lack_of_compensation(plan: Plan, context: Context) -> str | None:
    """Why a plan that was compensated for guaranteed groups is still not enough; None where it is."""
    if not _applies(plan, context):
        return None
    lacks_us = context.needed_us - _saves_us(plan, context)
    if lacks_us <= context.slack_us:
        return None
    named = context.named
    groups = ", ".join(repr(value) for name in plan.fates if name in named for value in named[name].names)
    return (
        f"what is kept of groups with gaps of their own ({groups}) leaves {lacks_us / 1000:.0f} ms above the "
        f"budget of {context.problem.budget_us / 1000:.0f} ms. Allow them longer gaps, or use a longer trigger or more "
        f"cores."
    )


def _applies(plan: Plan, context: Context) -> bool:
    if context.marks is None or plan.stale or context.infeasible is not None:
        return False
    return any(name in plan.fates and cells.masses for name, cells in context.named.items())


def _saves_us(plan: Plan, context: Context) -> float:
    return with_groups_apart(context.problem, plan, context.named, by_value=context.by_value).saves_us


def made_up(
    first: Plan, ask_again: AskAgain, saves_us: Callable[[Plan], float], *, needed_us: float, slack_us: float
) -> Plan:
    """A plan that saves enough, or the one that comes nearest.

    `ask_again` makes a plan that saves so much more than is needed, and `saves_us` tells what a plan saves indeed.
    While that is not enough more is asked for, twice as much each time, so that other queries lose more and what costs
    most is closed; then the least that is enough is looked for. More goes only where it helps.
    """
    enough_us = needed_us - slack_us
    best, best_us = first, saves_us(first)
    if best_us >= enough_us:
        return best
    below_us, more_us = 0.0, needed_us - best_us
    for _ in range(_MOST_TRIES):
        asked, infeasible = ask_again(more_us)
        saved_us = saves_us(asked)
        if saved_us > best_us + slack_us:
            best, best_us = asked, saved_us
        if best_us >= enough_us or infeasible is not None:
            break
        below_us, more_us = more_us, 2 * more_us
    for _ in range(_MOST_TRIES):
        if best_us <= needed_us + slack_us:
            break
        between_us = (below_us + more_us) / 2
        asked, _why = ask_again(between_us)
        saved_us = saves_us(asked)
        if saved_us >= enough_us:
            more_us, best, best_us = between_us, asked, saved_us
        else:
            below_us = between_us
    return best
