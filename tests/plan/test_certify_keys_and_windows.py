"""The certificate: drops by key on both sides of joins, schedules of windows of rows, groups with gaps of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.errors import PlanError
from jettison.network import Graph
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.certify import certify
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, GroupCells
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.plan.safe import ScaledPlan
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import Schedule, Segment
from jettison.plan.windows.group_values import window_drops
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

S = 1_000_000


def shop() -> Graph:
    net = jt.Network("shop")
    orders = net.source("orders", "id long, part int, at timestamp", event_time="at").where("id > 0", name="sound")
    paid = net.source("payments", "of long, piece int, sum double, paid timestamp", event_time="paid")
    named = paid.select("of AS id", "piece AS part", "sum", "paid", name="named")
    orders.join(named, on=["id", "part"], within="1 minute", name="both").output("pairs")
    orders.output("all")
    return net.graph


def certified(graph: Graph, drops: Mapping[str, Drop]) -> None:
    rows = {source.name: 1000.0 for source in graph.sources}
    costs = Profile({each.name: 1.0 for each in graph.operators}, {})
    problem = Problem(graph, costs, rows, 0.0)
    certify(problem, claimed(problem, drops, "overload"), within_budget=False)


def key(keep: float, *, of: float = 1.0, seed: str = "key", columns: tuple[str, ...] = ("id", "part")) -> ByKey:
    return ByKey(columns, keep, seed, of)


def test_drops_by_key_that_keep_the_same_keys_on_both_sides_are_certified() -> None:
    theirs = key(0.25, columns=("of", "Piece"))
    certified(shop(), {"orders": key(0.25), "payments": theirs})
    certified(shop(), {"orders": key(0.5), "sound>both": key(0.5, of=0.5), "payments": theirs})
    certified(shop(), {"sound>both": key(0.5), "payments": theirs})


@pytest.mark.parametrize(
    ("drops", "told"),
    [
        ({"orders": key(0.5), "payments": key(0.5, seed="other", columns=("of", "piece"))}, "'payments' has the seed"),
        ({"orders": key(0.5), "payments": key(0.5, columns=("piece", "of"))}, "is of, piece: both sides"),
        ({"orders": key(0.5, columns=("id",))}, r"by id; the key of join 'both' below it is id, part"),
    ],
)
def test_drops_by_key_that_keep_other_keys_on_one_side_are_refused(drops: dict[str, Drop], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        certified(shop(), drops)


@pytest.mark.parametrize(
    ("drops", "arc"),
    [
        ({"orders": Random(0.5), "payments": Random(0.5)}, "orders"),
        ({"orders": key(0.5), "payments": Random(0.5)}, "payments"),
        ({"sound>both": Random(0.5), "payments": Random(0.5)}, "payments"),
    ],
)
def test_rows_that_go_by_chance_on_both_sides_of_a_join_are_refused(drops: dict[str, Drop], arc: str) -> None:
    """A quarter of the pairs would be left, and the plan says half."""
    with pytest.raises(PlanError, match=rf"'{arc}' is by chance, .* drop by its key \(id, part\) on both"):
        certified(shop(), drops)


def test_rows_may_go_by_chance_from_one_side_or_where_the_other_is_closed() -> None:
    certified(shop(), {"orders": Random(0.5)})
    certified(shop(), {"sound>both": Random(0.5), "payments": Random(0.0)})


def test_a_shedder_that_drops_by_chance_above_a_join_is_replaced_by_a_plan_whose_claim_holds() -> None:
    class Own:
        def plan(self, problem: Problem) -> Plan:
            return Plan({source.name: Random(0.4) for source in problem.graph.sources}, "overload")

    costs = Profile({"sound": 1.0, "both": 20.0, "pairs": 5.0}, {})
    loop = Controller(shop(), Settings(40.0, shedder=Own()), costs)
    plan = loop.decide({"orders": 1000, "payments": 1000}, 0.0)
    assert loop.refused is not None
    assert {drop.judges for drop in plan.drops.values()} == {"key"}


@pytest.mark.parametrize("of", [1.0, 0.25, 0.501])
def test_a_drop_by_key_that_is_wrong_about_what_is_left_above_is_refused(of: float) -> None:
    """With `of` 1.0 the second drop keeps all that the first one kept: of the pairs half are left, not a quarter."""
    with pytest.raises(
        PlanError, match=rf"'sound>both' says that drops above leave {of:.4f} of the keys, it is 0.5000"
    ):
        certified(shop(), {"orders": key(0.5), "sound>both": key(0.5, of=of)})


def test_whoever_plans_drops_by_key_know_what_is_left_above() -> None:
    """A plan that is scaled had 1 there, and one of a user's own may have anything."""
    graph, costs = shop(), Profile({"sound": 1.0, "both": 20.0, "pairs": 5.0}, {})
    drops = {"orders": key(0.8), "sound>both": key(0.6, of=0.3), "payments": key(0.48, columns=("of", "piece"))}

    class Own:
        def plan(self, problem: Problem) -> Plan:
            return Plan(drops, "overload")

    for shedder in (Own(), ScaledPlan(Plan(drops, "overload"))):
        loop = Controller(graph, Settings(40.0, shedder=shedder), costs)
        plan = loop.decide({"orders": 1000, "payments": 1000}, 0.0)
        assert loop.refused is None
        below = plan.drops["sound>both"]
        assert isinstance(below, ByKey)
        assert below.of == pytest.approx(plan.keep("orders"))


