"""The simulation: tuples as a fluid that flows through queues, in steps of a quarter of a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jettison.plan.quality.controller import Settings, State, Step, step
from jettison.plan.quality.cycle import warm_up_ceilings
from jettison.plan.quality.instances import NOWHERE, Instances, Machines, groups, instances
from jettison.plan.quality.judging import inversions
from jettison.plan.quality.tasks import Mask, TaskGraph, task_graph
from jettison.sim.quality.fluid import TICK_S, Fluid
from jettison.sim.quality.result import Cycle, QualityResult
from jettison.sim.quality.scenario import Scenario

Observer = Callable[[float, Step], None]


def simulate_quality(scenario: Scenario, observe: Observer | None = None) -> QualityResult:
    """Run a scenario: the controller decides every interval from what it measured before. Nothing is random.

    >>> from jettison.sim.quality import Curve, Host, Scenario, taxi_drives
    >>> found = simulate_quality(Scenario([taxi_drives(Curve([(0, 6000)]))], [Host("TM1")], duration_s=60))
    >>> {name: round(share, 2) for name, share in found.cycles[-1].accuracy.items()}
    {'TDSnk1': 0.64, 'TDSnk2': 0.67}
    """
    graph = task_graph([task for app in scenario.applications for task in app.tasks])
    machines = Machines(
        tuple(host.name for host in scenario.machines),
        np.array([host.cores for host in scenario.machines]),
        scenario.headroom,
    )
    placed = instances(graph, default=NOWHERE)
    fluid = Fluid(graph, scenario, placed)
    state = State(placed, np.full(len(placed.names), -np.inf))
    settings = Settings(scenario.interval_s, scenario.warm_up_timeout_s)
    cycles, moved, ticks = [], 0, round(scenario.interval_s / TICK_S)
    for number in range(round(scenario.duration_s / scenario.interval_s)):
        now_s = number * scenario.interval_s
        present = _present(scenario, now_s)
        done = step(
            graph,
            machines,
            state,
            fluid.metrics(),
            now_s,
            present=present,
            running=_running(graph, scenario, now_s),
            pinned=_pinned(scenario, moved, len(placed.names)),
            settings=settings,
        )
        moved += sum(move.origin is not None for move in done.moves)
        if observe is not None:
            observe(now_s, done)
        fluid.obey(done.decision.kept, done.state.placed, done.state.started_s)
        for tick in range(ticks):
            at_s = now_s + tick * TICK_S
            fluid.tick(at_s, _present(scenario, at_s))
        cycles.append(_cycle(graph, machines, scenario, fluid, done, now_s))
        state = done.state
    minima = dict(zip(graph.query_names, graph.query_minimum.tolist(), strict=True))
    return QualityResult(tuple(cycles), minima)


def _present(scenario: Scenario, at_s: float) -> Mask:
    return np.array([host.from_s <= at_s < host.until_s for host in scenario.machines])


def _running(graph: TaskGraph, scenario: Scenario, now_s: float) -> Mask:
    started = {task.name for app in scenario.applications if app.start_s <= now_s for task in app.tasks}
    return np.array([name in started for name in graph.names])


def _pinned(scenario: Scenario, moved: int, count: int) -> Mask:
    return np.full(count, scenario.most_moves is not None and moved >= scenario.most_moves)


def _cycle(graph: TaskGraph, machines: Machines, scenario: Scenario, fluid: Fluid, done: Step, now_s: float) -> Cycle:
    placed, seen = done.state.placed, fluid.interval(scenario.interval_s)
    names = graph.query_names
    started = _running(graph, scenario, now_s)[graph.queries]
    return Cycle(
        second=now_s,
        accuracy=_by_name(names, np.where(started, seen.accuracy[graph.queries], 1.0)),
        processed=_by_name(names, np.where(started, seen.processed[graph.queries], 1.0)),
        arriving={graph.names[at]: float(rate) for at, rate in zip(graph.sources, seen.arriving, strict=True)},
        throughput=_by_name(names, seen.throughput[graph.queries]),
        machine_cpu=_by_name(machines.names, seen.machine_cpu),
        others_cpu=_by_name(machines.names, seen.others_cpu),
        where={
            name: None if at == NOWHERE else machines.names[at]
            for name, at in zip(placed.names, placed.machine, strict=True)
        },
        warming=tuple(placed.names[at] for at in np.flatnonzero(placed.warming).tolist()),
        moves=done.moves,
        stuck=done.stuck,
        below_minimum=tuple(names[at] for at in done.decision.below_minimum.tolist() if started[at]),
        inverted=tuple(_inverted(graph, done, started)),
        unmeetable=done.decision.unmeetable,
        lag_s=seen.lag_s,
    )


def _inverted(graph: TaskGraph, done: Step, started: Mask) -> list[str]:
    """Priorities that the decision breaks, by a check of its own."""
    decision, placed = done.decision, done.state.placed
    before = _before_moves(placed, done)
    on = groups(before.task, before.machine, len(decision.available))
    fixed, slope = decision.demand.parts(graph.min_accuracy)
    usable = decision.available - np.bincount(on.machine, on.count * fixed[on.task], len(decision.available))
    ceilings = np.where(started, warm_up_ceilings(graph, decision.demand, before, len(usable)), 0.0)
    return inversions(graph, on, slope, usable, decision.desired, ceilings)


def _before_moves(placed: Instances, done: Step) -> Instances:
    """What the decision was made for: what moves is on no machine yet."""
    machine = placed.machine.copy()
    machine[done.decision.moves] = NOWHERE
    return replace(placed, machine=machine)


def _by_name(names: tuple[str, ...], values: object) -> dict[str, float]:
    assert isinstance(values, np.ndarray)
    return dict(zip(names, values.astype(float).tolist(), strict=True))
