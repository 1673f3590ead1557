"""Plans for networks with joins of streams: whole keys, the same on both sides (thesis 3.7.3)."""

from __future__ import annotations

import pytest

from jettison.control.loop import Controller, Settings
from jettison.network import Graph, Network, QoS, Value
from jettison.plan.certify import certify, delivered_shares, plan_utility
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.placement.join_keys import droppable, key_at
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.registry import SHEDDERS
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

ROWS = {"s1": 1000.0, "s2": 1000.0}
COSTS = {"s1": 1.0, "s2": 1.0, "both": 5.0, "o": 1.0}


def joined(qos: QoS | None = None) -> Graph:
    net = Network("figure-3-10")
    one = net.source("s1", "x double, a int, at timestamp", event_time="at")
    two = net.source("s2", "y double, b int, at timestamp", event_time="at").select("y AS x", "b", name="named")
    one.select("x", "a", name="left").join(two, on="x", within="1 minute", name="both").output("o", qos=qos)
    return net.graph


def planned(graph: Graph, profile: Profile, budget_share: float) -> tuple[Problem, Plan]:
    problem = Problem(graph, profile, ROWS, 0.0)
    problem = problem.with_budget(budget_share * problem.load_us)
    plan = RoadMapShedder(build_road_map(graph, profile, ROWS)).plan(problem)
    assert isinstance(plan, Plan)
    return problem, plan


def test_the_same_keep_predicate_stands_on_both_inputs() -> None:
    """Table 3.4: output x 0-50 (u .25, f .1), 51-100 (u 1, f .9); inputs .4 / .6 and .2 / .8."""
    graph = joined(QoS(value=Value("x", [(0, 50, 0.25), (50, 100, 1.0)])))
    track = graph.tracks.by_output["o"]
    assert track.columns["s1"] == "x"
    assert track.columns["s2"] == "y"
    values = {
        "s1.x": tuple(track.spread([(0, 50, 0.4), (50, 100, 0.6)])),
        "s2.y": tuple(track.spread([(0, 50, 0.2), (50, 100, 0.8)])),
        "o.x": tuple(track.spread([(0, 50, 0.1), (50, 100, 0.9)])),
        "both.x": tuple(track.spread([(0, 50, 0.1), (50, 100, 0.9)])),
    }
    problem, plan = planned(graph, Profile(COSTS, {"both": 0.5}, values=values), 0.8)
    certify(problem, plan)
    one, two = plan.drops["s1"], plan.drops["s2"]
    assert isinstance(one, Semantic)
    assert isinstance(two, Semantic)
    assert (one.column, two.column) == ("x", "y")
    assert one.keeps == two.keeps
    assert set(one.keeps) <= {0.0, 1.0}  # whole cells: a part of one, by chance, would thin out pairs twice
    assert all(keep == 1.0 for keep, low in zip(one.keeps, one.bounds, strict=True) if low >= 50)
    upper = (*tuple(float(low >= 50) for low in track.bounds[:-1]), 0.0)
    halves = {"s1": Semantic("x", track.bounds, upper, 0.6), "s2": Semantic("y", track.bounds, upper, 0.8)}
    assert plan_utility(problem, Plan(halves)) == pytest.approx(0.973, abs=0.002)


def test_without_values_the_same_keys_are_kept_on_both_sides() -> None:
    graph = joined()
    problem, plan = planned(graph, Profile(COSTS, {"both": 0.5}), 0.5)
    certify(problem, plan)
    one, two = plan.drops["s1"], plan.drops["s2"]
    assert isinstance(one, ByKey)
    assert isinstance(two, ByKey)
    assert (one.columns, two.columns) == (("x",), ("y",))
    assert (one.keep, one.seed, one.of) == (two.keep, two.seed, two.of)
    assert plan.delivered["o"] == pytest.approx(one.keep)


def test_pairs_go_with_the_side_that_keeps_less() -> None:
    problem = Problem(joined(), Profile(COSTS, {"both": 0.5}), ROWS, 0.0)
    uneven = Plan({"s1": ByKey(("x",), 0.5, "key"), "s2": ByKey(("y",), 0.2, "key")})
    assert delivered_shares(problem, uneven)["o"] == pytest.approx(0.2)


def test_an_arc_without_the_key_is_not_thinned_out() -> None:
    net = Network("n")
    one = net.source("s1", "x double, at timestamp", event_time="at").with_columns({"k": "x + 1"}, name="made")
    two = net.source("s2", "k double, at timestamp", event_time="at")
    one.select("k", name="l").join(two.select("k", name="r"), on="k", within="1 minute", name="both").output("o")
    assert key_at(net.graph, "s1") is None
    assert not droppable(net.graph, "s1")
    assert droppable(net.graph, "s2")
    road_map = build_road_map(net.graph, Profile(COSTS, {}), ROWS)
    assert len(road_map) == 1  # neither side alone


