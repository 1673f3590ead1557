"""A seeded, replayable source of rows for demos, tests and measurements: the Spark data source named `jettison`.

With a `rate` it is an open loop: rows arrive by the wall clock, whether Spark keeps up or not, and wait until they are
read. Without one it is a closed loop: each batch holds exactly `rows_per_batch` rows, as fast as Spark asks for them.

An offset is {"rows": rows before it, "start_us": the time of row 0}, so that a restart keeps the epoch. Every value is
a function of the seed, the column's name and the row's number: the same range read again gives the same rows.
The `jettison` package must be installed where Spark's Python workers run.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.spark.connect import refuse_connect
from jettison.spark.read.generator_columns import record_batches
from jettison.spark.read.generator_options import GeneratorOptions
from jettison.synthetic.fields import Field, fields_to_dict
from jettison.synthetic.rates import Rate

SOURCE = "jettison"
_CLOSED_LOOP_ROWS_PER_BATCH = 100_000
_SPARK_TYPES = {
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "timestamp": TimestampType(),
}

_registered: WeakSet[SparkSession] = WeakSet()


@checked_call("jt.generate")
def generate(
    spark: SparkSession,
    fields: Mapping[str, Field],
    *,
    rate: Rate | None = None,
    seed: int = 0,
    partitions: int | None = None,
    rows_per_batch: int | None = None,
    limit_rows: int | None = None,
    start_us: int | None = None,
) -> DataFrame:
    """A streaming DataFrame of generated rows.

    Parameters
    ----------
    fields
        The columns by name, such as `TAXI`.
    rate
        When rows arrive. Without it each batch holds `rows_per_batch` rows (100,000 unless given).
    rows_per_batch
        With a rate, the most rows of one batch: what is above it waits.
    limit_rows
        After so many rows the source has no more.
    start_us
        When row 0 arrives, in microseconds since 1970; the moment at which the query starts unless given.

    >>> trips = generate(spark, TAXI, rate=Burst(20_000, 200_000, at_s=30, length_s=10))  # doctest: +SKIP
    >>> trips.writeStream.format("console").trigger(processingTime="1 second").start()  # doctest: +SKIP
    """
    given = {"rows_per_batch": rows_per_batch, "limit_rows": limit_rows, "start_us": start_us}
    options = _options(spark, fields, rate, seed, partitions, given)
    return spark.readStream.format(SOURCE).options(**options).load()


def generated(
    spark: SparkSession,
    fields: Mapping[str, Field],
    from_row: int,
    to_row: int,
    *,
    start_us: int,
    rate: Rate | None = None,
    seed: int = 0,
    partitions: int | None = None,
) -> DataFrame:
    """Rows `from_row` to `to_row` - 1 of what `generate` streams, as an ordinary DataFrame.

    >>> generated(spark, TAXI, 0, 60_000, start_us=1_700_000_000_000_000).agg({"fare": "avg"}).show()  # doctest: +SKIP
    """
    given = {"from_row": from_row, "to_row": to_row, "start_us": start_us}
    options = _options(spark, fields, rate, seed, partitions, given)
    GeneratorReader(GeneratorOptions.of(options))
    return spark.read.format(SOURCE).options(**options).load()


def _options(
    spark: SparkSession,
    fields: Mapping[str, Field],
    rate: Rate | None,
    seed: int,
    partitions: int | None,
    given: Mapping[str, int | None],
) -> dict[str, str]:
    refuse_connect({"the session of generated rows": spark})
    if not isinstance(spark, SparkSession):
        raise NetworkError(f"generated rows: spark is {spark!r}: give a SparkSession, such as jt.local_session().")
    if not isinstance(fields, Mapping):
        raise NetworkError(f"generated rows: fields are {fields!r}: give a mapping of columns, such as TAXI.")
    if rate is not None and not hasattr(rate, "to_dict"):
        raise NetworkError(f"generated rows: rate is {rate!r}: give a rate, such as Constant(5).")
    if spark not in _registered:
        spark.dataSource.register(GeneratorSource)
        _registered.add(spark)
    options = {name: str(value) for name, value in given.items() if value is not None}
    options["fields"] = json.dumps(fields_to_dict(fields))
    options["seed"] = str(seed)
    options["partitions"] = str(spark.sparkContext.defaultParallelism if partitions is None else partitions)
    if rate is not None:
        options["rate"] = json.dumps(rate.to_dict())
    GeneratorOptions.of(options)  # here an error is a NetworkError; in Spark's planner it would be a wrapped traceback
    return options


@dataclass(frozen=True)
class RowRange(InputPartition):
    """What one task reads."""

    from_row: int
    to_row: int
    start_us: int


def _ranges(from_row: int, to_row: int, start_us: int, partitions: int) -> list[RowRange]:
    """Ranges of equal size, none of them empty.

    >>> [(each.from_row, each.to_row) for each in _ranges(0, 1000, start_us=0, partitions=3)]
    [(0, 333), (333, 666), (666, 1000)]
    """
    count = min(partitions, to_row - from_row)
    edges = [from_row + (to_row - from_row) * k // max(count, 1) for k in range(count + 1)]
    return [RowRange(first, last, start_us) for first, last in pairwise(edges)]


class GeneratorSource(DataSource):
    """The entry point that Spark knows as `jettison`. Its options are the arguments of `generate`, as strings."""

    @classmethod
    def name(cls) -> str:
        """What to give to `format`."""
        return SOURCE

    def schema(self) -> StructType:
        """One column for each field."""
        fields = GeneratorOptions.of(self.options).fields
        return StructType([StructField(name, _SPARK_TYPES[field.type]) for name, field in fields.items()])

    def reader(self, schema: StructType) -> "GeneratorReader":
        """For `spark.read`."""
        return GeneratorReader(GeneratorOptions.of(self.options))

    def streamReader(self, schema: StructType) -> "GeneratorStreamReader":  # noqa: N802  # Spark's name
        """For `spark.readStream`."""
        return GeneratorStreamReader(GeneratorOptions.of(self.options))


class GeneratorReader(DataSourceReader):
    """Reads the rows from `from_row` to `to_row` - 1."""

    def __init__(self, options: GeneratorOptions) -> None:
        self._options = options
        if options.to_row is None or options.start_us is None:
            missing = "to_row" if options.to_row is None else "start_us"
            raise NetworkError(f"data source jettison: option {missing} is missing, a batch read needs it")
        if options.to_row < options.from_row:
            bounds = f"from_row is {options.from_row} and to_row {options.to_row}"
            raise NetworkError(f"data source jettison: {bounds}, give a to_row of at least from_row")
        last_row = np.array([options.to_row - 1])
        if options.rate and options.to_row > options.from_row and math.isinf(options.rate.seconds_of(last_row)[0]):
            raise NetworkError(f"data source jettison: row {last_row[0]} never arrives at {options.rate}, lower to_row")
        self._ranges = _ranges(options.from_row, options.to_row, options.start_us, options.partitions)

    def partitions(self) -> list[InputPartition]:
        """Spark takes an empty list for one unknown partition, so an empty read has an empty range."""
        return list(self._ranges) or [RowRange(0, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a worker."""
        assert isinstance(partition, RowRange)
        return record_batches(self._options, partition.from_row, partition.to_row, partition.start_us)


class GeneratorStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Decides in the driver how far a batch reads, and reads its ranges in workers."""

    def __init__(self, options: GeneratorOptions) -> None:
        self._options = options
        self._start_us = options.start_us
        self._frozen_us: int | None = None
        self._end_row: int | None = options.limit_rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The epoch of a new query. A restarted one has it in its checkpoint."""
        if self._start_us is None:
            self._start_us = _now_us()
        return {"rows": 0, "start_us": self._start_us}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`rows_per_batch`, in the form in which Spark hands it back to `latestOffset`."""
        cap = self._options.rows_per_batch
        return ReadAllAvailable() if cap is None else ReadMaxRows(cap)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Up to where the next batch reads; `start` itself when there is nothing to read."""
        self._start_us = start["start_us"]
        rows = self._arrived(start["rows"])
        if self._options.rate is not None and isinstance(limit, ReadMaxRows):
            rows = min(rows, start["rows"] + limit.max_rows)
        return {"rows": max(rows, start["rows"]), "start_us": start["start_us"]}

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        """All that has arrived: in the query's progress, latestOffset - endOffset are the rows that wait."""
        if self._options.rate is None or self._start_us is None:
            return None
        return {"rows": self._arrived(0), "start_us": self._start_us}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What has arrived by now; in a closed loop all rows up to `limit_rows`, or one batch without a limit."""
        self._frozen_us = _now_us()

    def _arrived(self, read_rows: int) -> int:
        rate, start_us = self._options.rate, self._start_us
        if rate is None:
            rows = read_rows + (self._options.rows_per_batch or _CLOSED_LOOP_ROWS_PER_BATCH)
            if self._frozen_us is not None and self._end_row is None:
                self._end_row = rows
        else:
            assert start_us is not None  # Spark asks for an offset first
            rows = rate.rows_until(((self._frozen_us or _now_us()) - start_us) / 1e6)
        return rows if self._end_row is None else min(rows, self._end_row)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The epoch is that of `end`: the start of a first batch that Spark repeats is a fresh initial offset."""
        return list(_ranges(start["rows"], end["rows"], end["start_us"], self._options.partitions))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a worker."""
        assert isinstance(partition, RowRange)
        return record_batches(self._options, partition.from_row, partition.to_row, partition.start_us)


def _now_us() -> int:
    return time.time_ns() // 1000
