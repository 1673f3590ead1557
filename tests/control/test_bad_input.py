"""Bad input that the loop must bear: a source faster than reading itself, networks of one operator and of 300, an
output without rows for an hour. What Spark does with them is in tests/spark/run/test_bad_input.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.control.test_worthwhile import Machine, fan, profile_of

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.plan.refine.unread import Unread
from jettison.plan.shedders.registry import SHEDDERS
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.telemetry.report import Totals

pytestmark = pytest.mark.core


def test_a_source_faster_than_reading_itself_is_read_in_part_where_records_can_be_skipped() -> None:
    """A second of rows takes two seconds to read: batches stay within the trigger, for most records stay unread."""
    graph = fan(1)
    truth = replace(profile_of(graph, 50.0, row_us=20.0), read_us={"trips": 50.0})
    loop = Controller(graph, Settings(1000.0), truth)
    names = frozenset({"trips"})
    took_ms = []
    for batch in range(20):
        share = loop.read_share({"trips": 40_000}, names)
        rows = {"trips": round(share * 40_000)}
        plan = loop.decide(rows, 1000.0 * batch, unread=Unread({"trips": 40_000 - rows["trips"]}))
        work_ms = 50.0 + rows["trips"] * (50.0 + 20.0 * plan.keep("trips")) / 1000
        took_ms.append(work_ms)
        loop.record(BatchSample(batch, 1000.0 * batch, 1000.0, work_ms, rows))
    assert max(took_ms) <= 1000.0
    assert rows["trips"] >= 4_000, "as much as there is time for, not a trickle"


def test_a_source_faster_than_reading_itself_that_cannot_be_skipped_is_said() -> None:
    """Nothing can help there: no row is dropped for nothing, and the run says why it cannot keep up."""
    graph = fan(1)
    truth = replace(profile_of(graph, 50.0, row_us=1.0), read_us={"trips": 50.0})
    ran = Machine(Controller(graph, Settings(1000.0), truth), truth, rows_per_s=40_000.0).run(6)
    assert ran.controller.infeasible is not None
    assert "reading" in ran.controller.infeasible
    assert not any(plan.sheds for plan in ran.plans)


@pytest.mark.parametrize("shedder", SHEDDERS)
def test_a_network_of_one_operator(shedder: str) -> None:
    net = jt.Network("one")
    net.source("s", "x int").output("o")
    loop = Controller(net.graph, Settings(1000.0, shedder=shedder), Profile({"o": 10.0}, {}))
    assert loop.decide({"s": 360_000}, 1000.0).delivered["o"] == pytest.approx(0.25, abs=0.01)
    assert loop.infeasible is None


def branches(outputs: int, steps: int) -> jt.Graph:
    net = jt.Network("many")
    trips = net.source("trips", "x int")
    for number in range(outputs):
        stream = trips
        for step in range(steps):
            stream = stream.where(f"x <> {step}", name=f"w{number}_{step}")
        stream.output(f"o{number}", qos=jt.QoS([(100, 1.0), (50, 0.8), (0, 0.0)], priority=1.0 + number % 5))
    return net.graph


@pytest.mark.parametrize("shedder", ["semantic", "exact", "input-uniform"])
def test_a_network_of_300_operators(shedder: str) -> None:
    graph = branches(30, 9)
    assert len(graph.operators) > 300
    truth = Profile({operator.name: 1.0 for operator in graph.operators if operator.name.startswith("w")}, {})
    loop = Controller(graph, Settings(1000.0, shedder=shedder), truth)
    ran = Machine(loop, truth, rows_per_s=10_000.0).run(4)  # 2.7 s a batch
    assert max(ran.took_ms) <= 1000.0
    assert loop.uncertified == 0
    assert sum(ran.plans[-1].delivered.values()) > 0.3 * 30


def test_an_output_without_rows_for_an_hour_costs_nothing_and_comes_back() -> None:
    """3,600 batches of a second: its filter passes nothing, and no figure of it is off then."""
    net = jt.Network("quiet")
    s = net.source("s", "x int")
    s.where("x > 9", name="rare").output("alarms", qos=jt.QoS(priority=5))
    s.where("x > 0", name="usual").output("all")
    loop = Controller(net.graph, Settings(1000.0), Profile({"rare": 1.0, "usual": 2.0}, {"rare": 0.1}))
    totals = Totals(net.graph, 900.0, 3000.0)
    for second in range(3600):
        plan = loop.decide({"s": 100_000}, 1000.0 * second)
        counted = dict.fromkeys(plan.arcs or ("s",), (100000, 100000))
        outputs = {"alarms": OutputSample(0), "all": OutputSample(100_000, (900.0,) * 8)}
        sample = BatchSample(second, 1000.0 * second, 1000.0, 320.0, {"s": 100_000}, arcs=counted, outputs=outputs)
        loop.record(sample)
        totals.add(sample, plan)
    report = totals.report(3600.0, plan, loop.infeasible)
    assert (report.outputs["alarms"].rows, report.outputs["alarms"].utility) == (0, 1.0)
    assert report.worth_in_time == pytest.approx(1.0)
    loop.decide({"s": 900_000}, 3_600_000.0)
    burst = loop.decide({"s": 900_000}, 3_601_000.0)
    assert burst.sheds
    assert burst.delivered["alarms"] > 0.3, "what matters five times is not closed because it has had no rows"
