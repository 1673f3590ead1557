"""Queues of instances on machines whose cores are shared fairly: what arrives, is dropped, waits and is processed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from jettison.plan.quality.accuracy import NonDrop, accuracy
from jettison.plan.quality.instances import NOWHERE, Instances, Metrics
from jettison.plan.quality.tasks import Mask, TaskGraph, Vector
from jettison.sim.quality.scenario import Scenario

TICK_S = 0.25


@dataclass(frozen=True, eq=False)
class Counts:
    """What happened in one tick, or per second on average over some."""

    processed: Vector
    cpu: Vector
    out: Vector
    arriving: Vector
    machine_cpu: Vector
    others_cpu: Vector

    @staticmethod
    def mean(ticks: list[Counts]) -> Counts:
        names = ("processed", "cpu", "out", "arriving", "machine_cpu", "others_cpu")
        return Counts(*(np.mean([getattr(each, name) for each in ticks], axis=0) / TICK_S for name in names))


@dataclass(frozen=True, eq=False)
class Interval:
    """One interval seen from outside: rates, shares and loads, by task, source and machine."""

    accuracy: Vector
    processed: Vector
    throughput: Vector
    arriving: Vector
    machine_cpu: Vector
    others_cpu: Vector
    lag_s: float


class Fluid:
    """The state of all queues. `obey` takes a decision, `tick` lets time pass, `metrics` says what was measured."""

    def __init__(self, graph: TaskGraph, scenario: Scenario, placed: Instances) -> None:
        costs = {name: cost for app in scenario.applications for name, cost in app.costs.items()}
        rates = {name: rate for app in scenario.applications for name, rate in app.rates.items()}
        starts = {task.name: app.start_s for app in scenario.applications for task in app.tasks}
        self._graph, self._scenario, self._placed = graph, scenario, placed
        self._cost_s = np.array([costs[name].us * 1e-6 for name in graph.names])
        self._selectivity = np.array([costs[name].selectivity for name in graph.names])
        self._rates = [(rates[graph.names[at]], starts[graph.names[at]]) for at in graph.sources.tolist()]
        self._queue = np.zeros(len(placed.names))
        self._kept = NonDrop(np.ones(len(graph.sources)), np.ones(len(graph.heads)))
        self._started_s = np.full(len(placed.names), -np.inf)
        self._recent: deque[Counts] = deque(maxlen=max(1, round(scenario.window_s / TICK_S)))
        self._seen = np.zeros(len(placed.names), dtype=bool)
        self._all: list[Counts] = []

    def obey(self, kept: NonDrop, placed: Instances, started_s: Vector) -> None:
        """Load shedders keep these shares from now on; instances that moved restart."""
        changed = placed.machine != self._placed.machine
        self._seen &= ~changed
        self._kept, self._placed, self._started_s = kept, placed, started_s
        self._all.clear()

    def tick(self, at_s: float, present: Mask) -> None:
        """Let a quarter of a second pass."""
        graph, task = self._graph, self._placed.task
        arriving = np.array([rate.at(at_s) if at_s >= start else 0.0 for rate, start in self._rates]) * TICK_S
        others = np.array([host.others.at(at_s) for host in self._scenario.machines]) * present
        others = np.minimum(others, [host.cores for host in self._scenario.machines])
        cost = self._cost_s[task] * self._slowness(at_s)
        wanted = np.where(self._up(at_s, present), np.minimum(self._queue * cost, TICK_S), 0.0)
        granted = self._granted(wanted, np.array([host.cores for host in self._scenario.machines]) - others)
        processed = np.where(cost > 0, np.divide(granted, cost, out=np.zeros_like(cost), where=cost > 0), self._queue)
        self._queue = np.maximum(0.0, self._queue - processed)
        by_task = np.bincount(task, weights=processed, minlength=len(graph.tasks))
        out = (by_task * self._selectivity)[graph.tails]
        coming = np.bincount(graph.heads, weights=out * self._kept.edges, minlength=len(graph.tasks))
        coming[graph.sources] = arriving * self._kept.sources
        self._queue += (coming / graph.instance_counts)[task]
        there = self._placed.machine != NOWHERE
        used = np.bincount(self._placed.machine[there], weights=granted[there], minlength=len(others))
        counts = Counts(processed, granted, out, arriving, used + others * TICK_S, others * TICK_S)
        self._recent.append(counts)
        self._all.append(counts)
        self._seen |= self._up(at_s, present)

    def metrics(self) -> Metrics:
        """Moving averages over the window; nan for instances that have not run since they were placed."""
        graph, count = self._graph, len(self._scenario.machines)
        if not self._recent:
            unknown = np.full(len(self._queue), np.nan)
            silent = np.zeros(len(graph.heads)), np.zeros(len(graph.sources))
            return Metrics(unknown, unknown, *silent, np.zeros(count))
        mean = Counts.mean(list(self._recent))
        known = self._seen & (self._placed.machine != NOWHERE)
        return Metrics(
            np.where(known, mean.processed, np.nan),
            np.where(known, mean.cpu, np.nan),
            mean.out,
            mean.arriving,
            mean.machine_cpu,
        )

    def interval(self, interval_s: float) -> Interval:
        """What happened since the last decision was obeyed."""
        graph, mean = self._graph, Counts.mean(self._all)
        throughput = np.bincount(self._placed.task, weights=mean.processed, minlength=len(graph.tasks)).astype(float)
        whole = np.zeros(len(graph.tasks))
        whole[graph.sources] = mean.arriving
        for wave in graph.waves:
            tails = graph.tails[wave.edges]
            whole[wave.tasks] = np.add.reduceat(whole[tails] * self._selectivity[tails], wave.starts)
        processed = np.divide(throughput, whole, out=np.ones_like(whole), where=whole > 0)
        waiting = self._queue * graph.instance_counts[self._placed.task]
        rate = whole[self._placed.task]
        lag = np.divide(waiting, rate, out=np.zeros_like(rate), where=rate > 0)
        return Interval(
            accuracy(graph, self._kept),
            np.minimum(processed, 1.0),
            throughput,
            mean.arriving,
            mean.machine_cpu,
            mean.others_cpu,
            float(lag.max(initial=0.0)),
        )

    def _up(self, at_s: float, present: Mask) -> Mask:
        machine = self._placed.machine
        found: Mask = (machine != NOWHERE) & present[machine] & (at_s >= self._started_s + self._scenario.restart_s)
        return found

    def _slowness(self, at_s: float) -> Vector:
        """Twice the cost just after a restart, and less and less until `cold_s` have passed."""
        cold_s = self._scenario.cold_s
        if cold_s <= 0:
            return np.ones(len(self._queue))
        warm_s = at_s - self._started_s - self._scenario.restart_s
        return 1.0 + np.clip(1.0 - warm_s / cold_s, 0.0, 1.0)

    def _granted(self, wanted: Vector, cores: Vector) -> Vector:
        """Cores of every machine shared fairly: nobody gets more than it wants, the rest goes to the others."""
        granted = np.zeros_like(wanted)
        for machine, capacity in enumerate((cores * TICK_S).tolist()):
            here = np.flatnonzero((self._placed.machine == machine) & (wanted > 0))
            left, order = capacity, here[np.argsort(wanted[here], kind="stable")]
            for done, at in enumerate(order.tolist()):
                granted[at] = min(float(wanted[at]), left / (len(order) - done))
                left -= granted[at]
        return granted
