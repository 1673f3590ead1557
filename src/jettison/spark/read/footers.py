"""How many rows the parquet files of a batch have, from their footers: no job runs, and no row is read.

Spark's file source writes the files of a batch to its checkpoint before the batch runs, numbered as in its offsets
({"logOffset": 7}); every so often it writes all files so far into one file (`9.compact`).
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet
from py4j.protocol import Py4JJavaError
from pyarrow import ArrowException
from pyspark.sql import SparkSession

from jettison.spark.checkpoint.small_files import Folder

_MOST_FILES = 100  # one after another: with more, a job is faster


def footer_rows(spark: SparkSession, folder: Folder, index: int, start: Any, end: Any) -> int | None:
    """Rows between two offsets of the source with this index; None where it does not read parquet files, or many."""
    paths = files_between(folder, index, start, end, _MOST_FILES)
    if paths is None or not all(path.endswith(".parquet") for path in paths):
        return None
    try:
        return sum(_rows(spark, path) for path in paths)
    except (Py4JJavaError, ArrowException, OSError):  # what cannot be read is told by the batch itself
        return None


def files_between(folder: Folder, index: int, start: Any, end: Any, most: int | None = None) -> list[str] | None:
    """The files between two offsets of the source with this index; None where it reads none, or more than `most`."""
    if not isinstance(end, dict) or set(end) != {"logOffset"}:
        return None
    first = start["logOffset"] + 1 if isinstance(start, dict) and "logOffset" in start else 0
    paths: list[str] = []
    for number in range(first, end["logOffset"] + 1):
        found = _files(folder, index, number)
        if found is None or (most is not None and len(paths) + len(found) > most):
            return None
        paths += found
    return paths


def _files(folder: Folder, index: int, number: int) -> list[str] | None:
    """The files that the source found in one go."""
    text = folder.read(f"sources/{index}/{number}") or folder.read(f"sources/{index}/{number}.compact")
    if text is None:
        return None
    entries = [json.loads(line) for line in text.lstrip("\0").splitlines()[1:] if line.startswith("{")]
    return [entry["path"] for entry in entries if entry.get("batchId") == number]


def _rows(spark: SparkSession, path: str) -> int:
    parts = urlparse(path)
    if parts.scheme == "file":  # by way of the JVM it takes 20 ms a file
        return int(pyarrow.parquet.read_metadata(unquote(parts.path)).num_rows)
    jvm: Any = spark._jvm
    context: Any = spark._jsc
    parquet = jvm.org.apache.parquet.hadoop
    where = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(path))
    file = parquet.util.HadoopInputFile.fromPath(where, context.hadoopConfiguration())
    reader = parquet.ParquetFileReader.open(file)
    try:
        return int(reader.getRecordCount())
    finally:
        reader.close()
