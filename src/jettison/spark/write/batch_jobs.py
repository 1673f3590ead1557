"""The jobs of a batch that write: one per output, and one per sink that keeps what is shed, side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession

from jettison.errors import SinkError
from jettison.network.graph import Graph
from jettison.spark.error_text import failed_at, reason_of
from jettison.spark.job_descriptions import part
from jettison.spark.write.dead_letters import ShedSinks, put_aside
from jettison.spark.write.empty_results import EmptyResults
from jettison.spark.write.sinks import Sink, sink_place
from jettison.spark.write.small_outputs import SmallOutputs, TooLargeError, fast_way

_LOG = logging.getLogger("jettison")

Rows = Callable[[Observation], DataFrame]
"""Gives the rows of an output, in which this observation looks at them."""


@dataclass(frozen=True)
class RunSinks:
    """Where a run writes: outputs, rows that are rejected, rows that are shed, and results that are empty at first."""

    graph: Graph
    outputs: Mapping[str, Sink]
    dead_letters: Sink
    on_shed: ShedSinks
    empty: EmptyResults | None = None

    @classmethod
    def of(cls, graph: Graph, outputs: Mapping[str, Sink], dead_letters: Sink) -> RunSinks:
        """Sinks of a run that keeps nothing of what is shed."""
        return cls(graph, outputs, dead_letters, ShedSinks(graph, {}))

    @property
    def kept_sources(self) -> frozenset[str]:
        """Sources of which what is shed at the input is kept by some sink."""
        return frozenset(source.name for source in self.graph.sources if self.on_shed.of([source.name]))


@dataclass(frozen=True)
class Written:
    """An output's job that is done: how long it took, and when it ended by the wall clock, as event times are."""

    observation: Observation
    timed: bool
    took_ms: float
    ended_s: float


class BatchJobs:
    """The jobs of one batch."""

    def __init__(
        self, spark: SparkSession, pool: ThreadPoolExecutor, sinks: RunSinks, batch: int, small: SmallOutputs
    ) -> None:
        self._spark = spark
        self._small = small
        self._pool = pool
        self._sinks = sinks
        self._batch = batch
        self._outputs: dict[str, Future[Written]] = {}
        self._shed: dict[str, Future[float]] = {}

    def write(self, output: str, rows: Rows, *, timed: bool, few: bool = False) -> None:
        """Start to write an output, of a few rows or of any number. `rows` gives them, with what is to be observed."""
        work = inheritable_thread_target(self._spark)(self._write)
        observation = Observation()
        self._outputs[output] = self._pool.submit(work, output, rows, rows(observation), observation, timed, few)

    def keep_shed(self, sink: str, frames: Sequence[DataFrame]) -> None:
        """Start to keep what is shed."""
        work = inheritable_thread_target(self._spark)(self._keep)
        self._shed[sink] = self._pool.submit(work, sink, frames)

    def written(self) -> dict[str, Written]:
        """Wait until all outputs are written, and what is shed is kept."""
        written = {name: self._finished(name, job) for name, job in self._outputs.items()}
        self.shed_ms()
        return written

    def shed_ms(self) -> dict[str, float]:
        """How long it took to keep what is shed, by part of the batch."""
        return {f"on_shed {name}": self._kept(name, job) for name, job in self._shed.items()}

    def cancel(self) -> None:
        """Cancel what has not begun."""
        for job in self._running:
            job.cancel()

    def close(self) -> None:
        """Wait for what still runs: a job of a failed batch must not write on while the batch is repeated."""
        wait(self._running)

    @property
    def _running(self) -> list[Future[Any]]:
        return [*self._outputs.values(), *self._shed.values()]

    def _write(
        self, name: str, again: Rows, rows: DataFrame, observation: Observation, timed: bool, few: bool
    ) -> Written:
        began, sink = time.perf_counter(), self._sinks.outputs[name]
        fast = fast_way(sink) if few else None
        with part(self._spark, f"output {name}"):
            try:
                (fast or sink.write)(rows, self._batch)
            except TooLargeError:
                _LOG.warning(
                    "output %r: batch %d is too large for the driver: Spark writes from now on", name, self._batch
                )
                self._small.end()
                observation = Observation()  # what failed has told what it saw
                sink.write(again(observation), self._batch)
        return Written(observation, timed, 1000 * (time.perf_counter() - began), time.time())

    def _keep(self, name: str, frames: Sequence[DataFrame]) -> float:
        began = time.perf_counter()
        with part(self._spark, f"on_shed {name}"):
            put_aside(self._sinks.on_shed.sinks[name], frames, self._batch)
        return 1000 * (time.perf_counter() - began)

    def _finished(self, name: str, job: Future[Written]) -> Written:
        try:
            return job.result()
        except Exception as error:
            reason = failed_at(error, sink_place(self._sinks.outputs[name]))
            raise SinkError(
                f"output {name!r}: writing batch {self._batch} failed ({reason}). It is not committed: mend the sink "
                f"or the operators before it and start again; it is repeated with its plan."
            ) from error

    def _kept(self, name: str, job: Future[float]) -> float:
        try:
            return job.result()
        except Exception as error:
            raise SinkError(
                f"on_shed {name!r}: keeping what batch {self._batch} sheds failed ({type(error).__name__}: "
                f"{reason_of(error)}). It is not committed: mend the sink and start again, and it is repeated."
            ) from error
