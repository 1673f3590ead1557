"""Where slices are kept, whatever windows are made of them: records, parts as parquet, and threads that write them.

`slice_state` (windows of event time) and `count_state` (of rows) say what is in a part and when it is written; this is
what they do alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.errors import JettisonError, SinkError
from jettison.spark.files import Folder
from jettison.spark.reasons import reason_of
from jettison.spark.slice_log import SlicePart, SliceRecord
from jettison.spark.slices import FAILED
from jettison.spark.state_log import StateLog
from jettison.statistics.samples import FailedWindows


class SliceStore:
    """The folders of some aggregates (or groups of them), each with a log of records; `path` is where they are."""

    def __init__(
        self, spark: SparkSession, folder: Folder, path: str, names: Iterable[str], *, threads: int, called: str
    ) -> None:
        self.logs = {name: StateLog(folder, "aggregate", name, SliceRecord.from_json) for name in names}
        self._spark = spark
        self._path = path
        self._nothing: dict[str, DataFrame] = {}  # by aggregate: made once, as most batches close no window
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=called)

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        """Do something in a thread of its own, as a job of the run's session."""
        return self._pool.submit(inheritable_thread_target(self._spark)(work), *given)

    def write(self, name: str, part: str, slices: DataFrame) -> None:
        """Write a part; what a broken try of it has left is replaced."""
        slices.write.mode("overwrite").parquet(f"{self._path}/{name}/{part}")

    def read(self, session: SparkSession, name: str, schema: StructType, parts: Iterable[SlicePart]) -> DataFrame:
        paths = [f"{self._path}/{name}/{part.name}" for part in parts]
        return session.read.schema(schema).parquet(*paths)

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
def explained(name: str, batch: int) -> Iterator[None]:
    """Name the aggregate when keeping its slices fails."""
    try:
        yield
    except JettisonError:
        raise
    except Exception as error:
        raise SinkError(
            f"aggregate {name!r}: keeping the slices of batch {batch} failed ({type(error).__name__}: "
            f"{reason_of(error)}). It is not committed: mend the cause and start again; it is repeated with its plan."
        ) from error


def observed(observation: Observation) -> dict[str, Any]:
    """What an observation saw; nothing where nobody looked at the rows."""
    handle: Any = observation._jo
    return observation.get if handle.future().isCompleted() else {}


def _same_session(one: Any, other: Any) -> bool:
    """Whether two handles are of the same session: PySpark makes a new one for every batch."""
    return bool(one._jsparkSession.equals(other._jsparkSession))