def test_a_split_above_a_join_keeps_its_sides_alike() -> None:
    """s1 also feeds an output of its own: the branch to the join and s2 go down together, or both sources do."""
    net = Network("n")
    one = net.source("s1", "x double, a int, at timestamp", event_time="at").where("a > 0", name="some")
    two = net.source("s2", "x double, b int, at timestamp", event_time="at")
    one.output("own", qos=QoS(priority=5))
    one.select("x", "a", name="l").join(two.select("x", "b", name="r"), on="x", within="1 minute", name="both").output(
        "pairs"
    )
    profile = Profile({"s1": 1.0, "s2": 1.0, "some": 1.0, "own": 4.0, "both": 5.0, "pairs": 1.0}, {"some": 0.8})
    problem = Problem(net.graph, profile, ROWS, 0.0)
    road_map = build_road_map(net.graph, profile, ROWS)
    assert len(road_map) > 20
    kinds = set()
    for share in (0.9, 0.7, 0.5, 0.3, 0.1):
        asked = problem.with_budget(share * problem.load_us)
        plan = RoadMapShedder(road_map).plan(asked)
        assert isinstance(plan, Plan)
        certify(asked, plan)
        kinds |= {type(drop) for drop in plan.drops.values()}
        left = {arc: drop for arc, drop in plan.drops.items() if arc in ("s1", "some>l")}
        total = 1.0
        for drop in left.values():
            total *= drop.keep
        assert total == pytest.approx(plan.keep("s2"))
    assert kinds <= {ByKey, Random}
    assert ByKey in kinds


@pytest.mark.parametrize("name", SHEDDERS)
def test_nobody_thins_out_a_join_whose_key_cannot_be_told(name: str) -> None:
    net = Network("n")
    one = net.source("s1", "k string, at timestamp", event_time="at").select("upper(k) AS k", name="l")
    two = net.source("s2", "k string, at timestamp", event_time="at").select("upper(k) AS k", name="r")
    one.join(two, on="k", within="1 minute", name="both").output("o")
    loop = Controller(net.graph, Settings(1.0, shedder=name), Profile(COSTS, {}))
    plan = loop.decide({"s1": 1000, "s2": 1000}, 0.0)
    assert not plan.drops
    assert loop.infeasible is not None


@pytest.mark.parametrize("name", SHEDDERS)
def test_a_silent_source_is_not_closed_in_advance(name: str) -> None:
    net = Network("n")
    for source, priority in (("s1", 1.0), ("s2", 100.0)):
        qos = QoS(priority=priority, value=Value("x", [(0, 50, 0.2), (50, 100, 1.0)]))
        net.source(source, "x double").where("x > 0", name=f"w{source}").output(f"o{source}", qos=qos)
    costs = {"s1": 1.0, "s2": 1.0, "ws1": 5.0, "ws2": 5.0}
    loop = Controller(net.graph, Settings(10.0, shedder=name), Profile(costs, {}))
    assert "s2" not in loop.decide({"s1": 5000, "s2": 0}, 0.0).drops
    plan = loop.decide({"s1": 5000, "s2": 500}, 10.0)
    if not name.startswith(("input", "fair")):  # those do not ask what an output is worth
        assert plan.keep("s2") > 0.9


@pytest.mark.parametrize("budget_share", [0.15, 0.4, 0.6, 0.85])
def test_where_only_one_side_knows_the_value_both_lose_the_same_keys(budget_share: float) -> None:
    """Judged by value, one side would be closed at once while the other keeps its keys: pairs that nobody gets."""
    net = Network("one-sided")
    one = net.source("s1", "k int, x double, at timestamp", event_time="at")
    two = net.source("s2", "k int, y double, at timestamp", event_time="at").select("k", "y", name="right")
    joined_ = one.select("k", "x", name="left").join(two, on="k", within="1 minute", name="both")
    joined_.output("o", qos=QoS(value=Value("x", [(0, 50, 0.25), (50, 100, 1.0)])))
    profile = Profile({"s1": 1.0, "s2": 1.0, "both": 5.0, "o": 1.0}, {"both": 0.5})
    road_map = build_road_map(net.graph, profile, ROWS)
    for row in range(len(road_map)):
        plan = road_map.plan(row, ROWS, "")
        assert plan.keep("s1") == pytest.approx(plan.keep("s2")), row
    problem, plan = planned(net.graph, profile, budget_share)
    certify(problem, plan)
    assert {type(drop) for drop in plan.drops.values()} == {ByKey}
    assert plan.keep("s1") == pytest.approx(plan.keep("s2"))
