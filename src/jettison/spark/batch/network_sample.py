"""A sample of a batch, and the runs of the network's prefixes on it, one after the other and in turns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from jettison.network.graph import Graph
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Map,
    Operator,
    Output,
    Select,
    Where,
    WithColumns,
)
from jettison.plan.plan import Plan
from jettison.spark.batch.processor_time import Meter, Work
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import TIME
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.statistics.operator_costs import kept_copies, prefix_ends

SAMPLE_ROWS = 50_000
_LEAST_SAMPLE_ROWS = 1_000
_FOREIGN_MS = 1000.0
"""Where functions in Python may take a millisecond a row, a sample is what a batch processes in this time."""
_MOST_READ_ROWS = 1_000_000
"""Of a larger batch, about as many rows are read: the first ones of each partition."""
_REREAD_ROWS = 500_000
_REREAD_MS = 500.0
"""A batch of no more rows, whose first reading took no more work, is read twice: the second time tells what reading
costs without copying."""
_MOST_TURNS = 4
_MANY_OPERATORS = 40
"""Of so many operators all are built and counted, whether there is time to run their prefixes or not."""
_FIRST_TURN_S = 20.0
"""How much longer the first turn may take, in a cold JVM or on a busy machine: nobody waits for it, and a cost that was
never measured is a guess."""
_SPARE_S = 0.5
"""For what is asked once, after all turns."""


class NetworkSample:
    """Some rows of each source, persisted as one partition, and what prefixes of the network take on them.

    One partition is one task at a time: the other cores are left to batches. `close` lets go of all copies.
    """

    def __init__(
        self,
        graph: Graph,
        raw: Mapping[str, DataFrame],
        rows: Mapping[str, int],
        tables: Mapping[str, DataFrame],
        known: ExpressionCache,
        meter: Meter,
        most_rows: int = SAMPLE_ROWS,
    ) -> None:
        self._graph = graph
        parts = {name: _readable(frame, rows[name], most_rows) for name, frame in raw.items()}
        self._raw = {name: part.frame for name, part in parts.items()}
        self.batch_rows = {name: part.rows for name, part in parts.items()}
        """By source, the rows of the batch; of a very large batch, those that are read."""
        self._meter = meter
        self._until_s = float("inf")
        self._copied = kept_copies(graph)
        self._copies: dict[str, DataFrame] = {}
        self.frames = {name: _sampled(part, most_rows) for name, part in parts.items()}
        self.compiler = Compiler(graph, self.frames, Plan(), tables, known)
        self.reading: dict[str, Work] = {}
        """By source, the work of reading `batch_rows`."""
        self.read_ms: dict[str, float] = {}
        """By source, reading its sample."""
        self.prefix_ms: dict[str, float] = {}
        self.copy_ms: dict[str, float] = {}
        self.rows: dict[str, float] = {}
        """Rows that sources have, and that operators give, in the sample."""
        self.raw_rows: dict[str, float] = {}
        self.spans_us: dict[str, int] = {}
        """By operator whose rows have an event time, how much of it they cover."""
        self.job_ms = float("inf")
        """What a job takes on the driver beside its tasks, at least."""

    def read(self) -> None:
        """Take the sample; what reading costs shows on the way."""
        for name, frame in self.frames.items():
            count, work = self._meter.run(frame.persist().count)
            self.raw_rows[name] = float(count)
            if sum(self.batch_rows.values()) <= _REREAD_ROWS and work.busy_ms <= _REREAD_MS:
                work = self.run(self._raw[name])
            self.reading[name] = work

    def measure(self, until_s: float) -> None:
        """Run all prefixes once, then in turns until there is no more time. What even the first turn has no time for is
        left out."""
        self._until_s = until_s
        for name, frame in self.frames.items():
            self._least(self.read_ms, name, self.run(frame).cpu_ms)
        built: dict[str, DataFrame] = {}
        prefixes: dict[str, DataFrame] = {}
        ends = prefix_ends(self._graph)
        for operator in self._graph.operators:
            late = time.monotonic() > until_s + _FIRST_TURN_S
            if isinstance(operator, Output) or (late and len(self._graph.operators) > _MANY_OPERATORS):
                continue
            frame = built[operator.name] = self.compiler.operator(operator.name)
            if operator.name in ends and not late:
                prefixes[operator.name] = frame
                self._least(self.prefix_ms, operator.name, _ms(operator, self.run(frame)))
            if operator.name in self._copied and not late:
                built[operator.name] = self._copy(operator.name, frame)
        self._count(built)
        for _ in range(_MOST_TURNS - 1):
            self._turn(prefixes, until_s)

    def _turn(self, prefixes: Mapping[str, DataFrame], until_s: float) -> None:
        """Run everything once more."""
        runs: list[tuple[dict[str, float], str, DataFrame]] = [
            *((self.read_ms, name, frame) for name, frame in self.frames.items()),
            *((self.prefix_ms, name, frame) for name, frame in prefixes.items()),
            *((self.copy_ms, name, self._copies[name]) for name in self.copy_ms),
        ]
        for found, name, frame in runs:
            if time.monotonic() > until_s:
                return
            work = self.run(frame)
            self._least(found, name, _ms(self._graph.by_name[name], work) if found is self.prefix_ms else work.cpu_ms)

    def _copy(self, name: str, frame: DataFrame) -> DataFrame:
        """Keep an operator's rows: what is below it is built of the copy.

        The copy is coalesced so that Spark takes it for something else than the prefix, and still runs the prefix.
        """
        copy = self._copies[name] = self.compiler.narrowed(name, frame).coalesce(1).persist()
        self.compiler.replace(name, copy)
        self._meter.run(copy.count)
        self._least(self.copy_ms, name, self.run(copy).cpu_ms)
        return copy

    @property
    def late(self) -> bool:
        """Whether no more jobs should be run, though they are few."""
        return time.monotonic() > self._until_s + _SPARE_S

    def storing_ms(self, name: str) -> float:
        """What it takes to store an operator's copy once its rows are computed; twice as long as to read it where there
        is no time to look."""
        if self.late:
            return 2 * self.copy_ms[name]
        copy = self._copies[name]
        copy.unpersist()
        return max(0.0, self._meter.run(copy.persist().count)[1].cpu_ms - self.prefix_ms[name])

    def _count(self, frames: Mapping[str, DataFrame]) -> None:
        """Rows and covered event time behind every operator, by one job."""
        counts = []
        for number, (name, frame) in enumerate(frames.items()):
            timed = TIME in self.compiler.known.columns(name, frame)
            span = f"timestampdiff(MICROSECOND, min({TIME}), max({TIME}))" if timed else "CAST(NULL AS bigint)"
            counts.append(frame.selectExpr(f"{number} AS place", "count(1) AS many", f"{span} AS span"))
        if not counts:
            return
        rows, _ = self._meter.run(reduce(lambda one, other: one.unionAll(other), counts).collect)
        names = list(frames)
        for row in rows:
            self.rows[names[row.place]] = float(row.many)
            self.spans_us[names[row.place]] = int(row.span or 0)

    def run(self, frame: DataFrame) -> Work:
        """The work of all rows of a frame."""
        _, work = self._meter.run(lambda: frame.write.format("noop").mode("overwrite").save())
        self.job_ms = min(self.job_ms, work.beside_ms)
        return work

    def close(self) -> None:
        """Let go of the sample and of all copies."""
        for frame in (*self._copies.values(), *self.frames.values()):
            with suppress(Py4JError, OSError, AttributeError):  # of a session that has ended nothing is left
                frame.unpersist()

    @staticmethod
    def _least(found: dict[str, float], name: str, ms: float) -> None:
        found[name] = min(ms, found.get(name, ms))


def sample_rows(graph: Graph, rows: Mapping[str, int], took_ms: float) -> int:
    """How many rows of each source to sample, of a batch that took so long."""
    if not any(map(_is_foreign, graph.operators)):
        return SAMPLE_ROWS
    fitting = int(sum(rows.values()) * _FOREIGN_MS / max(1.0, took_ms))
    return max(_LEAST_SAMPLE_ROWS, min(SAMPLE_ROWS, fitting))


def _ms(operator: Operator, work: Work) -> float:
    """Processor time; of what may run in Python workers, whose processor time Spark does not tell, run time too."""
    return work.busy_ms if _is_foreign(operator) else work.cpu_ms


def _is_foreign(operator: Operator) -> bool:
    """Whether an operator may run in Python workers: functions, and expressions that are no text."""
    given: tuple[object, ...] = ()
    if isinstance(operator, Aggregate | CountAggregate):
        given = tuple(call for _, call in operator.aggregates)
    elif isinstance(operator, Where):
        given = (operator.predicate,)
    elif isinstance(operator, Select):
        given = operator.expressions
    elif isinstance(operator, WithColumns):
        given = tuple(expression for _, expression in operator.columns)
    return isinstance(operator, Apply | Map) or any(not isinstance(each, str) for each in given)


@dataclass(frozen=True)
class _Readable:
    """What is read of a source: a frame of at most `given` rows, and the `rows` that Spark reads for it."""

    frame: DataFrame
    given: int
    rows: int


def _readable(frame: DataFrame, rows: int, most_rows: int) -> _Readable:
    """A batch, or of a very large one as many rows as a sample has. Spark reads as many of each partition."""
    if rows <= _MOST_READ_ROWS:
        return _Readable(frame, rows, rows)
    partitions = max(1, frame.rdd.getNumPartitions())
    limit = max(_LEAST_SAMPLE_ROWS, min(most_rows, _MOST_READ_ROWS // partitions))
    return _Readable(frame.limit(limit), limit, min(rows, limit * partitions))


def _sampled(part: _Readable, most_rows: int) -> DataFrame:
    frame, given = part.frame, part.given
    return (frame if given <= most_rows else frame.sample(fraction=most_rows / given, seed=1)).repartition(1)
