"""The load shedding road map (thesis 3.5): properties of every row, and how rows are found."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import ROWS, Case, dags, figure_3_3, steady, trees, worth_and_work

from jettison.network import Graph, Network, QoS
from jettison.plan.certify import certify, delivered_shares, planned_load_us
from jettison.plan.placement.ladder import Ladder
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.road_map import RoadMap, RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

COARSE = Ladder(0.5)


def road_map_of(case: Case) -> RoadMap:
    return build_road_map(case.graph, case.profile, case.rows, COARSE)


def problem_of(case: Case, budget_us: float = 0.0) -> Problem:
    return Problem(case.graph, case.profile, case.rows, budget_us)


def fig_3_3_case(**cost_us: float) -> Case:
    graph = figure_3_3(QoS(((100, 1), (50, 0.99), (0, 0))), QoS(), QoS(((100, 1), (50, 0.7), (0, 0))))
    costs = {"op1": 2.0, "op2": 10.0, "op3": 10.0, "op4": 5.0, **cost_us}
    return Case(graph, Profile(costs, {"op1": 0.5}), {"i1": 100.0, "i2": 100.0})


# --- rows ---------------------------------------------------------------------------------------------------------


@steady(60)
@given(dags())
def test_the_first_row_sheds_nothing_and_the_last_everything(case: Case) -> None:
    road_map = road_map_of(case)
    assert not road_map.plan(0, case.rows, "").drops
    assert road_map.plan(0, case.rows, "").utility == pytest.approx(sum(o.qos.priority for o in case.graph.outputs))
    left = planned_load_us(problem_of(case), road_map.plan(len(road_map) - 1, case.rows, ""))
    assert left == pytest.approx(problem_of(case).unavoidable_us, abs=1e-6)


@steady(60)
@given(dags())
def test_savings_grow_strictly(case: Case) -> None:
    savings = road_map_of(case).savings_us(case.rows)
    assert savings[0] == 0.0
    assert (np.diff(savings) > 0).all()


@steady(40)
@given(dags(drops_us=(0.02, 0.1, 0.5)))
def test_savings_grow_strictly_where_drops_cost_something(case: Case) -> None:
    """Each row must save more than the one before after its drops are paid for, or a search can end in a worse row."""
    savings = build_road_map(case.graph, case.profile, case.rows).savings_us(case.rows)
    falls = np.flatnonzero(np.diff(savings) <= 0)
    assert not falls.size, (
        f"row {falls[0] + 1} saves {savings[falls[0] + 1]:.3f}, row {falls[0]} {savings[falls[0]]:.3f}"
    )


@steady(80)
@given(dags(most_steps=8))
def test_utility_never_rises(case: Case) -> None:
    assert (np.diff(road_map_of(case).utility) <= 1e-9).all()


def test_utility_does_not_rise_when_a_merged_stream_is_reached_from_the_other_side() -> None:
    """A drop below a union is measured against the least dropped of its inputs. When that input catches up, the drop
    shrinks for all of them: here row 16 delivers more than row 15 and saves more too, so row 15 was a poor plan."""
    net = Network("from-the-other-side")
    s0, s1 = net.source("s0", "x int"), net.source("s1", "x int")
    u0 = s1.union(s0, name="u0")
    u1 = s0.union(u0, name="u1")
    s1.union(u0, name="u3").output("o5", qos=QoS(((100, 1), (50, 0.6), (0, 0))))
    u0.union(u1, name="u2").output("o4", qos=QoS(((100, 1), (60, 11 / 15), (20, 1 / 3), (0, 0)), 5))
    profile = Profile({"s0": 1, "s1": 1, "u0": 5, "u1": 20, "u2": 20, "u3": 5}, {})
    road_map = build_road_map(net.graph, profile, {"s0": 10.0, "s1": 100.0}, COARSE)
    rises = np.flatnonzero(np.diff(road_map.utility) > 1e-9) + 1
    assert not rises.size, f"row {rises[0]} is worth more than the row before it"


@steady(60)
@given(trees(most_locations=9))
def test_utility_never_rises_on_trees(case: Case) -> None:
    assert (np.diff(road_map_of(case).utility) <= 1e-9).all()


@steady(30)
@given(dags())
def test_every_row_certifies(case: Case) -> None:
    road_map, at = road_map_of(case), problem_of(case)
    for row in range(len(road_map)):
        plan = road_map.plan(row, case.rows, "overload")
        certify(replace(at, budget_us=at.load_us - plan.saves_us), plan)


@steady(40)
@given(dags(drops_us=(0.0, 0.1, 0.5)))
def test_what_a_row_claims_to_save_is_what_is_saved(case: Case) -> None:
    road_map, at = road_map_of(case), problem_of(case)
    for row in range(len(road_map)):
        plan = road_map.plan(row, case.rows, "")
        saved = at.load_us - planned_load_us(at, plan)
        assert plan.saves_us == pytest.approx(saved, abs=1e-6), f"row {row}: {dict(plan.drops)}"


@steady(80)
@given(dags(drops_us=(0.0, 0.1)))
def test_rows_agree_with_a_second_opinion(case: Case) -> None:
    road_map = road_map_of(case)
    keeps = {arc: road_map.keeps[:, column] for column, arc in enumerate(road_map.layout.arcs)}
    worth, work = worth_and_work(case, keeps, case.profile.drop_us)
    full = float(worth_and_work(case, {})[1])
    assert road_map.utility == pytest.approx(np.broadcast_to(worth, len(road_map)))
    assert road_map.savings_us(case.rows) == pytest.approx(np.broadcast_to(full - work, len(road_map)), abs=1e-6)


@steady(40)
@given(dags())
def test_drops_stand_only_at_inputs_and_splits_and_none_is_redundant(case: Case) -> None:
    road_map, allowed = road_map_of(case), set(drop_arcs(case.graph))
    for row in range(len(road_map)):
        plan = road_map.plan(row, case.rows, "")
        assert set(plan.drops) <= allowed
        assert all(drop.keep < 1.0 for drop in plan.drops.values())
        alive: dict[str, bool] = {}
        for operator in case.graph.operators:
            for arc, tail in zip(case.graph.arcs_into(operator.name), operator.inputs or (None,), strict=True):
                arrives = True if tail is None else alive[tail]
                assert arrives or arc not in plan.drops, f"row {row}: the drop on {arc} judges an empty stream"
                alive[operator.name] = alive.get(operator.name, False) or (arrives and plan.keep(arc) > 0)


@steady(80)
@given(trees(most_locations=8))
def test_what_reaches_a_location_is_a_ladder_level(case: Case) -> None:
    """Every new drop is a step of the ladder at the output (3.5): products of drops never leave the ladder."""
    road_map = road_map_of(case)
    reaches: dict[int, np.ndarray] = {}
    for index, location in enumerate(road_map.layout.locations):
        above = 1.0 if location.leaves < 0 else reaches[road_map.layout.segments[location.leaves].entries[0]]
        reaches[index] = above * road_map.keeps[:, index]
        assert reaches[index] == pytest.approx(np.array(COARSE.shares)[road_map.levels[:, index]], abs=1e-15)
    assert (np.diff(road_map.levels, axis=0) >= 0).all(), "a location went back up"
    assert (np.diff(road_map.levels, axis=0) <= 1).all(), "a location skipped a level"


@steady(40)
@given(dags())
def test_the_same_network_gives_the_same_road_map(case: Case) -> None:
    one, two = road_map_of(case), road_map_of(case)
    for field in ("levels", "keeps", "saves_us", "delivered", "utility"):
        assert np.array_equal(getattr(one, field), getattr(two, field))


@steady(40)
@given(trees(), st.sampled_from((0.01, 7.0, 1e4)))
def test_only_proportions_of_rates_matter(case: Case, factor: float) -> None:
    """Thesis 3.4.2: 'it would be sufficient to know relative proportions of the input rates'."""
    scaled = replace(case, rows={name: factor * count for name, count in case.rows.items()})
    one, two = road_map_of(case), road_map_of(scaled)
    assert one.utility == pytest.approx(two.utility)
    assert one.saves_us == pytest.approx(two.saves_us)


@steady(40)
@given(dags())
def test_no_rates_mean_equal_rates(case: Case) -> None:
    ones = {source.name: 1.0 for source in case.graph.sources}
    none = build_road_map(case.graph, case.profile, {}, COARSE)
    equal = build_road_map(case.graph, case.profile, ones, COARSE)
    assert np.array_equal(none.levels, equal.levels)


def test_a_source_that_was_idle_when_the_map_was_built_can_still_be_shed() -> None:
    """An idle source is where bursts come from. 'Shedding everything' must include it."""
    case = fig_3_3_case()
    road_map = build_road_map(case.graph, case.profile, {"i1": 100.0, "i2": 0.0}, COARSE)
    at = problem_of(replace(case, rows={"i1": 0.0, "i2": 1000.0}), budget_us=2500.0)
    plan = RoadMapShedder(road_map).plan(at)
    assert isinstance(plan, Plan), plan
    certify(at, plan)


def test_a_network_that_costs_nothing_has_one_row() -> None:
    case = fig_3_3_case(op1=0.0, op2=0.0, op3=0.0, op4=0.0)
    assert len(road_map_of(case)) == 1


# --- subsumption (3.5) ----------------------------------------------------------------------------------------------


def first_row_with(road_map: RoadMap, arc: str, start: int = 0) -> int:
    column = road_map.layout.arcs.index(arc)
    found = np.flatnonzero(road_map.keeps[start:, column] < 1)
    assert found.size, f"no drop on {arc}"
    return start + int(found[0])


def test_a_drop_upstream_subsumes_an_equal_drop_below() -> None:
    """B drops 50 % first (it hardly hurts). When A comes to drop 50 % too, B's drop disappears: p_B <= p_A."""
    case = fig_3_3_case()
    road_map = road_map_of(case)
    plans = [road_map.plan(row, case.rows, "") for row in range(len(road_map))]
    first_b = first_row_with(road_map, "op1>op2")
    assert plans[first_b].keep("op1>op2") == 0.5
    first_a = first_row_with(road_map, "i1")
    assert first_a > first_b
    before, after = plans[first_a - 1], plans[first_a]
    assert before.keep("op1>op2") == after.keep("i1") == 0.5
    assert "op1>op2" not in after.drops
    assert after.delivered["o1"] == before.delivered["o1"] == pytest.approx(0.5)
    assert after.delivered["o2"] == pytest.approx(0.5)


