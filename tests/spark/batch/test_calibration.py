"""Costs are measured beside the stream: nobody waits, whatever becomes of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkJobInfo, StatusTracker
from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count
from tests.spark import running
from tests.spark.running import TRIGGER, ended, taxi, until

import jettison as jt
from jettison.spark.batch.calibration import Calibration, assumed_profile, calibrate
from jettison.spark.batch.network_sample import NetworkSample
from jettison.spark.batch.processor_time import Meter, StoppedError, Work
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.run.run import Run

pytestmark = pytest.mark.spark

NOOP = {"fares": jt.spark_format("noop"), "alerts": jt.spark_format("noop")}


def persisted(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_batches_are_delivered_while_costs_are_measured_and_a_failure_is_said_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first try fails. The second one does not end before all batches are delivered."""
    gate, tries = threading.Event(), []
    found = Calibration(assumed_profile(taxi().graph), frozenset({"paid"}))

    def held(*_: object) -> Calibration:
        tries.append(threading.current_thread().name)
        if len(tries) == 1:
            raise OSError("the rows are gone")
        assert gate.wait(60.0), "batches wait for it"
        return found

    monkeypatch.setattr("jettison.spark.batch.costs.calibrate", held)
    events: list[Any] = []
    with caplog.at_level(logging.INFO, logger="jettison"):
        run = jt.start(
            taxi(),
            {"trips": running.trips(spark, 30_000, 5000)},
            NOOP,
            trigger=TRIGGER,
            checkpoint=str(tmp_path),
            listeners=[events.append],
        )
        until(run, lambda: run.report().rows_in == 30_000)
        assert not run.await_calibration(0.0)
        assert run.calibration is None
        assert all(event.calibrating for event in events)
        assert not (tmp_path / "profile.json").exists()
        gate.set()
        assert run.await_calibration(60.0)
        ended(run, 30_000)
    assert tries == ["jettison-calibration"] * 2
    assert run.report().rows_shed == 0
    assert run.calibration is found
    assert run.shared == {"paid"}
    assert (tmp_path / "profile.json").exists(), "what was found is kept, though no batch came after it"
    assert caplog.text.count("costs could not be measured, and nothing is shed until they are: the rows are gone") == 1


def test_a_run_is_stopped_while_costs_are_measured(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A calibration of seconds is broken off, and leaves nothing behind."""
    net = jt.Network("slow")
    net.source("trips", **running.TRIPS).apply(running.slowly, name="slow").output("out")
    before = persisted(spark)

    def start() -> Run:
        stream = running.trips(spark, 5000, 5000)
        return jt.start(net, {"trips": stream}, {"out": jt.spark_format("noop")}, checkpoint=str(tmp_path))

    with caplog.at_level(logging.WARNING):
        run = start()
        until(run, lambda: run.report().rows_in == 5000)
        until(run, lambda: persisted(spark) > before)
        began = time.monotonic()
        run.stop()
    assert time.monotonic() - began < 15
    assert [record.getMessage() for record in caplog.records if record.name == "jettison"] == []
    assert run.calibration is None
    assert persisted(spark) == before
    assert "jettison-calibration" not in {thread.name for thread in threading.enumerate()}
    assert not (tmp_path / "profile.json").exists(), "the next start measures"


def test_work_is_processor_time_and_what_cannot_be_asked_is_measured_by_the_clock(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(spark.sparkContext)
    job = spark.range(100_000, numPartitions=2).selectExpr("max(sha2(string(id), 256))").collect
    rows, work = meter.run(job)
    assert len(rows) == 1
    assert work.tasks == 2
    assert 0 < work.cpu_ms <= 1.5 * work.run_ms
    assert meter.cpu_ms == work.cpu_ms
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
    monkeypatch.setattr("pyspark.status.StatusTracker.getJobIdsForGroup", lambda *_: [])
    _, by_clock = meter.run(job)
    assert by_clock == Work(by_clock.wall_ms, by_clock.wall_ms, by_clock.wall_ms, 1)
    meter.stop()
    with pytest.raises(StoppedError):
        meter.run(job)


def test_costs_are_divided_by_task_slots_whatever_the_default_parallelism_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = spark.sparkContext.defaultParallelism  # nothing is set: the cores of the session
    monkeypatch.setattr("pyspark.SparkContext.defaultParallelism", 64 * slots)
    assert Meter(spark.sparkContext).cores == slots


def test_a_job_that_the_store_has_heard_in_part_is_measured_by_the_clock(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that has ended, and one more of its group that the store takes for running."""
    ask = StatusTracker.getJobInfo
    job = spark.range(100_000, numPartitions=2).selectExpr("max(sha2(string(id), 256))").collect

    def still_running(tracker: StatusTracker, number: int) -> SparkJobInfo | None:
        found = ask(tracker, number)
        return None if found is None else found._replace(status="RUNNING")

    monkeypatch.setattr("pyspark.status.StatusTracker.getJobInfo", still_running)
    _, work = Meter(spark.sparkContext).run(job)
    assert work == Work(work.wall_ms, work.wall_ms, work.wall_ms, 1)


def test_a_very_large_batch_is_read_in_part(spark: SparkSession) -> None:
    net = jt.Network("large")
    net.source("numbers", "id long", id=["id"]).where("id >= 0", name="some").output("out")
    counted, rows = Observation(), 8_000_000
    frame = spark.range(0, rows, numPartitions=2).observe(counted, count("id").alias("rows"))
    sample = NetworkSample(
        net.graph, {"numbers": frame}, {"numbers": rows}, {}, ExpressionCache(), Meter(spark.sparkContext)
    )
    try:
        sample.read()
        assert counted.get["rows"] <= 200_000
        assert sample.batch_rows == {"numbers": 100_000}
        assert sample.raw_rows == {"numbers": 50_000}
    finally:
        sample.close()


def test_a_reading_that_took_long_is_not_repeated(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    net = jt.Network("twice")
    net.source("numbers", "id long", id=["id"]).output("out")
    frame, known = spark.range(1000), ExpressionCache()
    for took_ms, jobs in ((100.0, 2), (600.0, 1)):
        found: list[int] = []

        def measured(job: Callable[[], Any], took_ms: float = took_ms, found: list[int] = found) -> tuple[Any, Work]:
            found.append(1)
            return job(), Work(took_ms, took_ms, took_ms, 1)

        meter = Meter(spark.sparkContext)
        monkeypatch.setattr(meter, "run", measured)
        sample = NetworkSample(net.graph, {"numbers": frame}, {"numbers": 1000}, {}, known, meter)
        sample.read()
        sample.close()
        assert len(found) == jobs


def test_a_dear_operator_is_told_from_cheap_ones_and_the_sample_is_let_go(spark: SparkSession) -> None:
    net = jt.Network("hashed")
    paid = net.source("trips", **running.TRIPS).where("fare >= 0", name="paid")
    hashed = "sha2(repeat(CAST(trip AS string), 500), 512)"
    paid.with_columns({"code": hashed}, name="coded").output("codes")
    paid.where("fare > 20", name="dear").output("alerts")
    before = persisted(spark)
    rows = running.same_trips(spark, 0, 20_000)
    found = calibrate(net.graph, {"trips": rows}, {"trips": 20_000}, {})
    assert persisted(spark) == before
    assert found.profile.cost("coded") > 3 * max(found.profile.cost(name) for name in ("trips", "paid", "dear"))
    assert found.cpu_s > 0
    paid_rows = rows.where("fare >= 0").count()
    assert found.profile.passes("paid") == pytest.approx(paid_rows / 20_000)
    assert 0 < found.profile.passes("dear") < 0.9
