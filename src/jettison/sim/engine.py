"""`simulate`: a network, its costs and its rates on a virtual clock, under the control loop that also drives Spark."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from jettison.control.loop import Controller, Settings
from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.network.operators import Output
from jettison.plan.problem import Shedder
from jettison.plan.shedders.registry import SEMANTIC
from jettison.sim.account import Account
from jettison.sim.arrivals import Arrivals
from jettison.sim.cells import CellGrid, Vector
from jettison.sim.chance import Chance
from jettison.sim.machine import Machine
from jettison.sim.micro_batch import MicroBatch
from jettison.sim.result import LATENCIES, OutputResult, SimBatch, SimResult, share_of
from jettison.sim.round_robin import RoundRobin
from jettison.sim.scheduler import Scheduler
from jettison.statistics.profile import Profile
from jettison.statistics.samples import LATENCY_QUANTILES
from jettison.statistics.worth import DEADLINE_TRIGGERS, timely_share
from jettison.synthetic.rates import Rate

SCHEDULERS: Mapping[str, Callable[[Machine, Controller], Scheduler]] = {"batch": MicroBatch, "round-robin": RoundRobin}
"""Who runs when, by name."""

_PLANNING_S_PER_OPERATOR = 0.001


def simulate(
    graph: Graph,
    profile: Profile,
    rates: Mapping[str, Rate | float],
    *,
    trigger_ms: float,
    headroom: float = 0.9,
    seconds: float,
    shedding: bool = True,
    truth: Profile | None = None,
    seed: int = 0,
    scheduler: str = "batch",
    noise: bool = True,
    noise_share: float = 0.0,
    pace: Sequence[tuple[float, float]] = (),
    shedder: str | Shedder = SEMANTIC,
    warmup_s: float = 0.0,
    planned_as: Graph | None = None,
) -> SimResult:
    """Run a network for so many virtual seconds; the same arguments give the same result.

    The controller begins with `profile` and learns; the machine obeys `truth` (the profile unless given). What passes
    filters and drops is drawn at random, or taken as expected with `noise=False`; `noise_share` makes the work of a
    batch slower or faster by about that share. `pace` are points (second, factor): from then on all work takes so many
    times as long, as beside a neighbour on a shared machine. `shedder` is who plans (`plan.shedders`). Outputs are
    judged by what happens after `warmup_s`. `planned_as` is the network that the controller sees, where its outputs are
    to be planned by another QoS than they are judged by.

    >>> from jettison.network import Network
    >>> net = Network("n"); _ = net.source("trips", "fare double").output("fares")
    >>> costs = Profile({"trips": 10.0}, {})  # a second takes 100,000 trips
    >>> calm = simulate(net.graph, costs, {"trips": 80_000}, trigger_ms=1000, seconds=10)
    >>> calm.outputs["fares"].delivered_share, calm.outputs["fares"].latency_ms["max"]
    (1.0, 1750.0)
    >>> busy = simulate(net.graph, costs, {"trips": 300_000}, trigger_ms=1000, seconds=10)
    >>> round(busy.outputs["fares"].delivered_share, 1)
    0.3
    """
    _check(seconds, noise_share, pace, warmup_s, scheduler)
    _check_networks(graph, planned_as)
    profile.check(graph)
    profile = profile.completed(graph)
    true = profile if truth is None else truth.completed(graph)
    true.check(graph)
    cells = CellGrid(graph, true)
    chance = Chance(seed, noise=noise, slowness_share=noise_share, pace=pace)
    arrivals = Arrivals(graph, rates, 1000 * seconds, cells, chance)
    settings = Settings(trigger_ms, headroom, shedding, shedder=shedder)
    controller = Controller(planned_as or graph, settings, profile, clock=planning_clock(graph))
    machine = Machine(graph, true, cells, arrivals, chance, Account(graph, cells.count))
    running = SCHEDULERS[scheduler](machine, controller)
    batches: list[SimBatch] = []
    infeasible, begun = None, _Begun(machine.account)
    while (batch := running.step()) is not None:
        batches.append(batch)
        infeasible = controller.infeasible or infeasible
        if batch.started_ms < 1000 * warmup_s:
            begun = _Begun(machine.account)
    return _result(running, tuple(batches), begun, infeasible, scheduler=scheduler, seconds=seconds, seed=seed)


def _check(
    seconds: float, noise_share: float, pace: Sequence[tuple[float, float]], warmup_s: float, scheduler: str
) -> None:
    """Raise StartError unless a simulation can run with these."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise StartError(f"seconds is {seconds}: give how long to simulate, above 0.")
    if not (math.isfinite(noise_share) and noise_share >= 0):
        raise StartError(f"noise_share is {noise_share}: give a share that is not below 0, such as 0.1.")
    if any(not (math.isfinite(factor) and factor > 0) for _, factor in pace) or any(
        after <= before for (before, _), (after, _) in pairwise(pace)
    ):
        raise StartError(f"pace is {pace}: give points (second, factor), seconds that rise and factors above 0.")
    if not 0 <= warmup_s < seconds:
        raise StartError(f"warmup_s is {warmup_s}: give a time from 0 on and less than the {seconds:g} s in all.")
    if scheduler not in SCHEDULERS:
        raise StartError(f"scheduler is {scheduler!r}: choose one of {', '.join(SCHEDULERS)}.")


