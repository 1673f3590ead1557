"""Which tuples are needed: those that a kept window covers. All others may go at the earliest arc.

Times are whole ticks (Spark's are microseconds). Window i of an aggregate covers [i * slide, i * slide + size), and
its result has the window's START as its event time. So needs can be followed upstream, against the stream:

- an aggregate needs the windows that start where its results are needed (`through`); the last one those kept,
- a filter or a map needs what is needed of its results: they keep their time,
- a split needs what any of its branches needs (`union`),
- a join of streams whose rows may be `within` apart, and whose pairs have the later time, needs on both sides what is
  needed of its pairs and `within` before that (`before_join`).

An aggregate above another delivers only results whose start is needed. Those have all of their tuples: `through`
saw to it. Of the others some tuples are gone.

`pipeline`, `fan_out` and `composite` are thesis 4.5: one size and slide by which a single drop at the top can judge
for all aggregates below it. They are what a planner reckons with; the exact needs are never more than they say.
A drop can judge a group's windows only where the group is known, and where all below it is grouped alike (thesis 4.8).
Before parsing that is: one fate for all groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.errors import PlanError
from jettison.plan.windows.fates import Schedule, keep, kept

Needs = tuple[tuple[int, int], ...]
"""Half-open intervals of ticks, in order, with something between each and the next."""

MOST_WINDOWS = 10_000_000
"""What one question may be about; a single tuple with a wrong clock must not fill the driver's memory."""


