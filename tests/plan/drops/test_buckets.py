"""Drops by bucket: nested along arcs, certified, serialised."""

from __future__ import annotations

import pytest

from jettison.errors import PlanError
from jettison.network import Network, QoS
from jettison.plan.certify import certify
from jettison.plan.drops.buckets import Buckets
from jettison.plan.placement.nested_buckets import with_buckets_left
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core


def _two() -> Network:
    net = Network("two")
    s, t = net.source("s", "x int"), net.source("t", "x int")
    both = s.union(t, name="u")
    both.where("x > 0", name="a").output("left")
    both.where("x > 5", name="b").output("right")
    return net


def test_a_plan_with_buckets_survives_its_dictionary_form() -> None:
    plan = Plan({"s": Buckets(48), "u>a": Buckets(12, 64, 0.75)})
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.to_dict()["drops"]["s"] == {"buckets": {"kept": 48, "buckets": 64}}


@pytest.mark.parametrize(
    ("given", "says"),
    [((65,), "keeps 65 of 64 buckets"), ((True,), "kept is True"), ((1.5,), "kept is 1.5"), ((1, 0), "0 buckets"),
     ((1, 64, 0.0), "0.0 is left from above")],
)  # fmt: skip
def test_bad_buckets_are_named(given: tuple[int, ...], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Buckets(*given)


def test_shares_behind_a_union_of_streams_that_lost_different_shares() -> None:
    """Of s 16 of 64 buckets come, of t all: a drop that keeps 32 takes nothing of s, and half of t."""
    graph = _two().graph
    drops = with_buckets_left(
        graph, Profile({}, {}), {"s": 100.0, "t": 300.0}, {"s": Buckets(16), "u>a": Buckets(32), "u>b": Buckets(8)}
    )
    assert drops["u>a"].keep == pytest.approx((25 + 150) / (25 + 300))
    assert drops["u>b"].keep == pytest.approx(400 / 8 / (25 + 300))
    problem = Problem(graph, Profile({"u": 1.0, "a": 1.0, "b": 1.0}, {}), {"s": 100.0, "t": 300.0}, 625.0)
    certify(problem, claimed(problem, drops, "overload"))
    wrong = claimed(problem, {**drops, "u>b": Buckets(8)}, "overload")
    with pytest.raises(PlanError, match=r"arc 'u>b' says that drops above leave 1\.0000"):
        certify(problem, wrong, within_budget=False)


def test_buckets_stand_neither_above_estimates_nor_above_joins() -> None:
    net = Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, zone int", event_time="at", id=["trip"])
    trips.window("1 minute", by="zone").agg(n="count(*)", name="n").output("busy", qos=QoS(on_loss="estimate"))
    problem = Problem(net.graph, Profile({"n": 1.0}, {}), {"trips": 100.0}, 50.0)
    with pytest.raises(PlanError, match="above estimates"):
        certify(problem, claimed(problem, {"trips": Buckets(32)}, "overload"))
    net = Network("shop")
    orders = net.source("orders", "id long, at timestamp", event_time="at")
    paid = net.source("paid", "id long, at timestamp, sum double", event_time="at").select("id", "sum")
    orders.join(paid, on="id", within="1 minute", name="both").output("o")
    problem = Problem(net.graph, Profile({"both": 1.0}, {}), {"orders": 100.0, "paid": 100.0}, 50.0)
    with pytest.raises(PlanError, match="above a join of streams"):
        certify(problem, claimed(problem, {"orders": Buckets(16), "paid": Buckets(16)}, "overload"))
