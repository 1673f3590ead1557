"""Groups that are worth little lose their windows first; windows that come are as if nothing was shed."""

from __future__ import annotations

import bisect
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, Row, S, plain, source, trips_of

import jettison as jt
from jettison.errors import StartError
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.schedules import scheduled
from jettison.plan.refine.window_lookahead import resolve_window_drops
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import keep
from jettison.plan.windows.group_gaps import named_groups
from jettison.plan.windows.group_values import with_groups_apart
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.raw_rows import dropped_raw
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

VALUE = jt.Value("area", [(0, 1, 0.1), (1, 3, 1.0)], otherwise=0.5, histogram=[(0, 1, 0.3), (1, 3, 0.7)])


def network() -> jt.Network:
    """Fours by zone, and sixteens of them: both outputs value the zone, which has another name further down."""
    net = jt.Network("taxi")
    fours = source(net).where("fare > 3", name="paid").window("4 seconds", by="zone", delay="4 seconds")
    counted = fours.agg(n="count(*)", sum="sum(fare)", name="fours").select("*", "zone AS area", name="named")
    counted.output("table", qos=jt.QoS(gap=4, value=VALUE))
    sixteens = counted.window("16 seconds", slide="8 seconds", by="area").agg(most="max(sum)", name="sixteens")
    sixteens.output("peaks", qos=jt.QoS(gap=6, value=VALUE))
    return net


def asking(jobs: jt.Network, share: float) -> Plan:
    decisions = decisions_of(jobs.graph)
    asked = dict.fromkeys(decisions.by_aggregate, share)
    plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
    return with_groups_apart(Problem(jobs.graph, Profile({"trips": 1.0}, {}), {"trips": 60.0}, 1.0), plan)


