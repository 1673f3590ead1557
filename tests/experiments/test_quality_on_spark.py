"""Quality of data and all shedders on Spark: quick forms give the promised keys and draw; examples run on Kafka."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.experiments.test_quick import drawn, given_capacity, quiet

import jettison as jt
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.producer import fill
from jettison.experiments.policies import policies
from jettison.experiments.quality import on_spark as qod_spark
from jettison.experiments.quality.applications import TOPICS
from jettison.experiments.support.waiting import wait_until
from jettison.spark.run.from_spec import start_spec
from jettison.spec.network_file import from_yaml

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_policies(spark: SparkSession, tmp_path: Path) -> None:
    result = policies.run(quick=True, say=quiet, capacity=given_capacity())
    assert {"best_worth", "auto_vs_best", "worth none", "worth semantic", "worth qod"} <= set(result.metrics)
    assert {"auto_vs_best_by_rows", "worth_by_rows none", "worth_by_rows semantic"} <= set(result.metrics)
    assert len(result.checks) == 3
    assert {row["shedder"] for row in result.rows} >= {"none", "semantic", "qod"}
    assert sum(row["auto"] for row in result.rows) == 1
    drawn(result, tmp_path)


@pytest.mark.long
def test_qod_spark(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = qod_spark.run(quick=True, say=quiet, broker=broker)
    assert {"minima_held", "priority_inversions", "accuracy_error"} <= set(result.metrics)
    assert {row["output"] for row in result.rows} == set(qod_spark.ASKED)
    assert result.metrics["accuracy_error"] < 0.1
    drawn(result, tmp_path)


@pytest.mark.parametrize("name", ["taxi_drives", "neighbours"])
def test_the_applications_of_the_seed_run_on_kafka(
    name: str, spark: SparkSession, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    text = text.replace("127.0.0.1:9092", broker.servers).replace("out/", f"{tmp_path}/")
    text = text.replace("shedder: qod", "shedder: auto")  # which takes qod, and says so
    made = {topic: f"{name}_{topic}" for topic in TOPICS}  # the broker is shared
    for topic, mine in made.items():
        text = text.replace(f"topic: {topic}", f"topic: {mine}")
        broker.create(mine)
    with caplog.at_level(logging.INFO, logger="jettison"):
        running = start_spec(from_yaml(text), spark)
        try:
            wait_until(lambda: running.query.lastProgress is not None or running.await_termination(timeout=0.01))
            for mine in made.values():
                fill(broker.servers, mine, 400)
            outputs = {output.name for output in running.graph.outputs}
            wait_until(
                lambda: (
                    (set(running.totals.rows) >= outputs and all(running.totals.rows.values()))
                    or running.await_termination(timeout=0.01)
                )
            )
        finally:
            running.stop()
    report = running.report()
    assert all(output.rows > 0 for output in report.outputs.values())
    assert any(note.startswith("shedder auto: takes") and "qod" in note for note in report.notes)
    assert any("shedder auto: takes" in record.getMessage() for record in caplog.records)
    if name == "neighbours":
        found = spark.read.parquet(f"{tmp_path}/neighbours/classes").select("class").distinct().collect()
        assert {row["class"] for row in found} <= {"short", "usual", "long", "odd"}


def test_auto_on_spark_is_the_shedder_that_it_takes(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("auto")
    numbers = net.source("numbers", "value long, at timestamp", event_time="at", id=["value"])
    numbers.where("value % 2 = 0", name="even").output("evens", qos=jt.QoS(priority=2, min_accuracy=0.2))
    numbers.output("all", qos=jt.QoS(min_accuracy=0.1))
    fields = {"value": jt.presets.TAXI["trip"], "at": jt.presets.TAXI["pickup"]}
    # however slow the machine is: the minima of a batch of 1,000 rows fit, and nobody has to be paused
    stream = jt.generate(spark, fields, rate=jt.rates.Constant(2000), rows_per_batch=1000)
    costs = jt.Profile({"even": 400.0, "evens": 400.0, "all": 400.0}, {"even": 0.5}, fixed_ms=100.0)
    running = jt.start(
        net,
        {"numbers": stream},
        {"evens": lambda frame, batch: None, "all": lambda frame, batch: None},
        trigger="500 milliseconds",
        checkpoint=str(tmp_path / "checkpoint"),
        shedding=jt.Shedding(shedder="auto"),
        costs=jt.Costs(costs, learn=False),
    )
    wait_until(lambda: running.report().rows_shed > 0 or running.await_termination(timeout=0.01))
    running.stop()
    assert isinstance(running.controller.shedder, jt.Qod)
    assert "shedder auto: takes qod" in str(running.report())
    plans = [plan for _, plan in running.history if plan.sheds]
    assert all(plan.delivered["evens"] >= plan.delivered["all"] - 1e-6 for plan in plans)
