"""Parquet files that the driver writes as Spark would: in the same place, and with the same types for other readers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyspark
from pyspark.sql import SparkSession

from jettison.spark.checkpoint.small_files import spark_place

_SETTING = "spark.sql.parquet."
_CODECS = {"snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "none": "none", "uncompressed": "none"}
_OLD_TIMES = {"INT96": True, "TIMESTAMP_MICROS": False}
_WRITTEN_BY = {"org.apache.spark.version": pyspark.__version__}
"""Says that times are of the calendar that Spark writes by now, and are not to be moved when they are read."""


@dataclass(frozen=True)
class DriverFiles:
    """Where the driver may write, and how pyarrow is told to write as Spark does."""

    place: str
    options: Mapping[str, Any] = field(default_factory=dict)


def driver_files(path: str, spark: SparkSession) -> DriverFiles | None:
    """How the driver writes to a path that was given to Spark; None where it cannot do as Spark would: not on this
    machine, or in a format or a compression that pyarrow does not write."""
    place = spark_place(path, spark)
    times = _OLD_TIMES.get(str(spark.conf.get(f"{_SETTING}outputTimestampType")).upper())
    codec = _CODECS.get(str(spark.conf.get(f"{_SETTING}compression.codec")).lower())
    legacy = str(spark.conf.get(f"{_SETTING}writeLegacyFormat")).lower() == "true"
    if not os.path.isabs(place) or times is None or codec is None or legacy:
        return None
    return DriverFiles(place, {"compression": codec, "use_deprecated_int96_timestamps": times})


def write_table(table: Any, path: Path, options: Mapping[str, Any] | None = None) -> None:
    """Write an Arrow table as one file."""
    pyarrow.parquet.write_table(table.replace_schema_metadata(_WRITTEN_BY), path, **(options or {}))
