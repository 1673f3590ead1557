"""Which outputs of a batch are small: their rows come to the driver, which writes one file of them.

For a few rows most of the time of a Spark job that writes goes into its files: 80 to 90 ms a parquet folder on a local
disk, of which collecting the rows takes 30. An output is small where what is read bounds its rows. Where it does not
(large batches, joins, functions of the user's own) the last batches tell, and Spark's own limit of what comes to the
driver (`spark.driver.maxResultSize`) is the last resort: what runs into it is written by Spark, and all that follows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DateType, NumericType, StructType, TimestampType

T = TypeVar("T")

MOST_ROWS = 10_000
"""An output of at most so many rows is small."""
_MOST_OF_LATE = 5_000
"""An output that nothing else bounds is small when it had at most so many rows in each of the last batches."""
_LAST = 3
FIXED, PLAIN, OTHER = "fixed", "plain", "other"
_MOST_PLAIN = 500
"""An output with texts or binaries is small up to so many rows: each of them may be long."""
_FIXED = (BooleanType, DateType, NumericType, TimestampType)
_WAYS = ("write", "write_few")
_LIMIT = "spark.driver.maxResultSize"


def fast_way(sink: Any) -> Callable[[DataFrame, int], None] | None:
    """How a sink takes a few rows, `write_few(rows, batch)`; None where it has no such way, or a class of the user's
    own that changes how it writes."""
    made_by = {name: next((each for each in type(sink).__mro__ if name in vars(each)), None) for name in _WAYS}
    if made_by["write_few"] is None or made_by["write_few"] is not made_by["write"]:
        return None
    way: Callable[[DataFrame, int], None] = sink.write_few
    return way


@dataclass
class SmallOutputs:
    """Which outputs of a run are small, from batch to batch.

    >>> outputs = SmallOutputs()
    >>> [outputs.is_small("alerts", FIXED, most_rows=rows, read=rows) for rows in (500, 90_000)]
    [True, False]
    >>> [outputs.is_small("alerts", PLAIN, most_rows=rows, read=rows) for rows in (500, 501)]
    [True, False]
    >>> outputs.is_small("pairs", FIXED, most_rows=None, read=500)  # nothing is known of them yet
    False
    >>> for _ in range(3): outputs.saw({"pairs": 20}, read=500)
    >>> [outputs.is_small("pairs", FIXED, most_rows=None, read=read) for read in (600, 60_000)]
    [True, False]
    """

    allowed: bool = True
    """Whether rows may come to the driver at all."""
    _seen: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)

    def is_small(self, output: str, width: str, *, most_rows: int | None, read: int) -> bool:
        """Whether an output is small in a batch. `most_rows` bounds it, `read` is how many rows the batch reads."""
        if not self.allowed or width == OTHER:
            return False
        if width == PLAIN:
            return most_rows is not None and most_rows <= _MOST_PLAIN
        if most_rows is not None and most_rows <= MOST_ROWS:
            return True
        seen = self._seen.get(output, ())
        known = len(seen) == _LAST and max(rows for rows, _ in seen) <= _MOST_OF_LATE
        return known and read <= 2 * max(before for _, before in seen)

    def end(self) -> None:
        """Let no more rows come to the driver: some were too large for it."""
        self.allowed = False

    def saw(self, rows: Mapping[str, int], *, read: int) -> None:
        """Learn how many rows outputs had in a batch; one without rows tells nothing of the next."""
        for output, count in rows.items():
            if count == 0:
                continue
            self._seen.setdefault(output, deque(maxlen=_LAST)).append((count, read))


def width_of(schema: StructType) -> str:
    """What is known of a row's size: FIXED, PLAIN (texts and binaries may be long), or OTHER, where the driver would
    write something else than Spark does (nested types, times without a zone, collations)."""
    kinds = [column.dataType for column in schema]
    if all(isinstance(kind, _FIXED) for kind in kinds):
        return FIXED
    plain = all(isinstance(kind, _FIXED) or kind.simpleString() in ("string", "binary") for kind in kinds)
    return PLAIN if plain else OTHER


class TooLargeError(Exception):
    """Spark refused to bring rows to the driver."""


def within_limit(collect: Callable[[], T]) -> T:
    """What is collected; `TooLargeError` where that is more than Spark lets a driver take."""
    try:
        return collect()
    except Exception as error:
        if _LIMIT in str(error):
            raise TooLargeError(str(error)) from error
        raise


def collected(rows: DataFrame) -> Any:
    """The rows as an Arrow table."""
    return within_limit(rows.toArrow)
