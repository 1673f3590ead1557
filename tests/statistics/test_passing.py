"""What filters pass, learned from few rows (trust 3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.statistics.passing import Passing

pytestmark = pytest.mark.core

CELLS = 41


def batch(random: np.random.Generator, shares: np.ndarray, rows: int, open_: np.ndarray) -> tuple[np.ndarray, ...]:
    came = random.multinomial(rows, np.full(CELLS, 1 / CELLS)) * open_.astype(int)
    return came.astype(float), random.binomial(came, shares).astype(float)


@steady(40)
@given(st.integers(0, 10_000), st.lists(st.sampled_from((0.0, 0.05, 0.5, 1.0)), min_size=1, max_size=4))
def test_trust_3_any_steps_are_found_and_cells_that_are_closed_keep_what_was_seen(
    seed: int, steps: list[float]
) -> None:
    random = np.random.default_rng(seed)
    shares = np.append(np.resize(np.repeat(steps, -(-(CELLS - 1) // len(steps))), CELLS - 1), 0.5)
    passing = Passing.believed(np.full(CELLS, 0.4))
    for _ in range(6):
        passing = passing.seen(*batch(random, shares, 2000, np.ones(CELLS)), most=1.0)
    found = passing.get(most=1.0)
    assert np.abs(found - shares)[:-1].mean() <= 0.05
    some = np.arange(CELLS) < 10
    for _ in range(20):
        passing = passing.seen(*batch(random, shares, 2000, some), most=1.0)
    assert np.abs(passing.get(most=1.0) - found)[12:-1].max() <= 0.15
    assert np.abs(passing.get(most=1.0) - shares)[12:-1].mean() <= 0.06


def test_trust_3_thirty_rows_tell_of_ranges_and_not_of_cells() -> None:
    random = np.random.default_rng(1)
    passing = Passing.believed(np.full(CELLS, 0.2))
    lower = np.arange(CELLS) < 8
    found = passing.seen(*batch(random, lower.astype(float), 150, np.ones(CELLS)), most=1.0).get(most=1.0)
    assert found[:6].min() > 0.4
    assert found[12:-1].max() < 0.05
    even = [passing.seen(*batch(random, np.full(CELLS, 0.2), 150, np.ones(CELLS)), most=1.0).get() for _ in range(50)]
    assert np.std(even, axis=0)[:-1].mean() < 0.11  # by itself a cell of four rows would vary by .2


def test_trust_3_rows_that_contradict_all_before_count_alone() -> None:
    random = np.random.default_rng(2)
    passing = Passing.believed(np.full(CELLS, 0.5))
    lower = (np.arange(CELLS) < 20).astype(float)
    for _ in range(10):
        passing = passing.seen(*batch(random, lower, 4000, np.ones(CELLS)), most=1.0)
    assert passing.agreed >= 40_000
    passing = passing.seen(*batch(random, 1 - lower, 400, np.ones(CELLS)), most=1.0)
    assert passing.agreed == 400  # it takes that many rows more until plans by value rely on it
    found = passing.get(most=1.0)
    assert found[:18].max() < 0.25
    assert found[22:-1].min() > 0.75
