"""Micro-batches, as in Spark: what has arrived when a trigger fires goes through the whole network at once.

A batch takes  fixed part + reading + work.  The next one begins at the next multiple of the trigger interval, or
when this one ends, whichever is later; a trigger that finds nothing new starts no batch.
"""

from __future__ import annotations

import math

import numpy as np

from jettison.control.loop import Controller
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.sim.cells import Matrix
from jettison.sim.machine import Gate, Machine
from jettison.sim.result import SimBatch
from jettison.sim.scheduler import latencies
from jettison.sim.trains import Trains, rows_in
from jettison.sim.values import value_samples
from jettison.sim.windows import SimulatedWindows, kept_trains
from jettison.statistics.samples import BatchSample, OutputSample

_SLACK_MS = 1e-6


class MicroBatch:
    """Runs batches; its clock jumps from the start of one to the start of the next."""

    def __init__(self, machine: Machine, controller: Controller) -> None:
        self.machine = machine
        self.controller = controller
        self._read_ms = 0.0
        self._next_ms = controller.settings.trigger_ms
        self._batch = 0
        self._windows = SimulatedWindows(controller.graph)

    def queues(self) -> dict[str, float]:
        """What has arrived since the last batch began waits at the sources."""
        arrivals = self.machine.arrivals
        return {name: float(rows) for name, rows in arrivals.rows(self._read_ms, arrivals.end_ms).items() if rows}

    @property
    def read_ms(self) -> float:
        """What arrived before this moment was read."""
        return self._read_ms

    @property
    def next_ms(self) -> float:
        """When the next trigger fires."""
        return self._next_ms

    def sleep_until(self, now_ms: float) -> None:
        """Start no batch before this moment; what arrives until then waits."""
        self._next_ms = max(self._next_ms, now_ms)

    def step(self) -> SimBatch | None:
        while self._next_ms <= self.machine.arrivals.end_ms + _SLACK_MS:
            batch = self.try_step()
            if batch is not None:
                return batch
        return None

    def try_step(self) -> SimBatch | None:
        """What the next trigger does: a batch, or None where it finds nothing new."""
        started_ms, before_ms = self._next_ms, self._read_ms
        trains = self.machine.arrivals.between(before_ms, started_ms)
        self._read_ms = started_ms
        if any(trains.rows.values()):
            return self._run(trains, started_ms, started_ms - before_ms)
        self._next_ms = self._boundary_after(started_ms)
        return None

    def _boundary_after(self, now_ms: float) -> float:
        trigger_ms = self.controller.settings.trigger_ms
        return trigger_ms * (math.floor(now_ms / trigger_ms + _SLACK_MS) + 1)

    def _run(self, trains: Trains, started_ms: float, interval_ms: float) -> SimBatch:
        machine, account, rows = self.machine, self.machine.account, trains.rows
        marks = self._windows.begin()
        plan = self._windows.resolve(self.controller.decide(rows, started_ms, marks=marks), marks, rows)
        seen, before = account.mark(), account.by_value()
        arcs, delivered, work_us = self._through(trains, plan)
        truth = Problem(machine.graph, machine.truth, rows, self.controller.settings.budget_us)
        duration_ms = machine.chance.slowness(started_ms) * (truth.unavoidable_us + work_us) / 1000
        ended_ms = started_ms + duration_ms
        self._windows.end(marks, float(trains.times_ms[-1]))
        for name, counts in delivered.items():
            account.deliver(name, ended_ms - trains.times_ms, counts)
        outputs = {name: OutputSample(round(float(counts.sum()))) for name, counts in delivered.items()}
        self.controller.record(
            BatchSample(
                self._batch,
                started_ms,
                interval_ms,
                duration_ms,
                rows,
                arcs=arcs,
                outputs=outputs,
                values=value_samples(machine.graph, machine.cells, *account.by_value(before)),
                plan_row=plan.row,
            )
        )
        self._next_ms = max(self._boundary_after(started_ms), ended_ms)
        self._batch += 1
        return SimBatch(
            self._batch - 1,
            started_ms,
            interval_ms,
            duration_ms,
            rows,
            truth.load_us / (1000 * interval_ms),
            plan,
            {arc: kept / count for arc, (count, kept) in arcs.items() if count},
            {name: float(counts.sum()) for name, counts in delivered.items()},
            latencies(account, seen),
            machine.arrivals.rows(started_ms, ended_ms),
        )

    def _through(self, trains: Trains, plan: Plan) -> tuple[dict[str, tuple[int, int]], dict[str, Matrix], float]:
        """Carry trains through the network: (rows, kept rows) where drops stand, trains at outputs, work done."""
        machine, account = self.machine, self.machine.account
        gates = machine.gates(plan)
        gave: dict[str, Matrix] = {}
        arcs: dict[str, tuple[int, int]] = {}
        delivered: dict[str, Matrix] = {}
        work_us = 0.0
        for stage in machine.stages:
            entering = np.zeros((len(trains.times_ms), machine.cells.count))
            for arc, tail in zip(stage.arcs, stage.tails or (None,), strict=True):
                counts = trains.counts[arc] if tail is None else gave[tail]
                if arc in gates:
                    kept = self._passing(plan.drops[arc], gates[arc], counts, trains)
                    work_us += gates[arc].judging_us * float(counts.sum())
                    account.drop(arc, counts, kept)
                    arcs[arc] = (round(float(counts.sum())), round(float(kept.sum())))
                    counts = kept
                account.take(arc, rows_in(counts), counts)
                entering += counts
            work_us += stage.cost_us * float(entering.sum())
            if stage.is_output:
                delivered[stage.name] = entering
            else:
                gave[stage.name] = entering if stage.passes is None else machine.chance.passing(entering, stage.passes)
                account.gave[stage.name] += float(gave[stage.name].sum())
        return arcs, delivered, work_us

    def _passing(self, drop: Drop, gate: Gate, counts: Matrix, trains: Trains) -> Matrix:
        """What passes a drop: of windows whole trains, by their time; else by chance."""
        by_time = kept_trains(drop, trains.times_ms) if isinstance(drop, Window) else None
        if by_time is None:
            return self.machine.chance.passing(counts, gate.keeps)
        found: Matrix = counts * by_time[:, None]
        return found
