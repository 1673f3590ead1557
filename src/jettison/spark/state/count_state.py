"""Windows that count rows, batch by batch: new rows get their numbers and become slices in the checkpoint.

Numbers go on from the slices of earlier batches, and a window is complete in the batch of its last row. So a batch
first writes its new slices, and then results are made of all of them. Unlike times, counts of groups go on at their own
pace: slices that no window needs lie between others that some do, and go when parts are merged. All parts are merged
into one when they are many, or when what was added is much more than what was left when they were merged last.

checkpoint/state/<aggregate>/7.json   after batch 7
checkpoint/state/<aggregate>/7-0      the slices that batch 7 brought, as parquet
checkpoint/state/<aggregate>/7-m0     those of all batches before 7, merged
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.network.arc import arc_name
from jettison.network.event_time import join_retention
from jettison.network.operators import Operator
from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.compile.arriving import Arriving
from jettison.spark.compile.observations import observed
from jettison.spark.state.operator_state import OpenedBatch, Progress, StateMeasured
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_log import SlicePart, SliceRecord, check_shape
from jettison.spark.state.slice_store import Failing, SliceStore, explained
from jettison.spark.windows.count_slices import CountShape, closes, live, results, sliced
from jettison.spark.windows.slices import SLICE
from jettison.statistics.samples import FailedWindows, Measured

_FEW_ROWS = 20_000
_MUCH_MORE = 2


class CountState:
    """What the aggregates of counted windows keep in the checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        path: str,
        shapes: Mapping[str, CountShape],
        presence: Presence | None = None,
    ) -> None:
        self.shapes = shapes
        self._presence = presence
        self._checked: set[str] = set()
        self.store = SliceStore(spark, folder, path, shapes, threads=1, called="jettison-counts")
        for name, shape in shapes.items():
            if presence is None or presence.keeps(name):
                check_shape(self.store.logs[name].latest(), shape.columns_text(), presence)

    def close(self) -> None:
        self.store.close()

    def base(self, name: str, batch: int) -> SliceRecord | None:
        """What a batch goes on from; its parts are checked when a run reads them first."""
        log = self.store.logs[name]
        record = log.base(batch) if self._presence is not None and self._presence.left_records(name, batch) else None
        record = log.latest(batch) if record is None else record
        if record is not None and name not in self._checked:
            self.store.check_parts(name, record.parts)
        self._checked.add(name)
        return record

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(self.shapes)

    def open(self, batch: OpenedBatch) -> BatchCounts:
        """The aggregates of one batch; its frames belong to a session of their own."""
        return BatchCounts(self, batch.number, batch.session)


