"""`simulate`: a network, its costs and its rates on a virtual clock, under the control loop that also drives Spark."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from jettison.control.loop import Controller, Settings
from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.network.rates import Rate
from jettison.sim.account import Account
from jettison.sim.arrivals import Arrivals
from jettison.sim.cells import Cells, pass_vector
from jettison.sim.chance import Chance
from jettison.sim.machine import Machine
from jettison.sim.micro_batch import MicroBatch
from jettison.sim.result import LATENCIES, OutputResult, SimBatch, SimResult, share_of
from jettison.sim.round_robin import RoundRobin
from jettison.sim.scheduler import Scheduler
from jettison.statistics.profile import Profile

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
    cells: Cells | None = None,
) -> SimResult:
    """Run a network for so many virtual seconds; the same arguments give the same result.

    The controller begins with `profile` and learns; the machine obeys `truth` (the profile unless given). What passes
    filters and drops is drawn at random, or taken as expected with `noise=False`; `noise_share` makes the work of a
    batch slower or faster by about that share.

    >>> from jettison.network import Network
    >>> net = Network("n"); net.source("trips", "fare double").output("fares")
    >>> costs = Profile({"trips": 10.0}, {})  # a second takes 100,000 trips
    >>> calm = simulate(net.graph, costs, {"trips": 80_000}, trigger_ms=1000, seconds=10)
    >>> calm.outputs["fares"].delivered_share, calm.outputs["fares"].latency_ms["max"]
    (1.0, 1750.0)
    >>> busy = simulate(net.graph, costs, {"trips": 300_000}, trigger_ms=1000, seconds=10)
    >>> round(busy.outputs["fares"].delivered_share, 1)
    0.3
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise StartError(f"seconds is {seconds}: give how long to simulate, above 0.")
    if not (math.isfinite(noise_share) and noise_share >= 0):
        raise StartError(f"noise_share is {noise_share}: give a share that is not below 0, such as 0.1.")
    if scheduler not in SCHEDULERS:
        raise StartError(f"scheduler is {scheduler!r}: choose one of {', '.join(SCHEDULERS)}.")
    graph.check_complete()
    true, cells = truth or profile, cells or Cells()
    true.check(graph)
    cells.check(graph)
    chance = Chance(seed, noise=noise, slowness_share=noise_share)
    arrivals = Arrivals(graph, rates, 1000 * seconds, cells, chance)
    settings = Settings(trigger_ms, headroom, shedding)
    controller = Controller(graph, settings, profile, clock=planning_clock(graph))
    machine = Machine(graph, true, cells, arrivals, chance, Account(graph, cells.count))
    running = SCHEDULERS[scheduler](machine, controller)
    batches: list[SimBatch] = []
    infeasible = None
    while (batch := running.step()) is not None:
        batches.append(batch)
        infeasible = controller.infeasible or infeasible
    return _result(running, tuple(batches), infeasible, scheduler=scheduler, seconds=seconds, seed=seed)


def planning_clock(graph: Graph) -> Callable[[], float]:
    """A clock by which building a road map takes a millisecond per operator, whatever it takes on this machine.

    The loop lets a road map rest in proportion to what building it took: by a real clock no two runs would be alike.
    """
    looks = itertools.count()
    return lambda: _PLANNING_S_PER_OPERATOR * len(graph.operators) * next(looks)


def _result(
    running: Scheduler,
    batches: tuple[SimBatch, ...],
    infeasible: str | None,
    *,
    scheduler: str,
    seconds: float,
    seed: int,
) -> SimResult:
    machine, account, graph = running.machine, running.machine.account, running.machine.graph
    lost = account.lost({name: pass_vector(name, machine.truth, machine.cells) for name in account.gave})
    outputs = {}
    for output in graph.outputs:
        rows, gone = account.delivered[output.name], lost[output.name]
        late = account.latency_ms(output.name, tuple(LATENCIES.values()))
        outputs[output.name] = OutputResult(
            float(rows.sum()),
            float(gone.sum()),
            output.qos.utility(share_of(float(rows.sum()), float(gone.sum()))),
            {} if late is None else dict(zip(LATENCIES, late, strict=True)),
            tuple(zip(rows.tolist(), gone.tolist(), strict=True)),
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
    )
