"""Keep levels: the shares that a drop may keep, few enough that Spark seldom has to compile a new filter.

Level n keeps `ratio ** n`, the last level keeps nothing. The ladder is geometric, so the ratio of two levels is a
level again: a drop of level 5 below one of level 3 is a drop of level 2, with no rounding anywhere.
Loss graphs bend at some shares: there the greedy rule turns from one output to the next, so there a level should be.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from jettison.errors import PlanError

FINEST_STEP_SHARE = 0.05
COARSEST_STEP_SHARE = 0.95
SMALLEST_STEP_SHARE = 0.001
LOWEST_KEEP_SHARE = 0.02


@dataclass(frozen=True)
class Ladder:
    """Levels 0 (keep all) to `last` (keep nothing), `step_share` apart.

    >>> ladder = Ladder(step_share=0.5)
    >>> ladder.shares
    (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.0)
    >>> ladder.between(2, 5) == ladder.shares[3]
    True
    """

    step_share: float = FINEST_STEP_SHARE

    def __post_init__(self) -> None:
        if not SMALLEST_STEP_SHARE <= self.step_share <= 1.0:
            raise PlanError(
                f"the ladder's step_share is {self.step_share}: give a share from {SMALLEST_STEP_SHARE} to 1, "
                f"such as {FINEST_STEP_SHARE}."
            )

    @cached_property
    def shares(self) -> tuple[float, ...]:
        ratio, shares = 1.0 - self.step_share, [1.0]
        while shares[-1] * ratio > LOWEST_KEEP_SHARE:
            shares.append(ratio ** len(shares))
        return (*shares, 0.0)

    @property
    def last(self) -> int:
        return len(self.shares) - 1

    def between(self, above: int, level: int) -> float:
        """What a drop keeps of a stream that is at level `above` already, so that it comes to `level`."""
        if level == self.last:
            return 1.0 if above == self.last else 0.0
        return self.shares[level - above]


def ladder_for(drop_us: float, smallest_load_us: float, bends: Collection[float] = ()) -> Ladder:
    """The finest ladder whose first step gains more than the drop itself costs: step > D / min(L) (thesis 3.5).

    A tenth more than that, or half of the way to 1 where that is less. Where D >= L no step pays: then few levels.

    >>> round(ladder_for(drop_us=0.1, smallest_load_us=1.0).step_share, 2)
    0.11
    >>> ladder_for(drop_us=0.0, smallest_load_us=1.0).step_share
    0.05
    >>> ladder_for(drop_us=0.9, smallest_load_us=1.0) == ladder_for(drop_us=3.0, smallest_load_us=1.0)
    True

    `bends` are the shares at which loss graphs bend. The step is made a little longer, so that levels meet them:

    >>> ladder = ladder_for(0.0, 1.0, bends=[0.3])
    >>> round(ladder.step_share, 3), round(ladder.shares[23], 9)
    (0.051, 0.3)
    """
    if drop_us <= 0:
        return _meeting(bends, FINEST_STEP_SHARE)
    if drop_us >= smallest_load_us:
        return Ladder(COARSEST_STEP_SHARE)
    least_share = drop_us / smallest_load_us
    return _meeting(bends, max(FINEST_STEP_SHARE, min(1.1 * least_share, (1.0 + least_share) / 2)))


def _meeting(bends: Collection[float], step_share: float) -> Ladder:
    """The ladder with steps from `step_share` to a quarter more whose levels lie nearest to these shares."""
    wanted = [bend for bend in bends if LOWEST_KEEP_SHARE < bend < 1.0 - step_share]

    def missed(step: float) -> float:
        places = [math.log(bend) / math.log(1.0 - step) for bend in wanted]
        return sum(abs(place - round(place)) for place in places)

    steps = [step_share]
    for bend in wanted:
        most = int(math.log(bend) / math.log(1.0 - step_share))
        steps += [1.0 - bend ** (1.0 / count) for count in (most, most - 1) if count > 0]
    within = [step for step in steps if step <= 1.25 * step_share]
    return Ladder(min(within, key=lambda step: (round(missed(step), 6), step)))
