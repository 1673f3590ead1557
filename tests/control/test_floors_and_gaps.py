"""Floors, gaps, windows and values in an overload: the plan that comes out of the road is certified, and sheds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.network import Graph
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.window import Fate, GroupCells
from jettison.plan.floors import plan_accuracies
from jettison.plan.plan import Plan
from jettison.plan.predictions import everything
from jettison.plan.problem import Problem
from jettison.plan.refine.floor_repair import hold_floors
from jettison.plan.refine.worthwhile import gain
from jettison.plan.shedders.registry import SHEDDERS
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.group_gaps import named_groups
from jettison.plan.windows.group_values import window_drops, with_groups_apart
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample, OutputSample

pytestmark = pytest.mark.core

S = 1_000_000
SCHEMA = "at timestamp, zone int, fare double"


def two_aggregates(floor: float = 0.0, first: int = 3, second: int = 1) -> Graph:
    """Windows side by side, whose outputs give the same zones other gaps: above them groups cannot be told apart."""
    net = jt.Network("side-by-side")
    trips = net.source("trips", SCHEMA, event_time="at")
    for number, gap in enumerate((first, second)):
        qos = jt.QoS(gap=4, gaps={"zone": {0: gap, 4: 0}}, min_accuracy=floor)
        trips.window("10 seconds", by="zone").agg(n="count(*)", name=f"a{number}").output(f"o{number}", qos=qos)
    return net.graph


def fate_of(share: float, gaps: tuple[int, ...], shares: tuple[float, ...], masses: tuple[float, ...]) -> Fate:
    cells = GroupCells("zone", (), shares, ("0", "4"), gaps, masses)
    return Fate(10 * S, drop_share=share, cells=cells)


def test_windows_are_left_as_planned_where_groups_cannot_be_told_apart_above() -> None:
    """The arc above was said to pass what is left of one tenth of the windows, the results of those again less: an
    output with a floor of 0.8 got 0.78. What zone 4 needs, which loses nothing, stays for all."""
    graph = two_aggregates()
    fates = {
        "a0": fate_of(0.2, (3, 0, 4), (0.25, 0.0, 0.25), (0.14, 0.2, 0.66)),
        "a1": fate_of(0.2, (1, 0, 4), (0.25, 0.0, 0.25), (0.14, 0.2, 0.66)),
    }
    plan = Plan(window_drops(graph, decisions_of(graph), fates))
    assert plan.keep("trips") == 1.0
    assert plan_accuracies(graph, {"trips": 100.0}, plan) == pytest.approx({"o0": 0.8, "o1": 0.8})
    alike = {**fates, "a1": replace(fates["a1"], cells=fates["a0"].cells)}
    told_apart = Plan(window_drops(graph, decisions_of(graph), alike))
    assert told_apart.keep("trips") == pytest.approx(0.8), "zones with the same gaps are told apart above"
    assert plan_accuracies(graph, {"trips": 100.0}, told_apart) == pytest.approx({"o0": 0.8, "o1": 0.8})


def test_each_aggregate_keeps_what_its_own_sizes_of_groups_say() -> None:
    """The sizes that the first aggregate knew were taken for those of all."""
    graph = two_aggregates(second=3)
    fates = {
        "a0": fate_of(0.2, (3, 0, 4), (0.25, 0.0, 0.25), (0.14, 0.2, 0.66)),
        "a1": fate_of(0.2, (3, 0, 4), (0.4, 0.0, 0.4), (0.1, 0.5, 0.4)),
    }
    plan = Plan(window_drops(graph, decisions_of(graph), fates))
    assert plan_accuracies(graph, {"trips": 100.0}, plan) == pytest.approx({"o0": 0.8, "o1": 0.8})


def run(graph: Graph, profile: Profile, rows: dict[str, int], budget_us: float, shedder: str) -> list[tuple[str, Plan]]:
    """Six batches of the same rows, while sizes of groups become known: why a plan was refused, and the plan."""
    trigger_ms = budget_us / 900
    loop = Controller(graph, Settings(trigger_ms, shedder=shedder, learn=False), profile, clock=lambda: 0.0)
    found = []
    for batch in range(6):
        newest_us = 100 * S + 7 * batch * S
        marks = {
            each.name: Mark(newest_us if batch else None, newest_us - 3 * S if batch else None)
            for each in graph.aggregates
        }
        plan = loop.decide(rows, trigger_ms * batch, marks=BatchMarks(graph, marks))
        found.append((loop.refused or "", plan))
        outputs = {output.name: OutputSample(10) for output in graph.outputs}
        groups = {
            each.name: GroupSample(100.0, {0: 30.0 - 5 * number, 1: 20.0})
            for number, each in enumerate(graph.aggregates)
        }
        loop.record(BatchSample(batch, 0.0, 1.0, trigger_ms, rows, {}, outputs, groups=groups))
    return found


@pytest.mark.parametrize("shedder", SHEDDERS)
def test_an_overload_beyond_all_floors_is_shed_as_far_as_they_allow(shedder: str) -> None:
    """No plan was certified, safe ones neither: nothing was shed."""
    graph = two_aggregates(floor=0.8)
    profile = Profile({"trips": 1.0, "a0": 4.0, "a1": 4.0, "o0": 4.0, "o1": 4.0}, {"a0": 0.5, "a1": 0.5}, fixed_ms=0.1)
    for refused, plan in run(graph, profile, {"trips": 3000}, 9000.0, shedder)[1:]:
        assert not refused
        assert plan.sheds
        assert min(plan_accuracies(graph, {"trips": 3000}, plan).values()) >= 0.8 - 1e-6


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """Windows with floors, with gaps of their own for some groups, with values, or plain; beside rows with floors."""
    net = jt.Network("random")
    first = net.source("s1", SCHEMA, event_time="at").where("fare > 0", name="paid")
    if draw(st.booleans()):
        first = first.union(net.source("s2", SCHEMA, event_time="at"), name="both")
    floors = st.sampled_from((0.0, 0.1, 0.3, 0.5, 0.8))
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("gaps", "gaps", "value", "plain")))
        zones = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2, unique=True))
        qos = jt.QoS(
            gap=draw(st.sampled_from((None, 1, 2, 4, 9))),
            min_accuracy=draw(floors),
            gaps={"zone": {zone: draw(st.sampled_from((0, 1, 2, 6))) for zone in zones}} if kind == "gaps" else None,
            value=jt.Value("zone", [(0, 50, 0.1), (50, 100, 1.0)]) if kind == "value" else None,
        )
        size = draw(st.sampled_from(("5 seconds", "10 seconds", "20 seconds")))
        slide = draw(st.sampled_from((None, "5 seconds")))
        first.window(size, slide=slide, by="zone").agg(n="count(*)", name=f"a{number}").output(f"o{number}", qos=qos)
    if draw(st.booleans()):
        first.where("fare > 20", name="dear").output("rows", qos=jt.QoS(min_accuracy=draw(floors)))
    return net.graph


@steady(40)
@given(networks(), st.data())
def test_every_plan_is_certified_and_sheds_where_that_helps(graph: Graph, data: st.DataObject) -> None:
    costs = {each.name: data.draw(st.sampled_from((0.5, 1.0, 4.0))) for each in graph.operators}
    passes = {each.name: data.draw(st.sampled_from((0.05, 0.5))) for each in graph.aggregates}
    read_us = {each.name: data.draw(st.sampled_from((0.0, 0.3))) for each in graph.sources}
    profile = Profile(costs, passes, fixed_ms=0.1, read_us=read_us, drop_us=0.01)
    rows = {source.name: 3000 for source in graph.sources}
    shedder = data.draw(st.sampled_from(SHEDDERS))
    full = Problem(graph, profile, rows, 0.0)
    problem = full.with_budget(data.draw(st.sampled_from((0.1, 0.3, 0.6, 0.9))) * full.load_us)
    most = with_groups_apart(problem, hold_floors(problem, everything(problem)), named_groups(graph), by_value=False)
    for number, (refused, plan) in enumerate(run(graph, profile, rows, problem.budget_us, shedder)):
        assert not refused
        assert plan.sheds or number == 0 or gain(problem, most) <= 0.01, f"{most.saves_us:.0f} us could be saved"
