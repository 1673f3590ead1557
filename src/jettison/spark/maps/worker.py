"""A map in a Python worker: Arrow batches come in, and go out with the columns that the function adds.

Nothing here imports pyspark at the top: a worker has what it needs of it already.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jettison.network.import_paths import imported
from jettison.spark.maps.calls import Called, Caller
from jettison.spark.maps.task_report import FAULT, MOST_NAMED, REPORT, TaskReport
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash
from jettison.statistics.sketches.telling_keys import key_text, telling_keys, telling_places
from jettison.statistics.sketches.universal import HashFunctions
from jettison.statistics.timed import Waited

_MOST_KEYS = 400


@dataclass(frozen=True)
class MapTask:
    """What a worker needs to know. `passed` are columns that go through as they are, `visible` what the function sees.

    `functions` are the sketch's; None: nothing is timed. Tuples that wait longer than `tau_us`, counted from column
    `time` and not from before `since_us`, are late. `identity` is the column by which rejected rows are named.
    """

    element: str
    function: Callable[..., Any] | str
    many: bool
    visible: tuple[str, ...]
    passed: tuple[str, ...]
    key: tuple[str, ...]
    added: pa.Schema
    limit_s: float
    functions: HashFunctions | None = None
    tau_us: float = math.inf
    since_us: float = 0.0
    time: str | None = None
    identity: str | None = None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All batches of one partition, and one row more."""
        work = _Partition(self)
        for batch in batches:
            if batch.num_rows:
                yield work.mapped(batch)
        if work.last is not None:
            yield work.report()


class _Partition:
    """The work on one partition: what was seen so far."""

    def __init__(self, task: MapTask) -> None:
        self._task = task
        function = task.function
        function = imported(task.element, function) if isinstance(function, str) else function
        self._caller = Caller(function, list(task.added), task.limit_s)
        if task.many:
            import pandas  # noqa: F401  # what it takes to load is no row's cost
        made = task.functions
        self._sketch = None if made is None else CostSketch.empty(made.rows, made.columns, made.seed)
        # wall clock less the process's clock: when a call began, in microseconds since 1970
        self._offset_us = 1e6 * time.time() - time.perf_counter_ns() / 1000
        self._rows = self._unfit = 0
        self._rejected: dict[int, str] = {}
        self._waited = Waited()
        self._keys: dict[int, str] = {}
        self.last: pa.Schema | None = None

    def mapped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        task = self._task
        keys = key_hash([batch.column(name) for name in task.key])
        rows = batch.select(list(task.visible))
        if task.many:
            called = self._caller.by_groups(rows, keys.view(np.int64), together=self._sketch is None)
        else:
            called = self._caller.row_by_row(rows, keys.view(np.int64).tolist())
        self._measure(batch, keys, called)
        faults: list[str | None] = [None] * batch.num_rows
        for place, reason in called.faults.items():
            faults[place] = f"{task.element}: {reason}"
        passed = [batch.column(name) for name in task.passed]
        arrays = [*passed, *called.columns, pa.array(faults, pa.string()), pa.nulls(batch.num_rows, pa.binary())]
        fields = [*(batch.schema.field(name) for name in task.passed), *task.added]
        fields = [each.with_nullable(True).remove_metadata() for each in fields]
        self.last = pa.schema([*fields, pa.field(FAULT, pa.string()), pa.field(REPORT, pa.binary())])
        self._note_rejected(batch, called, faults)
        return pa.RecordBatch.from_arrays(arrays, schema=self.last)

    def report(self) -> pa.RecordBatch:
        """The row that tells what was seen."""
        assert self.last is not None
        told = TaskReport(
            _partition(), self._rows, self._unfit, self._rejected, self._waited, self._sketch, self._named()
        )
        nothing = [pa.nulls(1, field.type) for field in list(self.last)[:-1]]
        return pa.RecordBatch.from_arrays([*nothing, pa.array([told.to_bytes()], pa.binary())], schema=self.last)

    def _named(self) -> dict[int, str]:
        """The keys of this task that are worth telling by name."""
        return {} if self._sketch is None else telling_keys(self._sketch, self._keys)

    def _measure(self, batch: pa.RecordBatch, keys: NDArray[np.uint64], called: Called) -> None:
        self._rows += batch.num_rows
        if self._sketch is None:
            return
        took_us = called.took_ns / 1000.0
        self._sketch = self._sketch.counted(keys[called.firsts], called.counts, took_us)
        for place in telling_places(keys[called.firsts], called.counts, took_us):
            row = int(called.firsts[place])
            self._keys[int(keys[row])] = key_text([_python_value(batch.column(name)[row]) for name in self._task.key])
        if len(self._keys) > _MOST_KEYS:
            self._keys = self._named()
        if self._task.time is None or math.isinf(self._task.tau_us) or not len(called.firsts):
            return
        times = batch.column(self._task.time).cast(pa.timestamp("us")).view(pa.int64())
        came_us = np.asarray(times.fill_null(np.iinfo(np.int64).max), np.float64)[called.firsts]
        # for rows of one call the first stands for all; those without a time have not waited
        came_us = np.maximum(came_us, self._task.since_us)
        waited_us = np.maximum(0.0, self._offset_us + called.began_ns / 1000.0 - came_us)
        late = float(called.counts[waited_us > self._task.tau_us].sum())
        total_us = float((called.counts * waited_us).sum())
        self._waited = self._waited.plus(Waited(float(called.counts.sum()), total_us, late))

    def _note_rejected(self, batch: pa.RecordBatch, called: Called, faults: list[str | None]) -> None:
        self._unfit += len(called.faults)
        if self._task.identity is None or not called.faults:
            return
        identities = batch.column(self._task.identity)
        alike = pc.is_in(identities, identities.take(pa.array(sorted(called.faults))))
        if alike.true_count > len(called.faults):
            return  # rows that were not rejected have the same identity, such as other matches in a table
        left = MOST_NAMED - len(self._rejected)
        for place in sorted(called.faults)[: max(0, left)]:
            identity = identities[place].as_py()
            if identity is not None:
                self._rejected[identity] = faults[place] or ""


def _python_value(value: pa.Scalar) -> Any:
    """A value of Arrow's; the bytes of a text that is no UTF-8."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return value.as_buffer().to_pybytes()


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
