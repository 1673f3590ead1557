"""The set-up of the thesis' simulations: networks, loss graphs and capacities are what they are said to be."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.experiments.support.simulated import (
    CAPACITY,
    Setting,
    judged,
    judged_by_tuples,
    mixed_queries,
    shared_queries,
)
from jettison.experiments.support.simulated import zipf_utility as zipf
from jettison.network import Where
from jettison.plan.problem import Problem
from jettison.statistics.load import flows
from jettison.statistics.spread import flows_by_value

pytestmark = pytest.mark.core


def small(seed: int, skew: float = 0.0) -> Setting:
    return mixed_queries(seed, skew, inputs=3, queries=4)


def rows(at: Setting, each: float) -> dict[str, float]:
    return dict.fromkeys((source.name for source in at.valued.sources), each)


@steady(20)
@given(seed=st.integers(0, 200))
def test_filters_pass_the_values_above_their_constant_and_no_others(seed: int) -> None:
    at = small(seed)
    on = flows_by_value(at.valued, at.profile, rows(at, 1000.0))
    assert {arc: float(flow.sum()) for arc, flow in on.items()} == pytest.approx(
        flows(at.valued, at.profile, rows(at, 1000.0))
    )
    for operator in at.valued.operators:
        if isinstance(operator, Where):
            constant = float(str(operator.predicate).removeprefix("x > "))
            track = at.valued.tracks.below(operator.name)
            assert track is not None
            for arc in at.valued.arcs_out_of(operator.name):
                passed = on[arc][:-1] > 1e-9
                assert list(passed) == [low >= constant for low in track.bounds[:-1]]


@steady(20)
@given(seed=st.integers(0, 200), skew=st.sampled_from((0.0, 1.0)))
def test_the_capacity_is_the_same_for_all_and_the_loss_graph_follows_from_values(seed: int, skew: float) -> None:
    for at in (small(seed, skew), shared_queries(seed, skew)):
        assert Problem(at.valued, at.profile, rows(at, CAPACITY), 0.0).load_us == pytest.approx(1e6)
        assert at.by_loss.arcs == at.valued.arcs
        on = flows_by_value(at.valued, at.profile, rows(at, 1.0))
        for valued, by_loss in zip(at.valued.outputs, at.by_loss.outputs, strict=True):
            (arc,) = at.valued.arcs_into(valued.name)
            value, track = valued.qos.value, at.valued.tracks.by_output[valued.name]
            assert value is not None
            worth = track.worth(value)
            dear = on[arc][worth == 1.0].sum() / on[arc].sum()
            kept = (on[arc] * worth)[worth == 1.0].sum() / (on[arc] * worth).sum()
            assert by_loss.qos.utility(float(dear)) == pytest.approx(float(kept))


@steady(50)
@given(seed=st.integers(0, 10_000), skews=st.tuples(st.floats(0, 2), st.floats(0, 2)))
def test_a_larger_skew_makes_no_utility_larger(seed: int, skews: tuple[float, float]) -> None:
    less, more = (zipf(skew, random.Random(seed)) for skew in sorted(skews))
    assert 0 < more <= less <= 1


def test_nothing_is_lost_below_capacity_and_both_ways_of_judging_agree_above() -> None:
    at = small(1)
    calm = judged(at, "random", 0.9 * CAPACITY, seed=1)
    assert (calm.tuple_percent, calm.value_percent) == (0.0, 0.0)
    busy = judged(at, "random", 2 * CAPACITY, seed=1)
    assert busy.value_percent > busy.tuple_percent > 1
    assert judged_by_tuples(at, "random", 2 * CAPACITY) == pytest.approx(busy.tuple_percent, abs=1.0)
