"""Micro-batches of tuples that cost different amounts: the control loop with its shedder, tuple by tuple.

A network of one source, one timed operator and one output. What has arrived when a trigger fires is one batch; its
tuples are judged by the drop that the loop's plan puts in front of the operator, with the sketch that it names. Those
that are kept are spread over lanes, which work side by side, and take what they truly take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.control.loop import Controller, Settings
from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.network.operators import Map
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.shedders.las import Las
from jettison.sim.timed.queue import TimedStream, Vector
from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash
from jettison.statistics.timed import TimedSample, Waited

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class BatchesResult:
    """What became of every tuple that was in a batch: whether it was `kept`, and when it was done (NaN: dropped)."""

    stream: TimedStream
    kept: Flags
    done_us: Vector
    durations_ms: tuple[float, ...]
    skews: tuple[float, ...]
    """Estimated over measured work, batch by batch, where there was an estimate."""

    @property
    def age_us(self) -> Vector:
        """How old the tuples were that were kept, when they were done."""
        found: Vector = (self.done_us - self.stream.arrived_us)[self.kept]
        return found


def simulate_batches(
    graph: Graph, stream: TimedStream, shedder: Las, *, trigger_ms: float, lanes: int = 1, headroom: float = 0.9
) -> BatchesResult:
    """Run a stream through a network's timed operator; the controller begins with the operator's true mean cost."""
    timed = [each for each in graph.operators if isinstance(each, Map)]
    if len(timed) != 1 or len(graph.sources) != 1:
        raise StartError(f"network {graph.name!r}: a simulation tuple by tuple needs one source and one map.")
    operator, source = timed[0], graph.sources[0].name
    (arc,) = graph.arcs_into(operator.name)
    mean_us = float(stream.duration_us.mean()) / lanes
    controller = Controller(
        graph, Settings(trigger_ms, headroom, shedder=shedder), Profile({operator.name: mean_us}, {})
    )
    hashes, drawn = key_hash([stream.keys]), _drawn(len(stream.keys))
    kept, done_us = np.zeros(len(stream.keys), bool), np.full(len(stream.keys), math.nan)
    durations_ms, skews = [], []
    first, started_ms, before_ms, number = 0, trigger_ms, 0.0, 0
    while first < len(stream.keys):
        last = int(np.searchsorted(stream.arrived_us, 1000 * started_ms, side="left"))
        if last == first:
            started_ms += trigger_ms
            continue
        block = np.arange(first, last)
        plan = controller.decide({source: len(block)}, started_ms)
        drop = plan.drops.get(arc)
        bound = drop if isinstance(drop, CostBound) else None
        costs_us = _estimates(shedder, bound, hashes[block])
        passing = _judged(bound, costs_us, stream.arrived_us[block], drawn[block], lanes)
        passing &= drawn[block] < plan.keep(source)
        ends_us = _executed(stream.duration_us[block], passing, lanes, 1000 * started_ms)
        kept[block], done_us[block] = passing, ends_us
        duration_ms = float(np.nanmax(ends_us, initial=1000 * started_ms)) / 1000 - started_ms
        sample = _timed(shedder, operator.name, hashes[block], stream, block, passing, costs_us, ends_us, lanes)
        if bound is not None and sample.sketch.work_us > 0:
            skews.append(sample.estimated_us / sample.sketch.work_us)
        output = {each.name: OutputSample(int(passing.sum())) for each in graph.outputs}
        controller.record(
            BatchSample(
                number,
                started_ms,
                started_ms - before_ms,
                duration_ms,
                {source: len(block)},
                arcs={arc: (len(block), int(passing.sum()))} if bound is not None else {},
                outputs=output,
                timed={operator.name: sample},
            )
        )
        durations_ms.append(duration_ms)
        before_ms, first, number = started_ms, last, number + 1
        due_ms = trigger_ms * (math.floor(started_ms / trigger_ms + 1e-6) + 1)
        started_ms = max(due_ms, started_ms + duration_ms)
    return BatchesResult(stream, kept, done_us, tuple(durations_ms), tuple(skews))


def _drawn(count: int) -> Vector:
    """A number from 0 to 1 for every tuple, by a hash of its number."""
    return key_hash([np.arange(count)]).astype(np.float64) / 2.0**64


def _estimates(shedder: Las, bound: CostBound | None, keys: NDArray[np.uint64]) -> Vector:
    """What tuples cost by the sketch that the plan names; the mean without one."""
    pair = None if bound is None or bound.sketch is None else shedder.pair_named(bound.sketch)
    mean_us = 0.0 if bound is None else bound.mean_us
    return np.full(len(keys), mean_us) if pair is None else pair.table.costs_us(keys)


def _judged(bound: CostBound | None, costs_us: Vector, arrived_us: Vector, drawn: Vector, lanes: int) -> Flags:
    """Which tuples pass the drop: lane by lane where order matters."""
    if bound is None:
        return np.ones(len(costs_us), bool)
    if not isinstance(bound.rule, LatencyRule):
        return bound.kept(costs_us, arrived_us, drawn)
    passing = np.zeros(len(costs_us), bool)
    for lane in range(lanes):
        passing[lane::lanes] = bound.kept(costs_us[lane::lanes], arrived_us[lane::lanes], drawn[lane::lanes])
    return passing


def _executed(duration_us: Vector, passing: Flags, lanes: int, start_us: float) -> Vector:
    """When each tuple is done: those of a lane one after the other."""
    ends_us = np.full(len(duration_us), math.nan)
    for lane in range(lanes):
        at = np.arange(lane, len(duration_us), lanes)
        at = at[passing[at]]
        ends_us[at] = start_us + np.cumsum(duration_us[at])
    return ends_us


def _timed(
    shedder: Las,
    name: str,
    keys: NDArray[np.uint64],
    stream: TimedStream,
    block: NDArray[np.int64],
    passing: Flags,
    costs_us: Vector,
    ends_us: Vector,
    lanes: int,
) -> TimedSample:
    """What the batch's tasks measured of the operator."""
    functions = shedder.known(name).learner.sketch.functions
    empty = CostSketch.empty(functions.rows, functions.columns, functions.seed)
    duration_us = stream.duration_us[block][passing]
    waited_us = ends_us[passing] - duration_us - stream.arrived_us[block][passing]
    late = float((waited_us > (shedder.tau_us or math.inf)).sum())
    return TimedSample(
        empty.updated(keys[passing], duration_us),
        lanes,
        float(costs_us[passing].sum()),
        Waited(float(passing.sum()), float(waited_us.sum()), late),
        CostClasses.of(costs_us) if costs_us.any() else None,
    )
