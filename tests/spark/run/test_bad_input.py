"""Bad input on Spark: an output without rows for an hour of event time, networks of one operator and of 300.

A sink that hangs is in test_endings.py, a source faster than reading itself in tests/spark/read/test_kafka.py, rows
that are too large for the driver in tests/spark/write/test_small_outputs.py.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.spark.write.small_outputs import MOST_ROWS, SmallOutputs
from jettison.statistics.profile import Profile
from jettison.testing import memory_source, run_rows

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "id long, at timestamp, zone int"


@pytest.mark.spark
def test_an_output_without_rows_for_an_hour_of_event_time(spark: SparkSession) -> None:
    """Rows of zone 7 come in the first minute and after an hour; others come all the time, in six batches."""
    minutes = [0, 10, 20, 40, 60, 61]
    source = memory_source(spark, SCHEMA)
    for batch, minute in enumerate(minutes):
        zone = 7 if minute in (0, 60) else 1
        source.add([(10 * batch + n, START + timedelta(minutes=minute, seconds=n), zone) for n in range(5)])
    net = jt.Network("quiet")
    trips = net.source("trips", SCHEMA, event_time="at", id=["id"])
    rare = trips.where("zone = 7", name="rare")
    rare.output("alarms", qos=jt.QoS(priority=5))
    rare.window("30 seconds", by="zone").agg(n="count(*)", name="busy").output("windows")
    trips.output("all")
    kept = {name: jt.memory() for name in ("alarms", "windows", "all")}
    run = jt.start(net, {"trips": source.frame}, kept, trigger="available now", costs=jt.Costs(Profile({}, {})))
    assert run.await_termination(timeout=120)
    assert [len(kept["alarms"].batches.get(batch, ())) for batch in range(6)] == [5, 0, 0, 0, 5, 0]
    assert [(row.zone, row.n) for row in kept["windows"].rows] == [(7, 5), (7, 5)], "the hour between has no windows"
    report = run.report()
    assert [report.outputs[name].delivered_share for name in kept] == [1.0] * 3
    assert [report.outputs[name].utility for name in kept] == [1.0] * 3
    assert report.outputs["alarms"].in_time_share == 0.0, "event times of long ago are not in time"
    assert report.infeasible is None


@pytest.mark.spark
@pytest.mark.parametrize(("outputs", "steps"), [(1, 0), (5, 58)], ids=["one operator", "300 operators"])
def test_a_network_of_one_operator_and_one_of_300(spark: SparkSession, outputs: int, steps: int) -> None:
    net = jt.Network("sizes")
    trips = net.source("trips", SCHEMA, event_time="at", id=["id"])
    for number in range(outputs):
        stream = trips
        for step in range(steps):
            stream = stream.where(f"id <> {step}", name=f"w{number}_{step}")
        stream.output(f"o{number}")
    assert len(net.graph.operators) == 1 + outputs * (steps + 1)
    found = run_rows(net, {"trips": [(number, START, 1) for number in range(100)]}, spark=spark)
    assert [sorted(row.id for row in found[f"o{number}"]) for number in range(outputs)] == (
        [list(range(steps, 100))] * outputs
    )


@pytest.mark.core
def test_what_comes_to_the_driver_is_bounded_whatever_came_before() -> None:
    """A million rows may follow on batches of a few: only what is known to be few comes to the driver."""
    outputs = SmallOutputs()
    for _ in range(10):
        outputs.saw({"pairs": 20, "rows": 20}, read=500)
    assert not outputs.is_small("rows", "fixed", most_rows=1_000_000, read=1_000_000)
    assert not outputs.is_small("pairs", "fixed", most_rows=None, read=1_001), "twice what was read before, at most"
    assert outputs.is_small("rows", "fixed", most_rows=MOST_ROWS, read=1_000_000)
    assert not outputs.is_small("rows", "plain", most_rows=MOST_ROWS, read=MOST_ROWS), "texts may be long"
    outputs.saw({"pairs": 5_001}, read=900)
    assert not outputs.is_small("pairs", "fixed", most_rows=None, read=900)
    outputs.end()
    assert not outputs.is_small("rows", "fixed", most_rows=1, read=1), "the driver has refused rows once"
