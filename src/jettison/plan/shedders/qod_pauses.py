"""Which outputs make room when not all minimum accuracies fit: algorithm 3.3 for one machine, with hysteresis.

The seed moves tasks to another machine. On one machine they are paused: they get nothing, keep their state, and go on
when there is room. Candidates come from the lowest priority up until the minima of the others fit. Then, from the
highest priority and the most work down, all go on that the others can do without.

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
    paused = before & set(priorities)
    for level in sorted(set(priorities.values())):
        if left_us(paused) <= budget_us + slack_us:
            break
        paused |= {name for name, priority in priorities.items() if priority == level}
    if left_us(paused) > budget_us + slack_us:
        return None
    nothing = left_us(frozenset())
    releases = {name: nothing - left_us(frozenset([name])) for name in paused}
    resume_us = unavoidable_us + RESUME_SHARE * (budget_us - unavoidable_us)
    for name in sorted(paused, key=lambda each: (-priorities[each], -releases[each], each)):
        limit_us = resume_us if name in before else budget_us
        if left_us(paused - {name}) <= limit_us + slack_us:
            paused -= {name}
    owed = frozenset(priorities) if declared is None else declared
    return None if owed and owed <= paused else frozenset(paused)
