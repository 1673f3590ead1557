"""Slack: how many cores a machine is short of for the tasks of one priority (eq. 3.8, 3.13, 3.14)."""

from __future__ import annotations

import numpy as np

from jettison.plan.quality.demand import Demand
from jettison.plan.quality.instances import Groups
from jettison.plan.quality.tasks import TaskGraph, Vector


def slack(
    graph: TaskGraph, demand: Demand, placed: Groups, available: Vector, desired: Vector, priority: float
) -> Vector:
    """`slack(tm, p)` of every machine: what its instances of a priority need beyond their minimum less what is there.

    `available` is what minima leave of each machine. Machines without such instances have -inf: they are not asked.
    Above 0 the machine is short: it decides what its queries get. The highest slack is asked first.

    >>> from jettison.plan.quality.instances import groups
    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> graph = task_graph([Task("A", priority=2, min_accuracy=0.5), Task("B", priority=1)])
    >>> demand, placed = Demand.proportional([0.8, 0.6]), groups([0, 1], [0, 1], machines=2)
    >>> slack(graph, demand, placed, np.array([0.1, 0.5]), np.ones(2), priority=2).tolist()
    [0.30000000000000004, -inf]
    """
    here = graph.priority[placed.task] == priority
    difference = demand.maximum(graph, desired) - demand.minimum(graph)  # diffReq(t), eq. 3.13
    count = np.bincount(placed.machine[here], weights=placed.count[here], minlength=len(available))
    needed = np.bincount(
        placed.machine[here], weights=(placed.count * difference[placed.task])[here], minlength=len(available)
    )
    # mObtCpu (eq. 3.8) is the same for every instance, so their sum is what is available
    return np.where(count > 0, needed - available, -np.inf)


def share_for_each(graph: TaskGraph, placed: Groups, available: Vector, priority: float) -> Vector:
    """`mObtCpu(i)`: cores that every instance of a priority gets for sure on each machine (eq. 3.8)."""
    here = graph.priority[placed.task] == priority
    count = np.bincount(placed.machine[here], weights=placed.count[here], minlength=len(available))
    return np.divide(available, count, out=np.zeros_like(available), where=count > 0)
