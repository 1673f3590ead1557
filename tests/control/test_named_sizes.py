"""Groups with gaps of their own keep more: others make up for it, once it is known how many tuples there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.control.named_sizes import before_drops, with_masses
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.certify import planned_load_us
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.group_gaps import named_groups, shares_by_gap
from jettison.plan.windows.group_values import with_groups_apart
from jettison.plan.windows.needs import within_needs
from jettison.statistics.groups import GroupSizes
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample, OutputSample

pytestmark = pytest.mark.core

S = 1_000_000
PROFILE = Profile({"t": 1.0, "busy": 1.0}, {"busy": 0.001}, fixed_ms=200.0, read_us={"t": 0.2}, drop_us=0.02)
FITS = (900_000 - 200_000) / 2.2
"""Tuples per second that can be processed."""


def network(**gaps: int) -> jt.Network:
    net = jt.Network("named")
    trips = net.source("t", "at timestamp, zone string", event_time="at")
    qos = jt.QoS(gap=4, gaps={"zone": gaps})
    trips.window("1 second", by="zone").agg(n="count(*)", name="busy").output("table", qos=qos)
    return net


@given(
    share=st.floats(0.0, 0.99),
    cells=st.lists(st.tuples(st.integers(0, 9), st.floats(0.0, 1.0)), min_size=1, max_size=5),
)
def test_as_much_goes_as_is_asked_for_or_as_gaps_allow(share: float, cells: list[tuple[int, float]]) -> None:
    whole = sum(mass for _, mass in cells)
    gaps, masses = [gap for gap, _ in cells], [mass / whole if whole else 1 / len(cells) for _, mass in cells]
    shares = shares_by_gap(share, gaps, masses)
    most = [gap / (gap + 1) for gap in gaps]
    assert all(0.0 <= each <= at_most + 1e-9 for each, at_most in zip(shares, most, strict=True))
    gone, can_go = np.dot(shares, masses), np.dot(most, masses)
    assert gone == pytest.approx(min(share, can_go), abs=1e-5)
    assert all(each == pytest.approx(min(max(shares), at_most)) for each, at_most in zip(shares, most, strict=True))


def test_what_is_claimed_is_what_goes() -> None:
    """Of three tenths of all tuples nothing goes: a plan for 42 % takes 60 % of the others, and says so."""
    graph = network(airport=0).graph
    decisions, sizes = decisions_of(graph), GroupSizes()
    sizes.update({"busy": GroupSample(1000.0, {0: 300.0})})
    asked = {"busy": 0.42}
    plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
    problem = Problem(graph, PROFILE, {"t": 500_000.0}, 900_000.0)
    apart = with_groups_apart(problem, plan, with_masses(named_groups(graph), sizes))
    cells = apart.fates["busy"].cells
    assert cells is not None
    assert cells.shares == pytest.approx((0.0, 0.6))
    assert cells.masses == (0.3, 0.7)
    assert apart.keep("t") == pytest.approx(0.58)
    assert apart.delivered["table"] == pytest.approx(0.58)
    assert planned_load_us(problem, apart) == pytest.approx(planned_load_us(problem, plan))
    assert Plan.from_json(apart.to_json()) == apart
    most = {"busy": 0.8}
    plan = Plan(decisions.arcs.drops(decisions.fates(most), decisions.keeps(most)), "overload")
    apart = with_groups_apart(problem, plan, with_masses(named_groups(graph), sizes))
    assert apart.keep("t") == pytest.approx(0.3 + 0.7 * 0.2), "more cannot go, and more is not promised"
    assert apart.saves_us < problem.load_us - planned_load_us(problem, plan)


def test_shares_are_those_before_the_drop() -> None:
    """A thousand tuples, 300 of them of the airport, which loses none, 100 of the harbour, which loses half."""
    graph = network(airport=0, harbour=1).graph
    decisions, sizes = decisions_of(graph), GroupSizes()
    asked = {"busy": 0.6}
    plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
    problem = Problem(graph, PROFILE, {"t": 1000.0}, 1.0)
    plan = with_groups_apart(problem, plan, named_groups(graph))
    passed = 300 + 50 + 0.4 * 600
    seen = BatchSample(
        0,
        0.0,
        1000.0,
        1000.0,
        {"t": 1000},
        arcs={"t": (1000, round(passed))},
        outputs={"table": OutputSample(0)},
        groups={"busy": GroupSample(passed, {0: 300.0, 1: 50.0})},
    )
    sizes.update(before_drops(decisions, plan, seen, sizes))
    assert sizes.of("busy") == pytest.approx({0: 0.3, 1: 0.1})


def loop(airport: float, overload: float, seconds: float, *, tell: bool = True) -> tuple[Controller, list[float]]:
    """Tuples arrive evenly, `overload` times as many as can be processed, this share at the airport; how much longer
    than the trigger each of the last hundred batches took. Without `tell` sizes of groups are not measured."""
    net = network(airport=0)
    arcs = decisions_of(net.graph).arcs
    controller = Controller(net.graph, Settings(1000.0), PROFILE, clock=lambda: 0.0)
    rows_per_s, took = overload * FITS, list[float]()
    now_s, last_s = 1.0, 0.0
    newest_us, mark_us = None, None
    while now_s < seconds:
        rows = round(rows_per_s * (now_s - last_s))
        marks = BatchMarks(net.graph, {"busy": Mark(newest_us, mark_us)})
        plan = controller.decide({"t": rows}, 1000 * now_s, marks=marks)
        keep = [1.0, 1.0]
        if plan.fates and newest_us is not None:
            ticks = np.linspace(last_s * S, now_s * S, 200, endpoint=False).astype(np.int64)
            for cell in range(2):
                fates = {name: fate.within(cell) for name, fate in plan.fates.items()}
                needs = arcs.needs("t", fates, round((last_s - 60) * S), round((now_s + 60) * S))
                keep[cell] = float(within_needs(needs, ticks).mean())
        left = [airport * rows * keep[0], (1 - airport) * rows * keep[1]]
        took.append(0.2 + 1e-6 * (0.2 * rows + 2.0 * sum(left)))
        mark_us, newest_us = newest_us, round(now_s * S)
        groups = {"busy": GroupSample(sum(left), {0: left[0]})} if tell else {}
        controller.record(
            BatchSample(
                len(took),
                1000 * now_s,
                1000.0,
                1000 * took[-1],
                {"t": rows},
                arcs={"t": (rows, round(sum(left)))},
                outputs={"table": OutputSample(0)},
                groups=groups,
            )
        )
        last_s, now_s = now_s, max(now_s + took[-1], now_s + 1.0)
    return controller, [each - 1.0 for each in took[-100:]]


@pytest.mark.parametrize("airport", [0.2, 0.4])
def test_the_loop_learns_the_share_and_keeps_up(airport: float) -> None:
    controller, late_s = loop(airport, 1.5, seconds=300)
    assert controller.group_shares("busy").get(0) == pytest.approx(airport, abs=0.03)
    assert np.mean(late_s) < 0.1, "about as long as the trigger"
    _, untold_s = loop(airport, 1.5, seconds=300, tell=False)
    assert np.mean(untold_s) > np.mean(late_s) + 0.1, "what is not known is not made up for"


def two_queries() -> jt.Network:
    """The zones' table, in which the airport loses nothing, and a table of drivers that may lose four of five."""
    net = jt.Network("two")
    trips = net.source("t", "at timestamp, zone string, driver int", event_time="at")
    zones = trips.where("zone IS NOT NULL", name="zoned").window("1 second", by="zone")
    zones.agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=4, gaps={"zone": {"airport": 0}}, priority=0.1))
    drivers = trips.where("driver > 0", name="driven").window("1 second", by="driver")
    drivers.agg(n="count(*)", name="shifts").output("rota", qos=jt.QoS(gap=4))
    return net


