"""What a report says, from batches made by hand: no figure contradicts another (trust 7). No JVM."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import pytest

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.reasons import WINDOWS_EARLIER, kind_of_reason
from jettison.spark.checkpoint.logs import shed_entries
from jettison.statistics.account import Account
from jettison.statistics.arrival import TopicSample
from jettison.statistics.missing_results import MissingResults
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, FailedWindows, OutputSample
from jettison.telemetry.events import batch_event
from jettison.telemetry.report import Report, Totals
from jettison.testing import ManualClock

pytestmark = pytest.mark.core

S = 1_000_000


def branches() -> jt.Network:
    net = jt.Network("branches")
    stream = net.source("s", "x int")
    for name in ("a", "b"):
        stream.where("x > 0", name=name).output(f"{name}_out")
    return net


def batch(number: int = 0, duration_ms: float = 500.0, **others: object) -> BatchSample:
    sample = BatchSample(number, 0.0, 1000.0, duration_ms, {"s": 1000}, arcs={"s": (1000, 1000)})
    outputs = {"a_out": OutputSample(500), "b_out": OutputSample(500)}
    return replace(sample, outputs=outputs, **others)  # type: ignore[arg-type]


def reported(net: jt.Network, *batches: tuple[BatchSample, Plan]) -> Report:
    totals = Totals(net.graph, 900.0)
    for sample, plan in batches:
        totals.add(sample, plan)
    return totals.report(1.0, batches[-1][1], None)


def test_trust_7_what_branches_shed_is_not_added_up() -> None:
    """It was "878 shed on arcs (87.8 % of rows in)" beside outputs that lost 43.9 %."""
    plan = Plan({"s>a": Random(0.5), "s>b": Random(0.5)}, "overload", delivered={"a_out": 0.5, "b_out": 0.5})
    report = reported(branches(), (batch(arcs={"s": (1000, 1000), "s>a": (1000, 561), "s>b": (1000, 561)}), plan))
    assert report.shed_share == pytest.approx(0.439)
    assert [output.account.shed for output in report.outputs.values()] == [439.0, 439.0]
    assert "87.8" not in str(report)
    assert "1,000 rows in; outputs lost 43.9% of them to shedding (878 drops)" in str(report)


def test_trust_7_delivered_and_utility_are_counted_not_planned() -> None:
    """The plan said that half is delivered; of two batches the second delivered nothing."""
    plan = Plan({"s": Random(0.5)}, "overload", delivered={"a_out": 0.5, "b_out": 0.5})
    found = reported(branches(), *((batch(n, arcs={"s": (1000, kept)}), plan) for n, kept in enumerate((500, 0))))
    assert [(each.delivered_share, each.utility) for each in found.outputs.values()] == [(0.25, 0.25)] * 2
    assert [each.accuracy for each in found.outputs.values()] == [0.25, 0.25]


def test_trust_7_batches_over_budget_are_not_called_within_it() -> None:
    """It was 18 batches at twice the budget, each with the reason "within budget"."""
    loop = Controller(branches().graph, Settings(1000.0), Profile({"a": 1.0}, {}), clock=ManualClock())
    plan = loop.decide({"s": 1000}, 1000.0)
    assert plan.reason == "predicted within budget"
    report = reported(branches(), *((batch(n, 1800.0), plan) for n in range(18)), (batch(18), plan))
    assert (report.over_budget_batches, report.mispredicted_batches) == (18, 18)
    assert "budget 900 ms, 18 of 19 batches over it (18 although they were predicted to fit)" in str(report)


def test_trust_7_the_first_batch_is_not_mispredicted_as_nothing_was_predicted() -> None:
    """Before costs are measured nothing is predicted; nor before a batch has run with them."""
    graph = branches().graph
    plan = Plan(reason="predicted within budget")
    assert not batch_event(graph, batch(0, 1800.0), plan, budget_ms=900.0, calibrating=True).mispredicted
    loop = Controller(graph, Settings(1000.0), Profile({"a": 1.0}, {}), clock=ManualClock(), guessed=True)
    first = loop.decide({"s": 1000}, 1000.0)
    assert first.reason == "costs are not believed yet"
    report = reported(branches(), (batch(0, 1800.0), first))
    assert (report.over_budget_batches, report.mispredicted_batches) == (1, 0)
    loop.record(batch(0, 1800.0))
    assert loop.decide({"s": 1000}, 2000.0).reason == "predicted within budget"


def test_trust_7_seconds_behind_are_unknown_while_nothing_arrives() -> None:
    report = reported(branches(), (batch(topics={"trips": TopicSample(0.0, 28_924, None)}), Plan()))
    assert "28,924 behind (for how long is not known: none arrive)" in str(report)


def test_trust_4_results_that_are_missing_are_said_with_the_rows_that_they_have() -> None:
    """Nothing said that groups were lost."""
    missing = {"busy": MissingResults(rows=30.0, pairs=60.0)}
    report = reported(branches(), *((batch(n, missing=missing), Plan()) for n in range(2)))
    assert report.missing == {"busy": MissingResults(60.0, 120.0)}
    assert report.results_missing == pytest.approx(12.0)
    assert (
        "aggregate busy: results with about 60 rows are missing, of groups that lost every row in a window; they "
        in (str(report))
    )
    assert "are missing" not in str(reported(branches(), (batch(), Plan())))


def windowed() -> tuple[jt.Network, Controller, BatchMarks]:
    net = jt.Network("windows")
    trips = net.source("trips", "at timestamp, zone int", event_time="at")
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("table")
    loop = Controller(net.graph, Settings(1000.0), Profile({"busy": 5.0}, {}), clock=ManualClock())
    return net, loop, BatchMarks(net.graph, {"busy": Mark(95 * S, 80 * S)})


def test_trust_7_windows_decided_earlier_are_the_reason_when_nothing_more_goes() -> None:
    """It was rows shed with the reason "within budget": fates of windows still ran out."""
    net, loop, marks = windowed()
    for second in range(3):
        plan = loop.decide({"trips": 500_000}, 1000.0 * second, marks=marks)
    assert plan.reason.startswith("overload")
    later = BatchMarks(net.graph, {"busy": Mark(112 * S, 95 * S)})
    for second in range(3, 20):
        plan = loop.decide({"trips": 10}, 1000.0 * second, marks=later)
    assert plan.drops
    assert plan.reason == f"{WINDOWS_EARLIER} (now: predicted within budget)"
    assert kind_of_reason(plan.reason) == "windows_decided_earlier"
    sample = BatchSample(9, 0.0, 1e3, 5e2, {"trips": 10}, arcs={"trips": (10, 4)})
    assert [entry["reason"] for entry in shed_entries(sample, plan)] == [WINDOWS_EARLIER]


def test_the_house_the_ledger_of_a_dry_run_has_one_row_for_a_batch_and_an_arc() -> None:
    sample = BatchSample(9, 0.0, 1e3, 5e2, {"s": 10}, arcs={"s": (10, 10), "s>a": (10, 10)}, would={"s": (10, 4)})
    would = Plan({"s": Random(0.6)}, "overload", row=2.5)
    entries = shed_entries(sample, Plan(reason="dry run"), would)
    assert [entry["arc"] for entry in entries] == ["s", "s>a"]
    assert entries[0] == {
        "batch": 9,
        "arc": "s",
        "rows_in": 10,
        "rows_shed": 0,
        "reason": "dry run: overload",
        "plan_row": 2.5,
        "rows_would_shed": 4,
    }
    assert "rows_would_shed" not in entries[1]


def test_trust_7_results_of_windows_are_not_rows_of_a_source() -> None:
    """Results that are dropped behind an aggregate are counted apart, and windows are what an output of them gets."""
    net, _, _ = windowed()
    fates = {"busy": Fate(5 * S, drop_share=0.5)}
    drops = {"trips": Window(fates, 0.5), "busy>table": Window(fates, 0.5, of="busy")}
    plan = Plan(drops, "overload", delivered={"table": 0.5})
    counted = {"trips": (1000, 600), "trips>busy": (600, 600), "busy>table": (40, 30)}
    quiet = BatchSample(0, 0.0, 1e3, 5e2, {"trips": 1000}, arcs=counted, unneeded={"busy": 50})
    closing = replace(quiet, batch=1, windows={"busy": (8.0, 2.0)}, outputs={"table": OutputSample(30)})
    report = reported(net, (replace(quiet, outputs={"table": OutputSample(0)}), plan), (closing, plan))
    assert (report.rows_shed, report.results_shed) == (800, 20)
    assert report.outputs["table"].delivered_share == 0.25  # two of eight windows; the first batch closed none
    account = report.accounts["trips", "table"]
    assert (account.read, account.shed, account.processed) == (2000, 900, 1100)


def test_trust_7_a_report_beside_a_batch_is_whole() -> None:
    """The report was made while a batch was added: "dictionary changed size during iteration", or half of a batch."""
    net = branches()
    plan = Plan({}, "within budget")
    totals = Totals(net.graph, 900.0)
    latency_ms = (0.0, 50.0, 250.0, 500.0, 750.0, 950.0, 990.0, 1000.0)
    failures: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                report = totals.report(1.0, plan, None)
                assert report.rows_in == 1000 * report.batches
                assert sum(each.windows for each in report.failed.values()) == report.batches
                assert report.outputs["b_out"].rows == 500 * report.batches
                assert len(report.would_deliver) == 2 * bool(report.batches)
        except BaseException as error:
            failures.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    asking = threading.Thread(target=ask)
    try:
        asking.start()
        for number in range(300):
            outputs = {
                name: OutputSample(500, tuple(number + each for each in latency_ms)) for name in ("a_out", "b_out")
            }
            sample = batch(number, failed={f"w{number}": FailedWindows(1, "?")}, would={"s": (1000, 100)})
            sample = replace(sample, outputs=outputs, would_deliver={"a_out": 0.9, "b_out": 0.9})
            found = batch_event(net.graph, sample, plan, budget_ms=900.0)
            accounts = {**found.accounts, **{("s", f"{number}.{each}"): Account() for each in range(5)}}
            totals.add(sample, plan, replace(found, accounts=accounts))
    finally:
        done.set()
        asking.join()
        sys.setswitchinterval(usual)
    assert failures == []


@pytest.mark.parametrize(("kept", "worth"), [(1.0, 0.625), (0.0, 0.5), (4.0, 1.0)])
def test_worth_in_time_counts_results_not_windows(kept: float, worth: float) -> None:
    """Four windows were added to a thousand rows: losing all of them, with a thousand results, cost .4 %."""
    net = jt.Network("taxi")
    trips = net.source("trips", "zone int, at timestamp", event_time="at")
    trips.output("rows")
    busy = trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy")
    busy.output("zones", qos=jt.QoS(gap=4))
    plan = Plan({"busy>zones": Window({"busy": Fate(5 * S, drop_share=0.75)}, 0.25, of="busy")}, "overload")
    outputs = {"rows": OutputSample(1000), "zones": OutputSample(round(250 * kept))}
    sample = BatchSample(0, 0.0, 1e3, 5e2, {"trips": 1000}, outputs=outputs, windows={"busy": (4.0, kept)})
    totals = Totals(net.graph, 900.0)
    event = batch_event(net.graph, sample, plan, budget_ms=900.0, profile=Profile({}, {"busy": 1.0}))
    totals.add(sample, plan, event)
    assert totals.offered_rows("zones") == pytest.approx(1000.0)
    report = totals.report(1.0, plan, None)
    assert report.outputs["zones"].delivered_share == kept / 4
    assert report.worth_by_rows == pytest.approx(worth)
    assert report.worth_in_time == pytest.approx(worth), "two outputs of one priority, and as many rows of each"


def test_worth_in_time_weighs_by_priority_and_worth_by_rows_by_results_too() -> None:
    """Half of the windows are lost, four results of eight, beside a thousand rows."""
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp", event_time="at")
    trips.output("rows")
    trips.window("5 seconds").agg(n="count(*)", name="busy").output("board", qos=jt.QoS(gap=1, priority=3))
    plan = Plan({"busy>board": Window({"busy": Fate(5 * S, drop_share=0.5)}, 0.5, of="busy")}, "overload")
    outputs = {"rows": OutputSample(1000), "board": OutputSample(4)}
    sample = BatchSample(0, 0.0, 1e3, 5e2, {"trips": 1000}, outputs=outputs, windows={"busy": (8.0, 4.0)})
    report = reported(net, (sample, plan))
    assert report.worth_in_time == pytest.approx((1 + 3 * 0.5) / 4)
    assert report.worth_by_rows == pytest.approx((1000 + 3 * 4) / (1000 + 3 * 8))


def test_results_that_nobody_has_counted_are_one_for_a_window() -> None:
    net, _, _ = windowed()
    plan = Plan({"busy>table": Window({"busy": Fate(5 * S, drop_share=1.0)}, 0.0, of="busy")}, "overload")
    sample = BatchSample(0, 0.0, 1e3, 5e2, {"trips": 1000}, outputs={"table": OutputSample(0)})
    totals = Totals(net.graph, 900.0)
    totals.add(replace(sample, windows={"busy": (8.0, 0.0)}), plan)
    assert totals.offered_rows("table") == 8.0
