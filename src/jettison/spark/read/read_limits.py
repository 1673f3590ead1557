"""How much the next batch may read, set while the query runs.

Spark asks a source for its limit (`maxOffsetsPerTrigger` and the like) once, when the query starts. What a batch costs
is known later, and changes. So the bound is put where Spark keeps that limit, into the running query's execution, which
Spark does not promise to keep. Where it is not as expected, or the source takes no limit of rows, batches are as large
as they are: nothing is lost by it. A limit that the source has itself is lowered, never raised.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryStartedEvent, StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from jettison.control.catch_up import UNBOUNDED

_log = logging.getLogger("jettison")
_KAFKA, _PYTHON = "KafkaMicroBatchStream", "PythonMicroBatchStream"
_OWN = re.compile(r'^MaxRows: (\d+)$|"max_rows": (\d+)')
_UNLIMITED = ("All Available", '"ReadAllAvailable"')
_SAME_SHARE = 0.1
"""A bound that has moved by less stays: to set one takes some milliseconds."""


class ReadLimits:
    """Bounds the batches of one query. `names` are its sources in order; those that are `generated` are ours, and take
    a limit of rows. Of other sources in Python nobody knows, unless they have such a limit themselves."""

    def __init__(self, spark: SparkSession, names: Sequence[str], generated: Collection[str]) -> None:
        self._jvm: Any = spark._jvm
        self._names = list(names)
        self._generated = frozenset(generated)
        self._own: dict[str, float | None] = {}
        self._set: dict[str, int] = {}

    @contextmanager
    def first(self, spark: SparkSession, query_name: str, rows: Mapping[str, int]) -> Iterator[None]:
        """Bound also the first batch of the query of this name, which is started inside.

        Spark tells listeners of a query that starts in the query's own thread, before it asks the sources what there
        is. So the sources are opened there, a moment early, and bounded.
        """
        listener = _AtStart(self, spark, query_name, rows)
        spark.streams.addListener(listener)
        try:
            yield
        finally:
            spark.streams.removeListener(listener)

    def set(self, query: StreamingQuery | None, rows: Mapping[str, int]) -> dict[str, int] | None:
        """Bound the batches to come; what holds now, by source, or None while Spark's sources are not open yet."""
        if query is None:
            return None
        if self._own and all(self._is_set(name, wanted) for name, wanted in rows.items()):
            return dict(self._set)
        try:
            handle: Any = query._jsq
            execution = handle.streamingQuery()
            limits, sources = execution.uniqueSources(), execution.sources()
            if limits.isEmpty() or int(sources.size()) != len(self._names):
                return None
            changed = limits
            for index, name in enumerate(self._names):
                source = sources.apply(index)
                kind = str(source.getClass().getSimpleName())
                if name not in self._own:
                    self._own[name] = _own_rows(str(limits.apply(source).toString()), kind, name in self._generated)
                own, wanted = self._own[name], rows.get(name)
                if own is None or wanted is None:
                    continue
                most = int(min(own, wanted))
                if self._set.get(name) != most:
                    changed = changed.updated(source, self._limit(kind, most))
                    self._set[name] = most
            if changed is not limits:
                getattr(execution, "uniqueSources_$eq")(changed)
        except Py4JError:
            return dict(self._set)
        return dict(self._set)

    def _is_set(self, name: str, wanted: int) -> bool:
        """Whether the bound of a source is about the wanted one already."""
        own = self._own.get(name)
        if own is None:
            return True
        most = min(own, wanted)
        if name not in self._set and most >= UNBOUNDED:
            return True
        return name in self._set and abs(self._set[name] - most) <= _SAME_SHARE * most

    def _limit(self, kind: str, rows: int) -> Any:
        if kind.startswith(_PYTHON):
            text = json.dumps({"_type": "ReadMaxRows", "max_rows": rows})
            python = self._jvm.org.apache.spark.sql.execution.datasources.v2.python
            return python.PythonStreamingSourceReadLimit(text)
        return self._jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(rows)


class _AtStart(StreamingQueryListener):
    """Sets bounds when a query starts."""

    def __init__(self, limits: ReadLimits, spark: SparkSession, query_name: str, rows: Mapping[str, int]) -> None:
        self._limits = limits
        self._spark = spark
        self._query_name = query_name
        self._rows = rows

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        if event.name != self._query_name:
            return
        try:
            query = self._spark.streams.get(str(event.id))
            handle: Any = query._jsq  # type: ignore[union-attr]
            handle.streamingQuery().logicalPlan()
            self._limits.set(query, self._rows)
        except Exception as error:  # what is wrong with a source Spark says itself, in a moment
            _log.debug("the first batch is not bounded: %s", error)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


def _own_rows(limit: str, kind: str, generated: bool) -> float | None:
    """The rows that a source's own limit allows; None where a limit of rows would mean nothing to it.

    >>> _own_rows("MaxRows: 2000", "KafkaMicroBatchStream", False), _own_rows("MaxFiles: 3", "FileStreamSource", False)
    (2000.0, None)
    >>> _own_rows("All Available", "KafkaMicroBatchStream", False)
    inf
    """
    if not kind.startswith((_KAFKA, _PYTHON)):
        return None
    found = _OWN.search(limit)
    if found is not None:
        return float(next(group for group in found.groups() if group is not None))
    understood = generated or kind.startswith(_KAFKA)
    return float("inf") if understood and any(word in limit for word in _UNLIMITED) else None