def is_kept(plan: Plan, name: str, zone: int | None, start_s: float) -> bool:
    fate = plan.fates.get(name)
    if fate is None:
        return True
    if fate.cells is not None:
        edges = fate.cells.bounds
        fate = fate.within(len(edges) - 1 if zone is None else bisect.bisect_right(edges, zone) - 1)
    return keep(fate.schedule, round(start_s * S) // fate.slide_us)


@pytest.mark.long
def test_what_comes_is_right_for_every_group(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(11, 60, step_s=11, late_s=12)
    shares = [0.0, 0.5, 0.5, 0.7, 0.7, 0.2, 0.2, 0.6, 0.6, 0.0, 0.0]
    full, shed = Hand(spark, tmp_path / "full", network()), Hand(spark, tmp_path / "shed", network())
    decisions = decisions_of(shed.graph)
    plans: list[Plan] = []
    went = 0
    for number, batch in enumerate(batches):
        full.run(number, batch)
        before = plans[-1].fates if plans else {}
        asked = asking(jt.Network.of(shed.graph), shares[number])
        plans.append(Plan.from_json(scheduled(decisions, asked, before, shed.state.marks(number)).to_json()))
        measured = shed.run(number, batch, plans[-1])
        if number == 5:  # a new process does it again
            shed = shed.again()
            decisions = decisions_of(shed.graph)
            assert shed.run(number, batch, plans[-1]).arcs == measured.arcs
        went += measured.arcs["trips"][0] - measured.arcs["trips"][1]
    for output, name, zone_at, start_at in (("table", "fours", 0, 1), ("peaks", "sixteens", 0, 1)):
        everything: list[Row] = []
        wanted: list[Row] = []
        for number, plan in enumerate(plans):
            closed = list(map(plain, full.sinks[output].batches.get(number, [])))
            everything += closed
            wanted += [row for row in closed if is_kept(plan, name, row[zone_at], row[start_at])]
        assert 5 <= len(wanted) < len(everything)
        assert shed.rows(output) == sorted(wanted, key=repr)
        came = {zone: sum(row[zone_at] == zone for row in wanted) for zone in (0, 1)}
        there = {zone: sum(row[zone_at] == zone for row in everything) for zone in (0, 1)}
        assert came[0] / there[0] < came[1] / there[1], "zone 0 is worth a tenth"
    assert went > 60, "and rows went before they were parsed"
    full.close()
    shed.close()


def test_of_a_payload_time_and_group_are_parsed_alone(spark: SparkSession) -> None:
    net = jt.Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, area int", event_time="at", id=["trip"], payload="json")
    trips.window("10 seconds", by="area").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(value=VALUE))
    marks = BatchMarks(net.graph, {"busy": Mark(100 * S, 90 * S)})
    plan = scheduled(decisions_of(net.graph), asking(net, 0.3), {}, marks)
    for_now = resolve_window_drops(WindowArcs(net.graph), plan, marks)
    drop = for_now.drops["trips"]
    assert isinstance(drop, Window)
    assert drop.resolved is not None
    assert drop.resolved.column == "area"
    assert drop.cells[0] == 0.0
    assert replace(drop, resolved=None) == plan.drops["trips"]
    assert Plan.from_json(for_now.to_json()) == for_now, "what is worked out for a batch is logged"
    rows = [f'{{"trip": {n}, "at": "1970-01-01T00:0{n}:00Z", "area": {n % 3}}}' for n in range(1, 9)]
    raw = spark.createDataFrame(
        [(row,) for row in [*rows, '{"trip": 9, "at": "1970-01-01T00:09:00Z"}']], "value string"
    )
    passed = dropped_raw(net.graph.sources[0], raw, raw.columns, for_now, ExpressionCache())
    left = sorted(row.value for row in passed.select("value").collect())
    assert left == sorted(each.value for each in raw.collect() if '"area": 0' not in each.value or ":01:" in each.value)


def test_groups_have_gaps_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """Of buses no window is ever missing; of cabs up to four, and when the output is closed all."""

    def build() -> jt.Network:
        net = jt.Network("taxi")
        busy = source(net).window("4 seconds", by=["kind", "zone"], delay="4 seconds").agg(n="count(*)", name="busy")
        busy.output("table", qos=jt.QoS(gap=4, gaps={"kind": {"bus": 0}}))
        return net

    batches = trips_of(9, 60, step_s=11, late_s=12)
    shares = [0.5, 0.5, 0.8, 0.8, 1.0, 1.0, 0.3, 0.3, 0.0]
    full, shed = Hand(spark, tmp_path / "full", build()), Hand(spark, tmp_path / "shed", build())
    decisions, named = decisions_of(shed.graph), named_groups(shed.graph)
    problem = Problem(shed.graph, Profile({"trips": 1.0}, {}), {"trips": 60.0}, 1.0)
    plans: list[Plan] = []
    went = 0
    for number, batch in enumerate(batches):
        full.run(number, batch)
        asked = {"busy": shares[number]}
        plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
        before = plans[-1].fates if plans else {}
        plans.append(scheduled(decisions, with_groups_apart(problem, plan, named), before, shed.state.marks(number)))
        measured = shed.run(number, batch, plans[-1])
        rows, passed = measured.arcs["trips"]
        went += rows - passed
        counted = measured.groups["busy"]
        assert counted.sizes == {0: sum(row[3] == "bus" for row in batch)}, "none of them goes"
        assert counted.rows == passed
    wanted: list[Row] = []
    for number, plan in enumerate(plans):
        for row in map(plain, full.sinks["table"].batches.get(number, [])):
            fate = plan.fates.get("busy", Fate(4 * S)).within(0 if row[0] == "bus" else 1)
            wanted += [row] if keep(fate.schedule, round(row[2] * S) // fate.slide_us) else []
    assert plans[4].reason.endswith("table closed but for 'bus'")
    assert shed.rows("table") == sorted(wanted, key=repr)
    buses, cabs = ([row for row in full.rows("table") if row[0] == kind] for kind in ("bus", "cab"))
    assert [row for row in shed.rows("table") if row[0] == "bus"] == buses
    assert 5 < len(wanted) - len(buses) < 0.8 * len(cabs)
    assert went > 40, "cabs went before they were parsed"
    full.close()
    shed.close()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("fare", 1, r"QoS gaps of 'fare' name '1': as a double that is '1.0': write it so"),
        ("zone", "1.0", r"QoS gaps of 'zone' name '1.0': (no int is that|as a int that is '1': write it so)"),
        ("zone", "airport", r"QoS gaps of 'zone' name 'airport': no int is that"),
    ],
)
def test_a_name_that_no_group_has_is_refused(
    spark: SparkSession, tmp_path: Path, column: str, value: object, message: str
) -> None:
    net = jt.Network("taxi")
    busy = source(net).window("4 seconds", by=["kind", "zone", "fare"]).agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(gap=4, gaps={column: {value: 0}}))
    with pytest.raises(StartError, match=message):
        Hand(spark, tmp_path, net)
