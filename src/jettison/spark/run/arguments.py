"""What `jt.start` is given, of the right types: checked before anything else looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.errors import StartError
from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka


def check_arguments(**given: Any) -> None:
    """Raise for an argument of `jt.start` that is of a wrong type, whatever its value."""
    for name, value in given.items():
        if name in _RULES:
            fits, remedy = _RULES[name]
            if not fits(value):
                raise StartError(f"jt.start: {name} is {_shown(value)}: {remedy}.")
    for name, frame in (given.get("sources") or {}).items():
        if not isinstance(frame, DataFrame | Kafka):
            raise StartError(
                f"jt.start: source {name!r} is {_shown(frame)}: give a DataFrame, such as spark.readStream.load(...), "
                f"or a topic: jt.kafka(servers, topic)."
            )
    for name, table in (given.get("tables") or {}).items():
        if not isinstance(table, DataFrame):
            raise StartError(
                f"jt.start: table {name!r} is {_shown(table)}: give a DataFrame that does not stream, such as "
                f"spark.read.parquet(path)."
            )


def check_seconds(what: str, value: object) -> None:
    """Raise unless a value is a number of seconds that is not below 0.

    >>> check_seconds("run.stop: patience_s", "soon")
    Traceback (most recent call last):
    jettison.errors.StartError: run.stop: patience_s is 'soon': give a number of seconds of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise StartError(f"{what} is {_shown(value)}: give a number of seconds of at least 0.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _functions(value: Any) -> bool:
    return not isinstance(value, str | Mapping) and isinstance(value, Iterable) and all(map(callable, value))


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "network": (_of(Network, Graph), "give a jt.Network, or the graph of a file: jt.read_spec(path).graph()"),
    "sources": (_or_none(_of(Mapping)), "give a stream for every source by its name, such as {'trips': stream_df}"),
    "sinks": (_or_none(_of(Mapping)), "give a sink for every output by its name, such as {'fares': jt.parquet(path)}"),
    "trigger": (_of(str), "write a duration, such as '1 second', or 'available now'"),
    "live": (_of(bool), "say True or False"),
    "listeners": (_functions, "give functions of a BatchEvent in a list, such as [print]"),
    "tables": (_or_none(_of(Mapping)), "give the tables that joins name, such as {'zones': zones_df}"),
    "on_shed": (_or_none(_of(Mapping)), "give sinks by arc or output, such as {'trips': jt.parquet(path)}"),
    "spark": (_or_none(_of(SparkSession)), "give a SparkSession, such as jt.local_session()"),
}
