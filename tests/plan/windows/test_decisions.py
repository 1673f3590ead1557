"""Where window drops stand, what they save, and how the road map weighs them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

import jettison as jt
from jettison.errors import NetworkError, PlanError
from jettison.plan.certify import certify
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.plan.windows.decisions import WindowDecisions
from jettison.plan.windows.drop_checks import check_window_drops
from jettison.plan.windows.fates import Schedule, Segment
from jettison.plan.windows.need_bits import needed_bits
from jettison.plan.windows.needs import WinDrop, composite, needed_intervals, pipeline, within_needs
from jettison.plan.windows.savings import saved_share
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

S = 1_000_000


def trips(net: jt.Network, name: str = "trips") -> jt.Stream:
    return net.source(name, "at timestamp, fare double", event_time="at")


def one(size: str = "10 seconds", slide: str | None = None, **qos: object) -> jt.Network:
    net = jt.Network("one")
    paid = trips(net).where("fare > 0", name="paid")
    paid.window(size, slide=slide).agg(n="count(*)", name="busy").output("table", qos=jt.QoS(**qos))  # type: ignore[arg-type]
    return net


COSTS = Profile({"trips": 1.0, "paid": 0.5, "busy": 2.0, "table": 1.0}, {"paid": 0.5, "busy": 0.01}, drop_us=0.02)


# --- gaps ---------------------------------------------------------------------------------------------------------


def test_a_gap_is_read_written_and_checked() -> None:
    net = one(gap=4)
    assert net.graph.outputs[0].qos.gap == 4
    assert from_yaml(to_yaml(net.graph)).graph() == net.graph
    for wrong in (-1, 1.5, True, "4"):
        with pytest.raises(NetworkError, match="whole number of windows"):
            jt.QoS(gap=wrong)  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="leave one of them out"):
        jt.QoS(gap=4, on_loss="ignore")
    plain = jt.Network("plain")
    with pytest.raises(NetworkError, match=r"output 'all'.*there are none on its way"):
        trips(plain).output("all", qos=jt.QoS(gap=4))


@pytest.mark.parametrize(("size", "slide", "gap"), [("10 seconds", None, 4), ("60 seconds", "5 seconds", 24)])
def test_outputs_that_do_not_say_have_a_gap_with_which_tuples_can_go(size: str, slide: str | None, gap: int) -> None:
    decisions = WindowDecisions(one(size, slide).graph)
    assert decisions.by_aggregate["busy"].gap == gap
    assert decisions.weight("trips") > 0.5


def test_what_must_be_right_is_not_thinned_out() -> None:
    exact, thin, never = WindowDecisions(one().graph), WindowDecisions(one(on_loss="ignore").graph), one(gap=0).graph
    assert not exact.by_chance("trips")
    assert not exact.by_chance("busy>table"), "that would break the gap"
    assert thin.by_chance("trips")
    assert thin.by_aggregate == {}
    assert WindowDecisions(never).by_aggregate == {}
    found = RoadMapShedder(build_road_map(never, COSTS, {})).plan(Problem(never, COSTS, {"trips": 1000}, 100.0))
    assert isinstance(found, Infeasible)
    assert found.best.drops == {}


def test_functions_end_what_can_be_said_about_needs_above_windows_but_not_behind_them() -> None:
    net = jt.Network("functions")
    made = trips(net).apply("m:f", columns=["at", "fare"], name="made")
    busy = made.window("10 seconds").agg(n="count(*)", name="busy")
    busy.apply("m:g", columns=["n"], name="shown").output("table")
    decisions = WindowDecisions(net.graph)
    assert decisions.arcs.fate_arcs == {"busy": ("busy>shown",)}
    assert decisions.arcs.early_arcs(["busy"]) == ("made>busy",)
    assert not decisions.droppable("trips")
    assert not decisions.by_chance("trips")


# --- what they save -----------------------------------------------------------------------------------------------


@steady(100)
@given(st.integers(1, 6), st.integers(0, 20), st.integers(1, 30), st.floats(0, 1))
def test_the_weight_is_what_the_estimates_say(slide: int, more: int, gap: int, part: float) -> None:
    net = one(f"{slide + more} seconds", f"{slide} seconds", gap=gap)
    share = part * gap / (gap + 1)
    wanted = saved_share(slide + more, slide, share, gap)
    decisions = WindowDecisions(net.graph)
    assert share * decisions.weight("trips") == pytest.approx(wanted)
    if decisions.droppable("trips"):
        keeps = decisions.keeps({"busy": share})
        assert keeps["trips"] == pytest.approx(1 - wanted)
        assert keeps["trips"] * keeps["busy>table"] == pytest.approx(1 - share)


def test_nested_and_side_by_side_are_the_composite_of_the_thesis() -> None:
    net = jt.Network("composite")
    first = trips(net).window("4 seconds", slide="1 second").agg(n="count(*)", name="a0")
    first.window("3 seconds", slide="2 seconds").agg(n="sum(n)", name="a1").output("o1", qos=jt.QoS(gap=30))
    first.window("3 seconds", slide="3 seconds").agg(n="sum(n)", name="a2").output("o2", qos=jt.QoS(gap=30))
    decisions = WindowDecisions(net.graph)
    assert {(each.step_us, each.gap) for each in decisions.by_aggregate.values()} == {(6 * S, 10)}
    size = composite(WinDrop(4, 1), WinDrop(3, 2), WinDrop(3, 3)).size
    assert decisions.weight("trips") == pytest.approx(saved_share(size, 6, 1.0 * 10 / 11, 10) * 11 / 10)
    assert decisions.arcs.early_arcs(decisions.by_aggregate) == ("trips", "a0>a1", "a0>a2")


@steady(100)
@given(
    st.tuples(st.integers(1, 4), st.integers(0, 4)),
    st.tuples(st.integers(1, 4), st.integers(0, 6)),
    st.integers(1, 4),
    st.floats(0, 1),
    st.integers(-20, 20),
)
def test_needs_of_an_arc_are_those_of_the_chain(
    upper: tuple[int, int], lower: tuple[int, int], gap: int, part: float, start: int
) -> None:
    (d1, e1), (d2, e2) = upper, lower
    net = jt.Network("chain")
    first = trips(net).window(f"{d1 + e1} seconds", slide=f"{d1} seconds").agg(n="count(*)", name="first")
    last = first.where("n > 1").window(f"{d2 + e2} seconds", slide=f"{d2} seconds").agg(n="sum(n)", name="last")
    last.output("o")
    schedule = Schedule((Segment(start, part * gap / (gap + 1), gap, "s"),))
    arcs = WindowArcs(net.graph)
    fates = {"last": Fate(d2 * S, schedule)}
    above, below = WinDrop((d1 + e1) * S, d1 * S), WinDrop((d2 + e2) * S, d2 * S)
    found = arcs.needs("trips", fates, -50 * S, 100 * S)
    wanted = needed_intervals(schedule, below, -50 * S, 100 * S, above=[above])
    low, high, granule = -40 * S, 100 * S, arcs.granule_us("trips")
    ticks = range(low, high, granule)
    assert [bool(each) for each in within_needs(found, list(ticks))] == [  # type: ignore[arg-type]
        bool(each)
        for each in within_needs(wanted, list(ticks))  # type: ignore[arg-type]
    ]
    bits = needed_bits(found, low, low + len(ticks) * granule, granule, start * S)
    assert [bits.at(tick) for tick in ticks] == [bool(each) for each in within_needs(found, list(ticks))]  # type: ignore[arg-type]
    assert all(bits.at(tick) for tick in range(*bits.sure_us, granule))
    assert bits.sure_us[1] > start * S or bits.sure_us == (0, 0)
    assert pipeline(above, below, aligned=True).slide == below.slide


# --- plans --------------------------------------------------------------------------------------------------------


def test_a_window_drop_survives_its_json() -> None:
    fate = Fate(10 * S, Schedule((Segment(3, 0.5, 4, "busy"), Segment(9, 1.0, 4, "busy"))), 1.0)
    plan = Plan(WindowArcs(one().graph).drops({"busy": fate}, {"trips": 0.4}))
    assert set(plan.drops) == {"trips", "busy>table"}
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.fates == {"busy": fate}
    assert not plan.closes("trips")


def test_a_plan_whose_results_are_not_judged_is_refused() -> None:
    arcs = WindowArcs(one().graph)
    fate = Fate(10 * S, Schedule((Segment(0, 0.5, 4, "s"),)))
    with pytest.raises(PlanError, match="not judged on arc 'busy>table'"):
        check_window_drops(arcs, Plan({"trips": Window({"busy": fate}, 0.5)}))
    with pytest.raises(PlanError, match="no multiple of its slide"):
        check_window_drops(arcs, Plan(arcs.drops({"busy": Fate(7 * S, fate.schedule)})))


@pytest.mark.parametrize("slide", [None, "5 seconds"])
def test_the_road_map_drops_windows_up_to_the_gap_and_then_closes(slide: str | None) -> None:
    graph = one("10 seconds", slide, gap=6).graph
    road_map = build_road_map(graph, COSTS, {})
    full = Problem(graph, COSTS, {"trips": 1000}, 1e9).load_us
    weight = WindowDecisions(graph).weight("trips")
    delivered = []
    for left in (0.9, 0.7, 0.5, 0.3):
        problem = Problem(graph, COSTS, {"trips": 1000}, left * full)
        plan = RoadMapShedder(road_map).plan(problem)
        assert isinstance(plan, Plan)
        certify(problem, plan)
        assert all(isinstance(drop, Window) for drop in plan.drops.values())
        delivered.append(plan.delivered["table"])
        share = plan.fates["busy"].drop_share
        assert share <= 6 / 7
        assert plan.delivered["table"] == pytest.approx(1 - share)
        assert plan.drops["trips"].keep == pytest.approx(1 - share * weight)
    assert delivered == sorted(delivered, reverse=True)
    tight = Problem(graph, COSTS, {"trips": 1000}, 0.02 * full)
    closing = RoadMapShedder(road_map).plan(tight)
    assert isinstance(closing, Plan)
    assert closing.fates["busy"].drop_share == 1.0
    certify(tight, closing)


def test_rows_beside_windows_still_go_by_chance() -> None:
    net = jt.Network("mixed")
    source = trips(net)
    source.output("raw")
    source.window("10 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(priority=9))
    profile = Profile({"trips": 0.1, "raw": 1.0, "busy": 1.0}, {"busy": 0.01})
    problem = Problem(net.graph, profile, {"trips": 1000}, 1300.0)
    plan = RoadMapShedder(build_road_map(net.graph, profile, {})).plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert set(plan.drops) == {"trips>raw"}
    assert isinstance(plan.drops["trips>raw"], Random)
    with pytest.raises(PlanError, match="must be right"):
        certify(Problem(net.graph, profile, {"trips": 1000}, 100.0), Plan({"trips>busy": Random(0.5)}))


def test_streams_that_merge_lose_their_windows_together() -> None:
    net = jt.Network("merged")
    both = trips(net, "a").union(trips(net, "b"))
    both.window("10 seconds").agg(n="count(*)", name="busy").output("table")
    profile = Profile({"a": 1.0, "b": 1.0, "busy": 1.0}, {"busy": 0.01})
    problem = Problem(net.graph, profile, {"a": 1000, "b": 10}, 1500.0)
    plan = RoadMapShedder(build_road_map(net.graph, profile, {"a": 1000, "b": 10})).plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert set(plan.drops) == {"a", "b", "busy>table"}
    assert plan.drops["a"].keep == plan.drops["b"].keep