def quotes() -> Graph:
    net = jt.Network("quotes")
    rows = net.source("quotes", "price double").window("10 rows").agg(p="avg(price)", name="means")
    rows.where("p > 5", name="dear").output("out", qos=jt.QoS(gap=4))
    return net.graph


def of_rows(graph: Graph, schedule: Schedule, share: float = 0.6) -> dict[str, Drop]:
    fates = {"means": Fate(10, schedule, share, counts_rows=True)}
    return dict(window_drops(graph, decisions_of(graph), fates))


def test_the_schedule_of_windows_of_rows_is_certified() -> None:
    graph = quotes()
    for share in (0.3, 0.8, 1.0):
        certified(graph, of_rows(graph, decisions_of(graph).fates({"means": share})["means"].schedule, share))


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        Schedule((Segment(0, 0.9, 9, "means", together=1),)),
        Schedule((Segment(0, 1.0, 4, "means", together=1),)),
        Schedule((Segment(3, 0.6, 4, "means", together=1),)),
        Schedule((Segment(0, 0.6, 4, "means", together=1),), {"0": (Segment(0, 1.0, 4, "means"),)}),
    ],
    ids=["none", "a longer gap", "closed", "blocks elsewhere", "groups"],
)
def test_another_schedule_of_windows_of_rows_is_refused(schedule: Schedule) -> None:
    """It was obeyed as a user's own shedder gave it: nine windows in a row went where four may."""
    graph = quotes()
    with pytest.raises(PlanError, match=r"the schedule of 'means', whose windows count rows, is not that of a share"):
        certified(graph, of_rows(graph, schedule))


def taxi() -> Graph:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, zone string", event_time="at")
    busy = trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(gap=4, gaps={"zone": {"airport": 0, "harbour": 1}}))
    return net.graph


GROUPS = GroupCells("zone", (), (0.0, 0.5, 0.7), ("airport", "harbour"), (0, 1, 4))


def of_groups(graph: Graph, cells: GroupCells | None, share: float = 0.7) -> dict[str, Drop]:
    schedule = Schedule((Segment(0, share, 4, "busy", together=1),))
    return dict(window_drops(graph, decisions_of(graph), {"busy": Fate(10 * S, schedule, share, cells)}))


def test_groups_with_gaps_of_their_own_are_certified_as_declared() -> None:
    graph = taxi()
    certified(graph, of_groups(graph, GROUPS))
    certified(graph, of_groups(graph, replace(GROUPS, shares=(0.0, 1.0, 1.0)), 1.0))
    loop = Controller(graph, Settings(1000.0), Profile({"trips": 1.0, "busy": 3.0}, {"busy": 0.01}))
    plan = loop.decide({"trips": 700_000}, 0.0, marks=BatchMarks(graph, {"busy": Mark(100 * S, 90 * S)}))
    assert plan.fates["busy"].cells is not None
    assert loop.refused is None


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (None, "0.7000 of the windows of 'busy' go for zone 'airport': its gap of 0 does not allow it"),
        (replace(GROUPS, shares=(0.0, 0.6, 0.7)), "for zone 'harbour': its gap of 1"),
        (replace(GROUPS, shares=(0.1, 0.5, 0.7)), "for zone 'airport'"),
        (replace(GROUPS, gaps=(9, 9, 4), shares=(0.7, 0.7, 0.7)), "has gaps by 'zone' for 'airport', 'harbour'"),
        (replace(GROUPS, names=("port", "harbour")), "the plan tells apart 'port', 'harbour' by 'zone'"),
        (replace(GROUPS, column="n"), "by 'n'"),
    ],
)
def test_named_groups_that_lose_more_than_they_may_are_refused(cells: GroupCells | None, told: str) -> None:
    graph = taxi()
    with pytest.raises(PlanError, match=told):
        certified(graph, of_groups(graph, cells))
