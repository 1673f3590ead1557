"""The size of a checkpoint, on this machine or wherever Hadoop's file systems reach."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession


def size_of(path: str, spark: SparkSession) -> tuple[int, int]:
    """Bytes and files below a path, on this machine or wherever Hadoop's file systems reach."""
    if urlparse(path).scheme == "":
        return _local_size(path)
    jvm: Any = spark._jvm
    at = jvm.org.apache.hadoop.fs.Path(path)
    summary = at.getFileSystem(spark._jsc.hadoopConfiguration()).getContentSummary(at)
    return int(summary.getLength()), int(summary.getFileCount())


def _local_size(path: str) -> tuple[int, int]:
    size, files, waiting = 0, 0, [path]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size, files = size + entry.stat(follow_symlinks=False).st_size, files + 1
        except FileNotFoundError:
            continue  # files come and go while we look
    return size, files
