"""Drops where windows count rows: nothing goes above them by chance, and of their results whole windows go."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.errors import PlanError
from jettison.network.event_time.watermarks import BatchMarks
from jettison.plan.certify import certify
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import WindowDecisions
from jettison.plan.windows.drop_checks import check_window_drops
from jettison.plan.windows.fates import keep
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core


def quotes(net: jt.Network) -> jt.Stream:
    return net.source("quotes", "n long, at timestamp, symbol string, price double", event_time="at", id=["n"])


def network(**qos: object) -> jt.Network:
    """Two branches: windows of rows, and rows as they are."""
    net = jt.Network("stocks")
    paid = quotes(net).where("price > 0", name="paid")
    tens = paid.window("10 rows", by="symbol").agg(p="avg(price)", name="tens")
    tens.where("p > 5", name="dear").output("table", qos=jt.QoS(**qos))  # type: ignore[arg-type]
    paid.select("n").output("all")
    return net


def test_nothing_goes_by_chance_above_windows_that_must_be_right_nor_of_their_results() -> None:
    exact, about = WindowDecisions(network().graph), WindowDecisions(network(on_loss="ignore").graph)
    arcs = ("quotes", "quotes>paid", "paid>tens", "tens>dear", "dear>table", "paid>select1", "select1>all")
    assert [exact.by_chance(arc) for arc in arcs] == [False] * 5 + [True] * 2
    assert all(about.by_chance(arc) for arc in arcs)
    assert exact.arcs.fate_arcs == {"tens": ("tens>dear",)}
    assert exact.arcs.early_arcs(["tens"]) == ()
    assert exact.by_aggregate["tens"].gap == 4
    assert about.by_aggregate == {}


def test_results_that_are_counted_again_are_all_needed() -> None:
    """By time above and below, and by count: the arcs on which anything may go."""
    net = jt.Network("nested")
    minutes = quotes(net).window("1 minute", by="symbol").agg(p="avg(price)", name="minutes")
    tens = minutes.window("10 rows", by="symbol").agg(p="max(p)", name="tens")
    tens.window("5 rows", by="symbol").agg(p="max(p)", name="fives").output("peaks")
    tens.window("1 hour").agg(n="count(*)", name="hours").output("busy")
    decisions = WindowDecisions(net.graph)
    assert decisions.arcs.fate_arcs == {"fives": ("fives>peaks",), "hours": ("hours>busy",)}
    assert decisions.arcs.early_arcs(["fives", "hours"]) == ("tens>hours",), "a result is at the time of its last row"
    assert not any(decisions.by_chance(arc) for arc in net.graph.arcs)


@steady(100)
@given(st.integers(1, 6), st.lists(st.floats(0.01, 1.0), min_size=1, max_size=20), st.integers(1, 5))
def test_the_gap_is_held_however_shares_change(gap: int, shares: list[float], per_batch: int) -> None:
    decisions = WindowDecisions(network(gap=gap).graph)
    kept = []
    for number, share in enumerate(shares):
        fate = decisions.fates({"tens": min(share, gap / (gap + 1))})["tens"]
        assert fate.counts_rows
        window = Window({"tens": fate}, 0.5, of="tens")
        assert Plan.from_json(Plan({"tens>dear": window}).to_json()) == Plan({"tens>dear": window})
        kept += [keep(fate.schedule, number * per_batch + index) for index in range(per_batch)]
    assert max((len(list(run)) for stays, run in groupby(kept) if not stays), default=0) <= gap


def test_a_plan_that_would_number_rows_anew_is_refused() -> None:
    graph = network().graph
    problem = Problem(graph, Profile({"quotes": 1.0, "paid": 1.0}, {}), {"quotes": 1000}, 100.0)
    with pytest.raises(PlanError, match="whose results must be right"):
        certify(problem, Plan({"quotes": Random(0.05)}))
    arcs = WindowArcs(graph)
    check_window_drops(arcs, Plan(arcs.drops({"tens": Fate(10, counts_rows=True)})))
    with pytest.raises(PlanError, match="judged every 15 rows, which is no multiple of its slide of 10 rows"):
        check_window_drops(arcs, Plan(arcs.drops({"tens": Fate(15, counts_rows=True)})))
    with pytest.raises(PlanError, match="judged every 10 us"):
        check_window_drops(arcs, Plan(arcs.drops({"tens": Fate(10)})))


@pytest.mark.parametrize("timed", [False, True])
def test_in_an_overload_the_other_branch_goes_and_windows_only_where_that_helps(timed: bool) -> None:
    graph = network().graph
    marks = BatchMarks(graph, {}) if timed else None
    rows_cost = Profile({"quotes": 1.0, "select1": 5.0, "tens": 1.0}, {"tens": 0.1}, drop_us=0.02)
    controller = Controller(graph, Settings(1000.0), rows_cost)
    plan = controller.decide({"quotes": 300_000}, 0.0, marks=marks)
    assert set(plan.drops) == {"paid>select1"}
    plan = controller.decide({"quotes": 3_000_000}, 1000.0, marks=marks)
    assert controller.infeasible
    assert set(plan.drops) == {"paid>select1"}, "counting is what costs: dropped windows would save nothing"
    assert 0 < plan.keep("paid>select1") <= 0.02, "what never runs cannot be measured"

    results_cost = Profile({"quotes": 0.1, "tens": 0.1, "dear": 50.0}, {"tens": 0.1}, drop_us=0.02)
    controller = Controller(graph, Settings(1000.0), results_cost)
    plan = controller.decide({"quotes": 1_000_000}, 0.0, marks=marks)
    assert plan.fates["tens"].drop_share == pytest.approx(0.8)
    assert plan.drops["tens>dear"].keep == pytest.approx(0.2)
    assert plan.fates["tens"].schedule.segments, "which windows go is said"
    assert plan.delivered["table"] == pytest.approx(0.2)
