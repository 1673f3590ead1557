"""After an outage (trust 10) and dry runs (trust 11), on Spark."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conftest import needs_kafka
from tests.spark.running import TRIGGER, TRIPS, ended, ledger, logged_plans, pairs, same_trips, taxi, trips, until

import jettison as jt
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.producer import send
from jettison.spark.checkpoint.logs import PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.statistics.profile import Profile
from jettison.synthetic.fields import TAXI
from jettison.synthetic.rates import Constant

pytestmark = pytest.mark.spark

# 3000 rows take 600 ms, and the budget is 180
DEAR = Profile({"fares": 200.0}, {"dear": 0.5}, read_us={"trips": 1.0})


def test_trust_11_a_dry_run_says_what_it_would_drop_and_drops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    fares, alerts = jt.memory(), jt.memory()
    run = jt.start(
        taxi(),
        {"trips": trips(spark, 9000, 3000)},
        {"fares": fares, "alerts": alerts},
        trigger=TRIGGER,
        costs=jt.Costs(DEAR, learn=False),
        shedding="dry-run",
        checkpoint=str(tmp_path),
    )
    ended(run, 9000)

    expected = same_trips(spark, 0, 9000).where("fare > 0")
    assert sorted((row.trip, row.fare) for row in fares.rows) == sorted(pairs(expected))
    assert not any(plan.sheds for plan in logged_plans(tmp_path))
    log = PlanLog(LocalFolder(tmp_path))
    would = [logged.would for batch in log.batches() if (logged := log.read(batch)) is not None]
    assert len(would) >= 3
    assert would[0] is not None
    assert would[0].drops  # the first batch holds what one trigger brings: three times the budget
    entries = ledger(tmp_path)
    assert sum(entry["rows_shed"] for entry in entries) == 0
    assert sum(entry.get("rows_would_shed", 0) for entry in entries) > 1000
    report = run.report()
    assert report.rows_shed == 0
    assert report.outputs["fares"].delivered_share == 1.0
    assert 0.0 < report.would_deliver["fares"] < 0.9
    assert "dry run: nothing was shed; " in str(report)
    assert any(note.startswith("dry run: nothing is shed; plans are made") for note in report.notes)
    assert {row.rows_would_shed > 0 for row in run.ledger().collect()} == {True, False}


def test_trust_10_all_of_a_backlog_comes_in_bounded_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Ten seconds of 20,000 rows waited, a row takes 10 us: batches of 36,000 rows, and nothing is shed."""
    net = jt.Network("behind")
    net.source("trips", **TRIPS).output("out")  # type: ignore[arg-type]
    behind = jt.generate(
        spark, TAXI, rate=Constant(20_000), limit_rows=200_000, start_us=(time.time_ns() // 1000) - 60_000_000
    )
    run = jt.start(
        net,
        {"trips": behind},
        {"out": jt.spark_format("noop")},
        trigger=TRIGGER,
        costs=jt.Costs(Profile({"out": 9.0}, {}, read_us={"trips": 1.0}), learn=False),
        shedding=jt.Shedding(catch_up="all"),
        checkpoint=str(tmp_path),
    )
    ended(run, 200_000)

    sizes = [sample.rows_in["trips"] for sample, _ in run.history]
    assert max(sizes) == 36_000  # the first too
    assert run.report().rows_shed == 0
    assert {plan.reason for sample, plan in run.history if sample.rows_in["trips"] == 36_000} == {"catching up"}


def test_trust_10_a_source_keeps_a_bound_of_its_own_that_is_lower(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("behind")
    net.source("trips", **TRIPS).output("out")  # type: ignore[arg-type]
    past_us = (time.time_ns() // 1000) - 60_000_000
    behind = jt.generate(spark, TAXI, rate=Constant(20_000), limit_rows=6000, start_us=past_us, rows_per_batch=2000)
    profile = Profile({"out": 9.0}, {}, read_us={"trips": 1.0})
    sinks = {"out": jt.spark_format("noop")}
    run = jt.start(
        net,
        {"trips": behind},
        sinks,
        trigger=TRIGGER,
        costs=profile,
        shedding=jt.Shedding(catch_up="all"),
        checkpoint=str(tmp_path),
    )
    ended(run, 6000)
    assert [sample.rows_in["trips"] for sample, _ in run.history if sample.rows_in["trips"]] == [2000, 2000, 2000]


def test_trust_10_windows_are_not_made_of_what_is_left(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("windows")
    rows = net.source("trips", **TRIPS)  # type: ignore[arg-type]
    rows.window("10 seconds", by=["zone"]).agg(n="count(*)", name="per_zone").output("out")
    with pytest.raises(jt.JettisonError, match="catch_up='newest' skips rows of source 'trips', and windows below it"):
        jt.start(
            net,
            {"trips": trips(spark, 10, 10)},
            {"out": jt.memory()},
            shedding=jt.Shedding(catch_up="newest"),
            checkpoint=str(tmp_path),
        )
    with pytest.raises(jt.JettisonError, match=r"shedding is 'maybe': say True, False, 'dry-run', or jt\.Shedding"):
        jt.start(net, {"trips": trips(spark, 10, 10)}, {"out": jt.memory()}, shedding="maybe", checkpoint=str(tmp_path))


@needs_kafka
@pytest.mark.kafka
def test_trust_10_newest_skips_a_backlog_once(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    broker.create(topic)
    send(broker.servers, topic, [b'{"trip": %d}' % number for number in range(2000)])
    net = jt.Network("newest")
    source = jt.kafka(broker.servers, topic, schema="trip long", starting_offsets="earliest")
    net.source("trips", source).output("out")
    out = jt.memory()
    # a row takes a millisecond: 180 fit
    run = jt.start(
        net,
        sinks={"out": out},
        trigger=TRIGGER,
        costs=jt.Costs(Profile({"out": 1000.0}, {}), learn=False),
        shedding=jt.Shedding(catch_up="newest"),
        checkpoint=str(tmp_path),
    )
    until(run, lambda: run.report().rows_in >= 2000)
    send(broker.servers, topic, [b'{"trip": %d}' % number for number in range(2000, 2050)])
    ended(run, 2050)

    found = sorted(row.trip for row in out.rows)
    first = [number for number in found if number < 2000]
    assert 150 <= len(first) <= 184  # the budget's worth; each of two partitions is rounded up
    assert [number for number in found if number >= 2000] == list(range(2000, 2050))
    assert run.report().rows_shed == 2000 - len(first)
