"""Minima that cannot be met: on any number of machines, or on those that are there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jettison.plan.quality.demand import Demand
from jettison.plan.quality.tasks import TaskGraph


@dataclass(frozen=True)
class Unmeetable:
    """A task whose minimum accuracy is out of reach however many machines there are: one instance uses one core.

    `reachable` is the accuracy that it can have, `instances` how many it would need for its minimum.

    >>> print(Unmeetable("parse", ("A", "B"), min_accuracy=0.8, needed_cores=2.4, reachable=0.3333, instances=3))
    task 'parse' needs 2.4 cores per instance for the minimum accuracy 0.8 of A, B: no number of machines helps. Run it in 3 instances or more, or ask for at most 0.333.
    """  # noqa: E501

    task: str
    queries: tuple[str, ...]
    min_accuracy: float
    needed_cores: float
    reachable: float
    instances: int

    def __str__(self) -> str:
        return (
            f"task {self.task!r} needs {self.needed_cores:.3g} cores per instance for the minimum accuracy "
            f"{self.min_accuracy:g} of {', '.join(self.queries)}: no number of machines helps. Run it in "
            f"{self.instances} instances or more, or ask for at most {_floor(self.reachable):g}."
        )


def unmeetable(graph: TaskGraph, demand: Demand) -> tuple[Unmeetable, ...]:
    """Every task that would need more than an instance can use for its minimum.

    >>> from jettison.plan.quality.tasks import Task
    >>> from jettison.plan.quality.tasks import task_graph
    >>> found = unmeetable(task_graph([Task("parse"), Task("A", ("parse",), min_accuracy=0.8)]),
    ...                    Demand.proportional([3.0, 0.5]))
    >>> [(each.task, each.queries, round(each.needed_cores, 2), each.instances) for each in found]
    [('parse', ('A',), 2.4, 3)]
    """
    needed = np.where(demand.unknown, 0.0, demand.full * graph.min_accuracy)
    found = []
    for at in np.flatnonzero(needed > demand.most * (1 + 1e-9)).tolist():
        begin, minimum = graph.pair_starts[at], float(graph.min_accuracy[at])
        served = graph.pair_query[begin : begin + graph.pair_counts[at]]
        asking = [query for query in served.tolist() if graph.query_minimum[query] > demand.most[at] / demand.full[at]]
        found.append(
            Unmeetable(
                graph.tasks[at].name,
                tuple(graph.query_names[query] for query in asking),
                minimum,
                float(needed[at]),
                float(demand.most[at] / demand.full[at]),
                math.ceil(graph.tasks[at].instances * float(needed[at] / demand.most[at]) - 1e-9),
            )
        )
    return tuple(found)


def _floor(share: float) -> float:
    """Rounded down, so that asking for it is safe."""
    return math.floor(share * 1000) / 1000
