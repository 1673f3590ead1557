"""Arrival rates and lag from offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.statistics.arrival import TopicRate

pytestmark = pytest.mark.core


@given(st.lists(st.tuples(st.floats(0.1, 5), st.lists(st.integers(0, 10_000), min_size=3, max_size=3)), min_size=2))
def test_the_rate_is_that_of_the_last_interval(steps: list[tuple[float, list[int]]]) -> None:
    rate, at_s, ends = TopicRate(), 0.0, [0, 0, 0]
    for number, (interval_s, arrived) in enumerate(steps):
        at_s += interval_s
        ends = [end + more for end, more in zip(ends, arrived, strict=True)]
        found = rate.update(at_s, {str(index): end for index, end in enumerate(ends)})
        if number:
            assert found == pytest.approx(sum(arrived) / interval_s, rel=1e-6)
        else:
            assert found is None


def test_lag_in_seconds_is_how_long_the_waiting_records_took_to_come() -> None:
    rate = TopicRate()
    rate.update(0.0, {"0": 0})
    rate.update(2.0, {"0": 1000})
    sample = rate.behind(250)
    assert (sample.rows_per_s, sample.lag_rows, sample.lag_s, sample.at_s) == (500.0, 250, 0.5, 2.0)


def test_before_two_looks_nothing_is_claimed() -> None:
    rate = TopicRate()
    assert rate.get() is None
    assert rate.behind(10).lag_s is None


def test_trust_7_records_that_wait_while_none_arrive_are_behind_for_an_unknown_time() -> None:
    """It was "0 rows/s arrive, 28,924 behind (0.0 s)"."""
    rate = TopicRate()
    rate.update(0.0, {"0": 28_924})
    rate.update(2.0, {"0": 28_924})
    assert (rate.behind(28_924).rows_per_s, rate.behind(28_924).lag_s, rate.behind(0).lag_s) == (0.0, None, 0.0)


def test_two_looks_at_once_do_not_make_a_rate() -> None:
    rate = TopicRate()
    rate.update(0.0, {"0": 0})
    rate.update(1.0, {"0": 100})
    assert rate.update(1.001, {"0": 150}) == 100.0
