"""Priorities and minimum accuracies over several machines: the model and the cycle of Stream Economics (chapter 3).

Comes in: tasks with their queries' priority and minimum accuracy, where instances of tasks run, and what was measured.
Goes out: a `Decision`: the accuracy that every query gets, the share that every load shedder keeps, and the instances
that have to move. All of it is pure functions on columns (NumPy), so simulated and real machines share it.
"""

from jettison.plan.quality.cycle import Decision, cycle
from jettison.plan.quality.demand import Demand
from jettison.plan.quality.instances import Instances, Machines, Metrics
from jettison.plan.quality.tasks import Task, TaskGraph, task_graph

__all__ = ["Decision", "Demand", "Instances", "Machines", "Metrics", "Task", "TaskGraph", "cycle", "task_graph"]
