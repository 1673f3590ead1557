"""Round robin, as in Aurora: a queue on every arc, and operators that take turns (thesis 2.2).

Time goes in ticks. A tick has so much time to give as it lasts, less its part of the fixed work; arcs get it in turns,
at most a quantum each, until it is spent or nothing waits. What was spent too much (a tuple that was begun is
finished) is missing in the next tick. A drop judges what is taken from its arc's queue.

The control loop acts once in a trigger interval. It cannot know what is about to arrive, so it plans for what arrived
in the interval before and for the queues that this left (their melt rate, thesis 3.3.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jettison.control.loop import Controller
from jettison.plan.certify import kept_flows, planned_load_us
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.sim.arrivals import LONGEST_SLICE_MS
from jettison.sim.machine import Gate, Machine, Stage
from jettison.sim.queues import ArcQueue
from jettison.sim.result import SimBatch
from jettison.sim.scheduler import latencies
from jettison.sim.trains import Trains, rows_in
from jettison.sim.values import value_samples
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample, ValueSample

_SLACK_MS = 1e-6
_SLACK_US = 1e-6
_QUANTUM_SHARE = 0.1
"""Of a tick: long enough that an operator serves many tuples in a turn, short enough that none is kept waiting."""


@dataclass
class _Turn:
    """An arc, the operator that it leads into, and the queues that this one feeds."""

    arc: str
    stage: Stage
    queue: ArcQueue
    feeds: tuple[ArcQueue, ...]
    gate: Gate | None = None
    before_us: float = 0.0
    expected_us: float = 0.0

    def under(self, gate: Gate | None) -> None:
        """Put a drop on the arc, or take it away; work per tuple up to the drop, and in all."""
        keep, judging_us = (1.0, 0.0) if gate is None else (gate.keep, gate.judging_us)
        self.gate = gate
        self.before_us = self.stage.read_us + judging_us
        self.expected_us = self.before_us + keep * self.stage.cost_us


class RoundRobin:
    """Runs ticks; a batch is what happens between two plans."""

    def __init__(self, machine: Machine, controller: Controller) -> None:
        self.machine = machine
        self.controller = controller
        interval_ms = controller.settings.trigger_ms
        self._ticks = max(1, math.ceil(interval_ms / LONGEST_SLICE_MS - _SLACK_MS))
        self._tick_ms = interval_ms / self._ticks
        self._queues: dict[str, ArcQueue] = {arc: ArcQueue(whole=machine.chance.noise) for arc in machine.graph.arcs}
        self._turns = [
            _Turn(arc, stage, self._queues[arc], tuple(self._queues[a] for a in machine.graph.arcs_out_of(stage.name)))
            for stage in machine.stages
            for arc in stage.arcs
        ]
        self._turn = 0
        self._tick = 0
        self._debt_us = 0.0
        self._batch = 0
        self._arriving: Trains
        self._rows = {source.name: 0 for source in machine.graph.sources}

    def queues(self) -> dict[str, float]:
        waiting = {arc: queue.rows for arc, queue in self._queues.items()}
        arrivals = self.machine.arrivals
        for name, rows in arrivals.rows(self._tick_ms * max(0, self._tick - 1), arrivals.end_ms).items():
            waiting[name] += rows
        return {arc: rows for arc, rows in waiting.items() if rows > 0}

    def step(self) -> SimBatch | None:
        machine, account, settings = self.machine, self.machine.account, self.controller.settings
        started_ms = settings.trigger_ms * self._batch
        if started_ms >= machine.arrivals.end_ms - _SLACK_MS:
            return None
        lengths = {arc: queue.rows for arc, queue in self._queues.items() if queue.rows > 0}
        plan = self.controller.decide(self._rows, started_ms, lengths)
        gates = machine.gates(plan)
        for turn in self._turns:
            turn.under(gates.get(turn.arc))
        seen, taken, gave = account.mark(), dict(account.taken), dict(account.gave)
        before = account.by_value()
        shed = {arc: float(account.shed[arc].sum()) for arc in plan.drops}
        slowness = machine.chance.slowness(started_ms)
        spent_us = self._run_ticks(slowness)
        self._rows = machine.arrivals.rows(started_ms, started_ms + settings.trigger_ms)
        taken = {arc: rows - taken[arc] for arc, rows in account.taken.items()}
        gave = {name: rows - gave[name] for name, rows in account.gave.items()}
        arcs = {
            arc: (round(taken[arc] + float(account.shed[arc].sum()) - shed[arc]), round(taken[arc]))
            for arc in plan.drops
        }
        measured = replace(machine.truth, selectivity=self._selectivities(taken, gave))
        values = value_samples(machine.graph, machine.cells, *account.by_value(before))
        self.controller.record(self._sample(started_ms, plan, arcs, measured, slowness, values))
        self._batch += 1
        load_us = Problem(machine.graph, machine.truth, self._rows, settings.budget_us).load_us
        return SimBatch(
            self._batch - 1,
            started_ms,
            settings.trigger_ms,
            spent_us / 1000,
            self._rows,
            load_us / (1000 * settings.trigger_ms),
            plan,
            {arc: kept / count for arc, (count, kept) in arcs.items() if count},
            {output.name: taken[machine.graph.arcs_into(output.name)[0]] for output in machine.graph.outputs},
            latencies(account, seen),
            {arc: queue.rows for arc, queue in self._queues.items() if queue.rows > 0},
        )

    def _selectivities(self, taken: Mapping[str, float], gave: Mapping[str, float]) -> dict[str, float]:
        """Tuples out per tuple in of each operator, as counted; the true ones where nothing was."""
        entered = {name: sum(taken[arc] for arc in self.machine.graph.arcs_into(name)) for name in gave}
        counted = {name: gave[name] / rows for name, rows in entered.items() if rows > 0}
        return {**self.machine.truth.selectivity, **counted}

    def _sample(
        self,
        started_ms: float,
        plan: Plan,
        arcs: Mapping[str, tuple[int, int]],
        measured: Profile,
        slowness: float,
        values: Mapping[str, ValueSample],
    ) -> BatchSample:
        """What the tuples that arrived in this interval cost and give, by the operators' own statistics.

        The time spent would mislead the loop: it went into what waited, and never exceeds the interval. Each operator
        knows its cost per tuple and its selectivity, and from these follows what the interval's tuples amount to.
        """
        graph, settings = self.machine.graph, self.controller.settings
        problem = Problem(graph, measured, self._rows, settings.budget_us)
        kept = kept_flows(problem, plan)
        outputs = {
            output.name: OutputSample(round(float(kept[graph.arcs_into(output.name)[0]].sum())))
            for output in graph.outputs
        }
        took_ms = slowness * planned_load_us(problem, plan) / 1000
        return BatchSample(
            self._batch,
            started_ms,
            settings.trigger_ms,
            took_ms,
            self._rows,
            arcs=arcs,
            outputs=outputs,
            values=values,
            plan_row=plan.row,
        )

    def _run_ticks(self, slowness: float) -> float:
        """The ticks of one interval, up to the end; the time spent, fixed work included."""
        fixed_us = 1000 * self.machine.truth.fixed_ms / self._ticks
        free_us = 1000 * self._tick_ms / slowness - fixed_us
        spent_us = 0.0
        for _ in range(self._ticks):
            if self._tick * self._tick_ms < self.machine.arrivals.end_ms - _SLACK_MS:
                self._arrive()
                spent_us += slowness * (fixed_us + self._run_tick(free_us))
                self._tick += 1
        return spent_us

    def _arrive(self) -> None:
        """Queue what arrived during the last tick. (The trains of a whole interval, one per tick, are made at once.)"""
        if self._tick == 0:
            return
        train = (self._tick - 1) % self._ticks
        if train == 0:
            began_ms = self._tick_ms * (self._tick - 1)
            self._arriving = self.machine.arrivals.between(began_ms, began_ms + self._tick_ms * self._ticks)
        for name, counts in self._arriving.counts.items():
            trains = counts[train : train + 1]
            self._queues[name].put(self._arriving.times_ms[train : train + 1], trains, rows_in(trains))

    def _run_tick(self, free_us: float) -> float:
        """Let arcs take turns until `free_us` is spent, what is owed from the last tick included; what they spent."""
        left_us = free_us - self._debt_us
        quantum_us = _QUANTUM_SHARE * free_us
        turns, place, idle = self._turns, self._turn, 0
        while left_us > _SLACK_US and idle < len(turns):
            turn = turns[place]
            place = place + 1 if place + 1 < len(turns) else 0
            if turn.queue.rows > 0:
                allowed_us = quantum_us if quantum_us < left_us else left_us
                left_us -= self._serve(turn, allowed_us, 1 - left_us / free_us)
                idle = 0
            else:
                idle += 1
        self._turn = place
        spent_us = free_us - self._debt_us - left_us
        self._debt_us = max(0.0, -left_us)
        return spent_us

    def _serve(self, turn: _Turn, allowed_us: float, into_tick: float) -> float:
        """One turn of an arc, a share of the tick being over: the operator behind it takes what it has time for.

        Gives the time that it took.
        """
        stage, account, chance = turn.stage, self.machine.account, self.machine.chance
        times_ms, trains = turn.queue.take(allowed_us / turn.expected_us if turn.expected_us > 0 else math.inf)
        rows = rows_in(trains)
        spent_us = turn.before_us * rows
        if turn.gate is not None:
            kept = chance.passing(trains, turn.gate.keeps)
            account.drop(turn.arc, trains, kept)
            trains, rows = kept, rows_in(kept)
        spent_us += stage.cost_us * rows
        account.take(turn.arc, rows, trains)
        if stage.is_output:
            account.deliver(stage.name, self._tick_ms * (self._tick + into_tick) - times_ms, trains)
            return spent_us
        if stage.passes is not None:
            trains = chance.passing(trains, stage.passes)
            rows = rows_in(trains)
        account.gave[stage.name] += rows
        for queue in turn.feeds:
            queue.put(times_ms, trains, rows)
        return spent_us
