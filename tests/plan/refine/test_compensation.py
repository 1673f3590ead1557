"""The search for what to ask for so that a plan saves enough, though some of what it counts on stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.plan.plan import Plan
from jettison.plan.refine.compensation import made_up

pytestmark = pytest.mark.core

NEEDED, SLACK = 1000.0, 40.0


def searched(share: float, most: float) -> tuple[float, float, list[float]]:
    """What the plan found saves, what it lacks, and what was asked for, where `share` of what is asked for goes."""
    asked: list[float] = []

    def ask_again(more_us: float) -> tuple[Plan, str | None]:
        asked.append(more_us)
        wanted = NEEDED + more_us
        return Plan(saves_us=min(wanted, most)), "that is all" if wanted > most else None

    def saves_us(plan: Plan) -> float:
        return share * plan.saves_us

    plan = made_up(Plan(saves_us=min(NEEDED, most)), ask_again, saves_us, needed_us=NEEDED, slack_us=SLACK)
    saved_us = saves_us(plan)
    return saved_us, NEEDED - saved_us if saved_us < NEEDED - SLACK else 0.0, asked


def test_a_plan_that_saves_enough_stays() -> None:
    assert searched(0.97, 5000.0) == (970.0, 0.0, [])


@given(share=st.floats(0.1, 0.95), most=st.floats(1000.0, 1e5))
def test_enough_goes_and_little_more_or_it_is_said_what_lacks(share: float, most: float) -> None:
    saves, lacks, asked = searched(share, most)
    assert len(asked) <= 10
    if share * most >= NEEDED - SLACK:
        assert lacks == 0.0
        assert saves >= NEEDED - SLACK
        assert saves <= NEEDED + SLACK or len(asked) >= 6  # 32 times finer than the last step is near enough
    else:
        assert saves == pytest.approx(share * most, abs=SLACK)
        assert lacks == pytest.approx(NEEDED - saves)


def test_more_goes_only_where_it_helps() -> None:
    saves, lacks, _ = searched(0.5, 1050.0)  # 525 at the most: 25 more than at first is within the slack
    assert (saves, lacks) == (500.0, 500.0)
