"""A batch of the generated source made inside the JVM: numbers of rows from ranges, columns by SQL.

Spark's Python source reads anew in Python workers with every job: on 100,000 payloads a job took 330 ms, on those made
here 90. So a batch of a stream that is our generator and nothing else is not read from it, but made of its offsets.
What changes from batch to batch stands in a text, not in numbers. Those would be written into the generated code, which
would be compiled anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.spark.read.generator import SOURCE
from jettison.spark.read.generator_columns import CLOSED_LOOP_RATE
from jettison.spark.read.generator_options import GeneratorOptions
from jettison.synthetic.arrivals import Piece
from jettison.synthetic.sql import ARRIVAL_US, ROW, generated_sql

_STREAM = "StreamingRelationV2"
_OPTIONS = ("fields", "rate", "seed", "partitions")
_MOST_ROWS = 1_000_000
"""In one range: the numbers of its rows are an array of a task."""
_MOST_RANGES = 200

_RANGE = ", ".join(["first BIGINT", "last BIGINT", "start_us BIGINT", *(f"{name} DOUBLE" for name in Piece._fields)])


class GeneratedRows:
    """Batches of one generated stream.

    Row i of a piece of the rate arrives ((i - rows before the period) - rows before the piece) / rate seconds after
    the piece begins (`synthetic.arrivals`): the same numbers in the same order as in Python, to the last bit.
    """

    def __init__(self, options: GeneratorOptions) -> None:
        self._options = options
        self._sql = generated_sql(options.fields, options.seed)

    @classmethod
    def of(cls, frame: DataFrame) -> GeneratedRows | None:
        """The rows of a stream; None where it is another than our generator as it is, or is drawn in Python alone."""
        plan: Any = frame._jdf.queryExecution().analyzed()
        try:
            if str(plan.nodeName()) != _STREAM or str(plan.sourceName()) != SOURCE:
                return None
            given = plan.extraOptions()
            options = {name: value for name in _OPTIONS if (value := given.get(name)) is not None}
        except Py4JError:
            return None
        found = cls(GeneratorOptions.of(options))
        return None if found._sql is None else found

    def batch(self, session: SparkSession, start: Any, end: Any) -> DataFrame | None:
        """The rows between two offsets; None where Python must make them (`rows`).

        The epoch is that of `end`: the start of a first batch that Spark repeats is a fresh initial offset.
        """
        if end is None:
            return self.rows(session, 0, 0, 0)
        if not isinstance(end, Mapping):
            return None
        first = int(start["rows"]) if isinstance(start, Mapping) else 0
        return self.rows(session, first, int(end["rows"]), int(end["start_us"]))

    def rows(self, session: SparkSession, from_row: int, to_row: int, start_us: int) -> DataFrame | None:
        """Rows `from_row` to `to_row` - 1; None where a plan would hold too many ranges, or they never arrive."""
        ranges = self._ranges(from_row, to_row) if from_row < to_row else []
        if ranges is None:
            return None
        texts = [",".join(map(repr, (*each[:2], start_us, *each[2]))) for each in ranges]
        text = f"split('{';'.join(texts)}', ';')[CAST(id AS INT)]"
        parsed = f"inline(array(from_csv({text}, '{_RANGE}', map('positiveInf', 'inf'))))"
        tasks = max(1, min(self._options.partitions, len(ranges)))
        frame = session.range(0, len(ranges), 1, tasks).select(F.expr(parsed))
        for columns in self._columns:
            frame = frame.select(*columns)
        return frame

    def _ranges(self, from_row: int, to_row: int) -> list[tuple[int, int, Piece]] | None:
        """Ranges of rows, each on one piece of the rate; one for every task that is asked for, and more where the rate
        changes; None where there are too many, or rows never arrive (the rate is another than it was)."""
        rate = self._options.rate or CLOSED_LOOP_RATE
        last_s = rate.seconds_of(np.array([to_row - 1]))[0]
        if to_row - from_row > _MOST_ROWS * _MOST_RANGES or not np.isfinite(last_s):
            return None
        count = max(min(self._options.partitions, to_row - from_row), -(-(to_row - from_row) // _MOST_ROWS))
        cuts = [from_row + (to_row - from_row) * k // count for k in range(count + 1)]
        found = []
        for first, end, piece in rate.pieces(from_row, to_row):
            inside = [first, *(cut for cut in cuts if first < cut < end), end]
            found += [(low, high - 1, piece) for low, high in pairwise(inside)]
            if len(found) > _MOST_RANGES:
                return None
        return found

    @cached_property
    def _columns(self) -> Sequence[Sequence[Column]]:
        """The SELECTs on ranges."""
        assert self._sql is not None
        numbers = ["start_us", *Piece._fields, f"explode(sequence(first, last)) AS {ROW}"]
        within = f"greatest(CAST({ROW} AS DOUBLE) - rows_before_period, 0D)"
        seconds = f"least(({within} - rows_before) / rows_per_s + start_s, period_s) + period_start_s"
        arrival = f"start_us + CAST(({seconds}) * 1000000D + 0.001D AS BIGINT) AS {ARRIVAL_US}"
        selects = numbers, [ROW, arrival, *self._sql.shares], self._sql.values
        return [[F.expr(each) for each in select] for select in selects]
