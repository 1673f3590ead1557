"""Warm-up: an instance that was just placed has time to reach its minimum before anything is decided by it (4.7)."""

from __future__ import annotations

import numpy as np

from jettison.plan.quality.accuracy import current_accuracy, local_accuracy
from jettison.plan.quality.instances import NOWHERE, Instances, Metrics
from jettison.plan.quality.tasks import Mask, TaskGraph, Vector

_NEAR = 0.98
"""A rate is measured, and the load shedder keeps the task at its minimum meanwhile: so much of it counts as reached."""


def still_warming(
    graph: TaskGraph, placed: Instances, metrics: Metrics, started_s: Vector, now_s: float, timeout_s: float
) -> Mask:
    """The instances whose warm-up goes on: not measured or below their task's minimum accuracy, and not timed out."""
    current = current_accuracy(graph, local_accuracy(graph, placed, metrics))
    coming = np.bincount(graph.heads, weights=metrics.out_rate, minlength=len(graph.tasks))
    coming[graph.sources] = metrics.arriving
    above = np.ones(len(graph.tasks))
    for wave in graph.waves:
        above[wave.tasks] = np.minimum.reduceat(current[graph.tails[wave.edges]], wave.starts)
    each = (coming / graph.instance_counts)[placed.task]
    local = np.divide(metrics.in_rate, each, out=np.ones(len(each)), where=each > 0)
    reached = np.isfinite(metrics.in_rate) & np.isfinite(metrics.cpu)
    reached &= np.minimum(local, 1.0) * above[placed.task] >= _NEAR * graph.min_accuracy[placed.task]
    found: Mask = placed.warming & (placed.machine != NOWHERE) & ~reached & (now_s - started_s < timeout_s)
    return found
