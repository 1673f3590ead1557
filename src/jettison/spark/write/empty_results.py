"""Results that have not come yet read back as an empty table, not as an error.

An output of windows writes its first folder when its first window closes. Until then `spark.read.parquet(path)` would
find no file and could not tell the columns. So the first batch after a start writes no rows, with their schema, for
every parquet output that has no folder of a batch yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, DoubleType, LongType, StructField, StructType

from jettison.errors import SinkError
from jettison.network.columns.reserved import BATCH, KEPT, SIC
from jettison.network.operators import Output
from jettison.spark.checkpoint.small_files import open_folder, spark_place
from jettison.spark.error_text import reason_of
from jettison.spark.write.owners import batches_in
from jettison.spark.write.sinks import ParquetSink, Sink


class EmptyResults:
    """Writes them once, after the first batch that this run has done."""

    def __init__(self, spark: SparkSession, sinks: Mapping[str, Sink], schemas: Mapping[str, StructType]) -> None:
        self._spark = spark
        self._waiting = {name: sink for name, sink in sinks.items() if isinstance(sink, ParquetSink)}
        self._schemas = schemas

    def write(self, batch: int) -> None:
        """Give every output that has no batch yet an empty one."""
        for name, sink in self._waiting.items():
            if batches_in(open_folder(spark_place(sink.path, self._spark), self._spark)):
                continue
            try:
                sink.write(self._spark.createDataFrame([], self._schemas[name]), batch)
            except Exception as error:
                raise SinkError(
                    f"output {name!r}: writing batch {batch} failed ({type(error).__name__}: {reason_of(error)}). It "
                    f"is not committed: mend the sink and start again; it is repeated with its plan."
                ) from error
        self._waiting = {}


def result_schema(output: Output, visible: StructType) -> StructType:
    """What an output writes: its own columns and, with `quality`, those that say how complete it is."""
    if not output.quality:
        return visible
    kinds: dict[str, DataType] = {KEPT: DoubleType(), BATCH: LongType(), SIC: DoubleType()}
    return StructType([*visible.fields, *(StructField(name, kind, False) for name, kind in kinds.items())])
