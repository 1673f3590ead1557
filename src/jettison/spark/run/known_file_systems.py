"""Paths that Spark has no file system for are refused before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlparse

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from jettison.errors import StartError
from jettison.spark.error_text import reason_of


def check_file_systems(spark: SparkSession, places: Mapping[str, str | None]) -> None:
    """Raise for the first path, by what it is for, whose file system cannot be opened, such as s9://bucket/folder."""
    jvm: Any = spark._jvm
    for what, path in places.items():
        if path is None or not urlparse(path).scheme:
            continue
        try:
            jvm.org.apache.hadoop.fs.Path(path).getFileSystem(spark._jsc.hadoopConfiguration())
        except Py4JJavaError as error:
            raise StartError(
                f"{what}: {path!r} cannot be opened ({reason_of(error)}): give a path on this machine, or start Spark "
                f"with the file system's package and settings."
            ) from error
