"""Files of a batch that are gone when it is repeated: Spark passes over them and says nothing."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import SparkSession

from jettison.spark.checkpoint.small_files import Folder, exists
from jettison.spark.read.footers import files_between


def vanished_files(spark: SparkSession, folder: Folder, index: int, start: Any, end: Any) -> list[str]:
    """The files between two offsets of the source with this index that are there no more; none of other sources."""
    return [path for path in files_between(folder, index, start, end) or () if not _is_there(spark, path)]


def _is_there(spark: SparkSession, path: str) -> bool:
    parts = urlparse(path)
    if parts.scheme == "file":  # by way of the JVM it takes longer
        return os.path.exists(unquote(parts.path))
    return exists(path, spark)
