"""Batches of a network run one by one under plans of the experiment's choice: what the control loop would decide, and
what a trigger costs beside the batch, stay out of what is measured."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from jettison.network.declare import Network
from jettison.plan.plan import Plan
from jettison.spark.batch import BatchRunner, Measured
from jettison.spark.checks import check_compiles
from jettison.spark.files import LocalFolder
from jettison.spark.sinks import MemorySink
from jettison.spark.slice_state import SliceState


class ByHand:
    """One run of a network with aggregates and a single source; `frame` shows what its rows look like.

    The rows of `shared` operators are kept for all that read them.
    """

    def __init__(
        self, spark: Any, network: Network, frame: Any, folder: Path, shared: frozenset[str] = frozenset()
    ) -> None:
        graph = network.graph
        self._source = graph.sources[0].name
        shapes = check_compiles(spark, graph, {self._source: frame.limit(0)}, {}).slices
        state = SliceState(spark, graph, LocalFolder(folder), str(folder), shapes)
        self._sinks = {output.name: MemorySink() for output in graph.outputs}
        self._runner = BatchRunner(spark, graph, self._sinks, {}, MemorySink(), slices=state)
        self._runner.shared = shared
        self._batch = 0

    def run(self, frame: Any, rows: int, plan: Plan) -> tuple[float, Measured]:
        """Run the next batch; how many milliseconds it took, and what was counted."""
        began = time.perf_counter()
        measured = self._runner.run({self._source: frame}, self._batch, plan, {self._source: rows})
        self._batch += 1
        return 1000 * (time.perf_counter() - began), measured

    def results(self, output: str) -> list[str]:
        """All rows of an output, in an order that does not depend on Spark."""
        return sorted(map(repr, self._sinks[output].rows))

    def all_results(self) -> dict[str, list[str]]:
        return {name: self.results(name) for name in self._sinks}

    def close(self) -> None:
        self._runner.close()
