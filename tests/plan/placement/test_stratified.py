"""Shares of groups: what is asked for is kept, rare groups whole; where such drops stand, and that none closes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.errors import PlanError
from jettison.plan.certify import certify
from jettison.plan.drops.random import Random
from jettison.plan.drops.stratified import MOST_GROUPS, Stratified, allocate
from jettison.plan.placement.join_keys import droppable
from jettison.plan.placement.strata import strata_at
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.strata import stratified
from jettison.plan.shedders.admission import ADMISSION
from jettison.plan.shedders.registry import shedder_named
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.sim import simulate
from jettison.statistics.groups import GroupSizes
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample

pytestmark = pytest.mark.core

ESTIMATE = jt.QoS(on_loss="estimate")
COSTS = Profile({"trips": 1.0, "paid": 0.5, "busy": 2.0}, {"paid": 0.5, "busy": 0.01}, drop_us=0.02)


def network(by: tuple[str, ...] = ("zone",), split: bool = False) -> jt.Network:
    net = jt.Network("taxi")
    columns = "trip long, at timestamp, place int, kind string, fare double"
    source = net.source("trips", columns, event_time="at", id=["trip"])
    paid = source.select("at", "place AS zone", "kind", "fare", name="named").where("fare > 0", name="paid")
    paid.window("10 seconds", by=by).agg(n="count(*)", name="busy").output("table", qos=ESTIMATE)
    if split:
        paid.output("rows")
    return net


@given(
    st.dictionaries(st.integers(0, 8000), st.floats(0.001, 1.0), min_size=1, max_size=40),
    st.floats(0.0, 2.0),
    st.floats(0.01, 0.99),
    st.floats(0.0, 0.05),
)
def test_what_is_asked_for_is_kept_and_small_groups_are_whole(
    weights: dict[int, float], others: float, keep: float, least: float
) -> None:
    whole = sum(weights.values()) + others
    sizes = {group: size / whole for group, size in weights.items()}
    groups, rest_share = allocate(sizes, keep, least)
    shares = dict(groups)
    kept = sum(size * shares.get(group, rest_share) for group, size in sizes.items()) + others / whole * rest_share
    assert kept == pytest.approx(keep, rel=1e-6) or (groups == () and rest_share == 1.0)
    assert all(0 < share <= 1 for share in (*shares.values(), rest_share))
    if shares:
        left = [size * shares[group] for group, size in sizes.items() if group in shares]
        assert max(left) == pytest.approx(min(left)), "every large group leaves as much as the others"
        assert min(left) >= least * (1 - 1e-9)
        unnamed = [size for group, size in sizes.items() if group not in shares]
        assert all(size <= max(left) * (1 + 1e-9) for size in unnamed), "whole is what has less"
    Stratified(("zone",), keep, groups, rest_share)


def test_more_groups_than_are_told_apart() -> None:
    groups, rest = allocate(dict.fromkeys(range(5000), 1 / 5000), 0.9, 1e-6)
    assert 0 < len(groups) <= MOST_GROUPS
    assert rest == 1.0


def test_of_two_groups_in_one_place_the_larger_is_thinned_out() -> None:
    assert allocate({0: 0.5, 8192: 0.4}, 0.9, 0.001) == (((0, pytest.approx(0.8)),), 1.0)


def test_where_rare_groups_have_nearly_all_everybody_is_thinned_alike() -> None:
    assert allocate({1: 0.05}, 0.3, 0.04) == ((), 0.3)


def test_a_plan_with_shares_of_groups_is_written_and_read() -> None:
    plan = Plan({"trips": Stratified(("zone",), 0.3, ((-(2**62) - 7, 0.1), (9, 0.25)), 1.0)}, "overload", 3)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("wrong", [{"keep": 0.0}, {"keep": 0.5, "others": 0.0}, {"keep": 0.5, "groups": ((1, 1.5),)}])
def test_shares_are_above_0(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError, match="needs a share above 0"):
        Stratified(("zone",), **wrong)  # type: ignore[arg-type]


# --- where ------------------------------------------------------------------------------------------------------------


def test_groups_are_called_as_they_are_where_the_drop_stands() -> None:
    assert strata_at(network().graph, "trips") == (network().graph.by_name["busy"], ("place",))
    assert strata_at(network(("kind", "zone"), split=True).graph, "paid>busy")[1] == ("kind", "zone")  # type: ignore[index]
    assert strata_at(network(()).graph, "trips") is None


def test_of_several_aggregates_the_finest_groups_count() -> None:
    net = network()
    paid = net.stream("paid")
    paid.window("1 minute", by=["kind", "zone"]).agg(n="count(*)", name="fine").output("more", qos=ESTIMATE)
    assert strata_at(net.graph, "trips")[0].name == "fine"  # type: ignore[index]
    paid.window("1 minute", by="fare").agg(n="count(*)", name="across").output("odd", qos=ESTIMATE)
    assert strata_at(net.graph, "trips") is None
    assert strata_at(net.graph, "paid>busy")[0].name == "busy"  # type: ignore[index]


def test_a_computed_group_cannot_be_seen_above() -> None:
    net = jt.Network("taxi")
    source = net.source("trips", "trip long, at timestamp, place int", event_time="at", id=["trip"])
    made = source.with_columns({"zone": "place % 7"}, name="made")
    made.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=ESTIMATE)
    assert strata_at(net.graph, "trips") is None
    costs = Profile({"busy": 2.0}, {})
    plan = RoadMapShedder(build_road_map(net.graph, costs, {})).plan(Problem(net.graph, costs, {"trips": 1000}, 1000.0))
    assert isinstance(plan, Plan)
    assert isinstance(plan.drops["trips"], Random), "all rows alike, with the weight of all"


@pytest.mark.parametrize("budget_us", [2000.0, 500.0, 50.0, 1.0])
@pytest.mark.parametrize("shedder", ["road map", "exact", *ADMISSION])
def test_what_is_estimated_is_never_closed_and_its_results_never_dropped(budget_us: float, shedder: str) -> None:
    graph = network(split=True).graph
    problem = Problem(graph, COSTS, {"trips": 1000}, budget_us)
    planner = shedder_named(shedder) if shedder != "road map" else RoadMapShedder(build_road_map(graph, COSTS, {}))
    assert planner is not None
    found = planner.plan(problem)
    plan = found.best if isinstance(found, Infeasible) else found
    assert not droppable(graph, "busy>table")
    assert all(plan.keep(arc) > 0 for arc in ("trips", "paid>busy"))
    assert "busy>table" not in plan.drops
    if not isinstance(found, Infeasible):
        certify(problem, plan)


# --- the loop ---------------------------------------------------------------------------------------------------------


def test_the_loop_fills_in_shares_of_the_groups_that_batches_told_of() -> None:
    graph = network().graph
    loop = Controller(graph, Settings(100.0, learn=False), Profile({"busy": 100.0}, {}))
    rows = {"trips": 4000}
    assert loop.groups_to_count(rows) == {"busy"}
    first = loop.decide(rows, 0.0).drops["trips"]
    assert isinstance(first, Stratified)
    assert (first.groups, first.rest) == ((), pytest.approx(0.225))
    sample = GroupSample(4000.0, {1: 2000.0, 2: 1600.0})
    loop.record(BatchSample(0, 0.0, 100.0, 100.0, rows, arcs={"trips": (4000, 900)}, groups={"busy": sample}))
    assert not loop.groups_to_count(rows)
    drop = loop.decide(rows, 100.0).drops["trips"]
    assert isinstance(drop, Stratified)
    assert drop.rest == 1.0
    # 900 rows are to stay, 400 of others do, so 250 of each large group
    assert dict(drop.groups) == {1: pytest.approx(0.125), 2: pytest.approx(0.15625)}


@pytest.mark.parametrize(("span_us", "batch_us"), [(60e6, {}), (None, {"busy": 60e6})])
def test_trust_4_small_groups_stay_whole_where_a_batch_spans_several_windows(
    span_us: float | None, batch_us: dict[str, float]
) -> None:
    """1,200 rows in 6 windows, 150 of them of small groups. Large ones are left 7 rows in a window: with 20, which they
    were to have, others would be thinned, and were. The first batches tell themselves how much time they cover."""
    sizes = GroupSizes()
    sizes.update({"busy": GroupSample(1200.0, dict.fromkeys(range(5), 210.0), span_us)})
    drop = stratified(network().graph, Plan({"trips": Stratified(("place",), 0.3)}), sizes, batch_us).drops["trips"]
    assert isinstance(drop, Stratified)
    assert (len(drop.groups), drop.rest) == (5, 1.0)
    assert sum(210 * share for _, share in drop.groups) == pytest.approx(0.3 * 1200 - 150)


def test_trust_4_with_few_rows_large_groups_are_left_few_before_all_are_thinned_alike() -> None:
    """80 of 1,000 rows in a window, of 15 groups with 50 and others with 250: alike, most small ones would go."""
    sizes = GroupSizes()
    sizes.update({"busy": GroupSample(1000.0, dict.fromkeys(range(15), 50.0), 10e6)})
    drop = stratified(network().graph, Plan({"trips": Stratified(("place",), 0.08)}), sizes, {}).drops["trips"]
    assert isinstance(drop, Stratified)
    assert [50 * share for _, share in drop.groups] == pytest.approx([2.5] * 15)
    assert drop.rest == pytest.approx((80 - 15 * 2.5) / 250)


def test_drops_one_below_the_other_leave_what_both_are_to_leave() -> None:
    graph = network(split=True).graph
    sizes = GroupSizes()
    sizes.update({"busy": GroupSample(10_000.0, {1: 5000.0, 2: 3000.0})})
    plan = Plan({"trips": Stratified(("place",), 0.6), "paid>busy": Stratified(("zone",), 0.5)})
    above, below = stratified(graph, plan, sizes, {}).drops.values()
    assert isinstance(above, Stratified)
    assert isinstance(below, Stratified)
    left = {group: dict(above.groups).get(group, above.rest) * dict(below.groups)[group] for group in (1, 2)}
    assert left == {1: pytest.approx(0.05 / 0.5), 2: pytest.approx(0.05 / 0.3)}
    assert above.rest * below.rest == 1.0


def test_a_network_with_estimates_is_simulated() -> None:
    costs = Profile({"busy": 1000.0}, {"busy": 0.01})
    found = simulate(network().graph, costs, {"trips": 3000.0}, seconds=10.0, trigger_ms=1000.0)
    keeps = [batch.plan.keep("trips") for batch in found.batches]
    assert min(keeps) == pytest.approx(0.3, abs=0.05), "three times as much as fits into 0.9 of a second"
