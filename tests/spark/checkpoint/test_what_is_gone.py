"""A real checkpoint of which a part is gone: the whole state, offsets, lists of files, files that were to be read."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark import running

import jettison as jt
from jettison.errors import CheckpointError
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.logs import Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.run import Run
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.records import Records

pytestmark = pytest.mark.spark

ROWS = 100


def started(spark: SparkSession, folder: Path, checkpoint: Path, sink: MemorySink) -> Run:
    net = jt.Network("files")
    trips = net.source("trips", "trip long, at timestamp, zone int", event_time="at", id=["trip"])
    trips.window("1 day", by="zone").agg(n="count(*)", name="busy").output("zones")
    trips.output("all")
    read = spark.readStream.schema("trip long, at timestamp, zone int").option("maxFilesPerTrigger", 1)
    return jt.start(
        net,
        {"trips": read.parquet(str(folder))},
        {"zones": jt.memory(), "all": sink},
        trigger=running.TRIGGER,
        checkpoint=str(checkpoint),
        costs=running.FREE,
    )


def test_trust_14_what_is_gone_of_a_checkpoint_and_of_its_input(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()
    for number in range(2):
        trip = range(ROWS * number, ROWS * (number + 1))
        columns = {"trip": list(trip), "at": [1_000_000 * each for each in trip], "zone": [each % 3 for each in trip]}
        types = pa.schema([("trip", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("zone", pa.int32())])
        pq.write_table(pa.table(columns, types), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1e9 + number, 1e9 + number))  # files are read in this order
    running.ended(started(spark, folder, checkpoint, MemorySink()), 2 * ROWS)

    for gone in ("state", "spark/offsets/0", "spark/sources/0/1"):
        damaged = tmp_path / "damaged"
        shutil.copytree(checkpoint, damaged)
        shutil.rmtree(damaged / gone) if gone == "state" else (damaged / gone).unlink()
        with pytest.raises(CheckpointError, match=rf"damaged/{gone}, .*is gone.*estore .* from a copy, or start with"):
            started(spark, folder, damaged, MemorySink())
        shutil.rmtree(damaged)

    # the last batch is repeated, and half of its input is gone: Spark says nothing
    for name in ("1", ".1.crc"):
        (checkpoint / "spark" / "commits" / name).unlink(missing_ok=True)
    (folder / "1.parquet").unlink()
    sink = MemorySink()
    with caplog.at_level(logging.WARNING, "jettison"):
        run = started(spark, folder, checkpoint, sink)
        running.until(run, lambda: len(run.history) > 0)
        run.stop()
    assert (run.report().rows_in, run.report().rows_gone, len(sink.rows)) == (0, ROWS, 0)
    told = next(record.getMessage() for record in caplog.records if "are gone" in record.getMessage())
    assert "source 'trips': 1 files of batch 1, which is repeated, are gone, and with them 100 of its 100 rows" in told
    entries = [entry for entry in running.ledger(checkpoint) if entry["batch"] == 1 and entry.get("rows_gone")]
    assert [(entry["reason"], entry["rows_shed"], entry["rows_gone"]) for entry in entries] == [
        ("gone before it was read", 0, ROWS)
    ]


@pytest.mark.long
def test_a_plan_for_other_rows_is_not_obeyed(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark had lost the offsets of a batch, and chose new ones: the plan for the old rows was obeyed for others."""
    checkpoint = tmp_path / "checkpoint"
    plans = PlanLog(LocalFolder(checkpoint))
    nothing = Plan({"trips": Random(0.0)}, "other rows")
    plans.write(Logged(0, nothing, Records({"trips": 7}), ('{"rows":7,"start_us":1}',)))

    def run(fares: MemorySink) -> Run:
        frames, sinks = {"trips": running.trips(spark, ROWS, ROWS)}, {"fares": fares, "alerts": jt.memory()}
        place, costs = str(checkpoint), running.FREE
        return jt.start(running.taxi(), frames, sinks, trigger=running.TRIGGER, checkpoint=place, costs=costs)

    kept = checkpoint / "state" / "busy" / "0.json"  # windows kept something of the batch
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    with pytest.raises(
        CheckpointError, match=r"batch 0 has run \(.*busy/0.json is of it\) with other rows .*offsets/0 is not"
    ):
        running.ended(run(MemorySink()), ROWS)
    shutil.rmtree(checkpoint / "state")
    sink = MemorySink()
    with caplog.at_level(logging.WARNING, "jettison"):
        running.ended(run(sink), ROWS)
    assert any("batch 0 was planned for other rows and is planned anew" in each.getMessage() for each in caplog.records)
    assert len(sink.rows) > ROWS / 2
    anew = plans.read(0)
    assert anew is not None
    assert (anew.plan.drops, anew.records.rows) == ({}, {"trips": ROWS})
