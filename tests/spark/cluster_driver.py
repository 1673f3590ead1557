"""A driver of its own for test_cluster: `python -m tests.spark.cluster_driver MASTER FOLDER`.

It runs the network below on the cluster at MASTER, with the plans that stand in FOLDER/checkpoint, until all is read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.conftest import ROOT
from tests.spark import running
from tests.spark.standalone import DRIVER_CONF

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan

BATCHES = 10
PER_BATCH = 200
SHEDS = Plan({"trips": Random(0.6), "paid>narrow": Random(0.5)}, "tested", 1, {"fares": 0.3, "alerts": 0.6})
PLANS = [SHEDS if batch % 2 else Plan(reason="within budget") for batch in range(BATCHES)]


def network() -> jt.Network:
    """`taxi` with work in Python workers, so that there is something to kill in each batch."""
    net = jt.Network("taxi")
    paid = net.source("trips", **running.TRIPS).where("fare > 0", name="paid")
    paid.select("trip", "zone", "fare", name="narrow").apply("tests.spark.running:slowly", name="slow").output("fares")
    paid.where("fare > 20", name="dear").output("alerts", qos=jt.QoS(priority=5))
    return net


def run(spark: SparkSession, folder: Path) -> jt.Run:
    """Run it to the end. The same on any master."""
    checkpoint = folder / "checkpoint"
    running.log_plans(checkpoint, PLANS, {"trips": PER_BATCH})
    return running.ended(
        jt.start(
            network(),
            {"trips": running.trips(spark, BATCHES * PER_BATCH, PER_BATCH, partitions=2)},
            {name: jt.parquet(str(folder / name)) for name in ("fares", "alerts")},
            trigger="500 milliseconds",
            checkpoint=str(checkpoint),
            costs=running.FREE,
        ),
        BATCHES * PER_BATCH,
    )


def main(master: str, folder: str) -> None:
    builder = SparkSession.builder.master(master).appName("jettison-cluster-test")
    settings = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    for key, value in (settings | DRIVER_CONF).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    report = run(spark, Path(folder)).report()
    shown = {"rows_in": report.rows_in, "batches": report.batches, "master": spark.sparkContext.master}
    print(json.dumps(shown), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
