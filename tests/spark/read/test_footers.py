"""Sizes from the footers of parquet files, as Spark's file source names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.read.footers import footer_rows
from jettison.spark.read.offsets import batch_offsets

pytestmark = pytest.mark.spark


def test_parquet_files_say_how_many_rows_a_batch_has(spark: SparkSession, tmp_path: Path) -> None:
    files = 12  # more than Spark writes down one by one
    for number in range(files):
        spark.range(number + 3).coalesce(1).write.parquet(str(tmp_path / "my trips" / str(number)))
    spark.range(0).coalesce(1).write.parquet(str(tmp_path / "my trips" / "none"))
    folder = LocalFolder(tmp_path / "checkpoint")
    seen: list[tuple[int | None, int]] = []

    def look(frame: DataFrame, batch: int) -> None:
        ((start, end),) = batch_offsets(folder, batch, 1) or [(None, None)]
        seen.append((footer_rows(spark, folder, 0, start, end), frame.count()))

    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/my trips/*")
    query = stream.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert len(seen) >= files
    assert {told for told, _ in seen} >= {number + 3 for number in range(files)}
    assert all(told == counted for told, counted in seen)
    assert footer_rows(spark, folder, 0, None, {"logOffset": 99}) is None, (
        "what is not written down is counted by a job"
    )
    assert footer_rows(spark, folder, 0, None, {"rows": 7, "start_us": 0}) is None
