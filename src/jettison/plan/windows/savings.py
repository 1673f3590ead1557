"""What dropping windows saves: the share of tuples that go early, and the work that goes with them (thesis 4.9.2).

Of a block of gap + 1 windows the first is kept, and so is the next block's first. When the block goes, the ticks from
the end of the one to the start of the other are in no kept window: (gap + 1) * slide - size of them, if that is more
than nothing. A block is (gap + 1) * slide ticks long and goes with the chance drop_share * (gap + 1) / gap. Hence

    saved share  =  drop_share * max(0, (gap + 1) * slide - size) / (gap * slide)

The thesis has the same tuples above the line, but below it the length of the dropped windows laid over each other,
(gap - 1) * slide + size. Both agree for tumbling windows, size = slide. For sliding ones the thesis counts ticks that
the batch shares with its neighbours as the batch's own, and says less than is saved: for size 2, slide 1, gap 3 and
drop_share 0.75, its 0.375 to the true 0.5. The thesis also keeps one tuple per dropped window, to carry the decision
(sel_w2). Here a fate is computed wherever it is needed: no such tuples.
"""

from __future__ import annotations

from dataclasses import dataclass

from jettison.errors import PlanError
from jettison.plan.windows.fates import Segment
from jettison.plan.windows.needs import WinDrop


def least_gap(size: int, slide: int) -> int:
    """The smallest gap from which on any tuple can go early: floor(size / slide) (thesis 4.8).

    >>> least_gap(60, 60), least_gap(60, 5), least_gap(5, 3)
    (1, 12, 1)
    """
    return size // slide


def saved_share(size: int, slide: int, drop_share: float, gap: int) -> float:
    """The expected share of ticks that no kept window covers, exactly.

    >>> saved_share(60, 60, drop_share=0.3, gap=4)
    0.3
    >>> saved_share(60, 5, drop_share=0.5, gap=23), saved_share(60, 5, drop_share=0.5, gap=11)
    (0.2608695652173913, 0.0)
    """
    _check(size, slide, drop_share, gap)
    freed = max(0, (gap + 1) * slide - size)
    return drop_share * freed / (gap * slide) if freed else 0.0


def saved_share_of_thesis(size: int, slide: int, drop_share: float, gap: int) -> float:
    """The thesis' estimate, 1 - sel_w1: the same for tumbling windows, less for sliding ones.

    >>> saved_share_of_thesis(60, 60, drop_share=0.3, gap=4)
    0.3
    >>> saved_share_of_thesis(2, 1, drop_share=0.75, gap=3), saved_share(2, 1, drop_share=0.75, gap=3)
    (0.375, 0.5)
    """
    _check(size, slide, drop_share, gap)
    freed = max(0, (gap + 1) * slide - size)
    return drop_share * freed / ((gap - 1) * slide + size) if freed else 0.0


@dataclass(frozen=True)
class Costs:
    """Work per tuple before the aggregate, in it, and per result after it; with the two selectivities (figure 4.5).

    `before_selectivity` is the share of tuples that reaches the aggregate, `aggregate_selectivity` the results that
    it gives per tuple, `drop_us` what it takes to judge a tuple.
    """

    before_us: float
    aggregate_us: float
    after_us: float
    before_selectivity: float = 1.0
    aggregate_selectivity: float = 1.0
    drop_us: float = 0.0

    @property
    def load_us(self) -> float:
        """Work per input tuple when nothing is dropped."""
        after_us = self.aggregate_us + self.aggregate_selectivity * self.after_us
        return self.before_us + self.before_selectivity * after_us


def gain_us(costs: Costs, window: WinDrop, drop_share: float, gap: int) -> float:
    """Work saved per input tuple by a window drop at the input; what a loss is divided by in a loss/gain ratio.

    Early drops save all work up to the aggregate and in it, missing windows the work after it. Half of the minutes:

    >>> costs = Costs(before_us=2.0, aggregate_us=1.0, after_us=10.0, aggregate_selectivity=0.1, drop_us=0.1)
    >>> round(gain_us(costs, WinDrop(60, 60), drop_share=0.5, gap=3), 3), costs.load_us
    (1.9, 4.0)
    """
    early = saved_share(window.size, window.slide, drop_share, gap)
    results_us = costs.before_selectivity * costs.aggregate_selectivity * drop_share * costs.after_us
    return early * (costs.before_us + costs.before_selectivity * costs.aggregate_us) + results_us - costs.drop_us


def gain_of_random_drop_us(costs: Costs, drop_share: float) -> float:
    """Work saved per input tuple by a random drop below the aggregate, where else results can be dropped whole.

    >>> gain_of_random_drop_us(Costs(2.0, 1.0, 10.0, aggregate_selectivity=0.1), drop_share=0.5)
    0.5
    """
    return costs.before_selectivity * costs.aggregate_selectivity * (drop_share * costs.after_us - costs.drop_us)


def _check(size: int, slide: int, drop_share: float, gap: int) -> None:
    WinDrop(size, slide)
    if gap < 1:
        raise PlanError(f"windows of size {size} and slide {slide} with a gap of {gap}: without a gap none can go.")
    Segment(0, drop_share, gap, "")
