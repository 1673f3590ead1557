"""Where results go. A sink writes one output's rows of one batch; Spark may repeat a batch after a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, TimestampNTZType, TimestampType

from jettison.errors import StartError
from jettison.network.calls import checked_call
from jettison.network.columns.schema import quoted
from jettison.network.kafka import Kafka
from jettison.spark.checkpoint.small_files import local_place
from jettison.spark.compile.drops import placeable
from jettison.spark.folder_size import Size, size_of_folder
from jettison.spark.read.kafka import KafkaSink
from jettison.spark.write.driver_files import DriverFiles, driver_files, write_table
from jettison.spark.write.small_outputs import collected, within_limit

BATCH_COLUMN = "batch"
REFUSE, REPLACE = "refuse", "replace"
DRAFT = f".{BATCH_COLUMN}="
"""What a batch is called while the driver writes it: readers pass over names that begin with a dot."""


class Sink(Protocol):
    """`write` puts a batch's rows away, all of them: what it leaves unread is not counted as delivered.

    Doing so again for the same batch must not double rows where that is possible.
    """

    def write(self, rows: DataFrame, batch: int) -> None: ...


@dataclass(frozen=True)
class ParquetSink:
    """One folder per batch, `path/batch=7`, replaced when the batch is repeated: no row is lost or doubled.

    Read it with `spark.read.parquet(path)`; the batch is a column then. The folder belongs to one run (`owners`): where
    it has rows of another one, whose checkpoint is another, `on_other_run` says whether the start is refused or those
    rows are deleted.
    """

    path: str
    on_other_run: str = REFUSE
    _found: list[DriverFiles | None] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.on_other_run not in (REFUSE, REPLACE):
            raise StartError(
                f"parquet sink {self.path!r}: on_other_run={self.on_other_run!r} is not known: use 'refuse' or "
                f"'replace'."
            )

    def write(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(self.folder(batch))

    def write_few(self, rows: DataFrame, batch: int) -> None:
        """The same, of one file that the driver writes, where that is as Spark would write it: on this machine, in a
        format that both know. The folder is there as a whole, or not at all. Columns must be `plain`."""
        if not self._found:
            self._found.append(driver_files(self.path, rows.sparkSession))
        files = self._found[0]
        if files is None:
            return self.write(rows, batch)
        table = collected(rows)
        draft, folder = Path(files.place, f"{DRAFT}{batch}"), Path(files.place, f"{BATCH_COLUMN}={batch}")
        for old in (draft, folder):
            if old.exists():
                shutil.rmtree(old)
        draft.mkdir(parents=True)
        write_table(table, draft / "part-00000.parquet", files.options)
        (draft / "_SUCCESS").touch()
        draft.rename(folder)

    def folder(self, batch: int) -> str:
        """Where the rows of a batch are."""
        return f"{self.path.rstrip('/')}/{BATCH_COLUMN}={batch}"

    def size(self) -> Size:
        """How many files and bytes there are by now, where the path is on this machine."""
        place = local_place(self.path)
        if place is None:
            raise StartError(f"parquet sink {self.path!r} is not on this machine: ask its file system for its size.")
        return size_of_folder(place)


@dataclass(frozen=True)
class ConsoleSink:
    """Shows the first rows of every batch."""

    rows: int = 10

    def write(self, rows: DataFrame, batch: int) -> None:
        columns = rows.columns
        shown = _first(rows, self.rows)
        width = shutil.get_terminal_size((100, 24)).columns
        print(f"--- batch {batch}: {', '.join(columns)}")
        for row in shown:
            print(", ".join(str(row[column]) for column in columns)[:width])


@dataclass(frozen=True, eq=False)  # two of them are not the same while both are empty
class MemorySink:
    """Keeps rows in this process, for tests: at most `limit`, the oldest batches go first."""

    limit: int = 100_000
    batches: dict[int, list[Row]] = field(default_factory=dict)

    def write(self, rows: DataFrame, batch: int) -> None:
        self._keep(_first(rows, self.limit), batch)

    def write_few(self, rows: DataFrame, batch: int) -> None:
        """The same in one job."""
        try:
            self._keep(within_limit(rows.collect)[: self.limit], batch)
        except (ValueError, OverflowError):
            self.write(rows, batch)

    def _keep(self, rows: list[Row], batch: int) -> None:
        self.batches[batch] = rows
        while sum(map(len, self.batches.values())) > self.limit and len(self.batches) > 1:
            del self.batches[min(self.batches)]

    @property
    def rows(self) -> list[Row]:
        """All rows, by batch."""
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]


@dataclass(frozen=True)
class FormatSink:
    """Any format that Spark can write. At least once: a repeated batch is appended again."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def write(self, rows: DataFrame, batch: int) -> None:
        mode = "overwrite" if self.format == "noop" else "append"
        rows.write.format(self.format).options(**self.options).mode(mode).save()


