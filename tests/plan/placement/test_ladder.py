"""Ladders: geometric, so that a level below a level is a level; coarse enough that a first step pays for its drop."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady

from jettison.errors import PlanError
from jettison.plan.placement.ladder import FINEST_STEP_SHARE, LOWEST_KEEP_SHARE, Ladder, ladder_for
from jettison.plan.shedders.road_map import build_road_map
from jettison.statistics.load import load_coefficients

pytestmark = pytest.mark.core

steps = st.floats(0.01, 1.0)


@steady(100)
@given(steps)
def test_shares_fall_from_one_to_zero(step_share: float) -> None:
    ladder = Ladder(step_share)
    assert ladder.shares[0] == 1.0
    assert ladder.shares[ladder.last] == 0.0
    assert all(low < high for high, low in pairwise(ladder.shares))
    assert all(share > LOWEST_KEEP_SHARE for share in ladder.shares[1:-1])


@steady(100)
@given(steps)
def test_steps_are_equal_in_proportion(step_share: float) -> None:
    shares = Ladder(step_share).shares
    for high, low in pairwise(shares[:-1]):
        assert low / high == pytest.approx(1 - step_share)


@steady(200)
@given(st.sets(st.floats(0.0, 1.0), max_size=5), st.floats(0.0, 0.9))
def test_steps_are_lengthened_by_a_quarter_at_most_and_levels_come_no_less_near(bends: set[float], drop: float) -> None:
    plain, meeting = ladder_for(drop, 1.0), ladder_for(drop, 1.0, bends)
    assert plain.step_share <= meeting.step_share <= 1.25 * plain.step_share + 1e-12

    def missed(ladder: Ladder, bend: float) -> float:
        place = math.log(bend) / math.log(1 - ladder.step_share)
        return abs(place - round(place))

    inside = [bend for bend in bends if LOWEST_KEEP_SHARE < bend < 1 - plain.step_share]
    assert sum(missed(meeting, bend) for bend in inside) <= sum(missed(plain, bend) for bend in inside) + 1e-5


@steady(100)
@given(st.floats(LOWEST_KEEP_SHARE + 1e-6, (1 - FINEST_STEP_SHARE) ** 4))
def test_one_bend_at_the_fourth_level_or_below_is_met(bend: float) -> None:
    shares = ladder_for(0.0, 1.0, [bend]).shares
    assert min(abs(share - bend) for share in shares) < 1e-9


@steady(60)
@given(steps, st.data())
def test_between_composes(step_share: float, data: st.DataObject) -> None:
    ladder = Ladder(step_share)
    levels = sorted(data.draw(st.lists(st.integers(0, ladder.last), min_size=3, max_size=3)))
    for above, level in pairwise(levels):
        keep = ladder.between(above, level)
        assert ladder.shares[above] * keep == pytest.approx(ladder.shares[level], abs=1e-15)
        assert keep in ladder.shares
        assert ladder.between(above, above) == 1.0


def test_nothing_is_dropped_twice_where_nothing_is_left() -> None:
    ladder = Ladder(0.5)
    assert ladder.between(ladder.last, ladder.last) == 1.0
    assert ladder.between(0, ladder.last) == ladder.between(ladder.last - 1, ladder.last) == 0.0


def test_a_step_of_everything_has_two_levels() -> None:
    assert Ladder(1.0).shares == (1.0, 0.0)


@pytest.mark.parametrize("step_share", [0.0, -0.5, 1.5, math.nan, math.inf, 1e-9])
def test_a_step_that_leads_nowhere_is_refused(step_share: float) -> None:
    # With a step of 0 the shares never end.
    with pytest.raises(PlanError, match="step_share"):
        Ladder(step_share)


@steady(100)
@given(st.floats(0.0, 0.49), st.floats(1e-3, 1e3))
def test_the_first_step_gains_more_than_the_drop_costs(part: float, load_us: float) -> None:
    """Thesis 3.5: STEP_SIZE > D / min L."""
    ladder = ladder_for(part * load_us, load_us)
    assert 1 - ladder.shares[1] > part
    assert ladder.step_share >= FINEST_STEP_SHARE


@pytest.mark.parametrize("part", [0.5, 0.6, 0.9, 0.99])
def test_the_first_step_gains_more_even_than_a_dear_drop_costs(part: float) -> None:
    assert 1 - ladder_for(drop_us=part * 2.0, smallest_load_us=2.0).shares[1] > part


@pytest.mark.parametrize("load_us", [0.0, 0.5, 1.0])
def test_a_drop_that_never_pays_gets_few_levels(load_us: float) -> None:
    assert ladder_for(drop_us=1.0, smallest_load_us=load_us).last == 2


def test_the_finest_step_where_drops_are_free() -> None:
    assert ladder_for(0.0, 5.0).step_share == ladder_for(0.0, 0.0).step_share == FINEST_STEP_SHARE


@steady(40)
@given(dags(drops_us=(0.02, 0.2, 1.0)))
def test_a_road_map_chooses_a_ladder_that_pays_at_every_drop(case: Case) -> None:
    """Thesis 3.5: STEP_SIZE > D / min L, over the arcs on which the road map ever puts a drop."""
    road_map = build_road_map(case.graph, case.profile, case.rows)
    loads = load_coefficients(case.graph, case.profile)
    used = [arc for column, arc in enumerate(road_map.layout.arcs) if (road_map.keeps[:, column] < 1).any()]
    for arc in used:
        assert 1 - road_map.ladder.shares[1] > case.profile.drop_us / loads[arc], arc
