"""A stream of rows that a test gives, batch by batch: files in a temporary folder, one for each batch."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from jettison.errors import StartError


class MemorySource:
    """Rows for a source. Each `add` is one batch; `frame` is the stream."""

    def __init__(self, spark: SparkSession, schema: str, rows: Iterable[Any] = ()) -> None:
        if not isinstance(spark, SparkSession):
            raise StartError(f"memory_source: spark is {spark!r}: give a SparkSession, such as jt.local_session().")
        self._spark = spark
        self._schema = schema
        self._folder = Path(tempfile.mkdtemp(prefix="jettison-rows-"))
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)  # a stream may outlive this and its frame
        self._batches = 0
        given = _listed(rows)
        if given:
            self.add(given)

    @property
    def frame(self) -> DataFrame:
        """The stream, for `jt.start`: a batch for every `add`."""
        stream = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", 1)
        return stream.parquet(str(self._folder))

    def add(self, rows: Iterable[Any]) -> None:
        """Let a batch of rows come: tuples in the order of the schema, or dictionaries."""
        given = _listed(rows)
        try:
            table = self._spark.createDataFrame(given, self._schema).toArrow()
        except (PySparkException, TypeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise StartError(f"rows do not fit the schema {self._schema!r}: {reason}") from None
        draft = self._folder / f".{self._batches:06}"
        pq.write_table(table, draft)
        os.utime(draft, (self._batches, self._batches))  # Spark reads files in order of their times
        draft.rename(self._folder / f"{self._batches:06}.parquet")
        self._batches += 1


def _listed(rows: object) -> list[Any]:
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise StartError(f"memory_source: rows is {rows!r}: give a list of rows, such as [(1, 25.0)].")
    return list(rows)
