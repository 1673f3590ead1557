"""Which outputs make room when not all minimum accuracies fit: algorithm 3.3 for one machine, with hysteresis.

The seed moves tasks to another machine. On one machine they are paused: they get nothing, keep their state, and go on
when there is room. Candidates come from the lowest priority up until the minima of the others fit. Then, from the
highest priority and the most work down, all go on that the others can do without. One that is paused goes on in place
of a running one of a lower priority, where that makes room; among equals those that run stay.

Work that outputs share is released only when all of them are paused, so loads are not added up: `left_us` says what the
minima need when a set of outputs is paused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

RESUME_SHARE = 0.9
"""An output goes on only when the minima, its own included, fit into this share of what the budget leaves for rows."""
_ROUNDING = 1e-7


def outputs_to_pause(
    priorities: Mapping[str, float],
    left_us: Callable[[frozenset[str]], float],
    *,
    budget_us: float,
    unavoidable_us: float = 0.0,
    before: frozenset[str] = frozenset(),
    declared: frozenset[str] | None = None,
) -> frozenset[str] | None:
    """The outputs that are paused; None where pausing makes no room for the minimum of any other.

    `priorities` are those of outputs that may be paused, `before` those that are paused now, `declared` those whose
    minimum was declared (all unless given; other minima are those of gaps). One of these goes on, or none is paused:
    its minimum then wins over the budget, as it does with other shedders.

    The example of 3.5.1: 40 % are to be released. All candidates are paused but the one with 40 % and priority 3.

    >>> needs = {"a": (20, 4), "b": (10, 3), "c": (40, 3), "d": (10, 2), "e": (10, 2), "f": (10, 1)}
    >>> def left(paused): return sum(need for name, (need, _) in needs.items() if name not in paused)
    >>> sorted(outputs_to_pause({name: rank for name, (_, rank) in needs.items()}, left, budget_us=60))
    ['b', 'd', 'e', 'f']
    """
    slack_us = _ROUNDING * max(1.0, budget_us)
    paused_now = before & set(priorities)
    resume_us = unavoidable_us + RESUME_SHARE * (budget_us - unavoidable_us)

    def fits(paused: frozenset[str]) -> bool:
        limit_us = budget_us if paused_now <= paused else resume_us
        return left_us(paused) <= limit_us + slack_us

    paused: frozenset[str] = frozenset()
    for level in sorted(set(priorities.values())):
        if fits(paused):
            break
        paused |= {name for name, priority in priorities.items() if priority == level}
    if not fits(paused):
        return None
    nothing = left_us(frozenset())
    releases = {name: nothing - left_us(frozenset([name])) for name in paused}
    for name in sorted(paused, key=lambda each: (-priorities[each], each in paused_now, -releases[each], each)):
        if fits(paused - {name}):
            paused -= {name}
    owed = frozenset(priorities) if declared is None else declared
    return None if owed and owed <= paused else paused
