"""What `jt.start` is given, of the right types: checked before anything else looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.errors import StartError
from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka
from jettison.statistics.profile import Profile


def check_arguments(**given: Any) -> None:
    """Raise for an argument of `jt.start` that is of a wrong type, whatever its value."""
    for name, value in given.items():
        if name in _RULES:
            fits, remedy = _RULES[name]
            if not fits(value):
                raise StartError(f"jt.start: {name} is {_shown(value)}: {remedy}.")
    for name, frame in {**(given.get("sources") or {}), **(given.get("tables") or {})}.items():
        if not isinstance(frame, DataFrame | Kafka):
            raise StartError(
                f"jt.start: {name!r} is {_shown(frame)}: give a DataFrame, such as spark.readStream.load(...), "
                f"or a topic: jt.kafka(servers, topic)."
            )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _path(value: Any) -> bool:
    return isinstance(value, str | PathLike) and bool(str(value).strip())


def _port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 65536


def _names(value: Any) -> bool:
    return not isinstance(value, str) and isinstance(value, Iterable)


def _shedder(value: Any) -> bool:
    return isinstance(value, str) or (not isinstance(value, type) and callable(getattr(value, "plan", None)))


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "network": (_of(Network, Graph), "give a jt.Network, or the graph of a file: jt.read_spec(path).graph()"),
    "sources": (_or_none(_of(Mapping)), "give a stream for every source by its name, such as {'trips': stream_df}"),
    "sinks": (_or_none(_of(Mapping)), "give a sink for every output by its name, such as {'fares': jt.parquet(path)}"),
    "trigger": (_of(str), "write a duration, such as '1 second'"),
    "headroom": (_number, "give the share of the trigger to use, such as 0.9"),
    "checkpoint": (_or_none(_path), "give the path of a folder, such as 'out/checkpoint'"),
    "shedding": (_of(bool, str), "say True, False or 'dry-run'"),
    "catch_up": (_of(str), "say 'shed', 'newest' or 'all'"),
    "shedder": (_shedder, "give the name of a shedder, such as 'semantic', or an object with a method plan(problem)"),
    "learn": (_of(bool), "say True or False"),
    "live": (_of(bool), "say True or False"),
    "stale": (_or_none(_of(str)), "write a duration, such as '1 minute'"),
    "profile": (_or_none(_of(Profile)), "give a jt.Profile, or leave it out"),
    "shared": (_or_none(_names), "give names of operators, such as ['paid']"),
    "tables": (_or_none(_of(Mapping)), "give the tables that joins name, such as {'zones': zones_df}"),
    "on_shed": (_or_none(_of(Mapping)), "give sinks by arc or output, such as {'trips': jt.parquet(path)}"),
    "metrics_port": (_or_none(_port), "give a port from 0 (any) to 65535"),
    "spark": (_or_none(_of(SparkSession)), "give a SparkSession, such as jt.local_session()"),
}