def test_where_named_groups_keep_too_much_other_queries_lose_more() -> None:
    """Nine of ten tuples are at the airport. By itself the cheap table would do; what it cannot, the other must."""
    graph = two_queries().graph
    costs = Profile({"busy": 1.0, "shifts": 1.0}, {"busy": 0.001, "shifts": 0.001}, read_us={"t": 0.1})
    marks = BatchMarks(graph, {"busy": Mark(100 * S, 99 * S), "shifts": Mark(100 * S, 99 * S)})

    def planned(airport: float, rows: int) -> tuple[Controller, Plan]:
        controller = Controller(graph, Settings(1000.0), costs, clock=lambda: 0.0)
        controller.learn_groups({"busy": GroupSample(1000.0, {0: 1000 * airport})})
        for second in range(3):
            plan = controller.decide({"t": rows}, 1000.0 * second, marks=marks)
        return controller, plan

    rows = 600_000  # they take 1,260 ms, and 900 are there
    controller, plan = planned(0.0, rows)
    assert plan.fates["busy"].drop_share > 0.5
    assert "shifts" not in plan.fates, "the cheap table alone makes up for it"
    controller, plan = planned(0.9, rows)
    assert plan.fates["shifts"].drop_share > 0.4
    assert plan.saves_us == pytest.approx(1_260_000 - 900_000, rel=0.1), "as much goes as must"
    assert plan.keep("t") > 0.9, "of the airport's tuples nothing goes at the input, whoever else could do without"
    assert controller.infeasible is None
    cells = plan.fates["busy"].cells
    assert cells is not None
    assert cells.shares[0] == 0.0
    controller, plan = planned(0.9, 480_000)  # a little too much: of that alone the cheap table would promise enough
    assert plan.saves_us == pytest.approx(1_008_000 - 900_000, abs=40_000)
    assert plan.reason.startswith("overload")
    assert controller.infeasible is None


def test_what_named_groups_keep_beyond_the_budget_is_said() -> None:
    controller, late_s = loop(0.9, 1.5, seconds=60)
    assert np.mean(late_s) > 0.1, "there is nothing else that could go"
    assert controller.infeasible is not None
    assert "'airport'" in controller.infeasible
    assert "Allow them longer gaps" in controller.infeasible
    assert loop(0.2, 1.5, seconds=60)[0].infeasible is None
