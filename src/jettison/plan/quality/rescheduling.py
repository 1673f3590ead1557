"""Which instances leave a machine so that the minima of the others fit: algorithm 3.3, `killTasks`."""

from __future__ import annotations

import numpy as np

from jettison.plan.quality.tasks import Index, Vector


def instances_to_move(needed: float, released: Vector, priority: Vector) -> Index:
    """The instances (positions, in order) that release at least `needed` cores when they leave.

    `released` is `minReqCpu(t(i))` of each. Candidates are all instances of the lowest priorities that are enough
    together. Of these, from the highest priority and the largest load down, all stay that the others can do without.
    So few cores more than needed are released, and what moves is small. Of equal instances the first moves.
    Two errata of the seed's listing: candidates come from the lowest priority up, and `cpu` stays as it is (line 15).

    The example of 3.5.1: 40 % are to be released. All candidates move but (40 %, 3):

    >>> instances_to_move(0.4, np.array([0.2, 0.1, 0.4, 0.1, 0.1, 0.1]), np.array([4, 3, 3, 2, 2, 1.0])).tolist()
    [1, 3, 4, 5]
    """
    moving = np.zeros(len(released), dtype=bool)
    enough, total = needed - _ROUNDING * (1 + needed), 0.0
    for level in np.unique(priority).tolist():
        if total >= enough:
            break
        moving |= priority == level
        total += float(released[priority == level].sum())
    order = np.lexsort((-np.arange(len(released)), -released, -priority))
    for at in order[moving[order]].tolist():
        if total - released[at] >= enough:
            total -= float(released[at])
            moving[at] = False
    return np.flatnonzero(moving & (released > 0)).astype(np.intp)


_ROUNDING = 1e-9
"""Sums of shares such as 0.1 are not exact: a billionth is no shortage."""
