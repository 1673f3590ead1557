"""Windows on the virtual clock: how far they have got, and which trains their drops keep.

A tuple's event time is the moment at which it arrives, and nothing is late. So a window drop judges a train by its
time, as it does on Spark: above an aggregate by what kept windows need, behind it by the fate of the window that the
train is in (a result is delivered with its tuples). Where groups fare differently, or windows count rows, the planned
share passes by chance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.network.graph import Graph
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.plan.refine.resolver import WindowDropResolver
from jettison.plan.windows.fates import kept
from jettison.sim.cells import Vector


class SimulatedWindows:
    """Watermarks from batch to batch."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._resolver = WindowDropResolver(graph)
        self._marks: dict[str, Mark] = {}

    def begin(self) -> BatchMarks | None:
        """How far windows have got before a batch; None where there are none."""
        return BatchMarks(self._graph, self._marks) if self._graph.aggregates else None

    def resolve(self, plan: Plan, marks: BatchMarks | None, rows: Mapping[str, int]) -> Plan:
        """The plan with what its window drops do in this batch."""
        return self._resolver.resolve(plan, marks, sum(rows.values()))

    def end(self, marks: BatchMarks | None, newest_ms: float) -> None:
        """Take in a batch with event times up to this moment."""
        if marks is not None:
            newest_us = round(1000 * newest_ms)
            seen_us = {source.name: newest_us for source in self._graph.sources}
            self._marks = {each.name: marks.after(each.name, [newest_us], seen_us) for each in self._graph.aggregates}


def kept_trains(drop: Window, times_ms: Vector) -> Vector | None:
    """Which trains pass a window drop, 1 or 0 for each; None where that is not a matter of their time.

    >>> from jettison.plan.drops.window import Fate
    >>> from jettison.plan.windows.fates import Schedule, Segment
    >>> every_other = Fate(1_000_000, Schedule((Segment(0, drop_share=0.5, gap=1, seed="busy", together=1),)), 0.5)
    >>> kept_trains(Window({"busy": every_other}, 0.5, of="busy"), np.array([500.0, 1500.0, 2500.0, 3500.0]))
    array([1., 0., 1., 0.])
    """
    ticks_us = np.round(1000 * times_ms).astype(np.int64)
    if drop.of is not None:
        fate = drop.fates.get(drop.of)
        if fate is None or fate.counts_rows or fate.apart is not None:
            return None
        found: Vector = kept(fate.schedule, ticks_us // fate.slide_us).astype(np.float64)
        return found
    resolved = drop.resolved
    if resolved is None or (resolved.parts and not resolved.everything):
        return None
    if resolved.everything or resolved.needed is None:
        return np.ones(len(ticks_us))
    needed = resolved.needed
    return np.array([float(needed.at(int(tick))) for tick in ticks_us])
