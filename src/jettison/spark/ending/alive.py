"""Whether a run's Spark session is still there, and waiting for a query that may lose it.

After `spark.stop()` a query between two batches stays "active" for ever, and asking it anything else throws Py4J's
errors. What is asked here answers either way.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_LOOK_EVERY_S = 0.5
_GONE = (Py4JError, OSError, AttributeError)
"""What a call throws when the context is stopped or the JVM is gone: PySpark lets go of its handles."""

_runs: weakref.WeakSet[Any] = weakref.WeakSet()


def session_alive(spark: SparkSession) -> bool:
    """Whether the session's context still runs jobs."""
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except _GONE:
        return False


def query_active(spark: SparkSession, query: StreamingQuery) -> bool:
    """Whether a query goes on: not when its session has ended, whatever it says itself."""
    try:
        return session_alive(spark) and bool(query.isActive)
    except _GONE:
        return False


def in_trigger(spark: SparkSession, query: StreamingQuery) -> bool:
    """Whether a query that goes on is in the middle of a trigger."""
    try:
        return query_active(spark, query) and bool(query.status["isTriggerActive"])
    except _GONE:
        return False


def failure_of(query: StreamingQuery) -> BaseException | None:
    """What a query failed with, if that can still be asked."""
    try:
        return query.exception()
    except _GONE:
        return None


def wait_for_end(
    spark: SparkSession, query: StreamingQuery, timeout_s: float | None, interrupted: threading.Event | None = None
) -> bool:
    """Wait until a query ends or loses its session. False when neither came within the time, or before somebody
    `interrupted`; raises what it failed with."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while session_alive(spark):
        left_s = _LOOK_EVERY_S if deadline is None else min(_LOOK_EVERY_S, deadline - time.monotonic())
        try:
            # fractions of a second are fine, whatever PySpark's annotation says
            if query.awaitTermination(max(0.001, left_s)):  # type: ignore[arg-type]
                return True
        except _GONE:
            if session_alive(spark):
                raise
        if interrupted is not None and interrupted.is_set():
            return False
        if deadline is not None and time.monotonic() >= deadline:
            return not query_active(spark, query)
    return True


def end_query(spark: SparkSession, query: StreamingQuery, timeout_s: float) -> bool:
    """Stop a query; False when that takes longer: Spark waits for ever for a callback that does not return. Without its
    session it ends by itself."""
    threw: list[BaseException] = []
    ended = threading.Event()

    def stop() -> None:
        try:
            query.stop()
        except BaseException as error:
            threw.append(error)
        ended.set()

    threading.Thread(target=stop, name="jettison-stop", daemon=True).start()
    has_ended = ended.wait(timeout_s)
    for error in threw:
        if not isinstance(error, _GONE) or session_alive(spark):
            raise error
    return has_ended


def remember(run: Any) -> None:
    """Note a run that holds a checkpoint, as long as somebody holds the run."""
    _runs.add(run)


def close_abandoned() -> None:
    """Close runs of this process whose session has ended: nobody may have asked them since, and they hold locks."""
    for run in list(_runs):
        run.close_if_abandoned()
