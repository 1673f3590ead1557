"""The controller between two samples: a step from what is placed and measured to what is kept, moved and reported.

State in, state out: nothing is remembered here. The same step drives simulated machines and real ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from jettison.errors import NetworkError
from jettison.plan.quality.cycle import Decision, available_cores, cycle
from jettison.plan.quality.demand import Demand
from jettison.plan.quality.instances import NOWHERE, Instances, Machines, Metrics
from jettison.plan.quality.scheduling import estimated_available, estimated_load, schedule_instance
from jettison.plan.quality.tasks import Index, Mask, TaskGraph, Vector
from jettison.plan.quality.warm_up import still_warming


@dataclass(frozen=True)
class Settings:
    """How often the controller decides, and how long a warm-up may last."""

    interval_s: float = 5.0
    warm_up_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("interval_s", "warm_up_timeout_s"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise NetworkError(f"{name} is {value!r}: give seconds above 0.")


@dataclass(frozen=True, eq=False)
class State:
    """What lasts from step to step: where instances are, since when, what tasks need and what they last got."""

    placed: Instances
    started_s: Vector
    demand: Demand | None = None
    accuracy: Vector | None = None


@dataclass(frozen=True)
class Move:
    """An instance that goes to another machine, and why."""

    instance: str
    origin: str | None
    target: str
    reason: str

    def __str__(self) -> str:
        return f"{self.instance}: {self.origin or 'new'} -> {self.target} ({self.reason})"


@dataclass(frozen=True, eq=False)
class Step:
    """What one step gives: the next state, the decision, what was placed and moved, and what found no machine."""

    state: State
    decision: Decision
    moves: tuple[Move, ...]
    stuck: tuple[str, ...]


def step(
    graph: TaskGraph,
    machines: Machines,
    state: State,
    metrics: Metrics,
    now_s: float,
    *,
    present: Mask | None = None,
    running: Mask | None = None,
    pinned: Mask | None = None,
    settings: Settings | None = None,
) -> Step:
    """Decide once. `present` are the machines that are there, `running` the tasks whose application is started.

    `pinned` instances must not move.

    Instances of machines that are gone, and of applications that are new, are placed first. Then the cycle says what
    every query gets and what has to move. What has no machine to go to stays: minima on its machine are then lowered
    alike, and the decision says for which queries.
    """
    metrics.checked(graph, state.placed, machines)
    there = np.ones(len(machines.names), dtype=bool) if present is None else present
    limits = settings or Settings()
    state, placed = place_missing(graph, machines, state, metrics, now_s, there, running)
    warming = still_warming(graph, state.placed, metrics, state.started_s, now_s, limits.warm_up_timeout_s)
    state = replace(state, placed=replace(state.placed, warming=warming))
    fast = np.zeros(len(state.placed.names), dtype=bool) if pinned is None else pinned.copy()
    homeless = np.zeros(len(fast), dtype=bool)
    while True:
        decision = cycle(graph, machines, state.placed, metrics, history=state.demand, pinned=fast | homeless)
        after, moves, stuck = _move(graph, machines, state, metrics, decision, now_s, there)
        if not len(stuck):
            break
        homeless[stuck] = True
    after = replace(after, demand=decision.demand, accuracy=decision.task_accuracy)
    names = tuple(state.placed.names[at] for at in np.flatnonzero(homeless).tolist())
    return Step(after, decision, placed + moves, names)


def place_missing(
    graph: TaskGraph,
    machines: Machines,
    state: State,
    metrics: Metrics,
    now_s: float,
    present: Mask,
    running: Mask | None = None,
) -> tuple[State, tuple[Move, ...]]:
    """Place every instance that has no machine, or whose machine is gone, one after another (algorithm 3.1).

    An instance prefers the machines of its task's upstream (locality) if its history says that it fits there.
    """
    placed, started = state.placed, state.started_s.copy()
    machine, warming = placed.machine.copy(), placed.warming.copy()
    lost = (machine != NOWHERE) & ~present[machine]
    machine[lost], warming[lost] = NOWHERE, False
    wanted = machine == NOWHERE
    if running is not None:
        wanted &= running[placed.task]
    if not wanted.any() and not lost.any():
        return state, ()
    new = np.zeros(len(machines.names))
    unmeasured = (machine != NOWHERE) & ~np.isfinite(metrics.cpu)
    for at in np.flatnonzero(unmeasured).tolist():
        new[machine[at]] += estimated_load(state.demand, state.accuracy, int(placed.task[at]))
    moves = []
    for at in np.flatnonzero(wanted).tolist():
        task = int(placed.task[at])
        load = estimated_load(state.demand, state.accuracy, task)
        spare = estimated_available(machines.cores, metrics.machine_cpu, new)
        target = schedule_instance(load, spare, present, _near(graph, machine, placed, task, state.demand))
        if target is None:
            continue
        origin = machines.names[placed.machine[at]] if lost[at] else None
        reason = f"{origin} is gone" if origin else "its application starts"
        machine[at], warming[at], started[at] = target, True, now_s
        new[target] += load
        moves.append(Move(placed.names[at], origin, machines.names[target], reason))
    after = replace(state, placed=replace(placed, machine=machine, warming=warming), started_s=started)
    return after, tuple(moves)


def _near(graph: TaskGraph, machine: Index, placed: Instances, task: int, demand: Demand | None) -> list[int]:
    """The machines of the tasks that feed this one. While its load is a bet, nothing is near: bets are spread out."""
    if demand is None or demand.unknown[task]:
        return []
    feeding = np.isin(placed.task, graph.tails[graph.heads == task]) & (machine != NOWHERE)
    return sorted({int(at) for at in machine[feeding]})


def _move(
    graph: TaskGraph,
    machines: Machines,
    state: State,
    metrics: Metrics,
    decision: Decision,
    now_s: float,
    present: Mask,
) -> tuple[State, tuple[Move, ...], list[int]]:
    """Place what has to move on other machines whose minima leave room for it; what finds none is stuck (4.4)."""
    if not len(decision.moves):
        return state, (), []
    placed, demand = state.placed, decision.demand
    started = state.started_s.copy()
    needed = demand.minimum(graph)[placed.task]
    free = available_cores(machines, placed, metrics) - _minima(placed, needed, len(machines.names))
    new, moves, stuck = np.zeros(len(machines.names)), [], []
    after = placed
    for at in decision.moves.tolist():
        origin = int(placed.machine[at])
        spare = estimated_available(machines.cores, metrics.machine_cpu, new)
        allowed = present & (free >= needed[at] - 1e-9)
        allowed[origin] = False
        target = schedule_instance(float(needed[at]), spare, allowed)
        if target is None:
            stuck.append(at)
            continue
        free[target] -= needed[at]
        new[target] += needed[at]
        after = after.moved(at, target)
        started[at] = now_s
        short = f"minima on {machines.names[origin]} lack {decision.short_cores[origin]:.2f} cores"
        moves.append(Move(placed.names[at], machines.names[origin], machines.names[target], short))
    return replace(state, placed=after, started_s=started), tuple(moves), stuck


def _minima(placed: Instances, needed: Vector, machines: int) -> Vector:
    there = placed.machine != NOWHERE
    found: Vector = np.bincount(placed.machine[there], weights=needed[there], minlength=machines).astype(float)
    return found