def _check_networks(graph: Graph, planned_as: Graph | None) -> None:
    graph.check_complete()
    if planned_as is not None and planned_as.arcs != graph.arcs:
        raise StartError(f"planned_as has other arcs than network {graph.name!r}: only the QoS of outputs may differ.")


class _Begun:
    """Where the account stood when judging outputs began."""

    def __init__(self, account: Account) -> None:
        self.mark = account.mark()
        self.shed = {arc: rows.copy() for arc, rows in account.shed.items()}
        self.delivered = {name: rows.copy() for name, rows in account.delivered.items()}


def planning_clock(graph: Graph) -> Callable[[], float]:
    """A clock by which building a road map takes a millisecond per operator, whatever it takes on this machine.

    The loop lets a road map rest in proportion to what building it took: by a real clock no two runs would be alike.
    """
    looks = itertools.count()
    return lambda: _PLANNING_S_PER_OPERATOR * len(graph.operators) * next(looks)


def _worth_share(output: Output, machine: Machine, rows: Vector, gone: Vector) -> float:
    """The share delivered of what an output's tuples are worth."""
    track, value = machine.graph.tracks.by_output.get(output.name), output.qos.value
    if track is None or value is None:
        return share_of(float(rows.sum()), float(gone.sum()))
    worth, cells = track.worth(value), machine.cells
    return share_of(float(worth @ cells.along(track, rows)), float(worth @ cells.along(track, gone)))


def _result(
    running: Scheduler,
    batches: tuple[SimBatch, ...],
    begun: _Begun,
    infeasible: str | None,
    *,
    scheduler: str,
    seconds: float,
    seed: int,
) -> SimResult:
    machine, account, graph = running.machine, running.machine.account, running.machine.graph
    lost = account.lost({name: machine.cells.passes(name) for name in account.gave}, begun.shed)
    outputs = {}
    for output in graph.outputs:
        rows, gone = account.delivered[output.name] - begun.delivered[output.name], lost[output.name]
        late = account.latency_ms(output.name, tuple(LATENCIES.values()), begun.mark[output.name])
        ages_ms = account.latency_ms(output.name, LATENCY_QUANTILES, begun.mark[output.name])
        worth = _worth_share(output, machine, rows, gone)
        outputs[output.name] = OutputResult(
            float(rows.sum()),
            float(gone.sum()),
            worth,
            output.qos.utility(worth * timely_share(output.qos, ages_ms, math.inf)),
            {} if late is None else dict(zip(LATENCIES, late, strict=True)),
            tuple(zip(rows.tolist(), gone.tolist(), strict=True)),
            worth * timely_share(output.qos, ages_ms, DEADLINE_TRIGGERS * running.controller.settings.trigger_ms),
        )
    taken = {name: sum(account.taken[arc] for arc in graph.arcs_into(name)) for name in account.gave}
    return SimResult(
        graph.name,
        scheduler,
        seconds,
        seed,
        batches,
        machine.arrivals.rows(0.0, machine.arrivals.end_ms),
        {arc: float(rows.sum()) for arc, rows in account.shed.items() if rows.any()},
        {name: taken[name] - account.gave[name] for name in account.gave},
        running.queues(),
        outputs,
        sum(output.qos.priority * outputs[output.name].utility for output in graph.outputs),
        infeasible,
        running.controller.uncertified,
        running.controller.sic.all(),
    )
