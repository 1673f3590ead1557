"""A driver of its own for test_endings: `python -m tests.spark.ending_driver FOLDER`. It prints what it saw as JSON.

FOLDER is a small disk of its own. It is filled by a run and then enlarged; then sessions and the JVM end in mid-run.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from tests.spark import running

import jettison as jt
from jettison.spark.run.run import Run
from jettison.spark.write.sinks import ParquetSink

ROWS, PER_BATCH = 3000, 1000


class Filling(ParquetSink):
    """Fills its disk before it writes batch 1, once."""

    def write(self, rows: DataFrame, batch: int) -> None:
        filler = Path(self.path).with_name("filler")
        if batch == 1 and not filler.exists():
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 512)
        super().write(rows, batch)


def session() -> SparkSession:
    return jt.local_session("ending-driver", cores=2)


def start(spark: SparkSession, folder: str, rows: int = ROWS) -> Run:
    """All trips to parquet, and windows that are kept in the checkpoint."""
    net = jt.Network("full")
    trips = net.source("trips", **running.TRIPS)
    trips.output("all")
    trips.window("1 day", by="zone").agg(n="count(*)", name="busy").output("zones")
    return jt.start(
        net,
        {"trips": running.trips(spark, rows, PER_BATCH)},
        {"all": Filling(f"{folder}/all"), "zones": jt.memory()},
        trigger=running.TRIGGER,
        checkpoint=f"{folder}/checkpoint",
        costs=running.FREE,
    )


def said(act: Callable[[], Any]) -> dict[str, Any]:
    """What a call gave, or what it raised and how long that is."""
    try:
        return {"gave": act()}
    except BaseException as error:
        lines = traceback.format_exception(error)
        return {
            "raised": type(error).__name__,
            "text": str(error),
            "lines": sum(each.count("\n") for each in lines),
            "java": sum(each.count("\tat ") for each in lines),
        }


def asked(run: Run) -> dict[str, Any]:
    """All that can be asked of a run whose session is gone."""
    return {
        "active": said(lambda: run.is_active),
        "report": said(lambda: str(run.report())[:20]),
        "ledger": said(lambda: run.ledger().count()),
        "await": said(lambda: run.await_termination(30)),
        "stop": said(lambda: run.stop(patience_s=20)),
        "again": said(lambda: run.is_active),
    }


def main(folder: str) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    seen: dict[str, Any] = {}
    spark = session()
    run = start(spark, folder)
    seen["full"] = said(lambda: run.await_termination(120))
    seen["full_stop"] = said(run.stop)
    subprocess.run(["mount", "-o", "remount,size=100m", folder], check=True)
    with_space = running.ended(start(spark, folder), ROWS - run.report().rows_in)
    found = spark.read.parquet(f"{folder}/all")
    seen["rows"] = [found.count(), found.select("trip").distinct().count()]
    seen["batches"] = [len(run.history), len(with_space.history)]

    idle = start(spark, folder, ROWS + PER_BATCH)
    running.until(idle, lambda: idle.report().rows_in >= PER_BATCH)
    time.sleep(1)
    spark.stop()
    seen["active_after_spark_stop"] = said(lambda: idle.is_active)
    spark = session()
    second = start(spark, folder, ROWS + PER_BATCH)  # nobody has closed the run before: its lock is free
    seen["idle"] = asked(idle)
    running.until(second, lambda: not second.query.status["isTriggerActive"])
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.kill()  # the JVM is gone, without a word
    gateway.proc.wait()
    seen["gone"] = asked(second)
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