@dataclass(frozen=True)
class WinDrop:
    """Windows of `size` ticks, a new one every `slide` ticks, of which at most `gap` in a row may go (None: any)."""

    size: int
    slide: int
    gap: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.size:
            raise PlanError(
                f"windows of size {self.size} and slide {self.slide}: give ticks with 0 < slide <= size, so that every "
                f"row is in a window."
            )

    def covering(self, tick: int) -> range:
        """The windows that a tick is in.

        >>> WinDrop(size=5, slide=3).covering(7)
        range(1, 3)
        """
        return range((tick - self.size) // self.slide + 1, tick // self.slide + 1)


def pipeline(*windows: WinDrop, aligned: bool = False) -> WinDrop:
    """For aggregates that follow each other: size = sum of sizes - (k - 1), slide and gap of the last.

    >>> pipeline(WinDrop(3, 2), WinDrop(3, 3))
    WinDrop(size=5, slide=3, gap=None)

    The thesis lets the last tick of a window open another one further up. Where slides have a common divisor d that
    cannot be: the last d ticks open at most one. `aligned` counts that, which for a minute of seconds is much:

    >>> pipeline(WinDrop(10, 10), WinDrop(60, 60)).size, pipeline(WinDrop(10, 10), WinDrop(60, 60), aligned=True).size
    (69, 60)
    """
    *above, last = windows
    size = last.size
    for window in reversed(above):
        common = math.gcd(window.slide, last.slide) if aligned else 1
        size += window.size - ((size - 1) % common + 1)
    return WinDrop(size, last.slide, last.gap)


def fan_out(*windows: WinDrop) -> WinDrop:
    """For aggregates side by side: the slide is the lcm of slides, and one decision stands for all that start in it.

    size = lcm + max(size - slide), gap = min of floor(gap * slide / lcm): of a gap of 7, windows two at a time, 3.

    >>> fan_out(WinDrop(3, 2, gap=9), WinDrop(3, 3, gap=7))
    WinDrop(size=7, slide=6, gap=3)
    """
    slide = math.lcm(*(window.slide for window in windows))
    gaps = [window.gap * window.slide // slide for window in windows if window.gap is not None]
    extent = max(window.size - window.slide for window in windows)
    return WinDrop(slide + extent, slide, min(gaps) if gaps else None)


def composite(above: WinDrop, *branches: WinDrop) -> WinDrop:
    """For an aggregate before a split: the pipeline rule over the fan-out rule; the other way round is the same.

    >>> composite(WinDrop(4, 1), WinDrop(3, 2), WinDrop(3, 3))
    WinDrop(size=10, slide=6, gap=None)
    """
    return pipeline(above, fan_out(*branches))


def common_index(index: int, slide: int, common_slide: int) -> int:
    """The window of a common decision that a window belongs to: the one in whose first `common_slide` ticks it starts.

    >>> [common_index(index, 2, 6) for index in range(-1, 5)]
    [-1, 0, 0, 0, 1, 1]
    """
    return index * slide // common_slide


def last_touched(newest_tick: int, slide: int, within: int = 0) -> int:
    """The last window whose fate has been acted upon: after it a new segment may begin.

    `newest_tick` is the largest of all earlier batches, shed tuples included. Below joins a window needs tuples from
    before its start: `within` is the sum of their bands.

    >>> last_touched(17, slide=5), last_touched(17, slide=5, within=3)
    (3, 4)
    """
    return (newest_tick + within) // slide


def needed(schedule: Schedule, window: WinDrop, tick: int, group: str = "") -> bool:
    """Whether a kept window covers a tick (thesis 4.7, rule 1)."""
    return any(keep(schedule, index, group) for index in window.covering(tick))


def needed_intervals(
    schedule: Schedule, window: WinDrop, low: int, high: int, group: str = "", *, above: Sequence[WinDrop] = ()
) -> Needs:
    """The ticks from `low` up to, not including, `high` that a kept window needs; `above` are aggregates before it.

    >>> from jettison.plan.windows.fates import Segment
    >>> every_other = Schedule((Segment(0, drop_share=0.5, gap=1, seed="delays"),))
    >>> needed_intervals(every_other, WinDrop(10, 10), 0, 50)
    ((0, 10), (20, 30), (40, 50))
    >>> needed_intervals(every_other, WinDrop(10, 10), 0, 50, above=[WinDrop(4, 2)])
    ((0, 12), (20, 32), (40, 50))
    """
    if high <= low:
        return ()
    first = low - sum(aggregate.size - 1 for aggregate in above)
    indices = range(window.covering(first).start, (high - 1) // window.slide + 1)
    if len(indices) > MOST_WINDOWS:
        raise PlanError(
            f"ticks {low} to {high} have {len(indices)} windows of slide {window.slide}: ask about {MOST_WINDOWS} or "
            f"fewer, and count rows with other times as needed."
        )
    fates = np.concatenate(([False], kept(schedule, np.arange(indices.start, indices.stop), group), [False]))
    edges = (np.flatnonzero(fates[1:] != fates[:-1]) + indices.start).tolist()
    runs = zip(edges[::2], edges[1::2], strict=True)
    needs = union(((start * window.slide, (stop - 1) * window.slide + window.size) for start, stop in runs))
    for aggregate in reversed(above):
        needs = through(aggregate, needs)
    return clipped(needs, low, high)


def through(window: WinDrop, needs: Needs) -> Needs:
    """What an aggregate needs so that its results at these ticks are right: all windows that start there.

    >>> through(WinDrop(3, 2), ((0, 3), (7, 8)))
    ((0, 5),)
    """
    starts = ((-(-low // window.slide), (high - 1) // window.slide) for low, high in needs)
    return union((first * window.slide, last * window.slide + window.size) for first, last in starts if first <= last)


def before_join(needs: Needs, within: int) -> Needs:
    """What both sides of a join need so that its pairs at these ticks are there; a pair has the later of two times.

    >>> before_join(((10, 20), (23, 30)), within=2)
    ((8, 20), (21, 30))
    """
    return union((low - within, high) for low, high in needs)


def rounded(needs: Needs, granule: int) -> Needs:
    """The whole granules that these needs touch: what bits can tell apart.

    >>> rounded(((8, 20), (23, 30)), granule=5)
    ((5, 30),)
    """
    return union((low // granule * granule, -(-high // granule) * granule) for low, high in needs)


def union(*needs: Iterable[tuple[int, int]]) -> Needs:
    """What any of these needs.

    >>> union(((0, 3), (7, 9)), ((3, 5),))
    ((0, 5), (7, 9))
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(interval for each in needs for interval in each):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def clipped(needs: Needs, low: int, high: int) -> Needs:
    """The part of these needs from `low` up to `high`."""
    cut = ((max(low, start), min(high, end)) for start, end in needs)
    return tuple((start, end) for start, end in cut if start < end)


def within_needs(needs: Needs, ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these ticks are needed.

    >>> within_needs(((0, 5), (7, 9)), np.array([-1, 0, 4, 5, 8]))
    array([False,  True,  True, False,  True])
    """
    edges = np.array([edge for interval in needs for edge in interval], np.int64)
    return np.equal(np.searchsorted(edges, ticks, side="right") % 2, 1)
