"""Listeners of a run: a user's own function is told of every batch, as the report is."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended, log_plans, taxi, trips

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.telemetry.events import BatchEvent


def test_a_listener_is_told_of_every_batch_and_cannot_end_the_run(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[BatchEvent] = []

    def broken(event: BatchEvent) -> None:
        raise KeyError("mine")

    log_plans(tmp_path, [Plan({"trips": Random(0.5)}, reason="overload")] * 2, {"trips": 300})
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    streams = {"trips": trips(spark, 600, 300)}
    with caplog.at_level(logging.WARNING, "jettison"):
        run = jt.start(
            taxi(),
            streams,
            sinks,
            trigger=TRIGGER,
            checkpoint=str(tmp_path),
            costs=FREE,
            listeners=[broken, heard.append],
        )
        ended(run, 600)

    told = [json.loads(event.to_json()) for event in heard]
    assert [each["batch"] for each in told] == [0, 1], "a listener that is given at the start misses no batch"
    assert run.report().listener_failures == 2
    assert "listeners failed 2 times: see the log" in str(run.report())
    assert "Run of network taxi: has ended" in run._repr_html_()
    last = told[-1]
    assert last["network"] == "taxi"
    assert last["rows_in"] == {"trips": 300}
    assert last["reason"] == "overload"
    assert Plan.from_dict(last["plan"]).drops == {"trips": Random(0.5)}
    came, passed = last["arcs"]["trips"].values()
    assert came == 300
    assert last["dropped"] == {"trips": 300 - passed}
    assert last["outputs"]["fares"]["rows"] == len(sinks["fares"].batches[1])
    assert list(last["outputs"]["fares"]["latency_ms"]) == ["min", "p5", "p25", "p50", "p75", "p95", "p99", "max"]
    for account in last["accounts"]:
        parts = ("processed", "shed", "rejected", "late", "skipped")
        assert account["read"] == sum(account[part] for part in parts)
    assert heard[-1].sample == run.history[-1][0]
    warned = [record.getMessage() for record in caplog.records if "listener" in record.getMessage()]
    assert len(warned) == 1
    assert "broken failed (KeyError: 'mine'); the run goes on" in warned[0]


def test_a_listener_may_stop_the_run(spark: SparkSession, tmp_path: Path) -> None:
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    streams = {"trips": trips(spark, 3000, 100)}
    run = jt.start(taxi(), streams, sinks, trigger=TRIGGER, checkpoint=str(tmp_path), costs=FREE)
    run.add_listener(lambda event: run.stop())
    assert run.await_termination(timeout=60)
    assert not run.is_active
    assert run.report().rows_in < 3000
    with pytest.raises(jt.StartError, match="listener 5 cannot be called"):
        run.add_listener(5)  # type: ignore[arg-type]
