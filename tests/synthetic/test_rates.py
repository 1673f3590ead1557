"""Rates: both directions agree with each other, and with sums done another way."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import NetworkError
from jettison.synthetic.rates import Burst, Constant, Rate, Sine, Square, Step, Trace, rate_from_dict

pytestmark = pytest.mark.core

rates_per_s = st.one_of(st.just(0.0), st.floats(0.1, 1e6))
seconds = st.floats(0.01, 1000)
ends = st.one_of(st.none(), st.floats(0, 5000))


@st.composite
def profiles(draw: st.DrawFn) -> Rate:
    low, high = sorted([draw(rates_per_s), draw(rates_per_s)])
    end_s = draw(ends)
    kind = draw(st.sampled_from(["constant", "step", "square", "sine", "burst", "trace"]))
    if kind == "constant":
        return Constant(high, end_s=end_s)
    if kind == "step":
        return Step(draw(rates_per_s), draw(rates_per_s), draw(seconds), end_s=end_s)
    if kind == "square":
        return Square(low, high, draw(seconds), draw(st.floats(0, 1)), end_s=end_s)
    if kind == "sine":
        return Sine(high, low, draw(seconds), end_s=end_s)
    if kind == "burst":
        return Burst(low, high, draw(st.floats(0, 1000)), draw(seconds), end_s=end_s)
    starts = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=8, unique=True))
    held = draw(st.lists(rates_per_s, min_size=len(starts), max_size=len(starts)))
    return Trace(tuple(sorted(starts)), tuple(held), end_s=end_s)


def rows_within(rate: Rate, until_s: float) -> np.ndarray:
    total = rate.rows_until(until_s)
    return np.unique(np.linspace(0, total - 1, 200).astype(np.int64)) if total else np.array([], np.int64)


@given(profiles(), st.floats(0, 5000))
def test_row_i_arrives_when_i_rows_came_before_it(rate: Rate, until_s: float) -> None:
    for row in rows_within(rate, until_s)[::20]:
        assert abs(rate.rows_until(float(rate.seconds_of(np.array([row]))[0])) - row) <= 1


@given(profiles(), st.floats(0, 5000))
def test_rows_that_were_counted_have_arrived_in_order(rate: Rate, until_s: float) -> None:
    arrivals_s = rate.seconds_of(rows_within(rate, until_s))
    assert np.all(arrivals_s >= 0)
    assert np.all(arrivals_s <= until_s + 1e-6)
    assert np.all(np.diff(arrivals_s) >= -1e-9)


@given(profiles(), st.lists(st.floats(-10, 5000), min_size=2, max_size=20))
def test_counts_never_fall(rate: Rate, times_s: list[float]) -> None:
    counts = [rate.rows_until(time_s) for time_s in sorted(times_s)]
    assert counts == sorted(counts)
    assert counts[0] >= 0


@given(profiles(), st.floats(1, 5000))
def test_a_range_of_rows_gives_the_times_of_its_rows(rate: Rate, until_s: float) -> None:
    rows = rows_within(rate, until_s)
    one_by_one = [rate.seconds_of(rows[k : k + 1])[0] for k in range(0, rows.size, 10)]
    np.testing.assert_allclose(rate.seconds_of(rows)[::10], one_by_one, rtol=1e-12)


@given(profiles())
def test_survives_json(rate: Rate) -> None:
    assert rate_from_dict(json.loads(json.dumps(rate.to_dict()))) == rate


@given(profiles())
def test_nothing_arrives_after_the_end(rate: Rate) -> None:
    if rate.end_s is not None:
        total = rate.rows_until(rate.end_s)
        assert rate.rows_until(rate.end_s + 1e6) == total
        assert np.all(np.isinf(rate.seconds_of(np.array([total, total + 1]))))


@pytest.mark.parametrize(
    ("rate", "at_s", "rows"),
    [
        (Constant(1000), 0.29, 290),
        (Constant(1000), -1, 0),
        (Constant(0), 1e6, 0),
        (Constant(100, end_s=2.5), 60, 250),
        (Step(100, 400, at_s=10), 10, 1000),
        (Step(100, 400, at_s=10), 12, 1800),
        (Square(0, 100, period_s=10), 5, 0),  # low comes first
        (Square(0, 100, period_s=10), 10, 500),
        (Square(0, 100, period_s=10), 26, 1100),
        (Square(50, 100, period_s=10, duty=0), 20, 1000),
        (Square(50, 100, period_s=10, duty=1), 20, 2000),
        (Sine(1000, 1000, period_s=4), 4, 4000),
        (Burst(10, 1000, at_s=0, length_s=1), 2, 1010),
        (Trace((0, 2, 4), (1, 10, 100)), 5, 122),
        (Trace((3,), (7,)), 5, 14),
    ],
)
def test_counts(rate: Rate, at_s: float, rows: int) -> None:
    assert rate.rows_until(at_s) == rows


@pytest.mark.parametrize(
    ("rate", "row", "second"),
    [
        (Constant(1000), 1500, 1.5),
        (Constant(0), 0, math.inf),
        (Step(0, 100, at_s=10), 0, 10),
        (Step(100, 0, at_s=10), 999, 9.99),
        (Step(100, 0, at_s=10), 1000, math.inf),
        (Square(0, 100, period_s=10), 0, 5),
        (Square(0, 100, period_s=10), 500, 15),  # the first row of the second high phase waits for it
        (Burst(0, 100, at_s=3, length_s=1), 50, 3.5),
        (Trace((0, 2, 4), (1, 10, 100)), 122, 5),
        (Constant(100, end_s=2), 200, math.inf),
    ],
)
def test_arrivals(rate: Rate, row: int, second: float) -> None:
    assert rate.seconds_of(np.array([row]))[0] == pytest.approx(second)


def test_sine_follows_its_formula() -> None:
    mean, amplitude, period_s = 1000.0, 800.0, 60.0
    for at_s in (0.0, 7.0, 30.0, 59.0, 100.0):
        swing = amplitude * period_s / (2 * math.pi) * (1 - math.cos(2 * math.pi * at_s / period_s))
        assert Sine(mean, amplitude, period_s).rows_until(at_s) == pytest.approx(mean * at_s + swing, abs=1.5)


def test_trace_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("second,rows_per_s\n0,100\n10,2500.5\n")
    assert Trace.from_csv(path) == Trace((0, 10), (100, 2500.5))
    assert rate_from_dict({"kind": "trace", "path": str(path), "end_s": 20}) == Trace((0, 10), (100, 2500.5), end_s=20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("second,rows\n0,1\n", "add 'rows_per_s'"),
        ("second,rows_per_s\n", "at least one"),
        ("second,rows_per_s\n0,1\n0,2\n", r"seconds\[1\] is 0.0 after 0.0"),
        ("second,rows_per_s\n0,1\n1,many\n", "line 3"),
        ("second,rows_per_s\n0,1\n1\n", "line 3"),
        ("second,rows_per_s\n0,-1\n", r"rows_per_s\[0\] is -1.0"),
    ],
)
def test_a_bad_trace_says_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(NetworkError, match=message):
        Trace.from_csv(path)


def test_a_missing_trace_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"no file .*nowhere\.csv"):
        Trace.from_csv(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"kind": "constant", "rows_per_s": -1}, "Constant: rows_per_s is -1, give a number of at least 0"),
        ({"kind": "constant", "rows_per_s": "fast"}, "rows_per_s is 'fast'"),
        ({"kind": "constant", "rows_per_s": math.nan}, "rows_per_s is nan"),
        ({"kind": "constant", "rows_per_s": 1, "end_s": -1}, "end_s is -1"),
        ({"kind": "constant"}, "lacks the setting 'rows_per_s'"),
        ({"kind": "constant", "rows_per_s": 1, "rate": 2}, "no setting 'rate': use .*rows_per_s"),
        ({"kind": "square", "low_rows_per_s": 5, "high_rows_per_s": 1, "period_s": 1}, "high_rows_per_s is 1"),
        ({"kind": "square", "low_rows_per_s": 1, "high_rows_per_s": 5, "period_s": 0}, "period_s is 0"),
        ({"kind": "square", "low_rows_per_s": 1, "high_rows_per_s": 5, "period_s": 1, "duty": 2}, "duty is 2"),
        ({"kind": "sine", "mean_rows_per_s": 5, "amplitude_rows_per_s": 6, "period_s": 1}, "amplitude_rows_per_s is 6"),
        (
            {"kind": "burst", "base_rows_per_s": 5, "peak_rows_per_s": 1, "at_s": 1, "length_s": 1},
            "peak_rows_per_s is 1",
        ),
        ({"kind": "trace", "path": "a.csv", "seconds": [0]}, "both 'path' and 'seconds'"),
        ({"kind": "wave"}, "unknown kind 'wave': use one of constant, step"),
        ({}, "has no kind"),
        ("fast", "has no kind"),
    ],
)
def test_a_bad_declaration_says_what_to_do(declared: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        rate_from_dict(declared)
