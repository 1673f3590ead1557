"""Accuracies: from load shedders (`ac`), as measured (`currAc`, `locAc`), and back to load shedders (`d`).

The accuracy of a task is the share of the application's input tuples that it processes, wherever the others were
dropped (3.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.plan.quality.instances import Instances, Metrics
from jettison.plan.quality.tasks import TaskGraph, Vector


@dataclass(frozen=True, eq=False)
class NonDrop:
    """`d(t, t')`: the share that every load shedder keeps, behind external sources and on the streams between tasks."""

    sources: Vector
    edges: Vector

    def by_name(self, graph: TaskGraph) -> dict[tuple[str, str], float]:
        """Shares by (from, to); what comes from outside has an empty first name."""
        found = {
            ("", graph.tasks[at].name): share
            for at, share in zip(graph.sources.tolist(), self.sources.tolist(), strict=True)
        }
        return found | {graph.edge_name(at): share for at, share in enumerate(self.edges.tolist())}


def non_drop(graph: TaskGraph, desired: Vector) -> NonDrop:
    """`d(t, t')` of the desired accuracies of queries, dropped as early as possible (eq. 3.15, 3.16).

    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> graph = task_graph([Task("s1"), Task("s2"), Task("merge", ("s1", "s2")), Task("A", ("merge",)),
    ...                     Task("B", ("merge",))])
    >>> kept = non_drop(graph, np.array([0.8, 0.4]))
    >>> kept.sources.tolist(), kept.edges.tolist()
    ([0.8, 0.8], [1.0, 1.0, 1.0, 0.5])
    """
    of_tasks = graph.most(desired)
    above, below = of_tasks[graph.tails], of_tasks[graph.heads]
    edges = np.divide(below, above, out=np.ones_like(below), where=above > 0)
    return NonDrop(of_tasks[graph.sources], edges)


def accuracy(graph: TaskGraph, kept: NonDrop) -> Vector:
    """`ac(t)`: what load shedders leave of the input for every task (eq. 3.3).

    The shares along the way are multiplied; where streams meet, their mean counts.
    """
    found = np.ones(len(graph.tasks))
    found[graph.sources] = kept.sources
    for wave in graph.waves:
        passing = found[graph.tails[wave.edges]] * kept.edges[wave.edges]
        found[wave.tasks] = np.add.reduceat(passing, wave.starts) / graph.edge_counts[wave.tasks]
    return found


def local_accuracy(graph: TaskGraph, placed: Instances, metrics: Metrics) -> Vector:
    """`locAc(t)`: input rate of the slowest instance over what comes to it; 1 where nothing comes (eq. 3.5).

    What external sources bring stands for the upstream of source tasks (4.6). Instances that are unknown or warm up
    do not count; where none is left, the accuracy is nan.
    """
    coming = np.bincount(graph.heads, weights=metrics.out_rate, minlength=len(graph.tasks))
    coming[graph.sources] = metrics.arriving
    slowest = np.minimum.reduceat(_known_rates(placed, metrics), placed.starts)
    each = coming / graph.instance_counts
    local = np.divide(slowest, each, out=np.ones_like(each), where=each > 0)
    return np.where(np.isinf(slowest), np.nan, np.minimum(local, 1.0))


def current_accuracy(graph: TaskGraph, local: Vector) -> Vector:
    """`currAc(t)`: local accuracies multiplied along the way; where streams meet, the least counts (eq. 3.4).

    A task of which nothing is known takes the accuracy of what feeds it.

    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> graph = task_graph([Task("s1"), Task("s2"), Task("A", ("s1", "s2"))])
    >>> current_accuracy(graph, np.array([0.9, 0.5, 0.8]))
    array([0.9, 0.5, 0.4])
    """
    found = np.where(np.isnan(local), 1.0, local)
    for wave in graph.waves:
        least = np.minimum.reduceat(found[graph.tails[wave.edges]], wave.starts)
        found[wave.tasks] *= least
    return found


def processed_share(graph: TaskGraph, placed: Instances, metrics: Metrics) -> Vector:
    """The input rate of the slowest instance over what would come to it if nothing were dropped anywhere.

    What would come follows from sources down, by the tuples that each task gives on for one. Above 1 a task works off
    what waited; nan where none of its instances is known.
    """
    rates = np.where(np.isfinite(metrics.in_rate), metrics.in_rate, 0.0)
    taken = np.add.reduceat(rates, placed.starts)
    whole = np.zeros(len(graph.tasks))
    whole[graph.sources] = metrics.arriving
    for wave in graph.waves:
        tails = graph.tails[wave.edges]
        gives = metrics.out_rate[wave.edges] * whole[tails]
        passed = np.divide(gives, taken[tails], out=metrics.out_rate[wave.edges].copy(), where=taken[tails] > 0)
        whole[wave.tasks] = np.add.reduceat(passed, wave.starts)
    each = whole / graph.instance_counts
    slowest = np.minimum.reduceat(_known_rates(placed, metrics), placed.starts)
    known = np.isfinite(slowest)
    return np.where(known, np.divide(slowest, each, out=np.ones_like(each), where=known & (each > 0)), np.nan)


def slowest_cpu(placed: Instances, metrics: Metrics) -> Vector:
    """`cpu(t)`: the processor load of the instance with the lowest input rate, nan where none is known (eq. 3.7)."""
    rates = _known_rates(placed, metrics)
    least = np.minimum.reduceat(rates, placed.starts)
    slowest = (rates == least[placed.task]) & np.isfinite(rates)
    # of instances that are equally slow the one that works most: their minima are safe then
    cpu: Vector = np.maximum.reduceat(np.where(slowest, metrics.cpu, -1.0), placed.starts)
    return np.where(cpu < 0, np.nan, cpu)


def _known_rates(placed: Instances, metrics: Metrics) -> Vector:
    known = np.isfinite(metrics.in_rate) & np.isfinite(metrics.cpu) & ~placed.warming
    return np.where(known, metrics.in_rate, np.inf)
