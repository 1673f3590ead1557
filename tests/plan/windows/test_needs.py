"""What is needed, against going through all windows; and the numbers of thesis 4.5."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady
from tests.plan.windows.test_fates import changes, grown

from jettison.errors import PlanError
from jettison.plan.windows.fates import Schedule, Segment, keep
from jettison.plan.windows.needs import (
    MOST_WINDOWS,
    Needs,
    WinDrop,
    before_join,
    clipped,
    common_index,
    composite,
    fan_out,
    last_touched,
    needed,
    needed_intervals,
    pipeline,
    through,
    union,
    within_needs,
)

pytestmark = pytest.mark.core

schedules = changes().map(grown)


@st.composite
def windows(draw: st.DrawFn, most: int = 12) -> WinDrop:
    slide = draw(st.integers(1, most))
    return WinDrop(slide + draw(st.sampled_from((0, 0, 1, slide, draw(st.integers(0, 2 * most))))), slide)


@st.composite
def needs_of(draw: st.DrawFn) -> Needs:
    edges = sorted(draw(st.sets(st.integers(-40, 40), max_size=8)))
    return tuple(zip(edges[::2], edges[1::2], strict=False))


def ticks_of(needs: Iterable[tuple[int, int]]) -> set[int]:
    return {tick for low, high in needs for tick in range(low, high)}


def intervals_of(ticks: set[int]) -> Needs:
    starts = sorted(tick for tick in ticks if tick - 1 not in ticks)
    ends = sorted(tick + 1 for tick in ticks if tick + 1 not in ticks)
    return tuple(zip(starts, ends, strict=True))


# --- thesis 4.5 ---------------------------------------------------------------------------------------------------


def test_the_numbers_of_thesis_4_5() -> None:
    first, second, before = WinDrop(3, 2), WinDrop(3, 3), WinDrop(4, 1)

    assert pipeline(first, second) == WinDrop(5, 3)
    assert fan_out(first, second) == WinDrop(7, 6)
    assert pipeline(before, first) == WinDrop(6, 2)
    assert pipeline(before, second) == WinDrop(6, 3)
    assert composite(before, first, second) == WinDrop(10, 6)
    assert fan_out(pipeline(before, first), pipeline(before, second)) == WinDrop(10, 6)


@steady(60)
@given(windows(), st.lists(windows(), min_size=1, max_size=4))
def test_a_composite_is_the_same_either_way_round(before: WinDrop, branches: list[WinDrop]) -> None:
    assert composite(before, *branches) == fan_out(*(pipeline(before, branch) for branch in branches))


def test_the_gap_is_counted_in_the_slides_of_the_common_decision() -> None:
    # Six ticks are three windows of the one and two of the other: 7 // 3 and 3 // 2 of them.
    assert fan_out(WinDrop(3, 2, gap=7), WinDrop(3, 3, gap=3)).gap == 1
    assert fan_out(WinDrop(3, 2, gap=2), WinDrop(3, 3, gap=9)).gap == 0
    assert fan_out(WinDrop(3, 2), WinDrop(3, 3, gap=9)).gap == 4
    assert pipeline(WinDrop(3, 2, gap=1), WinDrop(3, 3, gap=5)).gap == 5


@steady(60)
@given(st.lists(windows(most=8), min_size=1, max_size=3))
def test_a_pipeline_says_never_less_than_is_needed_and_aligned_never_more_than_the_thesis(chain: list[WinDrop]) -> None:
    # Windows repeat after the lcm of slides; 8 * 7 * 5 * 3 = 840 ticks hold every position.
    last = chain[-1]
    longest = 0
    for index in range(840 // last.slide + 1):
        ticks: Needs = ((index * last.slide, index * last.slide + last.size),)
        for window in reversed(chain[:-1]):
            ticks = through(window, ticks)
        if ticks:
            assert ticks[0][0] >= index * last.slide
            longest = max(longest, ticks[-1][1] - index * last.slide)

    thesis, tight = pipeline(*chain), pipeline(*chain, aligned=True)
    assert longest <= tight.size <= thesis.size
    if len(chain) == 2:
        assert longest == tight.size


@steady(40)
@given(st.lists(windows(most=6), min_size=1, max_size=3), schedules)
def test_a_common_decision_keeps_all_that_its_windows_need(branches: list[WinDrop], schedule: Schedule) -> None:
    common = fan_out(*branches)
    needs = ticks_of(needed_intervals(schedule, common, -100, 200))

    for branch in branches:
        for index in range(-20 // branch.slide, 100 // branch.slide):
            if keep(schedule, common_index(index, branch.slide, common.slide)):
                assert needs >= set(range(index * branch.slide, index * branch.slide + branch.size))


# --- intervals ----------------------------------------------------------------------------------------------------


@steady(30)
@given(schedules, windows(), st.integers(-60, 60), st.integers(0, 200), st.sampled_from(("", "zone 1")))
def test_intervals_are_what_all_windows_together_need(
    schedule: Schedule, window: WinDrop, low: int, length: int, group: str
) -> None:
    found = needed_intervals(schedule, window, low, low + length, group)
    indices = range((low - window.size) // window.slide - 1, (low + length) // window.slide + 2)
    covered = {
        tick
        for index in indices
        if keep(schedule, index, group)
        for tick in range(index * window.slide, index * window.slide + window.size)
        if low <= tick < low + length
    }

    assert found == intervals_of(covered)
    assert covered == {tick for tick in range(low, low + length) if needed(schedule, window, tick, group)}


@steady(30)
@given(schedules, st.lists(windows(most=8), min_size=1, max_size=3), st.integers(-60, 60), st.integers(0, 120))
def test_needs_above_other_aggregates_are_exact_and_within_the_rule(
    schedule: Schedule, chain: list[WinDrop], low: int, length: int
) -> None:
    *above, last = chain
    ticks = {tick for tick in range(low - 100, low + length + 1) if needed(schedule, last, tick)}
    for window in reversed(above):
        starts = [tick for tick in ticks if tick % window.slide == 0]
        ticks = {tick for start in starts for tick in range(start, start + window.size)}
    inside = {tick for tick in ticks if low <= tick < low + length}

    assert needed_intervals(schedule, last, low, low + length, above=above) == intervals_of(inside)
    for aligned in (False, True):
        rule = needed_intervals(schedule, pipeline(*chain, aligned=aligned), low, low + length)
        assert inside <= ticks_of(rule)


@steady(40)
@given(needs_of(), windows(), st.integers(0, 9))
def test_needs_pass_operators_upwards(needs: Needs, window: WinDrop, within: int) -> None:
    wanted = ticks_of(needs)
    starts = [tick for tick in wanted if tick % window.slide == 0]

    assert through(window, needs) == intervals_of({t for s in starts for t in range(s, s + window.size)})
    # A pair of times a and b has the later one: b is needed by the pairs with every a up to `within` after it.
    assert before_join(needs, within) == intervals_of({t - back for t in wanted for back in range(within + 1)})


@steady(40)
@given(st.lists(needs_of(), max_size=3), st.integers(-50, 50), st.integers(0, 60))
def test_needs_are_sets_of_ticks(several: list[Needs], low: int, length: int) -> None:
    merged = union(*several)
    wanted = set().union(*map(ticks_of, several))
    looked = np.arange(-60, 60)

    assert merged == intervals_of(wanted)
    assert clipped(merged, low, low + length) == intervals_of(wanted & set(range(low, low + length)))
    assert within_needs(merged, looked).tolist() == [tick in wanted for tick in looked]


def test_ticks_may_be_microseconds() -> None:
    second = 1_000_000
    schedule = Schedule((Segment(1_700_000_000 // 10, 0.5, 1, "s"),))
    now = 1_700_000_000 * second

    found = needed_intervals(schedule, WinDrop(10 * second, 10 * second), now, now + 30 * second)
    assert found == ((now, now + 10 * second), (now + 20 * second, now + 30 * second))


def test_a_wrong_clock_is_not_answered_window_by_window() -> None:
    with pytest.raises(PlanError, match="as needed"):
        needed_intervals(Schedule(), WinDrop(1, 1), 0, MOST_WINDOWS + 1)


@pytest.mark.parametrize(("size", "slide"), [(3, 4), (3, 0), (0, 0), (3, -1)])
def test_windows_that_leave_tuples_out_are_refused(size: int, slide: int) -> None:
    with pytest.raises(PlanError, match="slide <= size"):
        WinDrop(size, slide)


def test_the_first_window_after_the_touched_ones_needs_nothing_of_earlier_batches() -> None:
    for newest in range(-20, 20):
        for slide, within in ((1, 0), (5, 0), (5, 3), (5, 12)):
            first = last_touched(newest, slide, within) + 1
            assert first * slide - within > newest
            assert (first - 1) * slide - within <= newest