@dataclass(frozen=True)
class CallableSink:
    """A function of (DataFrame, batch id)."""

    function: Callable[[DataFrame, int], Any]

    def write(self, rows: DataFrame, batch: int) -> None:
        self.function(rows, batch)


def _first(rows: DataFrame, limit: int) -> list[Row]:
    """The first rows of a batch, after all of them were computed (and counted).

    Python knows no dates beyond the years 1 to 9999: such times are None here, and stop nothing.
    """
    kept = rows.persist()
    try:
        kept.count()
        try:
            return kept.take(limit)
        except (ValueError, OverflowError):
            return kept.select(*(F.expr(_in_python(each)) for each in kept.schema.fields)).take(limit)
    finally:
        kept.unpersist()


def sink_place(sink: Sink) -> str:
    """Where a sink writes, as far as it says.

    >>> sink_place(ParquetSink("/data/fares")), sink_place(CallableSink(print))
    ('/data/fares', 'its sink')
    """
    path = getattr(sink, "path", None)
    return str(path) if path and local_place(str(path)) is None else os.path.abspath(path) if path else "its sink"


def _in_python(column: StructField) -> str:
    """A column, in SQL, without times that are none in Python."""
    name = quoted(column.name)
    if isinstance(column.dataType, TimestampType | TimestampNTZType):
        return f"IF({placeable(name)}, {name}, NULL) AS {name}"
    if isinstance(column.dataType, DateType):
        return f"IF(unix_date({name}) BETWEEN -719162 AND 2932896, {name}, NULL) AS {name}"
    return name


@checked_call("jt.parquet", StartError)
def parquet(path: str, *, on_other_run: str = REFUSE) -> ParquetSink:
    """Write parquet files, exactly once, one folder per batch.

    A folder with rows of another run (with another checkpoint) is refused at the start; with `on_other_run="replace"`
    those rows are deleted then.
    """
    if not isinstance(path, str | PathLike) or not str(path).strip():
        raise StartError(f"jt.parquet: the path is {path!r}: give that of a folder, such as 'out/fares'.")
    return ParquetSink(str(path), on_other_run)


@checked_call("jt.console", StartError)
def console(rows: int = 10) -> ConsoleSink:
    """Show the first rows of every batch."""
    _check_rows("jt.console", "rows", rows)
    return ConsoleSink(rows)


@checked_call("jt.memory", StartError)
def memory(limit: int = 100_000) -> MemorySink:
    """Keep rows in this process, for tests."""
    _check_rows("jt.memory", "limit", limit)
    return MemorySink(limit)


@checked_call("jt.spark_format", StartError)
def spark_format(name: str, **options: str) -> FormatSink:
    """Write with any format that Spark knows: `jt.spark_format("kafka", topic="alerts", ...)`."""
    if not isinstance(name, str) or not name.strip():
        raise StartError(f"jt.spark_format: the name is {name!r}: give that of a format, such as 'delta'.")
    return FormatSink(name, options)


def _check_rows(element: str, what: str, rows: object) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise StartError(f"{element}: {what} is {rows!r}: give a number of rows of at least 1.")


def as_sink(output: str, sink: Any) -> Sink:
    """A sink from what the user gave: a sink, a Kafka topic or a function."""
    if isinstance(sink, Kafka):
        return KafkaSink(sink)
    if hasattr(sink, "write"):
        made: Sink = sink
        return made
    if callable(sink):
        return CallableSink(sink)
    raise StartError(
        f"output {output!r}: {sink!r} is not a sink. Use jt.parquet(path), jt.kafka(servers, topic), "
        f"jt.console(), jt.memory(), jt.spark_format(name, ...) or a function of (DataFrame, batch id)."
    )
