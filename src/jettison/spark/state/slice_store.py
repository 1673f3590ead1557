"""Where slices are kept, whatever windows are made of them: records, parts as parquet, and threads that write them.

`slice_state` (windows of event time) and `count_state` (of rows) say what is in a part and when it is written; this is
what they do alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet
from pyarrow import ArrowException
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from jettison.errors import JettisonError, SinkError
from jettison.spark.checkpoint.small_files import Folder, LocalFolder, as_it_stands
from jettison.spark.compile.observations import observed
from jettison.spark.error_text import failed_at
from jettison.spark.job_descriptions import part as described_part
from jettison.spark.state.part_files import PartFile, check_files, damaged_part, files_of
from jettison.spark.state.slice_log import SlicePart, SliceRecord
from jettison.spark.state.state_log import StateLog
from jettison.spark.state.written_parts import write_part
from jettison.spark.windows.slices import FAILED
from jettison.statistics.samples import FailedWindows

_FIXED = (BooleanType, DateType, NumericType, TimestampNTZType, TimestampType)
_MOST_ROWS = 2_500_000


def fits_driver(schema: StructType, by: Sequence[str], most_rows: int) -> bool:
    """Whether so many slices could come to the driver: what they hold for their groups has a fixed size."""
    held = [each.dataType for each in schema.fields if each.name not in by]
    keys = [each.dataType for each in schema.fields if each.name in by]
    fixed = all(_is_fixed(each) for each in held)
    return most_rows <= _MOST_ROWS and fixed and all(isinstance(each, (*_FIXED, StringType)) for each in keys)


def _is_fixed(kind: DataType) -> bool:
    return all(_is_fixed(each.dataType) for each in kind) if isinstance(kind, StructType) else isinstance(kind, _FIXED)


class SliceStore:
    """The folders of some aggregates (or groups of them), each with a log of records; `path` is where they are.

    A folder is called as the aggregate (or group), unless `folders` has another name.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        path: str,
        names: Iterable[str],
        *,
        threads: int,
        called: str,
        folders: Mapping[str, str] | None = None,
    ) -> None:
        self._folders = {name: (folders or {}).get(name, name) for name in names}
        self.logs = {
            name: StateLog(folder, "aggregate", where, SliceRecord.from_json) for name, where in self._folders.items()
        }
        self._spark = spark
        self.path = self._path = path
        self._folder = folder
        self._local = isinstance(folder, LocalFolder)
        self._nothing: dict[str, DataFrame] = {}  # by aggregate: made once, as most batches close no window
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=called)

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        """Do something in a thread of its own, as a job of the run's session."""
        return self._pool.submit(inheritable_thread_target(self._spark)(work), *given)

    def write(self, name: str, part: str, slices: DataFrame, *, few: bool = False) -> None:
        """Write a part."""
        with described_part(self._spark, f"{'merging ' if '-m' in part else ''}slices of {name}"):
            write_part(slices, self._folder, self._path, f"{self._folders[name]}/{part}", few=few)

    def write_records(self, records: Mapping[str, tuple[SliceRecord, SliceRecord | None]]) -> None:
        """Make these the last records, by aggregate (or group), each with the one that it goes on from. They are
        written side by side: a disk takes as long for one as for some."""
        jobs = [self._pool.submit(self.logs[name].write, *each) for name, each in records.items()]
        wait(jobs)  # also those beside one that fails: nothing may write on
        for job in jobs:
            job.result()

    def files(self, name: str, part: str) -> tuple[PartFile, ...]:
        """The files of a part that was written, as its record has them."""
        return files_of(self._folder, f"{self._folders[name]}/{part}")

    def check_parts(self, name: str, parts: Iterable[SlicePart]) -> None:
        """Refuse to go on with parts that are not as they were written."""
        old = []
        for part in parts:
            if part.files:
                check_files(self._folder, f"aggregate {name!r}", f"{self._folders[name]}/{part.name}", part)
            else:
                old.append(part)
        self._check_rows(name, old)

    def _check_rows(self, name: str, parts: Iterable[SlicePart]) -> None:
        """The same of parts from before files were noted: by rows in their footers, and on this machine only, for
        elsewhere a footer takes long to reach."""
        for part in parts if self._local else ():
            folder = Path(self._folder.path, self._folders[name], part.name)
            try:
                files = [path for path in folder.iterdir() if path.name.endswith(".parquet")]
                rows = sum(pyarrow.parquet.read_metadata(path).num_rows for path in files)
                found = None if rows == part.rows else f"it has {rows:,} rows of {part.rows:,}"
            except (OSError, ArrowException) as error:
                found = f"{type(error).__name__}: {error}"
            if found is not None:
                raise damaged_part(f"aggregate {name!r}", str(folder), found)

    def read(self, session: SparkSession, name: str, schema: StructType, parts: Iterable[SlicePart]) -> DataFrame:
        paths = [as_it_stands(f"{self._path}/{self._folders[name]}/{part.name}") for part in parts]
        reader = session.read.schema(schema).option("datetimeRebaseMode", "CORRECTED")  # as they were written
        return reader.parquet(*paths)

    def no_results(self, name: str, session: SparkSession, make: Callable[[], DataFrame]) -> DataFrame:
        """No results of an aggregate, as a frame; `make` gives one where none is known of this session."""
        known = self._nothing.get(name)
        if known is None or not _same_session(known.sparkSession, session):
            known = self._nothing[name] = make().drop(FAILED)
        return known


class Failing:
    """The windows of one batch on which functions of the user's own threw, by aggregate."""

    def __init__(self) -> None:
        self._seen: dict[str, Observation] = {}

    def watched(self, name: str, results: DataFrame) -> DataFrame:
        """Results without the column that tells of failures, which is observed."""
        seen = self._seen[name] = Observation()
        reasons = (f"count({FAILED}) AS windows", f"min({FAILED}) AS reason")
        return results.observe(seen, *map(F.expr, reasons)).drop(FAILED)

    def counted(self) -> dict[str, FailedWindows]:
        """How many there were, when all results have been looked at."""
        threw = {name: observed(observation) for name, observation in self._seen.items()}
        return {
            name: FailedWindows(each["windows"], each["reason"]) for name, each in threw.items() if each.get("windows")
        }


@contextmanager
def explained(name: str, batch: int, path: str = "the checkpoint") -> Iterator[None]:
    """Name the aggregate when keeping its slices, below `path`, fails."""
    try:
        yield
    except JettisonError:
        raise
    except Exception as error:
        raise SinkError(
            f"aggregate {name!r}: keeping the slices of batch {batch} failed ({failed_at(error, path)}). "
            f"It is not committed: mend the cause and start again; it is repeated with its plan."
        ) from error


def _same_session(one: Any, other: Any) -> bool:
    """Whether two handles are of the same session: PySpark makes a new one for every batch."""
    return bool(one._jsparkSession.equals(other._jsparkSession))
