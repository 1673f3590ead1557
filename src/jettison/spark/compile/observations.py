"""What observations saw, once the actions that looked at their rows are done."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation


def observed(observation: Observation) -> dict[str, Any]:
    """What an observation saw: nothing when nobody looked at the rows. Spark fills it in before an action returns."""
    handle: Any = observation._jo
    return observation.get if handle.future().isCompleted() else {}


def observed_if_at_all(observation: Observation) -> dict[str, Any]:
    """The same for those who can count again: when no row passes what follows, Spark may cut the observation off with
    it, and then has nothing to tell."""
    try:
        return observed(observation)
    except (Py4JJavaError, AnalysisException):  # the latter where a plan with it was tried that could not be analysed
        return {}


def observed_within(observation: Observation, persisted: DataFrame) -> dict[str, Any]:
    """What an observation inside a frame that several outputs read saw.

    It tells what it saw when the first output was done. That may be too early: another output's job may still be making
    the last of the rows. So the frame itself is asked.
    """
    handle: Any = observation._jo
    found = persisted._jdf.queryExecution().observedMetrics().get(handle.name())
    if found.isEmpty():
        return {}
    row = found.get()
    schema = row.schema()
    arrays = {field.name() for field in schema.fields() if field.dataType().typeName() == "array"}
    return {
        name: list(row.getList(row.fieldIndex(name))) if name in arrays and row.getAs(name) else row.getAs(name)
        for name in schema.fieldNames()
    }
