"""The fate of a window: bounded gaps, the right share in the long run, and never a change of mind."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.errors import PlanError
from jettison.network.columns.xxhash64 import hash_of_longs, hash_of_text
from jettison.plan.windows.fates import BEGINNING, Schedule, Segment, extend, forget, keep, kept, most_drop_share

pytestmark = pytest.mark.core

GROUPS = ("", "zone 1", "zone 2")


@st.composite
def segments(draw: st.DrawFn, start: int = 0) -> Segment:
    gap = draw(st.integers(0, 6))
    share = draw(st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0))) * most_drop_share(gap)
    return Segment(start, share, gap, draw(st.sampled_from(("a", "b"))))


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[int, Segment]]:
    """Windows touched so far, never fewer than before, with the values that hold from then on."""
    steps = draw(st.lists(st.integers(0, 9), min_size=1, max_size=12))
    return [(at, draw(segments())) for at in itertools.accumulate(steps, initial=-5)]


def grown(steps: list[tuple[int, Segment]], schedule: Schedule | None = None) -> Schedule:
    schedule = schedule or Schedule()
    for now, new in steps:
        schedule = extend(schedule, now, drop_share=new.drop_share, gap=new.gap, seed=new.seed)
    return schedule


def longest_gap(fates: np.ndarray) -> int:
    return max((len(list(run)) for kept_ones, run in itertools.groupby(fates.tolist()) if not kept_ones), default=0)


# --- one segment --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "share"), [(1, 0.5), (1, 0.1), (3, 0.5), (4, 0.8), (9, 0.3), (20, 0.9)])
@pytest.mark.parametrize("group", GROUPS)
def test_the_share_comes_out_and_the_gap_is_held(gap: int, share: float, group: str) -> None:
    blocks = 20_000
    fates = kept(Schedule((Segment(-11, share, gap, "s"),)), np.arange(-11, blocks * (gap + 1) - 11), group)

    chance = share / most_drop_share(gap)
    deviation = most_drop_share(gap) * math.sqrt(chance * (1 - chance) / blocks)
    assert longest_gap(fates) == gap
    assert abs((~fates).mean() - share) <= 4 * deviation + 2**-20


def test_blocks_and_groups_are_drawn_independently() -> None:
    schedule = Schedule((Segment(0, 0.25, 1, "s"),))  # the odd windows go with a chance of one half
    odd = np.arange(1, 40_001, 2)
    first, other = kept(schedule, odd, "zone 1"), kept(schedule, odd, "zone 2")

    assert abs(np.mean(first == other) - 0.5) < 0.015
    assert abs(np.mean(first[1:] == first[:-1]) - 0.5) < 0.015
    assert not np.array_equal(first, kept(Schedule((Segment(0, 0.25, 1, "t"),)), odd, "zone 1"))


def test_a_larger_share_drops_more_of_the_same() -> None:
    few, many = (kept(Schedule((Segment(0, share, 3, "s"),)), np.arange(4000)) for share in (0.2, 0.6))

    assert not np.any(many & ~few)


def test_all_go_that_may_and_none_where_none_may() -> None:
    assert [keep(Schedule((Segment(2, 2 / 3, 2, "s"),)), index) for index in range(9)] == [
        *(True, True),
        *(True, False, False),
        *(True, False, False),
        True,
    ]
    assert kept(Schedule((Segment(0, 0.0, 5, "s"), Segment(50, 0.0, 0, "s"))), np.arange(100)).all()
    assert kept(Schedule(), np.arange(-50, 50)).all()


@pytest.mark.parametrize(
    ("share", "gap", "into", "said"),
    [(0.7, 2, 0, "0.666667"), (-0.1, 2, 0, "-0.1"), (0.1, 0, 0, "gap"), (0.1, -1, 0, "whole number"), (0.1, 2, 3, "3")],
)
def test_what_no_segment_can_do_is_refused(share: float, gap: int, into: int, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Segment(0, share, gap, "s", into)


def test_the_share_may_be_rounded_to_just_above_the_limit() -> None:
    share = 1 - 1 / 3
    assert share > most_drop_share(2)
    assert Segment(0, share, 2, "s").limit == 2**20


# --- several ------------------------------------------------------------------------------------------------------


@steady(60)
@given(changes(), st.sampled_from(GROUPS))
def test_no_gap_is_longer_than_allowed_across_changes(steps: list[tuple[int, Segment]], group: str) -> None:
    schedule = grown(steps)
    last = schedule.segments[-1].start
    fates = kept(schedule, np.arange(-20, last + 60), group)

    # A run of missing windows lies in segments of one gap: its own bound holds, not just the largest of all.
    starts = [segment.start for segment in schedule.segments]
    for at in np.flatnonzero(~fates) - 20:
        run = next(length for length in itertools.count(1) if fates[at + 20 - length])
        in_force = schedule.segments[np.searchsorted(starts, at, side="right") - 1]
        assert run <= in_force.gap


@steady(60)
@given(changes(), changes(), st.sampled_from(GROUPS))
def test_a_touched_window_never_changes_its_fate(
    earlier: list[tuple[int, Segment]], later: list[tuple[int, Segment]], group: str
) -> None:
    before = grown(earlier)
    touched = earlier[-1][0]
    after = grown([(now + 5 + touched, new) for now, new in later], before)

    indices = np.arange(-20, touched + 1)
    assert np.array_equal(kept(before, indices, group), kept(after, indices, group))


@steady(40)
@given(changes())
def test_saying_the_same_again_changes_nothing(steps: list[tuple[int, Segment]]) -> None:
    schedule = grown(steps)
    now, new = steps[-1]

    assert grown([(now, new), (now + 3, new)], schedule) == schedule


@steady(40)
@given(changes(), st.sampled_from(GROUPS))
def test_one_by_one_and_all_at_once_agree(steps: list[tuple[int, Segment]], group: str) -> None:
    schedule, indices = grown(steps), np.arange(-10, 60)

    assert kept(schedule, indices, group).tolist() == [keep(schedule, int(index), group) for index in indices]


def lived(steps: Iterable[tuple[int, float, int]], windows: int) -> np.ndarray:
    """The fates of windows that are judged as they come, by a schedule that forgets what is long past."""
    values = {now: (share, gap) for now, share, gap in steps}
    schedule, fates = Schedule(), []
    for now in range(windows):
        if now in values:
            share, gap = values[now]
            schedule = forget(extend(schedule, now, drop_share=share, gap=gap, seed="s"), now - 10)
        fates.append(keep(schedule, now + 1))
    return np.array(fates)


def test_a_plan_that_changes_with_every_window_still_sheds() -> None:
    fates = lived([(now, (0.4, 0.6)[now % 2], 4) for now in range(6000)], 6000)

    assert longest_gap(fates) <= 4
    assert abs((~fates).mean() - 0.5) < 0.04


def test_a_plan_whose_gap_changes_draws_new_blocks_anew() -> None:
    # Were blocks numbered from each segment's start, one draw would decide over all of them.
    fates = lived([(now, 0.3, 2 + now % 2) for now in range(0, 6000, 3)], 6000)

    assert longest_gap(fates) <= 2
    assert 0.2 < (~fates).mean() < 0.3


def test_an_untouched_segment_is_replaced() -> None:
    schedule = extend(Schedule(), 9, drop_share=0.5, gap=3, seed="s")

    assert extend(schedule, 9, drop_share=0.2, gap=3, seed="s").segments == (Segment(10, 0.2, 3, "s"),)
    assert extend(schedule, None, drop_share=0.2, gap=3, seed="s").segments == (Segment(BEGINNING, 0.2, 3, "s"),)


def test_before_the_first_batch_everything_may_be_judged() -> None:
    schedule = extend(Schedule(), None, drop_share=0.5, gap=1, seed="s")

    for low in (-(10**15), 0, 10**16):  # microseconds since 1970, slide 1
        assert kept(schedule, np.arange(low, low + 10)).sum() == 5


def test_groups_have_shares_and_gaps_of_their_own() -> None:
    schedule = extend(Schedule(), -1, drop_share=0.5, gap=1, seed="s")
    schedule = extend(schedule, 99, drop_share=0.9, gap=9, seed="s", group="zone 2")
    schedule = extend(schedule, 199, drop_share=0.0, gap=1, seed="s")
    hundreds = [np.arange(low, low + 100) for low in (0, 100, 200)]

    assert [int((~kept(schedule, each, "zone 1")).sum()) for each in hundreds] == [50, 50, 0]
    assert [int((~kept(schedule, each, "zone 2")).sum()) for each in hundreds] == [50, 90, 90]


@steady(40)
@given(changes(), changes(), st.integers(-10, 60))
def test_it_is_written_and_read_and_forgets_only_the_past(
    default: list[tuple[int, Segment]], own: list[tuple[int, Segment]], since: int
) -> None:
    schedule = Schedule(grown(default).segments, {"zone 1": grown(own).segments})
    again = Schedule.from_dict(json.loads(json.dumps(schedule.to_dict())))
    shorter, indices = forget(schedule, since), np.arange(since, 150)

    assert again == schedule
    for group in GROUPS:
        assert np.array_equal(kept(shorter, indices, group), kept(schedule, indices, group))
        assert sum(segment.start <= since for segment in shorter.of(group)) <= 1


def test_segments_that_could_make_a_longer_gap_are_refused() -> None:
    first = Segment(0, 0.5, 3, "s")
    for after in (Segment(5, 0.5, 3, "s", into=2), Segment(5, 0.5, 2, "s", into=1)):
        with pytest.raises(PlanError, match="in a row"):
            Schedule((first, after))
    with pytest.raises(PlanError, match="in order"):
        Schedule((first, Segment(0, 0.5, 3, "s")))
    assert Schedule((first, Segment(5, 0.5, 3, "s", into=1)))


# --- the hash -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "expected"), [("", 0xEF46DB3751D8E999), ("a", 0xD24EC4F1A98C6E5B)])
def test_the_hash_is_xxh64(text: str, expected: int) -> None:
    assert hash_of_text(text, seed=0) == expected


@steady(40)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1))
def test_a_number_is_hashed_as_its_eight_bytes(number: int, seed: int) -> None:
    # Bytes below 128 are text as well: the two ways of hashing must agree on them.
    plain = number & 0x7F7F7F7F7F7F7F7F

    assert int(hash_of_longs(np.array([plain]), seed)[0]) == hash_of_text(plain.to_bytes(8, "little").decode(), seed)


def test_a_closed_segment_keeps_nothing_and_the_next_begins_with_a_kept_window() -> None:
    open_ = Schedule((Segment(0, 0.75, 3, "s"),))
    closed = extend(open_, 9, drop_share=1.0, gap=3, seed="s")
    assert closed.segments[-1].closed
    assert not kept(closed, np.arange(10, 200)).any()
    assert (kept(closed, np.arange(10)) == kept(open_, np.arange(10))).all()
    again = extend(closed, 50, drop_share=0.75, gap=3, seed="s")
    assert keep(again, 51)
    assert longest_gap(kept(again, np.arange(51, 400))) <= 3
    assert Schedule.from_dict(json.loads(json.dumps(again.to_dict()))) == again