def test_a_deeper_drop_below_is_reduced_so_that_its_total_stays() -> None:
    """With p_B > p_A, B keeps 1 - p_B of the whole: its own drop shrinks to (1 - p_B) / (1 - p_A)."""
    graph = figure_3_3(QoS(((100, 1), (0, 0.95))), QoS(), QoS())
    profile = Profile({"op1": 2.0, "op2": 10.0, "op3": 10.0, "op4": 0.001}, {"op1": 0.5})
    case = Case(graph, profile, {"i1": 100.0, "i2": 100.0})
    road_map = road_map_of(case)
    first_a = first_row_with(road_map, "i1")
    column = road_map.layout.arcs.index("op1>op2")
    assert road_map.levels[first_a - 1, column] == COARSE.last  # o1 is worth so little that it goes first, wholly
    ladder = Ladder(0.5)
    # Between two finite levels: p_B = 1 - 1/8, p_A = 1 - 1/2 gives a drop that keeps 1/4.
    assert ladder.between(1, 3) == 0.25


@steady(60)
@given(trees(most_locations=8))
def test_totals_below_never_change_when_a_drop_moves_upstream(case: Case) -> None:
    """From row to row each output's total either stays or falls by ladder steps: nothing is lost by subsumption."""
    road_map = road_map_of(case)
    assert (np.diff(road_map.delivered, axis=0) <= 1e-12).all()
    shares = np.array(COARSE.shares)
    nearest = np.abs(road_map.delivered[..., None] - shares).min(axis=-1)
    assert (nearest <= 1e-12).all()


