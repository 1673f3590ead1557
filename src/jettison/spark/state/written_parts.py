"""How a part of state is written: by Spark, or a few rows by the driver, as one file."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from jettison.spark.checkpoint.small_files import Folder, LocalFolder
from jettison.spark.write.driver_files import write_table
from jettison.spark.write.small_outputs import collected

FEW_TOGETHER = 2_000
"""So many rows are few: if all of them pair with each other, one task still makes the pairs soon."""
_MARKED = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
"""Whether a file says that a folder is complete: here the record does, and making one takes 14 ms on a local disk."""


def write_part(rows: DataFrame, folder: Folder, path: str, below: str, *, few: bool) -> None:
    """Write a part below a folder, which Spark finds at `path`; what a broken try of it has left is replaced.

    A few rows come to the driver: on a local disk Hadoop's way takes 75 ms longer. Where they are too large for that,
    `TooLargeError` is raised, and what was observed of them is gone.
    """
    if not few or not isinstance(folder, LocalFolder):
        rows.write.mode("overwrite").option(_MARKED, False).parquet(f"{path}/{below}")
        return
    table = collected(rows)
    folder.delete(below)
    Path(folder.path, below).mkdir(parents=True)
    write_table(table, Path(folder.path, below, "rows.parquet"))


def together(rows: DataFrame, count: int) -> DataFrame:
    """Rows that are read from parts, in one partition where there are few: what groups or pairs them needs no shuffle
    then, and one job does."""
    return rows.coalesce(1) if count <= FEW_TOGETHER else rows
