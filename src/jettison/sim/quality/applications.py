"""Applications to simulate: tasks, what they cost, and the rates of their sources. Two of the seed (5.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jettison.errors import NetworkError
from jettison.plan.quality.tasks import Task
from jettison.sim.quality.curve import Curve


@dataclass(frozen=True)
class Cost:
    """What a task does with a tuple: microseconds of one core, and how many it gives on for one."""

    us: float
    selectivity: float = 1.0

    def __post_init__(self) -> None:
        for name in ("us", "selectivity"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise NetworkError(f"cost: {name} is {value!r}: give a number from 0 on.")


@dataclass(frozen=True)
class Application:
    """Tasks of one application, the cost of each, the rate of each source task (tuples per second), and its start."""

    name: str
    tasks: Sequence[Task]
    costs: Mapping[str, Cost]
    rates: Mapping[str, Curve]
    start_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(self.tasks))
        for task in self.tasks:
            if task.name not in self.costs:
                raise NetworkError(
                    f"application {self.name!r}: task {task.name!r} has no cost: give Cost(us=...), the truth that "
                    f"the simulation needs; the controller measures it."
                )
            if not task.upstream and task.name not in self.rates:
                raise NetworkError(f"application {self.name!r}: source task {task.name!r} has no rate: give a Curve.")


def taxi_drives(
    rate: Curve, priorities: tuple[float, float] = (1, 1), minima: tuple[float, float] = (0.4, 0.6)
) -> Application:
    """Taxi drives (5.4.1): two topics are parsed, the streams are merged and feed two sinks, of which one is dear.

    `rate` is that of both topics together. TDSnk1 runs in two instances.

    >>> app = taxi_drives(Curve([(0, 1000)]))
    >>> [task.name for task in app.tasks], app.costs["TDSnk2"].us
    (['TDSrc1', 'TDSrc2', 'TDSnk1', 'TDSnk2'], 120.0)
    """
    half = Curve([(second, value / 2) for second, value in rate.points])
    sources = ("TDSrc1", "TDSrc2")
    tasks = (
        Task("TDSrc1"),
        Task("TDSrc2"),
        Task("TDSnk1", sources, instances=2, priority=priorities[0], min_accuracy=minima[0]),
        Task("TDSnk2", sources, priority=priorities[1], min_accuracy=minima[1]),
    )
    costs = {"TDSrc1": Cost(50.0), "TDSrc2": Cost(50.0), "TDSnk1": Cost(70.0), "TDSnk2": Cost(120.0)}
    return Application("taxi drives", tasks, costs, dict.fromkeys(sources, half))


def nearest_neighbours(
    rate: Curve, priority: float = 1, min_accuracy: float = 0.2, start_s: float = 0.0, instances: int = 1
) -> Application:
    """Nearest neighbours in three dimensions (5.4.2): one task that reads, classifies and writes."""
    task = Task("KNNSrc1", instances=instances, priority=priority, min_accuracy=min_accuracy)
    return Application("nearest neighbours", (task,), {"KNNSrc1": Cost(500.0)}, {"KNNSrc1": rate}, start_s)
