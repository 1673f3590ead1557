"""Trust 9 on Spark: what cannot help is not shed and is said aloud; floors hold; costs on trial shed nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark import running
from tests.spark.running import TRIGGER, ended, logged_plans, scrape, taxi

import jettison as jt
from jettison.spark.batch.calibration import Calibration
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark


def test_trust_9_a_fixed_cost_above_the_budget_sheds_nothing_and_is_exported(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    with caplog.at_level("WARNING", logger="jettison"):
        run = jt.start(
            taxi(),
            {"trips": running.trips(spark, 3000, 1000)},
            sinks,
            trigger=TRIGGER,
            checkpoint=str(tmp_path),
            costs=jt.Costs(Profile({"paid": 50.0}, {}, fixed_ms=2200.0), learn=False),
            metrics=0,
        )
        running.until(run, lambda: run.report().rows_in == 3000)
        assert run.metrics is not None
        text = scrape(run.metrics.port)
        ended(run, 3000)
    report = run.report()
    assert report.rows_shed == 0
    assert report.outputs["fares"].rows == len(sinks["fares"].rows) > 2500
    assert {plan.reason for plan in logged_plans(tmp_path)} == {"shedding cannot help"}
    assert report.infeasible is not None
    assert report.infeasible.startswith("the fixed cost of a batch is 2200 ms of a budget of 180 ms")
    assert report.infeasible_batches == 3
    assert "3 of 3 batches could not be brought within the budget" in str(report)
    assert '\njettison_infeasible_batches_total{network="taxi"} 3.0\n' in text
    assert caplog.text.count("cannot keep up: the fixed cost of a batch is 2200 ms") == 1


def test_trust_9_the_first_batch_is_safe_from_costs_measured_on_a_cold_machine_and_floors_hold(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A calibration that is 1,000 times too high; then, with a given profile, an overload of 20 and a floor of 0.3."""
    names = ("trips", "paid", "narrow", "dear", "fares", "alerts")
    cold = Profile(dict.fromkeys(names, 1000.0), {}, fixed_ms=100.0, read_us={"trips": 1417.0})
    monkeypatch.setattr("jettison.spark.batch.costs.calibrate", lambda *_: Calibration(cold, frozenset()))
    sinks = {"fares": jt.spark_format("noop"), "alerts": jt.spark_format("noop")}
    stream = running.trips(spark, 5000, 5000)
    where = str(tmp_path / "cold")
    run = jt.start(taxi(), {"trips": stream}, sinks, trigger="1 second", checkpoint=where)
    running.until(run, lambda: run.report().rows_in == 5000)
    assert run.await_calibration(60.0)
    ended(run, 5000)
    assert run.report().rows_shed == 0
    assert json.loads((tmp_path / "cold/profile.json").read_text())["believed"] is False
    kept = json.loads((tmp_path / "cold/profile.json").read_text())
    assert kept["read_us"]["trips"] < 700, "the batch before has brought costs down"

    net = jt.Network("taxi")
    trips = net.source("trips", **running.TRIPS)
    trips.output("out", qos=jt.QoS(min_accuracy=0.3))
    run = jt.start(
        net,
        {"trips": running.trips(spark, 4000, 2000)},
        {"out": jt.spark_format("noop")},
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "floor"),
        costs=jt.Costs(Profile({"out": 20 * 90.0}, {}), learn=False),
    )
    ended(run, 4000)
    rows = run.report().outputs["out"].rows
    assert all(plan.delivered["out"] == pytest.approx(0.3, abs=1e-6) for plan in logged_plans(tmp_path / "floor"))
    assert run.report().outputs["out"].delivered_share == pytest.approx(rows / 4000), "as counted"
    assert rows == pytest.approx(1200, abs=5 * (4000 * 0.3 * 0.7) ** 0.5)
    assert "min_accuracy allows (out 0.3)" in (run.report().infeasible or "")
