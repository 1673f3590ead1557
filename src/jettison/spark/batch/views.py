"""What shows a run: history, metrics, report, log and the line in the terminal, then the user's own listeners."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from jettison.network.graph import Graph
from jettison.spark.batch.parts import RunOptions
from jettison.spark.ending.closing import Step
from jettison.spark.read.source_lag import source_lags
from jettison.telemetry.events import BatchEvent
from jettison.telemetry.history import History
from jettison.telemetry.listeners import Listeners
from jettison.telemetry.live_line import LiveView
from jettison.telemetry.narration import Narrator
from jettison.telemetry.report import Totals

_log = logging.getLogger("jettison")


class Views:
    """The views of one run."""

    def __init__(self, graph: Graph, budget_ms: float, deadline_ms: float, options: RunOptions) -> None:
        self._graph = graph
        self.totals = Totals(graph, budget_ms, deadline_ms, notes=options.notes)
        self.history = History()
        self.metrics = options.metrics
        self.listeners = Listeners()
        self._narrator = Narrator(budget_ms)
        self._line = LiveView(budget_ms) if options.live else None

    def show(self, event: BatchEvent, progress: Mapping[str, Any] | None) -> None:
        """Show a batch; `progress` is Spark's account of the batch before."""
        sample, plan = event.sample, event.plan
        self.history.append((sample, plan))
        if self.metrics is not None:
            self.metrics.lag(source_lags(progress, [source.name for source in self._graph.sources]))
            self.metrics.record(event)
        # last of what can be asked for: who sees a row in the report sees it elsewhere
        self.totals.add(sample, plan, event)
        for line in self._narrator.after(sample, plan, event.infeasible):
            _log.log(line.level, line.text)
        if self._line is not None:
            self._line.update(event)

    def closing(self) -> list[Step]:
        """What closes them."""
        steps: list[Step] = []
        if self._line is not None:
            steps.append(("ending the line in the terminal", self._line.close))
        if self.metrics is not None:
            steps.append(("closing the metrics server", self.metrics.close))
        return steps
