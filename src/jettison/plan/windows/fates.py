"""The fate of a window: a pure function of its index, its group and a schedule, so that nobody has to be told.

Window i of an aggregate starts at tick i * slide. A schedule is a list of segments, each in force from one index on.
In a segment the windows of a group come in blocks of gap + 1. The first of a block, its head, is always kept; of the
others as many go as are due (`even_spacing`). So at most `gap` windows in a row are missing, and `drop_share` of all
in every stretch: thesis 4.3 (B), 4.7 (windows of a batch go together), 4.10.1 (groups with a p and a B of their own).
The thesis tosses a coin per batch and makes up for two drops in a row later; here the kept window between two batches
has its place, and nothing needs the memory of another.

A segment whose windows go `together` by 0 is of a plan that was made before windows went evenly: the windows behind a
head go together or stay together, with the chance drop_share * (gap + 1) / gap. In Spark SQL, with `into` the windows
of the segment's first block that lie before it:

    head  =  index - pmod(index - start + into, gap + 1)
    kept  =  index = head  OR  shiftrightunsigned(xxhash64(seed, group, head), 44) >= limit

`seed` and `group` are strings (`''` without groups; null must be given a text), `head` is a bigint.

Runs do not join across the border of two segments: with another gap a new block begins there, and its first window is
kept; with the same gap the block under way goes on, with its head where it was. Going on matters: if every change
began a block, a plan that changes with every window would keep them all.

A segment may also be closed, with a drop share of 1: no window is kept, not even heads, and no gap is promised. That is
admission control for a query whose windows may not go as often as they would have to. The segment after it begins a
block, so that the query is back with its first window.

What is counted are windows of event time, also empty ones. A group that has tuples in few windows (or results, below an
aggregate whose slide is longer than these windows) may find all of those among the dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.errors import PlanError
from jettison.network.columns.xxhash64 import hash_of_longs, hash_of_text
from jettison.plan.windows.even_spacing import BITS as BITS
from jettison.plan.windows.even_spacing import goes, phase_at, rate_of

BEGINNING = -(2**62)
"""Before every window, and far enough from the ends of a bigint to be subtracted."""

_ROUNDING = 1e-9
_SMALL_CHANGE = 0.1


def most_drop_share(gap: int) -> float:
    """The largest share of windows that may go when at most `gap` in a row may.

    >>> most_drop_share(4)
    0.8
    """
    return gap / (gap + 1)


@dataclass(frozen=True)
class Segment:
    """From window `start` on, `drop_share` of a group's windows go, at most `gap` in a row.

    `into` windows of its first block lie before it, in the segment that it follows.

    >>> Segment(start=100, drop_share=0.5, gap=4, seed="delays").limit / 2**BITS
    0.625
    >>> Segment(start=100, drop_share=0.9, gap=4, seed="delays")
    Traceback (most recent call last):
    jettison.errors.PlanError: segment from window 100 drops a share of 0.9: with a gap of at most 4 windows no more...
    """

    start: int
    drop_share: float
    gap: int
    seed: str
    into: int = 0
    together: int = 0
    """How many windows go at once: 1, or the gap where windows overlap; 0 where a hash decides over whole blocks."""
    phase: int = 0
    """What is due when the first block begins, in 2^-20 windows that go."""

    def __post_init__(self) -> None:
        at = f"segment from window {self.start}"
        if self.gap < 0 or self.gap != int(self.gap):
            raise PlanError(f"{at} has a gap of {self.gap}: give a whole number of windows, 0 or more.")
        if not self.closed and not 0.0 <= self.drop_share <= most_drop_share(self.gap) + _ROUNDING:
            raise PlanError(
                f"{at} drops a share of {self.drop_share}: with a gap of at most {self.gap} windows no more than "
                f"{most_drop_share(self.gap):.6g} may go. Drop less, allow a larger gap, or close the output."
            )
        if not 0 <= self.into <= self.gap:
            raise PlanError(f"{at} begins {self.into} windows into a block of {self.gap + 1}: that is not inside it.")
        if self.together not in (0, 1, self.gap):
            raise PlanError(f"{at} lets {self.together} windows go together: give 1, or its gap of {self.gap}.")

    @property
    def rate(self) -> int:
        """How many times `together` windows go per block, in 2^-20; 0 where a hash decides, or all go."""
        return 0 if self.closed or not self.together else rate_of(self.drop_share, self.gap, self.together)

    @property
    def closed(self) -> bool:
        """Whether no window is kept at all."""
        return self.drop_share == 1.0

    @property
    def limit(self) -> int:
        """A block goes when the first 20 bits of its hash are below this."""
        if self.closed:
            return 1 << BITS
        return min(2**BITS, round(2**BITS * self.drop_share / most_drop_share(self.gap))) if self.gap else 0

    def into_at(self, index: int) -> int:
        """How many windows lie between a window and the head of its block."""
        return (index - self.start + self.into) % (self.gap + 1)

    def phase_at(self, index: int) -> int:
        """What is due when the block of a window begins."""
        block = (index - self.start + self.into) // (self.gap + 1)
        return int(phase_at(self.phase, self.rate, np.array([block]))[0])

    def kept(self, indices: NDArray[np.int64], group: str) -> NDArray[np.bool_]:
        """Which of these windows are kept, whether or not the segment is in force there."""
        if self.closed:
            return np.zeros(len(indices), np.bool_)
        ticks = indices - self.start + self.into
        if self.together:
            blocks, into = np.divmod(ticks, self.gap + 1)
            return ~goes(into, blocks, gap=self.gap, together=self.together, rate=self.rate, phase=self.phase)
        heads = indices - ticks % (self.gap + 1)
        drawn = hash_of_longs(heads, hash_of_text(group, hash_of_text(self.seed))) >> np.uint64(64 - BITS)
        fates: NDArray[np.bool_] = (indices == heads) | (drawn >= np.uint64(self.limit))
        return fates


@dataclass(frozen=True)
class Schedule:
    """What becomes of which window: segments in order, and own lists for groups that have their own shares and gaps.

    Windows before the first segment are kept.

    >>> schedule = Schedule((Segment(4, drop_share=0.75, gap=3, seed="delays"),))
    >>> "".join("x" if keep(schedule, index) else "." for index in range(16))
    'xxxxx...x...x...'
    """

    segments: tuple[Segment, ...] = ()
    groups: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for segments in (self.segments, *self.groups.values()):
            for before, after in pairwise(segments):
                if after.start <= before.start:
                    raise PlanError(f"segments start at window {before.start}, then {after.start}: put them in order.")
                if after.into and (after.gap != before.gap or after.into != before.into_at(after.start)):
                    raise PlanError(
                        f"the segment from window {after.start} begins inside a block that the one before it does not "
                        f"have there: more than {after.gap} windows in a row could go. Let it begin a block (into 0)."
                    )

    def of(self, group: str) -> tuple[Segment, ...]:
        """The segments that judge a group."""
        return self.groups.get(group, self.segments)

    @property
    def drops(self) -> bool:
        """Whether any window goes.

        >>> Schedule((Segment(4, drop_share=0.0, gap=3, seed="delays"),)).drops
        False
        """
        return any(each.drop_share > 0 for segments in (self.segments, *self.groups.values()) for each in segments)

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {"segments": [asdict(segment) for segment in self.segments]}
        if self.groups:
            content["groups"] = {group: [asdict(own) for own in segments] for group, segments in self.groups.items()}
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Schedule:
        groups = {group: _segments(given) for group, given in content.get("groups", {}).items()}
        return cls(_segments(content["segments"]), groups)


def keep(schedule: Schedule, index: int, group: str = "") -> bool:
    """Whether a window is kept."""
    return bool(kept(schedule, np.array([index]), group)[0])


def kept(schedule: Schedule, indices: NDArray[np.int64], group: str = "") -> NDArray[np.bool_]:
    """Which of these windows of a group are kept.

    >>> kept(Schedule((Segment(0, 0.5, 1, "delays"),)), np.arange(6))
    array([ True, False,  True, False,  True, False])
    """
    segments = schedule.of(group)
    in_force = np.searchsorted(np.array([segment.start for segment in segments], np.int64), indices, side="right") - 1
    fates = np.ones(len(indices), np.bool_)
    for number in np.unique(in_force[in_force >= 0]):
        judged = in_force == number
        fates[judged] = segments[number].kept(indices[judged], group)
    return fates


def extend(
    schedule: Schedule,
    now_index: int | None,
    *,
    drop_share: float,
    gap: int,
    seed: str,
    group: str | None = None,
    together: int = 0,
) -> Schedule:
    """From the first window after `now_index` on, judge by these values; earlier windows keep their fate.

    Where windows go one by one, a change by no more than a tenth waits until the block under way has ended.
    `now_index` is the last window that a tuple of an earlier batch may have been in (see `needs.last_touched`), None
    before the first batch. Without a group the default changes; a group with its own list keeps that, and one without
    it takes the default along up to here. What the schedule says already, it need not say again:

    >>> before = Schedule((Segment(0, 0.5, 4, "delays"),))
    >>> extend(before, 7, drop_share=0.5, gap=4, seed="delays") == before
    True
    >>> extend(before, 7, drop_share=0.25, gap=4, seed="delays").segments[-1]
    Segment(start=8, drop_share=0.25, gap=4, seed='delays', into=3, together=0, phase=0)
    """
    start = BEGINNING if now_index is None else now_index + 1
    stay = [
        segment for segment in (schedule.segments if group is None else schedule.of(group)) if segment.start < start
    ]
    goes_on = bool(stay) and stay[-1].gap == gap and not stay[-1].closed
    into = stay[-1].into_at(start) if goes_on else 0
    # a small change waits for the next block: inside of one, what is due of it would be counted anew every time
    if together == 1 and into and abs(drop_share - stay[-1].drop_share) <= _SMALL_CHANGE:
        start, into = start + gap + 1 - into, 0
    phase = 0
    if together:
        due = goes_on and stay[-1].together == together
        phase = stay[-1].phase_at(start) if due else hash_of_text(group or "", hash_of_text(seed)) >> 64 - BITS
    last = stay[-1] if stay else None
    if last is None or (last.drop_share, last.gap, last.seed, last.together) != (drop_share, gap, seed, together):
        stay.append(Segment(start, drop_share, gap, seed, into, together, phase))
    if group is None:
        return Schedule(tuple(stay), schedule.groups)
    return Schedule(schedule.segments, {**schedule.groups, group: tuple(stay)})


def forget(schedule: Schedule, before: int) -> Schedule:
    """Without the segments that only judge windows before this one, which must not be asked about any more."""
    groups = {group: _since(segments, before) for group, segments in schedule.groups.items()}
    return Schedule(_since(schedule.segments, before), groups)


def _since(segments: tuple[Segment, ...], index: int) -> tuple[Segment, ...]:
    return segments[max(0, bisect_right(segments, index, key=lambda segment: segment.start) - 1) :]


def _segments(content: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
    return tuple(Segment(**given) for given in content)
