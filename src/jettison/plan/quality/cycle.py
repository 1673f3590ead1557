"""One cycle of the controller (algorithm 3.2): minima for all, the rest by priority, shares for all load shedders."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from jettison.plan.quality.accuracy import NonDrop, non_drop
from jettison.plan.quality.demand import Demand, measure
from jettison.plan.quality.filling import TOLERANCE
from jettison.plan.quality.instances import NOWHERE, Instances, Machines, Metrics, groups
from jettison.plan.quality.rescheduling import instances_to_move
from jettison.plan.quality.sharing import lower_alike, machine_load, share_out
from jettison.plan.quality.tasks import Index, Mask, TaskGraph, Vector
from jettison.plan.quality.unmeetable import Unmeetable, unmeetable


@dataclass(frozen=True, eq=False)
class Decision:
    """What one cycle decides.

    `desired` is the accuracy of every query, `task_accuracy` that of every task, `kept` what load shedders keep.
    `moves` are the instances that have to leave their machine so that minima fit; until they run elsewhere their
    queries stay at the minimum. `below_minimum` are queries that get less than their minimum, because neither machines
    nor moves give more. `short_cores` is what each machine lacked for minima, `demand` what tasks need, for the next
    cycle.
    """

    desired: Vector
    task_accuracy: Vector
    kept: NonDrop
    moves: Index
    below_minimum: Index
    short_cores: Vector
    available: Vector
    demand: Demand
    unmeetable: tuple[Unmeetable, ...] = field(default=())

    def by_query(self, graph: TaskGraph) -> dict[str, float]:
        return dict(zip(graph.query_names, self.desired.tolist(), strict=True))


def cycle(
    graph: TaskGraph,
    machines: Machines,
    placed: Instances,
    metrics: Metrics,
    *,
    history: Demand | None = None,
    pinned: Mask | None = None,
) -> Decision:
    """Decide from samples. `history` is the demand of the last cycle; `pinned` instances cannot move.

    >>> from jettison.plan.quality.tasks import Task, task_graph
    >>> from jettison.plan.quality.instances import instances
    >>> graph = task_graph([Task("src"), Task("A", ("src",), priority=2, min_accuracy=0.4),
    ...                     Task("B", ("src",), priority=1, min_accuracy=0.2)])
    >>> seen = Metrics(in_rate=np.array([500.0, 500.0, 500.0]), cpu=np.array([0.2, 0.3, 0.5]),
    ...                out_rate=np.array([500.0, 500.0]), arriving=np.array([1000.0]), machine_cpu=np.array([1.0]))
    >>> found = cycle(graph, Machines(("TM1",), np.array([1.0])), instances(graph), seen)
    >>> {name: round(share, 3) for name, share in found.by_query(graph).items()}
    {'A': 0.8, 'B': 0.2}
    >>> {stream: round(share, 3) for stream, share in found.kept.by_name(graph).items()}
    {('', 'src'): 0.8, ('src', 'A'): 1.0, ('src', 'B'): 0.25}
    """
    metrics.checked(graph, placed, machines)
    demand = measure(graph, placed, metrics, history)
    return decide(graph, demand, placed, available_cores(machines, placed, metrics), pinned=pinned)


def available_cores(machines: Machines, placed: Instances, metrics: Metrics) -> Vector:
    """`aCpu(tm)`: the cores of every machine that tasks may use, less what others do there (algorithm 3.2, line 2)."""
    cpu = np.where(np.isfinite(metrics.cpu), metrics.cpu, 0.0)
    there = placed.machine != NOWHERE
    tasks = np.bincount(placed.machine[there], weights=cpu[there], minlength=len(machines.names))
    seen = np.where(np.isfinite(metrics.machine_cpu), metrics.machine_cpu, tasks)
    return np.maximum(0.0, machines.cores * machines.headroom - np.maximum(0.0, seen - tasks))


def decide(
    graph: TaskGraph, demand: Demand, placed: Instances, available: Vector, *, pinned: Mask | None = None
) -> Decision:
    """Decide from costs that are known already: what tasks need, and the cores that every machine has for them."""
    reachable = -graph_minimum(graph, -demand.reachable())
    minima = np.minimum(graph.query_minimum, reachable)
    fixed, slope = demand.parts(graph.min_accuracy)
    on = groups(placed.task, placed.machine, len(available))
    usable = available - np.bincount(on.machine, weights=on.count * fixed[on.task], minlength=len(available))
    lacking = machine_load(graph, on, slope, minima, len(available)) - usable
    calm = ~_warming(placed, len(available))
    short = calm & (lacking > TOLERANCE * (1 + available))
    moves = _moves(graph, fixed + slope * graph.most(minima), placed, np.where(short, lacking, 0.0), pinned)
    if len(moves):
        machine = placed.machine.copy()
        machine[moves] = NOWHERE
        placed = replace(placed, machine=machine)
        on = groups(placed.task, placed.machine, len(available))
        usable = available - np.bincount(on.machine, weights=on.count * fixed[on.task], minlength=len(available))
    held = lower_alike(graph, on, slope, available, minima)  # costs that are a bet lower none
    ceilings = warm_up_ceilings(graph, demand, placed, len(available))
    desired = share_out(graph, on, slope, usable, held, np.minimum(reachable, ceilings))
    return Decision(
        desired=desired,
        task_accuracy=graph.most(desired),
        kept=non_drop(graph, desired),
        moves=moves,
        below_minimum=np.flatnonzero(desired < graph.query_minimum - 1e-6).astype(np.intp),
        short_cores=np.maximum(0.0, lacking),
        available=available,
        demand=demand,
        unmeetable=unmeetable(graph, demand),
    )


def graph_minimum(graph: TaskGraph, negated: Vector) -> Vector:
    """The maximum over all tasks that each query needs, of a value by task."""
    found = np.full(len(graph.queries), -np.inf)
    np.maximum.at(found, graph.pair_query, negated[graph.pair_task])
    return found


def _warming(placed: Instances, machines: int) -> Mask:
    there = placed.warming & (placed.machine != NOWHERE)
    return np.bincount(placed.machine[there], minlength=machines) > 0


def warm_up_ceilings(graph: TaskGraph, demand: Demand, placed: Instances, machines: int) -> Vector:
    """The most that every query may get: what its instances can reach, and the minimum where one of them warms up.

    Where an instance warms up, all tasks of its machine keep to their minimum (4.7). So do tasks that have an instance
    on no machine: one that has to move, or that lost its machine.
    """
    calm = ~_warming(placed, machines)
    held = placed.warming | (placed.machine == NOWHERE) | ~calm[placed.machine]
    tasks = np.zeros(len(graph.tasks), dtype=bool)
    tasks[placed.task[held]] = True
    return -graph_minimum(graph, -np.where(tasks, graph.min_accuracy, demand.reachable()))


def _moves(graph: TaskGraph, needed: Vector, placed: Instances, lacking: Vector, pinned: Mask | None) -> Index:
    """The instances that leave machines whose minima do not fit (line 11)."""
    free = ~placed.warming if pinned is None else ~(placed.warming | pinned)
    found = []
    for machine in np.flatnonzero(lacking > 0).tolist():
        here = np.flatnonzero((placed.machine == machine) & free)
        tasks = placed.task[here]
        found.append(here[instances_to_move(float(lacking[machine]), needed[tasks], graph.priority[tasks])])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.intp)
