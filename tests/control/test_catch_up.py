"""What becomes of a backlog (trust 10), and plans that are not obeyed (trust 11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.control.test_loop import PROFILE, taxi

from jettison.control.catch_up import ALL, CATCH_UP, NEWEST, SHED, Backlog, check_catch_up, most_rows
from jettison.control.loop import Controller, Settings
from jettison.errors import StartError
from jettison.network import Network
from jettison.plan.problem import Problem
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

pytestmark = pytest.mark.core

BUDGET_US = 900_000.0


def test_trust_10_nothing_is_shed_while_a_run_catches_up() -> None:
    loop = Controller(taxi(), Settings(trigger_ms=1000.0), PROFILE)
    plan = loop.decide({"trips": 1_000_000}, now_ms=0.0, held="catching up")  # seven times the budget
    assert not plan.drops
    assert plan.reason == "catching up"
    assert loop.decide({"trips": 1_000_000}, now_ms=1000.0).drops  # once it has caught up, an overload is one


def test_trust_10_words_that_are_none_of_the_three_are_refused() -> None:
    with pytest.raises(StartError, match="catch_up is 'later': use one of 'shed', 'newest', 'all'"):
        check_catch_up("later")


@given(policy=st.sampled_from(CATCH_UP), loads=st.lists(st.floats(0.0, 9e6), min_size=1, max_size=20))
def test_trust_10_a_backlog_ends_with_the_first_batch_that_fits(policy: str, loads: list[float]) -> None:
    backlog = Backlog(policy, trigger_ms=1000.0)
    for number, load_us in enumerate(loads):
        active = backlog.begins(waited_ms=500.0, load_us=load_us, budget_us=BUDGET_US)
        assert active == all(each > BUDGET_US for each in loads[: number + 1])
        assert backlog.keeps_all == (active and policy == ALL)
        assert backlog.skips == (active and policy == NEWEST)


@given(fixed_ms=st.floats(0.0, 3000.0), cost_us=st.floats(0.01, 1000.0))
def test_trust_10_a_bounded_batch_takes_two_budgets_at_most(fixed_ms: float, cost_us: float) -> None:
    from dataclasses import replace

    profile = replace(PROFILE, fixed_ms=fixed_ms, read_us={"trips": cost_us})
    bound = most_rows(taxi(), profile, {"trips": 7}, BUDGET_US, unshed=True, largest=0)
    load_us = Problem(taxi(), profile, bound, BUDGET_US).load_us
    assert load_us <= 2 * BUDGET_US * 1.001 or bound["trips"] == 1_000  # so many always
    assert bound["trips"] == 1_000 or load_us >= 2 * BUDGET_US * 0.99
    shed = most_rows(taxi(), profile, {"trips": 7}, BUDGET_US, unshed=False, largest=0)
    assert shed["trips"] >= bound["trips"]


def test_trust_10_a_slow_start_does_not_make_the_next_batch_huge() -> None:
    assert most_rows(taxi(), None, {"trips": 100}, BUDGET_US, unshed=False, largest=100) == {"trips": 500_000}
    # 5 million rows wait; reading one takes 1 us: (2 x 900 - 100) ms
    assert most_rows(taxi(), PROFILE, {"trips": 100}, BUDGET_US, unshed=False, largest=100) == {"trips": 1_700_000}


def test_trust_11_a_plan_that_is_not_obeyed_teaches_that_nothing_was_dropped() -> None:
    """Batches of a dry run take as long as all of their rows do: costs stay, and so does the plan."""
    loop = Controller(taxi(), Settings(trigger_ms=1000.0, obeyed=False), PROFILE)
    rows = {"trips": 300_000}
    unshed_ms = Problem(taxi(), PROFILE, rows, BUDGET_US).load_us / 1000
    plans = []
    for batch in range(20):
        plans.append(loop.decide(rows, now_ms=1000.0 * batch))
        loop.record(BatchSample(batch, 1000.0 * batch, 1000.0, unshed_ms, rows))
    assert all(plan.drops for plan in plans)
    assert loop.profile.cost("fares") == pytest.approx(PROFILE.cost("fares"), rel=0.05)
    assert plans[-1].delivered == pytest.approx(plans[0].delivered, rel=0.1)


def test_shed_is_the_default() -> None:
    assert Backlog(SHED, 1000.0).keeps_all is False


def test_trust_10_a_source_that_was_idle_gets_its_part_of_a_bounded_batch() -> None:
    net = Network("two")
    net.source("a", "x int").union(net.source("b", "x int"), name="both").output("out")
    profile = Profile({"both": 5.0}, {}, read_us={"a": 1.0, "b": 1.0})
    bound = most_rows(net.graph, profile, {"a": 50_000, "b": 0}, BUDGET_US, unshed=True, largest=0)
    assert bound == {"a": 225_000, "b": 75_000}


def test_trust_10_a_backlog_that_was_skipped_is_over() -> None:
    backlog = Backlog(NEWEST, 1000.0)
    assert backlog.begins(waited_ms=0.0, load_us=9e6, budget_us=BUDGET_US)
    backlog.end()
    assert not backlog.begins(waited_ms=0.0, load_us=9e6, budget_us=BUDGET_US), "a lasting overload is shed as usual"
