"""Algorithm 1 against the seed's own loop, bucket by bucket, and queries whose next bucket does not fit."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.plan.shedders.fair.admission import BY_TUPLES, admit
from jettison.plan.shedders.fair.competition import Competition

pytestmark = pytest.mark.core

NOTHING = 1e-9


@st.composite
def competitions(draw: st.DrawFn) -> Competition:
    """Queries of one part each, with costs four decades apart; some share arcs."""
    queries, arcs = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    costs = st.sampled_from((0.0, 1.0, 3.0, 20.0, 700.0, 9_000.0))
    needs = [(at, arc) for at in range(queries) for arc in range(arcs) if draw(st.booleans())]
    return Competition.of(
        np.array([draw(st.sampled_from((0.0, 0.1, 0.35))) + 0.001 * at for at in range(queries)]),
        np.arange(queries),
        np.array([draw(st.sampled_from((0.2, 0.5, 0.65))) for _ in range(queries)]),
        np.array([draw(costs) for _ in range(queries)]),
        shared_us=np.array([draw(costs) for _ in range(arcs)]),
        needs=(np.array([at for at, _ in needs], np.int64), np.array([arc for _, arc in needs], np.int64)),
        tuples=np.array([draw(st.sampled_from((1.0, 10.0, 5_000.0))) for _ in range(queries)]),
        buckets=8,
    )


def one_by_one(given_: Competition, budget_us: float, most_tuples: float) -> list[int]:
    """The query with the lowest SIC gets its next bucket, until one does not fit; a coarse one ends its query alone."""
    levels, rising = given_.floor.copy(), set(range(len(given_.had)))
    bucket_us = [
        given_.own_us[query] + given_.shared_us[given_.on_arc[given_.on_part == query]].sum() for query in rising
    ]
    while rising:
        sic = given_.query_sic(levels)
        lowest = min(rising, key=lambda query: (round(float(sic[query]), 9), query))
        after = levels.copy()
        after[lowest] += 1
        fits = given_.work_us(after) <= budget_us + NOTHING * max(1.0, budget_us)
        if fits and float(given_.tuples @ after) / given_.buckets <= most_tuples + NOTHING:
            levels = after
        elif bucket_us[lowest] > budget_us / 16 * 8 or given_.tuples[lowest] > most_tuples / 16 * 8:
            rising.remove(lowest)
        else:
            break
        if levels[lowest] == given_.buckets:
            rising.discard(lowest)
    found: list[int] = levels.tolist()
    return found


def test_a_bucket_that_does_not_fit_ends_its_query_alone() -> None:
    """Ten queries of 1 us per bucket, and one whose buckets cost 6,400 us each."""
    own_us = np.array([64 * 6400.0, *[64.0] * 10])
    eleven = Competition.of(np.zeros(11), np.arange(11), np.ones(11), own_us)
    found = admit(eleven, 99.0)
    assert found.levels[0] == 0
    assert sorted(found.levels[1:].tolist()) == [9] + [10] * 9
    assert found.work_us == 99.0
    assert admit(eleven, 6400.0 + 640.0).levels.tolist() == [1, *[64] * 10]


def test_so_does_one_with_too_many_tuples() -> None:
    three = Competition.of(np.zeros(3), np.arange(3), np.ones(3), np.ones(3), tuples=np.array([64e4, 64.0, 64.0]))
    assert admit(three, 1e9, 40.0, costs=BY_TUPLES).levels.tolist() == [0, 20, 20]


def test_a_part_that_stays_as_it_is_does_not_end_its_query() -> None:
    """Windows go as their gap allows: at least 48 of 64 levels, which do not fit. Its rows go on."""
    given_ = Competition.of(np.zeros(2), np.array([0, 0, 1]), np.array([0.9, 0.1, 1.0]), np.array([640.0, 640.0, 64.0]))
    windows = Competition(**{**given_.__dict__, "least": np.array([48, 1, 1])})
    assert admit(windows, 400.0).levels.tolist() == [0, 33, 61]


def test_buckets_that_are_not_coarse_keep_queries_equal() -> None:
    """What is left is less than one bucket of the dear query, a small part of the budget: nobody gets ahead by it."""
    two = Competition.of(np.zeros(2), np.array([0, 1]), np.ones(2), np.array([64.0, 640.0]))
    assert admit(two, 358.0).levels.tolist() == [33, 32]


@steady(150)
@given(competitions(), st.sampled_from((0.0, 0.01, 0.1, 0.5, 0.9)), st.sampled_from((1e9, 40.0, 900.0)))
def test_turns_are_those_of_the_seeds_loop(given_: Competition, share: float, most_tuples: float) -> None:
    budget_us = share * given_.work_us(np.full(len(given_.query), given_.buckets))
    found = admit(given_, budget_us, most_tuples)
    assert found.work_us <= budget_us + NOTHING * max(1.0, budget_us)
    expected = one_by_one(given_, budget_us, most_tuples)
    costs = given_.own_us > 0  # drops of others save nothing and are left out afterwards
    assert found.levels[costs].tolist() == np.array(expected)[costs].tolist()
    assert np.all(found.levels >= np.array(expected))


@steady(80)
@given(competitions(), st.sampled_from((0.01, 0.1, 0.3)), st.sampled_from((1.1, 1.5, 3.0)))
def test_the_lowest_sic_rises_with_the_budget(given_: Competition, share: float, more: float) -> None:
    budget_us = share * given_.work_us(np.full(len(given_.query), given_.buckets))
    assert admit(given_, budget_us).sic.min() <= admit(given_, more * budget_us).sic.min() + 1e-9


def test_a_thousand_queries_whose_costs_lie_far_apart_are_decided_fast() -> None:
    draw, number = np.random.default_rng(4), np.arange(1000)
    far_apart = Competition.of(
        draw.uniform(0.0, 0.5, 1000),
        number,
        draw.uniform(0.3, 0.5, 1000),
        draw.lognormal(3.0, 4.0, 1000),
        shared_us=draw.lognormal(6.0, 3.0, 50),
        needs=(number, draw.integers(0, 50, 1000)),
        buckets=10,
    )
    times_ms = []
    for share in (0.001, 0.01, 0.1, 0.5, 0.9):
        budget_us = share * far_apart.work_us(np.full(1000, 10))
        took_ms = []
        for _ in range(5):
            began = time.perf_counter()
            admit(far_apart, budget_us)
            took_ms.append(1000 * (time.perf_counter() - began))
        times_ms.append(min(took_ms))
    assert max(times_ms) < 100, times_ms  # at most some 10 ms on an idle machine
