"""Spark Connect is refused, in one sentence, before anything of it fails: plans need the driver's JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jettison.errors import StartError

_PACKAGE = "pyspark.sql.connect."


def is_connect(part: object) -> bool:
    """Whether a session or a DataFrame is Spark Connect's. Told by its class, for importing those needs grpc.

    >>> is_connect("a text")
    False
    """
    return any(kind.__module__.startswith(_PACKAGE) for kind in type(part).__mro__)


def named_parts(kind: str, parts: Any) -> dict[str, Any]:
    """Parts by what they are to the user; nothing where they are not given by name, which is refused elsewhere.

    >>> named_parts("source", {"trips": 1}), named_parts("table", None)
    ({"source 'trips'": 1}, {})
    """
    return {f"{kind} {name!r}": part for name, part in parts.items()} if isinstance(parts, Mapping) else {}


def refuse_connect(parts: Mapping[str, Any]) -> None:
    """Raise when one of these (by what it is to the user) belongs to Spark Connect."""
    for what, part in parts.items():
        if is_connect(part):
            raise StartError(
                f"{what} belongs to Spark Connect, which gives no access to the driver that Jettison plans in: use a "
                f"session that runs in this process, such as jt.local_session() or "
                f"SparkSession.builder.master('spark://...').getOrCreate(), without .remote(...) or SPARK_REMOTE."
            )
