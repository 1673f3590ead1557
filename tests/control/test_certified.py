"""Every plan in production is certified: real ones pass, all shedders on random networks; changed ones are refused."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady
from tests.plan.refine.test_floors import problems, windowed

import jettison as jt
from jettison.control.deciding import certified_plan
from jettison.control.judging import Estimates
from jettison.control.loop import Controller, Settings
from jettison.control.plan_request import PlanRequest
from jettison.detect import Detector
from jettison.errors import PlanError
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.certify import Beside, certify, kept_flows
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.context import Context
from jettison.plan.refine.staleness import Fresh
from jettison.plan.refine.unread import Unread
from jettison.plan.shedders.asked import AskedShedder
from jettison.plan.shedders.registry import SHEDDERS, shedder_named
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample, OutputSample

pytestmark = pytest.mark.core

S = 1_000_000
FACTORS = (1.0, 3.0, 3.1, 2.9, 1.5, 0.2, 6.0, 1.2)


def sample_of(batch: int, problem: Problem, plan: Plan, draw: random.Random) -> BatchSample:
    """What a batch would measure that goes as planned, give or take."""
    kept = kept_flows(problem, plan)
    arcs = {}
    for arc, drop in plan.drops.items():
        came = float(kept[arc].sum()) / drop.keep if drop.keep > 0 else 0.0
        arcs[arc] = (round(came), round(float(kept[arc].sum())))
    outputs = {
        output.name: OutputSample(round(float(kept[problem.graph.arcs_into(output.name)[0]].sum())))
        for output in problem.graph.outputs
    }
    groups = {each.name: GroupSample(100.0, {0: 30.0, 5: 20.0}) for each in problem.graph.aggregates}
    took_ms = draw.uniform(0.7, 1.4) * problem.load_us / 1000
    return BatchSample(
        batch,
        0.0,
        1.0,
        took_ms,
        {n: int(c) for n, c in problem.rows.items()},
        arcs=arcs,
        outputs=outputs,
        groups=groups,
    )


def run(name: str, problem: Problem, seed: int = 0) -> Iterator[tuple[Controller, Plan]]:
    """A run of eight batches, at loads that rise and fall, with costs that turn out other than they were thought."""
    draw = random.Random(seed)
    graph = problem.graph
    trigger_ms = max(problem.budget_us, 0.05 * problem.load_us, 1.0) / 900
    loop = Controller(graph, Settings(trigger_ms, shedder=name), problem.profile, clock=lambda: 0.0)
    for batch, factor in enumerate(FACTORS):
        rows = {source: int(factor * count) + 1 for source, count in problem.rows.items()}
        newest_us = 100 * S + 7 * batch * S
        marks = {
            each.name: Mark(newest_us if batch else None, newest_us - 3 * S if batch else None)
            for each in graph.aggregates
        }
        unread = Unread({next(iter(rows)): 5}) if draw.random() < 0.3 else None
        plan = loop.decide(
            rows, trigger_ms * batch, marks=BatchMarks(graph, marks) if graph.aggregates else None, unread=unread
        )
        yield loop, plan
        loop.record(sample_of(batch, Problem(graph, problem.profile, rows, 0.0), plan, draw))


@pytest.mark.parametrize("name", SHEDDERS)
@steady(10)
@given(st.one_of(problems(), windowed()))
def test_real_plans_of_all_shedders_are_certified(name: str, problem: Problem) -> None:
    for loop, plan in run(name, problem):
        assert loop.uncertified == 0, plan


def overloaded(shedder: str = "semantic", **known: object) -> tuple[Context, Plan, bool]:
    """A plan for windows beside rows that is certified, and what it was certified with."""
    net = jt.Network("both")
    trips = net.source("trips", "at timestamp, zone int", event_time="at")
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=4))
    rides = net.source("rides", "x int").where("x > 0", name="w")
    rides.output("rows", qos=jt.QoS(min_accuracy=0.1))
    rides.where("x > 5", name="v").output("few")
    costs = Profile({"trips": 1.0, "busy": 2.0, "rides": 1.0, "w": 1.0, "v": 2.0}, {"busy": 0.01})
    rows = {"trips": 200_000, "rides": 300_000}
    settings = Settings(1000.0, shedder=shedder)
    view = Estimates(net.graph, settings, costs, {name: float(count) for name, count in rows.items()})
    marks = BatchMarks(net.graph, {"busy": Mark(100 * S, 90 * S)})
    context = Context(view.problem(rows), rows, marks=marks, **known)  # type: ignore[arg-type]
    found = certified_plan(PlanRequest(view, Detector(), AskedShedder(shedder_named(shedder)), context))
    assert found.refused is None
    assert known or {drop.judges for drop in found.plan.drops.values()} == {"window", "chance"}
    gave_back = found.infeasible is not None or any(step.gave_back for step in found.steps)
    return found.context, found.plan, not gave_back


def check(context: Context, plan: Plan, *, within_budget: bool = True) -> None:
    beside = Beside(context.fresh, context.unread, context.rows)
    certify(context.problem, plan, within_budget=within_budget, beside=beside)


@pytest.mark.parametrize("shedder", ["semantic", "exact", "input-uniform"])
def test_changed_plans_are_refused(shedder: str) -> None:
    context, plan, within = overloaded(shedder)
    check(context, plan, within_budget=within)
    arc, drop = next((arc, drop) for arc, drop in plan.drops.items() if drop.judges == "chance" and drop.keep > 0)
    for keep in (drop.keep - 0.001, drop.keep + 0.001, 0.0):
        with pytest.raises(PlanError, match=r"claims|budget|floor"):
            check(context, replace(plan, drops={**plan.drops, arc: Random(max(0.0, keep))}), within_budget=within)
    for changed in (
        replace(plan, saves_us=1.001 * plan.saves_us),
        replace(plan, saves_us=0.0),
        replace(plan, utility=plan.utility + 0.001),
        replace(plan, delivered={**plan.delivered, "few": plan.delivered["few"] + 0.001}),
        replace(plan, worth={"few": 0.123}),
        replace(plan, delivered={**plan.delivered, "nobody": 0.5}),
    ):
        with pytest.raises(PlanError, match="claims"):
            check(context, changed, within_budget=within)
    for wrong in ("w>nothing", "v>few", "trips", "trips>busy"):
        with pytest.raises(PlanError):
            check(context, replace(plan, drops={**plan.drops, wrong: Random(0.5)}), within_budget=within)
    with pytest.raises(PlanError, match="stale"):
        check(context, replace(plan, stale={"rides": 5.0}), within_budget=within)


def test_a_fate_beyond_its_gap_is_refused() -> None:
    context, plan, within = overloaded()
    for share in (0.81, 0.99):
        drops = {
            arc: replace(drop, fates={name: replace(fate, drop_share=share) for name, fate in drop.fates.items()})
            if isinstance(drop, Window)
            else drop
            for arc, drop in plan.drops.items()
        }
        with pytest.raises(PlanError, match="its gap of 4 does not allow it"):
            check(context, replace(plan, drops=drops), within_budget=within)
    results = {arc: drop for arc, drop in plan.drops.items() if arc != "busy>table"}
    with pytest.raises(PlanError, match="the results of 'busy' are not judged"):
        check(context, replace(plan, drops=results), within_budget=within)


def test_a_plan_that_drops_though_there_is_no_need_is_refused() -> None:
    context, plan, _ = overloaded()
    calm = replace(context, problem=context.problem.with_budget(2 * context.problem.load_us))
    with pytest.raises(PlanError, match="within the budget"):
        check(calm, plan, within_budget=False)


def test_stale_and_unread_rows_are_part_of_what_is_certified() -> None:
    fresh = Fresh({"rides": 5.0}, {"rides": 0.6})
    context, plan, within = overloaded(fresh=fresh, unread=Unread({"rides": 30_000}))
    assert plan.stale
    check(context, plan, within_budget=within)
    with pytest.raises(PlanError, match="claims to deliver"):
        check(replace(context, unread=Unread({"rides": 60_000})), plan, within_budget=within)
    with pytest.raises(PlanError, match="claims"):
        check(replace(context, fresh=Fresh({"rides": 5.0}, {"rides": 0.5})), plan, within_budget=within)


def test_a_certificate_takes_well_under_a_millisecond() -> None:
    context, plan, within = overloaded()
    check(context, plan, within_budget=within)
    times = []
    for _ in range(50):
        began = time.perf_counter()
        check(context, plan, within_budget=within)
        times.append(time.perf_counter() - began)
    assert statistics.median(times) < 0.001


def test_the_log_says_what_each_refinement_changed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "jettison"):
        overloaded(unread=Unread({"rides": 30_000}))
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(": ")[1] for line in said] == ["schedules", "unread"]
    assert said[0].startswith("network both: schedules: trips keeps the same share by window, chosen anew")
    assert "rows gets" in said[1]


def test_what_is_left_over_after_a_stall_is_shed_as_gaps_allow() -> None:
    """Rows of 20 seconds at a rate that fits: the plan was judged as if it were for the rate alone, and refused."""
    net = jt.Network("stall")
    trips = net.source("trips", "at timestamp, zone int", event_time="at")
    busy = trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(gap=1))
    graph, second = net.graph, 1_000_000
    loop = Controller(graph, Settings(1000.0), Profile({"busy": 1.0}, {"busy": 0.01}).completed(graph))
    plans = []
    for batch in range(10):
        now_us = (100 + batch) * second
        marks = BatchMarks(graph, {"busy": Mark(now_us, now_us - 3 * second)})
        rows = {"trips": 15_000_000 if batch == 8 else 700_000}
        plans.append(loop.decide(rows, 1000.0 * (batch if batch < 8 else batch + 20), marks=marks))
    assert loop.uncertified == 0
    assert plans[8].keep("trips") == 0.5
    assert not any(plan.sheds for number, plan in enumerate(plans) if number != 8)
