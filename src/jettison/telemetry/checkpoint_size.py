"""How large a checkpoint is, looked at by a thread of its own: to walk a tree after every batch would take too long."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession

EVERY_S = 60.0


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


class SizeWatch:
    """Looks at once and then every minute, until it is closed; a look that fails is left out."""

    def __init__(self, look: Callable[[], tuple[int, int]], show: Callable[[int, int], None]) -> None:
        self._look = look
        self._show = show
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="jettison-checkpoint-size", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def _watch(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # a size is no reason to end a run, and the next look may succeed
                self._show(*self._look())
            if self._closing.wait(EVERY_S):
                return
