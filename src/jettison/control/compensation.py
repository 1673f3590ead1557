"""Groups that `QoS(gaps=...)` names keep windows that a plan counts on: then others lose more to make up for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jettison.plan.plan import Plan

_MOST_TRIES = 5


@dataclass(frozen=True)
class Decided:
    """A plan for `rows` that must save `needed_us`, and why it does not, where it cannot."""

    plan: Plan
    rows: Mapping[str, float]
    needed_us: float = 0.0
    infeasible: str | None = None


def made_up(
    first: Decided, decide: Callable[[float], Decided], saves_us: Callable[[Plan], float], slack_us: float
) -> tuple[Plan, float]:
    """A plan that saves enough, and what it lacks if there is none.

    `decide` makes a plan that saves so much more than is needed, and `saves_us` tells what a plan saves indeed. While
    that is not enough more is asked for, twice as much each time, so that other queries lose more and what costs most
    is closed; then the least that is enough is looked for. More goes only where it helps.
    """
    enough_us = first.needed_us - slack_us
    best, best_us = first.plan, saves_us(first.plan)
    if best_us >= enough_us:
        return best, 0.0
    below_us, more_us = 0.0, first.needed_us - best_us
    for _ in range(_MOST_TRIES):
        asked = decide(more_us)
        saved_us = saves_us(asked.plan)
        if saved_us > best_us + slack_us:
            best, best_us = asked.plan, saved_us
        if best_us >= enough_us or asked.infeasible is not None:
            break
        below_us, more_us = more_us, 2 * more_us
    for _ in range(_MOST_TRIES):
        if best_us <= first.needed_us + slack_us:
            break
        between_us = (below_us + more_us) / 2
        plan = decide(between_us).plan
        saved_us = saves_us(plan)
        if saved_us >= enough_us:
            more_us, best, best_us = between_us, plan, saved_us
        else:
            below_us = between_us
    return best, first.needed_us - best_us if best_us < enough_us else 0.0
