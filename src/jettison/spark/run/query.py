"""The one streaming query of a run: how it is started, and how its end is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from jettison.spark.batch.intake import Intake
from jettison.spark.batch.parts import RunParts
from jettison.spark.ending.alive import query_active, session_alive, wait_for_end
from jettison.spark.job_descriptions import query_name
from jettison.spark.read.stream import merge
from jettison.spark.run.available_now import ToTheEnd


class RunQuery:
    """Starts a query that hands its batches to `on_batch`; with `available_now` it ends with the data that is there."""

    def __init__(
        self, parts: RunParts, on_batch: Callable[[DataFrame, int], None], *, available_now: bool = False
    ) -> None:
        self._parts = parts
        self._on_batch = on_batch
        self._available_now = available_now
        self._to_the_end: ToTheEnd | None = None
        self._starting = threading.RLock()
        self.handle: StreamingQuery | None = None
        """Spark's handle; None while it starts: the first batch may come before it."""

    @property
    def started(self) -> StreamingQuery:
        """Spark's handle. Waits while it starts."""
        with self._starting:
            assert self.handle is not None
            return self.handle

    def start(
        self, sources: Mapping[str, DataFrame], intake: Intake, done: Callable[[BaseException | None], None]
    ) -> None:
        """Start it; `done` is called when all data that is there has been worked through, or that has failed."""
        parts = self._parts
        ordered = {source.name: sources[source.name] for source in parts.graph.sources}
        name = query_name(parts.graph.name, [each.name for each in parts.spark.streams.active])
        stream = merge(parts.graph, sources)

        def started(**trigger: Any) -> StreamingQuery:
            writer = stream.writeStream.queryName(name).trigger(**trigger)
            writer = writer.option("checkpointLocation", parts.checkpoint.spark_path).foreachBatch(self._on_batch)
            return self._begun(writer)

        interval = {"processingTime": f"{parts.settings.trigger_ms:.0f} milliseconds"}
        with intake.open(ordered, name):
            query = started(**({"availableNow": True} if self._available_now else interval))
        if self._available_now:
            self._to_the_end = ToTheEnd(
                parts.spark,
                parts.checkpoint.spark_folder,
                query,
                has_more=parts.runner.closes_windows,
                last_batch=lambda: started(once=True),
                done=done,
                starting=self._starting,
            )

    def _begun(self, writer: DataStreamWriter) -> StreamingQuery:
        with self._starting:
            before, self.handle = self.handle, None  # a batch must not ask the query before
            try:
                self.handle = writer.start()
            except BaseException:
                self.handle = before
                raise
            return self.handle

    @property
    def is_active(self) -> bool:
        """Whether it goes on. Not when its Spark session has ended, or the driver's JVM is gone."""
        if self._to_the_end is not None and not self._to_the_end.finished:
            return session_alive(self._parts.spark)
        return query_active(self._parts.spark, self.started)

    def wait(self, timeout_s: float | None, interrupted: threading.Event) -> bool:
        """Wait for its end; False when it did not come within the time, or before somebody `interrupted`. Raises what
        it failed with."""
        if self._to_the_end is not None and not self._to_the_end.wait(timeout_s, interrupted):
            return False
        return wait_for_end(self._parts.spark, self.started, timeout_s, interrupted)

    def begin_no_more(self, patience_s: float) -> bool:
        """Let no batch begin after the data that is there. What has begun by then has its handle; False when a query
        is being started for longer than `patience_s`."""
        return self._to_the_end is None or self._to_the_end.stop(patience_s)

    @property
    def start_line(self) -> str:
        """What the log says of a run that starts: whether it begins, or goes on."""
        graph, checkpoint = self._parts.graph, self._parts.checkpoint
        sizes = ((len(graph.sources), "source"), (len(graph.outputs), "output"))
        counts = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in sizes)
        seconds = self._parts.settings.trigger_ms / 1000
        often = "all that is there" if self._available_now else f"a batch every {seconds:g} s"
        batch = checkpoint.next_batch()
        whence = f"goes on with batch {batch}" if batch else "begins with batch 0"
        return f"network {graph.name!r} starts: {counts}, {often}, checkpoint {checkpoint.path}, {whence}"
