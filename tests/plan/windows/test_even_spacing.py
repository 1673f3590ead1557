"""Floors over whole windows hold in every stretch, not only in the long run (trust 9)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady
from tests.plan.windows.test_fates import longest_gap

from jettison.plan.windows.fates import BEGINNING, Schedule, Segment, extend, kept, most_drop_share

pytestmark = pytest.mark.core

shares = st.tuples(st.integers(1, 12), st.floats(0.0, 1.0)).map(
    lambda each: (each[0], each[1] * most_drop_share(each[0]))
)


def apart(fates: np.ndarray, wanted: np.ndarray | float) -> float:
    """By how many windows any stretch is away from what should be kept of it."""
    off = np.cumsum(np.concatenate([[0.0], fates - (np.zeros(len(fates)) + wanted)]))
    return float(off.max() - off.min())


def windows(start: int, count: int) -> np.ndarray:
    return np.arange(start, start + count)


@steady(80)
@given(shares, st.text(max_size=5), st.sampled_from((0, 1_700_000_000, -(10**9))), st.booleans())
def test_trust_9_every_stretch_keeps_its_share(
    gap_and_share: tuple[int, float], seed: str, start: int, first: bool
) -> None:
    """Of 69 windows with a floor of .3 .203 were kept."""
    gap, share = gap_and_share
    now = None if first else start - 1
    schedule = extend(Schedule(), now, drop_share=share, gap=gap, seed=seed, together=1)
    assert schedule.segments[0].start == (BEGINNING if first else start)
    fates = kept(schedule, windows(start, 3000))
    assert apart(fates, 1 - share) < 2.01
    assert longest_gap(fates) <= gap
    whole = extend(Schedule(), now, drop_share=share, gap=gap, seed=seed, together=gap)
    fates = kept(whole, windows(start, 3000))
    assert apart(fates, 1 - share) <= 2 * gap + 0.01  # a block goes whole, or not at all
    assert longest_gap(fates) <= gap


@steady(60)
@given(st.integers(1, 9), st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(10, 120)), min_size=2, max_size=12))
def test_trust_9_what_is_due_is_not_forgotten_when_shares_change(gap: int, steps: list[tuple[float, int]]) -> None:
    schedule, now, wanted = Schedule(), -1, []
    for part, length in steps:
        share = part * most_drop_share(gap)
        schedule = extend(schedule, now, drop_share=share, gap=gap, seed="s", together=1)
        wanted += [1 - share] * length
        now += length
    fates = kept(schedule, windows(0, len(wanted)))
    assert longest_gap(fates) <= gap
    # what is done of a block stays done: with every change no more than a part of a block is beside the plan
    assert apart(fates, np.array(wanted)) < 2.01 + len(steps) * 0.5 * min(gap, 3)


def test_trust_9_fates_that_were_given_by_chance_stay_and_even_ones_follow() -> None:
    before = Schedule((Segment(0, 0.6, 4, "s"),))
    after = extend(before, 152, drop_share=0.6, gap=4, seed="s", together=1)
    assert np.array_equal(kept(before, windows(0, 153)), kept(after, windows(0, 153)))
    assert longest_gap(kept(after, windows(0, 400))) <= 4
    assert apart(kept(after, windows(155, 400)), 0.4) < 2.01
    assert extend(after, 500, drop_share=0.6, gap=4, seed="s", together=1) == after
    assert Schedule.from_dict(after.to_dict()) == after
    old = {"segments": [{"start": 0, "drop_share": 0.6, "gap": 4, "seed": "s", "into": 0}]}
    assert Schedule.from_dict(old) == before


def test_trust_9_outputs_have_phases_of_their_own() -> None:
    """All outputs drop and keep as many; were they all in step, batches would be dear or cheap for all at once."""
    fates = [
        kept(extend(Schedule(), -1, drop_share=0.55, gap=4, seed=f"a{n}", together=4), windows(0, 500))
        for n in range(40)
    ]
    at_once = np.mean(fates, axis=0)[np.arange(500) % 5 != 0]
    assert at_once.std() < 0.15
    assert at_once.mean() == pytest.approx((0.45 * 5 - 1) / 4, abs=0.02)


@pytest.mark.parametrize(("gap", "floor"), [(4, 0.3), (9, 0.3), (12, 0.3), (20, 0.5)])
def test_trust_9_floors_hold_in_every_stretch_though_shares_change_from_batch_to_batch(gap: int, floor: float) -> None:
    """Before, a block was counted anew at every change: 53 of 121 windows were kept for a floor of .5."""
    most = min(1 - floor, most_drop_share(gap))
    for seed in range(20):
        draw, schedule, now = random.Random(seed), Schedule(), -1
        while now < 400:
            share = most * draw.uniform(0.95, 1.0)
            at = None if now < 0 else now
            schedule = extend(schedule, at, drop_share=share, gap=gap, seed=f"w{seed}", together=1)
            now += draw.randrange(1, 5)
        lacks = worst = 0.0
        for each in kept(schedule, np.arange(400)):
            lacks = max(0.0, lacks + floor - each)
            worst = max(worst, lacks)
        assert worst < 2.0, (seed, worst)
