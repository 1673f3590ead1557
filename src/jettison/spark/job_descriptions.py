"""What Spark's UI shows of a run: every job by network, batch and part, and a stable name for the query.

A description is a property of the JVM thread. Jobs of a run start in threads of their own (`inheritable_thread_target`
hands the caller's properties over), so each says what it does. The job group stays Spark's own: stopping needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"


def query_name(network: str, active: Collection[str | None]) -> str:
    """A name that is the same after every start; a second run of the network in one session gets a number.

    >>> query_name("taxi", [None, "other"]), query_name("taxi", ["jettison-taxi", "jettison-taxi-2"])
    ('jettison-taxi', 'jettison-taxi-3')
    """
    name, number = f"jettison-{network}", 1
    while name in active:
        number += 1
        name = f"jettison-{network}-{number}"
    return name


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the jobs that this thread starts, such as "taxi: batch 7"."""
    with _replaced(spark, spark.sparkContext.getLocalProperty(_DESCRIPTION), text):
        yield


@contextmanager
def part(spark: SparkSession, text: str) -> Iterator[None]:
    """Add what the jobs of this thread are for: "taxi: batch 7" becomes "taxi: batch 7, output fares"."""
    before = spark.sparkContext.getLocalProperty(_DESCRIPTION)
    with _replaced(spark, before, f"{(before or 'jettison').partition(', ')[0]}, {text}"):
        yield


@contextmanager
def _replaced(spark: SparkSession, before: str | None, now: str) -> Iterator[None]:
    context = spark.sparkContext
    context.setLocalProperty(_DESCRIPTION, now)
    try:
        yield
    finally:
        with suppress(Py4JError, OSError, AttributeError):  # a session that has ended must not hide why
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
