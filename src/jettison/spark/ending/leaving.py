"""Leaving a batch to the next start without a failure: the stream's thread sleeps until `query.stop()` interrupts it.

A callback that returns commits the batch, and one that throws makes the query fail. Spark takes only an interruption
that `stop()` has caused for an end: nothing is committed, and `query.exception()` stays empty. PySpark runs a
callback's calls in the thread that called it, the stream's own, so that a sleep in there is what `stop()` interrupts.
"""

from __future__ import annotations

import logging
from typing import Any, NoReturn

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jettison.spark.ending.alive import query_active

_SLICE_MS = 200
_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")
_MARK = "_jettison_leaves"


class _Quiet(logging.Filter):
    """Keeps the interruption, which py4j reports as an error with its whole Java trace, out of logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not getattr(error, _MARK, False)


_quiet = _Quiet()


def leave_batch(spark: SparkSession, query: StreamingQuery) -> NoReturn:
    """Wait in the stream's thread for the interruption of `query.stop()` and raise it."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_quiet)
    jvm: Any = spark._jvm
    thread = jvm.java.lang.Thread
    try:
        while query_active(spark, query):
            thread.sleep(_SLICE_MS)
        while True:  # somebody else has taken the interruption: it is repeated
            thread.currentThread().interrupt()
            thread.sleep(_SLICE_MS)
    except BaseException as error:
        setattr(error, _MARK, True)
        raise
