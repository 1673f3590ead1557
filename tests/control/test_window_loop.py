"""The control loop with windows, on a clock of its own: it sheds about what is too much, and does not fall behind."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np
import pytest

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.plan.refine.probing import Probes
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.needs import within_needs
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample

pytestmark = pytest.mark.core

S = 1_000_000
PROFILE = Profile({"t": 1.0, "busy": 1.0}, {"busy": 0.001}, fixed_ms=200.0, read_us={"t": 0.2}, drop_us=0.02)


def loop(
    size_s: int, overload: float, seconds: float, *, mistaken: float | None = None
) -> tuple[list[Plan], float, float]:
    """Tuples arrive evenly, `overload` times as many as can be processed; the plans, the share kept, the last lag.

    In batch 10 it comes to believe that tuples cost so many times as much, whatever made it think so.
    """
    net = jt.Network("loop")
    trips = net.source("t", "at timestamp, x int", event_time="at")
    trips.window(f"{size_s} seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=4))
    arcs = decisions_of(net.graph).arcs
    controller = Controller(net.graph, Settings(1000.0), PROFILE, clock=lambda: 0.0)
    rows_per_s = overload * (900_000 - 200_000) / 2.2
    plans: list[Plan] = []
    now_s, last_s, all_rows, all_kept = 1.0, 0.0, 0.0, 0.0
    newest_us, mark_us = None, None
    while now_s < seconds:
        rows = round(rows_per_s * (now_s - last_s))
        marks = BatchMarks(net.graph, {"busy": Mark(newest_us, mark_us)})
        if mistaken is not None and len(plans) == 10:
            dear = {name: mistaken * cost for name, cost in PROFILE.cost_us.items()}
            controller = Controller(net.graph, Settings(1000.0), replace(PROFILE, cost_us=dear), clock=lambda: 0.0)
            controller.resume(plans[-1])
        plan = controller.decide({"t": rows}, 1000 * now_s, marks=marks)
        share = 1.0
        if plan.fates and newest_us is not None:
            ticks = np.linspace(last_s * S, now_s * S, 200, endpoint=False).astype(np.int64)
            needs = arcs.needs("t", plan.fates, round((last_s - 60) * S), round((now_s + 60) * S))
            share = float(within_needs(needs, ticks).mean())
        took_s = 0.2 + 1e-6 * rows * (0.2 + 2.0 * share)
        mark_us, newest_us = newest_us, round(now_s * S)
        arcs_seen = {"t": (rows, round(share * rows))}
        controller.record(
            BatchSample(
                len(plans),
                1000 * now_s,
                1000.0,
                1000 * took_s,
                {"t": rows},
                arcs=arcs_seen,
                outputs={"table": OutputSample(0)},
            )
        )
        plans.append(plan)
        all_rows, all_kept = all_rows + rows, all_kept + share * rows
        last_s, now_s = now_s, max(now_s + took_s, now_s + 1.0)
    return plans, all_kept / all_rows, now_s - last_s


@pytest.mark.parametrize(("size_s", "overload"), [(1, 1.3), (1, 2.0), (2, 1.5)])
def test_about_what_is_too_much_goes(size_s: int, overload: float) -> None:
    plans, kept, lag_s = loop(size_s, overload, seconds=600 * size_s)
    fits = (2.2 / overload - 0.22) / 2.0  # reading and judging are not saved
    assert fits - 0.12 < kept < fits + 0.05, "a little less than fits, for what is left over melts too"
    assert lag_s < 8 * size_s
    assert all(plan.fates["busy"].drop_share <= 0.8 for plan in plans[3:]), "a backlog closes nothing"


def shut(plans: list[Plan]) -> list[bool]:
    """Whether the output is closed, plan by plan."""
    return [plan.reason.endswith("table closed") for plan in plans]


@pytest.mark.parametrize(("mistaken", "overload", "shuts"), [(6.0, 1.5, False), (8.0, 2.0, False), (8.0, 3.0, True)])
def test_what_was_closed_for_costs_that_are_not_true_comes_back(mistaken: float, overload: float, shuts: bool) -> None:
    """A small overload shows what windows cost before anything is closed: every batch has some that are kept."""
    plans, _, lag_s = loop(2, overload, seconds=400, mistaken=mistaken)
    closed = shut(plans)
    assert any(closed) == shuts, "it is believed to be too dear"
    assert not any(closed[-100:]), "probes tell what it costs"
    assert lag_s < 16
    shares = [plan.fates["busy"].drop_share if plan.fates else 0.0 for plan in plans[-100:]]
    fits = max(0.0, 1 - (2.2 / overload - 0.22) / 2.0)
    assert np.mean(shares) == pytest.approx(fits, abs=0.15)


def test_what_is_too_dear_indeed_is_tried_less_and_less() -> None:
    plans, kept, _ = loop(5, 6.0, seconds=3000)
    closed = shut(plans)
    runs = [len(list(same)) for is_closed, same in groupby(closed) if is_closed]
    assert len(runs) > 4
    assert all(after >= 1.8 * before for before, after in pairwise(runs[:5])), runs
    assert kept < 0.03, "probes cost little in the long run"


def test_what_no_gap_allows_closes_the_output_and_says_so() -> None:
    plans, kept, lag_s = loop(5, 6.0, seconds=100)
    assert plans[0].fates["busy"].drop_share == pytest.approx(0.8), "one batch tells no rate"
    assert plans[-1].reason.endswith("table closed")
    assert kept < 0.1
    assert lag_s < 3


def test_without_an_overload_nothing_goes() -> None:
    plans, kept, _ = loop(5, 0.9, seconds=60)
    assert kept == 1.0
    assert not any(plan.fates for plan in plans)


def test_behind_a_function_as_many_windows_go_as_may() -> None:
    """The road map knows inputs and splits alone, and what a function needs of its tuples nobody knows."""
    net = jt.Network("function")
    made = net.source("t", "at timestamp, x int", event_time="at").apply("m:f", columns=["at", "x"], name="made")
    made.window("5 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=4))
    costs = Profile({"t": 0.1, "made": 0.1, "busy": 2.0}, {"busy": 0.001})
    controller = Controller(net.graph, Settings(1000.0), costs, clock=lambda: 0.0)
    plan = controller.decide({"t": 1_000_000}, 0.0, marks=BatchMarks(net.graph, {}))
    assert controller.infeasible
    assert set(plan.drops) == {"made>busy", "busy>table"}
    assert plan.fates["busy"].drop_share == pytest.approx(0.8)
    assert plan.drops["made>busy"].keep == pytest.approx(0.2)


@pytest.mark.parametrize("shedder", ["semantic", "random"])
def test_windows_of_groups_that_are_worth_little_go_first(shedder: str) -> None:
    net = jt.Network("valued")
    trips = net.source("t", "at timestamp, zone int", event_time="at")
    value = jt.Value("zone", [(0, 5, 0.1), (5, 10, 1.0)])
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=4, value=value))
    controller = Controller(net.graph, Settings(1000.0, shedder=shedder), PROFILE, clock=lambda: 0.0)
    marks = BatchMarks(net.graph, {"busy": Mark(100 * S, 90 * S)})
    for second in range(4):
        plan = controller.decide({"t": 500_000}, 1000.0 * second, marks=marks)
    share = plan.fates["busy"].drop_share
    assert 0.2 < share < 0.5
    if shedder == "random":
        assert plan.fates["busy"].cells is None
        assert plan.worth["table"] == pytest.approx(1 - share, abs=0.01)
    else:
        drop = plan.drops["t"]
        assert isinstance(drop, Window)
        half = len(drop.cells) // 2
        assert np.mean(drop.cells[:half]) == pytest.approx(1 - 2 * share, abs=0.01)
        assert set(drop.cells[half:-1]) == {1.0}
        assert plan.worth["table"] == pytest.approx(1 - share * 0.1 / 0.55, abs=0.01)


def test_of_groups_with_gaps_of_their_own_no_more_go_than_those_allow() -> None:
    net = jt.Network("named")
    trips = net.source("t", "at timestamp, zone string", event_time="at")
    qos = jt.QoS(gap=4, gaps={"zone": {"airport": 0, "harbour": 1}})
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=qos)
    for shedder, rows, wanted in (("semantic", 800_000, (0.0, 0.5)), ("input-uniform", 3_000_000, (0.0, 1.0))):
        controller = Controller(net.graph, Settings(1000.0, shedder=shedder), PROFILE, clock=lambda: 0.0)
        marks = BatchMarks(net.graph, {"busy": Mark(100 * S, 90 * S)})
        for second in range(4):
            plan = controller.decide({"t": rows}, 1000.0 * second, marks=marks)
        cells = plan.fates["busy"].cells
        assert cells is not None
        assert cells.shares == pytest.approx((*wanted, plan.fates["busy"].drop_share))
        assert cells.shares[2] > 0.5


def test_a_probe_ends_by_the_times_of_its_own_stream() -> None:
    """A stream of newer times that stands still does not keep one of older times open."""
    net = jt.Network("apart")
    for name in ("old", "new"):
        rows = net.source(name, "at timestamp", event_time="at")
        rows.window("5 seconds").agg(n="count(*)", name=f"{name}_busy").output(f"{name}_table", qos=jt.QoS(gap=4))
    probes, decisions, standing = Probes(), decisions_of(net.graph), {"new_busy": 10**9 * S}
    let_in = 0
    for second in range(2000):
        probes = probes.after(decisions, ["old_busy"], lambda name, now=second * S: standing.get(name, now))  # type: ignore[misc]
        let_in += bool(probes.let_in)
    assert 10 < let_in < 100
