"""Windows that count tuples: thesis 4.10.2 against counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady
from tests.plan.windows.test_needs import ticks_of, windows

from jettison.plan.windows.count_windows import count_pipeline, count_through, crossed
from jettison.plan.windows.needs import Needs, WinDrop, fan_out

pytestmark = pytest.mark.core


def sums(numbers: list[int], window: WinDrop) -> list[int]:
    """The sum of every window that is full, in order."""
    last = len(numbers) - window.size
    return [sum(numbers[at : at + window.size]) for at in range(0, last + 1, window.slide)]


def test_the_formula_of_thesis_4_10_2() -> None:
    assert count_pipeline(WinDrop(3, 2), WinDrop(3, 3)) == WinDrop(3 * 2 + 1, 2 * 3)
    assert count_pipeline(WinDrop(4, 1), WinDrop(3, 2), WinDrop(5, 3, gap=2)) == WinDrop(
        5 * (1 * 2) + 3 * 1 + 1 * 1, 1 * 2 * 3, gap=2
    )
    assert count_pipeline(WinDrop(10, 10), WinDrop(100, 100)) == WinDrop(1000, 1000)
    assert count_pipeline(WinDrop(7, 4, gap=3)) == WinDrop(7, 4, gap=3)


@steady(200)
@given(st.lists(windows(most=4), min_size=1, max_size=3), st.integers(0, 6))
def test_a_window_needs_just_the_tuples_that_the_formula_says(chain: list[WinDrop], index: int) -> None:
    needs: Needs = ((index, index + 1),)
    for window in reversed(chain):
        needs = count_through(window, needs)

    whole = count_pipeline(*chain)
    assert needs == ((index * whole.slide, index * whole.slide + whole.size),)


@steady(100)
@given(st.lists(windows(most=4), min_size=2, max_size=3), st.sets(st.integers(0, 4), min_size=1))
def test_with_only_the_needed_tuples_the_kept_windows_are_right(chain: list[WinDrop], kept: set[int]) -> None:
    whole = count_pipeline(*chain)
    numbers = [3**at % 1009 for at in range(4 * whole.slide + whole.size)]
    needed = ticks_of((index * whole.slide, index * whole.slide + whole.size) for index in kept)

    # What is not needed is made wrong, not left out: left out, all that follow would be counted wrong.
    given_numbers = [number if at in needed else number + 1 for at, number in enumerate(numbers)]
    for window in chain:
        numbers, given_numbers = sums(numbers, window), sums(given_numbers, window)

    assert len(numbers) == 5
    assert {index for index in range(5) if numbers[index] == given_numbers[index]} == {
        index for index in range(5) if set(range(index * whole.slide, index * whole.slide + whole.size)) <= needed
    }


def test_side_by_side_the_rule_is_that_of_times() -> None:
    siblings = (WinDrop(3, 2), WinDrop(3, 3))
    common = fan_out(*siblings)
    starts = [(start, window) for window in siblings for start in range(0, common.slide, window.slide)]

    assert max(start + window.size for start, window in starts) == common.size == 7


def test_a_drop_stops_below_what_changes_counts() -> None:
    assert crossed([]) == 0
    assert crossed(["select", "with_columns"]) == 2
    for kind in ("where", "union", "join", "apply"):
        assert crossed(["select", kind, "select"]) == 1