# --- finding a row --------------------------------------------------------------------------------------------------


def scan(savings: np.ndarray, excess_us: float, cursor: int) -> int | None:
    """The search as the thesis tells it: from the cursor, up while too little is saved, else down while enough is."""
    if excess_us <= 0:
        return 0
    row = cursor
    if savings[row] >= excess_us:
        while row > 0 and savings[row - 1] >= excess_us:
            row -= 1
        return row
    while row < len(savings) and savings[row] < excess_us:
        row += 1
    return row if row < len(savings) else None


@steady(60)
@given(dags(), st.data())
def test_find_equals_a_scan_from_any_cursor(case: Case, data: st.DataObject) -> None:
    road_map = road_map_of(case)
    mix = data.draw(st.fixed_dictionaries({s.name: st.sampled_from((0.0, *ROWS)) for s in case.graph.sources}))
    savings = road_map.saves_us @ np.array([mix[source.name] for source in case.graph.sources])
    top = float(savings.max())
    some = [float(value) for value in savings[:: max(1, len(savings) // 5)]]
    for excess in (-1.0, 0.0, 1e-9, 0.37 * top, top, top * 1.01 + 1, *some):
        for cursor in {0, 1, len(road_map) // 2, len(road_map) - 1} & set(range(len(road_map))):
            row = scan(savings, excess, cursor)
            assert road_map.find(mix, excess, cursor) == row, (excess, cursor)
            assert row is None or excess <= 0 or savings[row] >= excess


@steady(60)
@given(dags(), st.data())
def test_the_cursor_does_not_matter_for_the_rates_of_the_map(case: Case, data: st.DataObject) -> None:
    road_map = road_map_of(case)
    savings = road_map.savings_us(case.rows)
    excess = data.draw(st.floats(0.0, 1.0)) * float(savings[-1])
    first = road_map.find(case.rows, excess)
    assert {road_map.find(case.rows, excess, cursor) for cursor in range(len(road_map))} == {first}
    assert first is not None
    assert first == 0 or savings[first - 1] < excess <= savings[first]


@pytest.mark.parametrize("cursor", [-3, 10**9])
def test_a_cursor_from_another_map_is_harmless(cursor: int) -> None:
    case = fig_3_3_case()
    road_map = road_map_of(case)
    assert road_map.find(case.rows, 100.0, cursor) == road_map.find(case.rows, 100.0)


# --- the shedder ----------------------------------------------------------------------------------------------------

parts = st.floats(0.0, 1.3)


@steady(60)
@given(dags(drops_us=(0.0, 0.05)), parts)
def test_plans_certify_and_nothing_is_dropped_below_capacity(case: Case, part: float) -> None:
    road_map, full = build_road_map(case.graph, case.profile, case.rows, COARSE), problem_of(case)
    at = replace(full, budget_us=full.unavoidable_us + part * (full.load_us - full.unavoidable_us))
    plan = RoadMapShedder(road_map).plan(at)
    if isinstance(plan, Infeasible):
        certify(at, plan.best, within_budget=False)
        return
    certify(at, plan)
    if at.load_us <= at.budget_us:
        assert (plan.row, dict(plan.drops), plan.reason) == (0, {}, "predicted within budget")
    else:
        assert plan.row > 0
        assert plan.reason == "overload"


@steady(60)
@given(dags(drops_us=(0.0, 0.05), merge=True), st.floats(0.02, 0.98))
def test_a_plan_saves_what_is_asked_and_hardly_more(case: Case, part: float) -> None:
    """A row alone overshoots by up to one level; a plan between two rows meets the budget, and is worth no less."""
    road_map, full = road_map_of(case), problem_of(case)
    excess_us = part * float(road_map.savings_us(case.rows)[-1])
    row = road_map.find(case.rows, excess_us)
    assert row is not None
    plan, whole = road_map.plan_between(row, case.rows, excess_us, ""), road_map.plan(row, case.rows, "")
    certify(replace(full, budget_us=full.load_us - excess_us), plan)
    assert row - 1 < plan.row <= row
    assert plan.utility >= whole.utility - 1e-9
    if case.profile.drop_us == 0.0:
        assert plan.saves_us == pytest.approx(excess_us, rel=1e-5)


def test_between_two_rows_a_drop_keeps_a_share_between() -> None:
    net = Network("one")
    net.source("s", "x int").with_columns({"y": "x"}, name="work").output("o")
    road_map = build_road_map(net.graph, Profile({"work": 10.0}, {}), {"s": 100.0}, COARSE)
    plan = road_map.plan_between(2, {"s": 100.0}, 600.0, "")
    assert (road_map.plan(1, {"s": 1}, "").keep("s"), road_map.plan(2, {"s": 1}, "").keep("s")) == (0.5, 0.25)
    assert plan.keep("s") == pytest.approx(0.4)
    assert (plan.row, plan.saves_us, plan.delivered["o"]) == pytest.approx((1.4, 600.0, 0.4))


@steady(50)
@given(dags(), st.lists(parts, min_size=2, max_size=6))
def test_more_capacity_is_never_worth_less(case: Case, shares: list[float]) -> None:
    shedder, full = RoadMapShedder(road_map_of(case)), problem_of(case)
    span = full.load_us - full.unavoidable_us
    plans = [shedder.plan(replace(full, budget_us=full.unavoidable_us + part * span)) for part in sorted(shares)]
    worth = [plan.best.utility if isinstance(plan, Infeasible) else plan.utility for plan in plans]
    assert all(low <= high + 1e-9 for low, high in pairwise(worth))


@steady(60)
@given(dags(merge=True), st.data())
def test_plans_certify_when_the_mix_of_sources_has_changed(case: Case, data: st.DataObject) -> None:
    """A road map outlives the rates it was built with: its plans must still be true about what is delivered."""
    shedder = RoadMapShedder(road_map_of(case))
    mix = data.draw(st.fixed_dictionaries({s.name: st.sampled_from(ROWS) for s in case.graph.sources}))
    full = problem_of(replace(case, rows=mix))
    part = data.draw(st.floats(0.1, 0.9))
    at = replace(full, budget_us=full.unavoidable_us + part * (full.load_us - full.unavoidable_us))
    plan = shedder.plan(at)
    assert isinstance(plan, Plan)
    certify(at, plan)


@steady(40)
@given(trees(), st.data())
def test_on_trees_plans_certify_whatever_the_mix(case: Case, data: st.DataObject) -> None:
    shedder = RoadMapShedder(road_map_of(case))
    mix = data.draw(st.fixed_dictionaries({s.name: st.sampled_from(ROWS) for s in case.graph.sources}))
    full = problem_of(replace(case, rows=mix))
    part = data.draw(st.floats(0.1, 0.9))
    at = replace(full, budget_us=full.unavoidable_us + part * (full.load_us - full.unavoidable_us))
    plan = shedder.plan(at)
    assert isinstance(plan, Plan)
    certify(at, plan)


@steady(60)
@given(dags(), st.floats(1.0, 1e6))
def test_infeasible_is_a_value_with_a_reason_and_the_best_plan(case: Case, missing_us: float) -> None:
    road_map, full = road_map_of(case), problem_of(case)
    at = replace(full, budget_us=full.unavoidable_us - missing_us)
    answer = RoadMapShedder(road_map).plan(at)
    assert isinstance(answer, Infeasible)
    assert f"{missing_us / 1000:.0f} ms above the budget of {at.budget_us / 1000:.0f} ms" in answer.reason
    assert answer.best.row == len(road_map) - 1
    certify(at, answer.best, within_budget=False)
    assert planned_load_us(at, answer.best) == pytest.approx(at.unavoidable_us, abs=1e-6)


def test_infeasible_plans_still_say_what_is_delivered() -> None:
    case = fig_3_3_case()
    answer = RoadMapShedder(road_map_of(case)).plan(problem_of(case, -1.0))
    assert isinstance(answer, Infeasible)
    assert answer.best.delivered == delivered_shares(problem_of(case), answer.best)
    assert set(answer.best.delivered.values()) == {0.0}


def test_a_profile_that_names_strangers_is_refused() -> None:
    with pytest.raises(ValueError, match="ghost"):
        build_road_map(figure_3_3(), Profile({"ghost": 1.0}, {}), {"i1": 1.0})


def wide_network(branches: int) -> Graph:
    net = Network("wide")
    stream = net.source("s", "x int").where("x > 0", name="w")
    for number in range(branches):
        stream.where(f"x > {number}", name=f"b{number}").output(f"o{number}", qos=QoS(priority=1 + number % 5))
    return net.graph


def test_a_hundred_outputs_are_planned_in_advance_in_no_time() -> None:
    graph = wide_network(100)
    profile = Profile({operator.name: 1.0 for operator in graph.operators}, {})
    road_map = build_road_map(graph, profile, {"s": 1.0})
    assert (np.diff(road_map.savings_us({"s": 1.0})) > 0).all()
