"""Paired Count-Min sketches: the error bound, exact ratios without collisions, merging as concatenation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import NetworkError, PlanError
from jettison.statistics.sketches.cost_sketch import CostSketch, sketch_size
from jettison.statistics.sketches.key_hash import key_hash

pytestmark = pytest.mark.core

Tuples = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10_000)), max_size=60)


def _sketch(tuples: list[tuple[int, int]], columns: int = 16) -> CostSketch:
    keys = np.array([key for key, _ in tuples], np.int64)
    return CostSketch.empty(3, columns).updated(key_hash([keys]), np.array([us for _, us in tuples], np.float64))


@given(Tuples, Tuples)
def test_merging_is_concatenation(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    assert _sketch(first).plus(_sketch(second)) == _sketch(first + second) == _sketch(second).plus(_sketch(first))


@given(Tuples)
def test_counts_and_totals_are_never_too_low(tuples: list[tuple[int, int]]) -> None:
    sketch = _sketch(tuples, columns=4)
    keys = np.arange(41)
    counts = np.bincount([key for key, _ in tuples], minlength=41) if tuples else np.zeros(41)
    totals = np.bincount([k for k, _ in tuples], [us for _, us in tuples], 41) if tuples else np.zeros(41)
    assert (sketch.counts_of(key_hash([keys])) >= counts).all()
    assert (sketch.totals_us_of(key_hash([keys])) >= totals).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.1), (0.02, 0.02)])
def test_the_error_bound_holds_with_its_probability(epsilon: float, delta: float) -> None:
    """Over hash functions drawn anew: the share of (key, functions) beyond the bound is at most delta."""
    rng = np.random.default_rng(7)
    keys = (35_000 * rng.random(20_000) ** 3).astype(np.int64)
    durations = rng.integers(1000, 152_000, 35_000)[keys].astype(np.float64)
    distinct, counts = np.unique(keys, return_counts=True)
    totals = np.bincount(keys, durations)[distinct]
    hashes, asked = key_hash([keys]), key_hash([distinct])
    beyond_f, beyond_w = [], []
    for seed in range(30):
        sketch = CostSketch.empty(*sketch_size(epsilon, delta), seed).updated(hashes, durations)
        beyond_f.append(np.mean(sketch.counts_of(asked) > counts + epsilon * len(keys)))
        beyond_w.append(np.mean(sketch.totals_us_of(asked) > totals + epsilon * durations.sum()))
    assert np.mean(beyond_f) <= delta
    assert np.mean(beyond_w) <= delta


def test_two_keys_share_a_column_as_seldom_as_promised() -> None:
    """2-universal: over functions drawn anew, any two keys collide with a probability of about 1 / columns."""
    pairs = key_hash([np.arange(200)]).reshape(100, 2)
    shared = 0
    for seed in range(200):
        (at,) = CostSketch.empty(1, 50, seed).functions.places(pairs.reshape(-1))
        shared += int((at[::2] == at[1::2]).sum())
    assert shared / 20_000 == pytest.approx(1 / 50, rel=0.2)


@settings(max_examples=30)
@given(Tuples.filter(bool))
def test_ratios_are_exact_without_collisions(tuples: list[tuple[int, int]]) -> None:
    keys = np.array(sorted({key for key, _ in tuples}))
    hashes = key_hash([keys])
    wide = CostSketch.empty(1, 2**20)  # so many columns that 41 keys share none
    assert len(set(wide.functions.places(hashes)[0].tolist())) == len(keys)
    mine = CostSketch.empty(4, 2**20 - 1)
    durations = np.array([us for _, us in tuples], np.float64)
    sketch = mine.updated(key_hash([np.array([key for key, _ in tuples])]), durations)
    true = [np.mean([us for key, us in tuples if key == each]) for each in keys]
    assert sketch.table.costs_us(hashes) == pytest.approx(true)


def test_the_row_with_the_smallest_count_decides() -> None:
    """A frequent cheap key shares one cell with a rare dear one: the rare key is looked up in its other row."""
    keys = key_hash([np.arange(50)])
    sketch = CostSketch.empty(2, 8)
    first, second = (each.tolist() for each in sketch.functions.places(keys))
    rare = next(i for i in range(1, 50) if first[i] == first[0] and second[i] != second[0])
    full = sketch.counted(keys[[0, rare]], np.array([1000, 10]), np.array([1000.0, 10 * 500.0]))
    assert full.table.costs_us(keys[[0, rare]]).tolist() == [1.0, 500.0]


def test_groups_timed_as_one_count_as_their_tuples() -> None:
    keys = key_hash([np.array([1, 1, 1, 2])])
    apart = CostSketch.empty(2, 30).updated(keys, np.array([10.0, 20.0, 30.0, 5.0]))
    assert CostSketch.empty(2, 30).counted(keys[[0, 3]], np.array([3, 1]), np.array([60.0, 5.0])) == apart


def test_a_key_never_seen_costs_the_mean() -> None:
    sketch = CostSketch.empty(4, 272).updated(key_hash([np.arange(3)]), np.array([1.0, 2.0, 6.0]))
    assert sketch.table.costs_us(key_hash([np.array([99])])).tolist() == [3.0]
    assert CostSketch.empty(4, 272).table.costs_us(key_hash([np.array([99])])).tolist() == [0.0]


def test_memory_stays_as_it_is_with_a_million_keys() -> None:
    sketch, keys = CostSketch.empty(4, 54), np.arange(1_000_000)
    sketch = sketch.updated(key_hash([keys]), np.full(len(keys), 3.0))
    assert len(sketch.to_bytes()) < 4000
    assert sketch.tuples == 1_000_000
    assert sketch.work_us == 3_000_000.0


def test_a_sketch_is_written_with_its_checksum() -> None:
    sketch = _sketch([(1, 10), (2, 20)])
    content = sketch.to_bytes()
    assert CostSketch.from_bytes(content) == sketch
    assert CostSketch.from_bytes(content).name == sketch.name
    for at in (3, 30, 80, len(content) - 1):
        damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        with pytest.raises(PlanError, match="checksum"):
            CostSketch.from_bytes(damaged)


def test_wrong_sizes_and_durations_are_named() -> None:
    with pytest.raises(NetworkError, match="epsilon is 0"):
        sketch_size(0, 0.1)
    with pytest.raises(NetworkError, match="0 columns"):
        CostSketch.empty(4, 0)
    with pytest.raises(NetworkError, match="cannot be added"):
        CostSketch.empty(4, 5).plus(CostSketch.empty(4, 5, seed=1))
    for duration in (-1.0, math.nan, math.inf):
        with pytest.raises(NetworkError, match="durations"):
            CostSketch.empty(1, 1).updated(np.zeros(1, np.uint64), np.array([duration]))
