"""What is stale goes first, where it is stale to all that it leads to, and only in an overload."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady

from jettison.control.loop import Controller, Settings
from jettison.network import Graph, Network, QoS
from jettison.plan.problem import Problem
from jettison.plan.refine.staleness import Fresh, saved_by_stale_us, stale_limits, when_planned
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

NOW_MS = 1e12


def network(*ages: str | None) -> Graph:
    net = Network("n")
    trips = net.source("trips", "trip long, at timestamp", event_time="at")
    for number, age in enumerate(ages):
        trips.where("trip > 0", name=f"w{number}").output(f"o{number}", qos=QoS(stale=age))
    return net.graph


def test_the_longest_limit_stands_at_the_input_and_shorter_ones_behind_the_split() -> None:
    assert stale_limits(network("10 seconds", "1 minute")) == {"trips": 60.0, "trips>w0": 10.0}
    assert stale_limits(network("10 seconds", None)) == {"trips>w0": 10.0}
    assert stale_limits(network("10 seconds", "10 seconds")) == {"trips": 10.0}
    assert stale_limits(network(None, None)) == {}


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4), st.floats(0.01, 1e3))
def test_what_comes_through_is_within_its_limit_when_it_is_delivered(one: float, other: float, batch_s: float) -> None:
    """As far as that can be: something always comes through, and who waits longer never gets less."""
    limits = when_planned({"one": one, "other": other}, batch_s)
    assert all(limit > 0 for limit in limits.values())
    if one >= 2 * batch_s:
        assert limits["one"] + batch_s == pytest.approx(one)
    assert (limits["one"] <= limits["other"]) == (one <= other) or one == pytest.approx(other)


def test_a_batch_that_is_planned_leaves_time_for_itself() -> None:
    settings = Settings(trigger_ms=4000.0, headroom=0.9)
    controller = Controller(network("8 seconds", "1 minute"), settings, Profile({}, {}))
    assert controller.stale_limits == pytest.approx({"trips": 56.4, "trips>w0": 4.4})


def test_where_streams_merge_the_oldest_that_may_come_counts() -> None:
    net = Network("n")
    one = net.source("a", "x int, at timestamp", event_time="at")
    two = net.source("b", "x int, at timestamp", event_time="at")
    both = one.union(two, name="both")
    both.where("x > 0", name="w1").output("o1", qos=QoS(stale="5 seconds"))
    both.where("x > 1", name="w2").output("o2", qos=QoS(latency=[(0, 1.0), (10, 1.0), (60, 0.0)]))
    assert stale_limits(net.graph) == {"a": 60.0, "b": 60.0, "both>w1": 5.0}


def decided(fresh_share: float | None, rows: int, *, shedding: bool = True) -> Controller:
    graph = network("10 seconds")
    profile = Profile({"trips": 5.0, "w0": 5.0}, {}, fixed_ms=50.0, read_us={"trips": 0.1})
    loop = Controller(graph, Settings(trigger_ms=1000.0, shedding=shedding), profile)
    fresh = None if fresh_share is None else Fresh({"trips": NOW_MS / 1000 - 10}, {"trips": fresh_share})
    loop.decide({"trips": rows}, NOW_MS, fresh=fresh)
    return loop


def test_dropping_the_stale_may_be_enough() -> None:
    plan = decided(0.1, rows=600_000).plan
    assert plan.stale == {"trips": NOW_MS / 1000 - 10}
    assert not plan.drops
    assert plan.reason == "stale"
    assert plan.delivered["o0"] == pytest.approx(0.1)
    assert plan.utility == pytest.approx(1.0)  # no utility is lost with what is worth nothing
    assert plan.sheds


def test_what_is_still_too_much_is_shed_as_ever() -> None:
    plan = decided(0.5, rows=600_000).plan
    assert plan.stale
    keep = plan.drops["trips"].keep
    # 300,000 fresh rows at 10 us each, 900 ms less fixed part and reading of all 600,000
    assert keep * 300_000 * 10 == pytest.approx(1000 * (900 - 50) - 600_000 * 0.1, rel=0.06)


def test_within_budget_nothing_is_dropped_however_old() -> None:
    plan = decided(0.1, rows=1000).plan
    assert not plan.sheds


def test_without_shedding_nothing_is_dropped() -> None:
    assert not decided(0.1, rows=600_000, shedding=False).plan.sheds


@steady(80)
@given(dags(), st.floats(0, 1))
def test_what_the_stale_save_is_never_more_than_the_work(case: Case, share: float) -> None:
    problem = Problem(case.graph, case.profile, case.rows, 0.0)
    fresh = {source.name: share for source in case.graph.sources}
    saved = saved_by_stale_us(problem, fresh)
    assert saved == pytest.approx((1 - share) * (problem.load_us - problem.unavoidable_us), abs=1e-6)


def test_what_waits_at_a_join_is_not_stale() -> None:
    """An old order whose payment comes now makes a fresh pair."""
    net = Network("n")
    one = net.source("a", "k int, at timestamp", event_time="at").select("k", name="l")
    two = net.source("b", "k int, at timestamp", event_time="at").select("k", name="r")
    one.join(two, on="k", within="1 hour", name="both").output("o", qos=QoS(stale="10 seconds"))
    assert stale_limits(net.graph) == {}
