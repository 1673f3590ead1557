"""Instances of tasks, the machines that they run on, and what was measured of both: columns with names at the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jettison.errors import NetworkError
from jettison.plan.quality.tasks import Index, Mask, TaskGraph, Vector

NOWHERE = -1
"""The machine of an instance that runs on none."""


@dataclass(frozen=True, eq=False)
class Machines:
    """Machines (task managers, `tm` of the seed): cores, and the share of them that tasks may fill."""

    names: tuple[str, ...]
    cores: Vector
    headroom: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "cores", np.asarray(self.cores, dtype=float))
        if len(set(self.names)) < len(self.names) or len(self.names) != len(self.cores):
            raise NetworkError(f"machines {', '.join(self.names)}: give each a name of its own and its cores.")
        for name, cores in zip(self.names, self.cores.tolist(), strict=True):
            if not (np.isfinite(cores) and cores > 0):
                raise NetworkError(f"machine {name!r}: cores is {cores!r}: give a number above 0.")
        if not 0 < self.headroom <= 1:
            raise NetworkError(f"headroom is {self.headroom!r}: give a share of the cores, above 0 and up to 1.")

    @cached_property
    def number(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}


@dataclass(frozen=True, eq=False)
class Instances:
    """All instances of all tasks, in the order of tasks: the task of each, its machine, and whether it warms up.

    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> placed = instances(task_graph([Task("src"), Task("snk", ("src",), instances=2)]), {"snk.2": 1})
    >>> placed.names, placed.machine.tolist()
    (('src.1', 'snk.1', 'snk.2'), [0, 0, 1])
    """

    names: tuple[str, ...]
    task: Index
    machine: Index
    warming: Mask

    @cached_property
    def number(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    @cached_property
    def starts(self) -> Index:
        """Where the instances of each task begin."""
        return np.flatnonzero(np.diff(self.task, prepend=-1)).astype(np.intp)

    def moved(self, instance: int, machine: int) -> Instances:
        """The same, with one instance on another machine, where it warms up."""
        at, warming = self.machine.copy(), self.warming.copy()
        at[instance], warming[instance] = machine, True
        return replace(self, machine=at, warming=warming)


def instances(graph: TaskGraph, machine_of: Mapping[str, int] | None = None, default: int = 0) -> Instances:
    """All instances of a graph on machines by name of the instance (task.1, task.2, ...)."""
    names = tuple(f"{task.name}.{at + 1}" for task in graph.tasks for at in range(task.instances))
    given = machine_of or {}
    for name in given:
        if name not in names:
            raise NetworkError(f"instance {name!r} is not there: {', '.join(names[:8])}.")
    return Instances(
        names,
        np.repeat(np.arange(len(graph.tasks)), graph.instance_counts),
        np.array([given.get(name, default) for name in names], dtype=np.intp),
        np.zeros(len(names), dtype=bool),
    )


@dataclass(frozen=True, eq=False)
class Metrics:
    """What was measured, smoothed by a moving average; of instances and machines nan where nothing is known yet.

    `in_rate` and `cpu` (cores, `cpuLoadMetric(i)`) are by instance; `out_rate` is by edge, in front of its load
    shedder; `arriving` is what external sources bring, by task of `graph.sources`; `machine_cpu` is all that a machine
    does (cores), also for others.
    """

    in_rate: Vector
    cpu: Vector
    out_rate: Vector
    arriving: Vector
    machine_cpu: Vector

    def checked(self, graph: TaskGraph, placed: Instances, machines: Machines) -> Metrics:
        """The same, or an error that says which column does not fit."""
        wanted = {
            "in_rate": len(placed.names),
            "cpu": len(placed.names),
            "out_rate": len(graph.heads),
            "arriving": len(graph.sources),
            "machine_cpu": len(machines.names),
        }
        for name, length in wanted.items():
            column = getattr(self, name)
            if len(column) != length:
                raise NetworkError(f"metrics: {name} has {len(column)} values: give one for each of the {length}.")
            if np.any(column < 0) or np.any(np.isinf(column)):
                raise NetworkError(f"metrics: {name} has a value below 0 or without end: leave what is unknown nan.")
            if name in ("out_rate", "arriving") and np.any(np.isnan(column)):
                raise NetworkError(f"metrics: {name} is not known for all: give 0 where nothing comes.")
        return self


@dataclass(frozen=True, eq=False)
class Groups:
    """Instances of one task on one machine, counted: they share one accuracy, so only their number matters."""

    task: Index
    machine: Index
    count: Vector


def groups(task: Sequence[int] | Index, machine: Sequence[int] | Index, machines: int) -> Groups:
    """Count instances by task and machine; those on no machine are left out.

    >>> found = groups([0, 1, 1, 1], [0, 1, 1, NOWHERE], machines=2)
    >>> found.task.tolist(), found.machine.tolist(), found.count.tolist()
    ([0, 1], [0, 1], [1.0, 2.0])
    """
    on_task, on_machine = np.asarray(task, dtype=np.intp), np.asarray(machine, dtype=np.intp)
    there = on_machine != NOWHERE
    keys, counts = np.unique(on_task[there] * machines + on_machine[there], return_counts=True)
    return Groups((keys // machines).astype(np.intp), (keys % machines).astype(np.intp), counts.astype(float))