class BatchCounts:
    """The aggregates of one batch."""

    def __init__(self, state: CountState, batch: int, session: SparkSession) -> None:
        self._state = state
        self._store = state.store
        self._batch = batch
        self._session = session
        self._bases = {name: state.base(name, batch) for name in state.shapes}
        self._arrived: dict[str, DataFrame | None] = {}
        self._new: dict[str, SlicePart | None] = {}
        self._merging: dict[str, Future[SlicePart | None]] = {}
        self._failing = Failing()
        self._quiet: frozenset[str] = frozenset()
        self._failed: dict[str, FailedWindows] = {}
        self._parts_ms: dict[str, float] = {}

    @property
    def quiet(self) -> frozenset[str]:
        """Aggregates that turned out to give nothing in this batch."""
        return self._quiet

    def outside(self, name: str, of: Collection[str]) -> str:
        return ""

    def take(self, operator: Operator, arriving: Arriving) -> None:
        """Rows are numbered and kept when results are asked for: what closes depends on them."""
        self._arrived[operator.name] = arriving.on(arc_name(operator.inputs[0], operator.name))

    def frames(self, operator: Operator) -> dict[str, DataFrame]:
        """The results of the windows that an aggregate completes."""
        name, began = operator.name, time.perf_counter()
        rows = self._arrived[name]
        shape, parts = self._state.shapes[name], self._parts(name)
        if _due(parts):
            self._merging[name] = self._store.submit(self._merge, shape, parts)
        closing = 0
        if rows is not None:
            with explained(name, self._batch, self._store.path):
                self._new[name], closing = self._append(shape, rows, parts)
            self._parts_ms[name] = 1000 * (time.perf_counter() - began)
        if not closing:
            self._quiet |= {name}
            return {name: self._nothing(shape)}
        new = self._new[name]
        assert new is not None
        made = results(shape, self._read(shape, [new]), self._read(shape, [*parts, new]))
        return {name: made if shape.failing is None else self._failing.watched(name, made)}

    def most_rows(self, name: str) -> int | None:
        return None

    def commit(self, progress: Progress) -> None:
        """Wait until everything is kept, and say so in the log."""
        for name, shape in self._state.shapes.items():
            base, new = self._bases[name], self._new.get(name)
            before = self._parts(name)
            parts, made = before, {f"{self._batch}-0"} if name in self._new else set()
            if name in self._merging:
                with explained(name, self._batch, self._store.path):
                    joint = self._merging[name].result()
                parts = () if joint is None else (joint,)
                made.add(f"{self._batch}-m0")
            parts = parts if new is None else (*parts, new)
            gone = ({part.name for part in before} | made) - {part.name for part in parts}
            after = None if base is None else base.batch
            record = SliceRecord(self._batch, shape.columns_text(), {}, parts, tuple(sorted(gone)), after)
            self._store.logs[name].write(record, base)
        self._failed = self._failing.counted()

    def measured(self) -> StateMeasured:
        return StateMeasured(Measured(failed=self._failed, parts_ms=self._parts_ms))

    def close(self) -> None:
        """Nothing of a failed batch may write on while it is repeated."""
        for job in self._merging.values():
            job.cancel()
        wait(self._merging.values())

    def _parts(self, name: str) -> tuple[SlicePart, ...]:
        base = self._bases[name]
        return () if base is None else base.parts

    def _append(self, shape: CountShape, rows: DataFrame, parts: Sequence[SlicePart]) -> tuple[SlicePart | None, int]:
        """Write the slices of new rows; the part, if there is any row, and how many windows it completes."""
        before = self._read(shape, parts) if parts else None
        closing = f"count_if({closes(shape)}) AS closing"
        seen = self._write(shape, f"{self._batch}-0", sliced(shape, rows, before), closing)
        return self._part(shape, f"{self._batch}-0", seen, level=0), seen.get("closing") or 0

    def _merge(self, shape: CountShape, parts: Sequence[SlicePart]) -> SlicePart | None:
        name = f"{self._batch}-m0"
        return self._part(shape, name, self._write(shape, name, live(shape, self._read(shape, parts))), level=1)

    def _write(self, shape: CountShape, name: str, slices: DataFrame, *others: str) -> dict[str, Any]:
        seen = Observation()
        metrics = ("count(1) AS rows", f"min({SLICE}) AS first", f"max({SLICE}) AS last", *others)
        self._store.write(shape.aggregate.name, name, slices.observe(seen, *map(F.expr, metrics)))
        return observed(seen)

    def _part(self, shape: CountShape, name: str, seen: Mapping[str, Any], level: int) -> SlicePart | None:
        if not seen.get("rows"):
            return None
        kept_by = shape.aggregate.name
        files = self._store.files(kept_by, name)
        return SlicePart(name, seen["rows"], seen["first"], seen["last"], level, (kept_by,), files=files)

    def _read(self, shape: CountShape, parts: Iterable[SlicePart]) -> DataFrame:
        return self._store.read(self._session, shape.aggregate.name, shape.schema, parts)

    def _nothing(self, shape: CountShape) -> DataFrame:
        def made() -> DataFrame:
            empty = self._session.createDataFrame([], shape.schema)
            return results(shape, empty, empty)

        return self._store.no_results(shape.aggregate.name, self._session, made)


def _due(parts: Sequence[SlicePart]) -> bool:
    """Whether to merge all parts: there are many, or what was added is much more than what was left last time."""
    added = [part.rows for part in parts if part.level == 0]
    left = sum(part.rows for part in parts if part.level > 0)
    return len(added) > join_retention.MOST_PARTS or sum(added) > _MUCH_MORE * left + _FEW_ROWS
