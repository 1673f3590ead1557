"""Batches of a network run one by one under plans of the experiment's choice: what the control loop would decide, and
what a trigger costs beside the batch, stay out of what is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.network.declare import Network
from jettison.plan.plan import Plan
from jettison.plan.refine.resolver import WindowDropResolver
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.checks import check_compiles
from jettison.spark.state.slice_state import SliceState
from jettison.spark.windows.slices import Shape
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.samples import Measured

Shapes = Mapping[str, Shape]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def shapes_of(spark: Any, network: Network, frame: Any) -> Shapes:
    """What the slices of a network's aggregates look like, for rows like these: the same for all runs of it."""
    source = network.graph.sources[0].name
    return check_compiles(spark, network.graph, {source: frame.limit(0)}, {}).slices


@dataclass(frozen=True)
class Took:
    """What a batch took: time, and processor time of its tasks, which others on the machine hardly change.

    Planning, compiling and collecting garbage are no part of the latter. It is 0 where there is no /proc.
    """

    wall_ms: float
    cpu_ms: float
    measured: Measured
    resolving_ms: float
    """What the driver took to find out which event times are needed."""


class ByHand:
    """One run of a network with aggregates and a single source.

    The rows of `shared` operators are kept for all that read them.
    """

    def __init__(
        self, spark: Any, network: Network, shapes: Shapes, folder: Path, shared: frozenset[str] = frozenset()
    ) -> None:
        graph = network.graph
        self._source = graph.sources[0].name
        state = SliceState(spark, graph, LocalFolder(folder), str(folder), shapes)
        self._sinks = {output.name: MemorySink() for output in graph.outputs}
        self._runner = BatchRunner(spark, graph, {}, RunSinks.of(graph, self._sinks, MemorySink()), [state])
        self._resolver = WindowDropResolver(graph)
        self._runner.shared = shared
        self._batch = 0
        self._jvm: int = spark.sparkContext._gateway.proc.pid

    def run(self, frame: Any, rows: int, plan: Plan) -> Took:
        """Run the next batch."""
        spent_ms, began = _task_cpu_ms(self._jvm), time.perf_counter()
        plan = self._resolver.resolve(plan, self._runner.marks(self._batch), rows)
        resolving_ms = 1000 * (time.perf_counter() - began)
        measured = self._runner.run({self._source: frame}, self._batch, plan, {self._source: rows})
        wall_ms = 1000 * (time.perf_counter() - began)
        self._batch += 1
        cpu_ms = sum(ms - spent_ms.get(thread, 0.0) for thread, ms in _task_cpu_ms(self._jvm).items())
        return Took(wall_ms, cpu_ms, measured, resolving_ms)

    def results(self) -> dict[str, list[str]]:
        """All rows of every output, in an order that does not depend on Spark."""
        return {name: sorted(map(repr, sink.rows)) for name, sink in self._sinks.items()}

    def rows(self) -> dict[str, list[Any]]:
        """All rows of every output."""
        return {name: list(sink.rows) for name, sink in self._sinks.items()}

    def close(self) -> None:
        self._runner.close()


def _task_cpu_ms(jvm: int) -> dict[str, float]:
    """The processor time that each of Spark's task threads has had, by thread."""
    found = {}
    for entry in Path(f"/proc/{jvm}/task").glob("*/stat"):
        try:
            name, _, fields = entry.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        if name.startswith("Executor task"):
            user, system = fields.split()[11:13]
            found[entry.parent.name] = 1000 * (int(user) + int(system)) / _TICKS_PER_S
    return found
