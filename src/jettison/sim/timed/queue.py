"""One queue, one operator (LAS 2): tuples arrive, the shedder keeps or drops each, the operator takes one at a time.

The shedder learns as in the seed: the operator times what it executes into a sketch; after every window of N tuples the
state machine decides whether to publish it. A published pair is used from that moment on.

Synchronisation brings estimated and true work together. The seed does it when a pair is published; here it is done
after every batch too, as in micro-batches (`plan.shedders.las`): the operator says when it finished its last tuple, the
shedder adds its estimates of those that still wait, and scales estimates by what the batch took over what it was
estimated to take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.plan.drops.latency_rule import LatencyRule
from jettison.statistics.sketches.cost_learner import CostLearner
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash

Vector = NDArray[np.float64]
BATCH = 256
"""After so many executed tuples estimated and true work are brought together."""


@dataclass(frozen=True)
class TimedStream:
    """Tuples in order of arrival: their keys (numbers from 0 on), when they arrive, and what each truly takes."""

    keys: NDArray[np.int64]
    arrived_us: Vector
    duration_us: Vector

    @property
    def distinct(self) -> int:
        return int(self.keys.max()) + 1


class Estimator(Protocol):
    """Who says what tuples cost. `batch` is how many executed tuples it wants to hear of at once; 0: of none."""

    batch: int

    def costs_us(self, keys: NDArray[np.int64], true_us: Vector) -> Vector:
        """The costs of these tuples, as estimated now."""
        ...

    def learn(self, keys: NDArray[np.int64], duration_us: Vector) -> bool:
        """Take in tuples that were executed; whether totals are to be synchronised."""
        ...


@dataclass
class FullKnowledge:
    """Knows what every tuple truly takes."""

    batch: int = 0

    def costs_us(self, keys: NDArray[np.int64], true_us: Vector) -> Vector:
        return true_us

    def learn(self, keys: NDArray[np.int64], duration_us: Vector) -> bool:
        return False


@dataclass
class StrawMan:
    """Believes that every tuple takes the mean. It is never synchronised, as in the seed, or after every `batch` as
    LAS is here: then estimates are scaled by what the last batch took."""

    mean_us: float
    batch: int = 0
    scale: float = 1.0

    def costs_us(self, keys: NDArray[np.int64], true_us: Vector) -> Vector:
        return np.full(len(keys), self.scale * self.mean_us)

    def learn(self, keys: NDArray[np.int64], duration_us: Vector) -> bool:
        self.scale = float(duration_us.mean()) / self.mean_us
        return True


class LoadAware:
    """Learns costs by key in a sketch. Before the first pair is published, every tuple costs the mean.

    `mean_us` is what is believed of it before anything was measured. With `every_batch=False` totals are synchronised
    only when a pair is published, and estimates are never scaled.
    """

    def __init__(
        self, learner: CostLearner, mean_us: float, distinct: int, *, batch: int = BATCH, every_batch: bool = True
    ) -> None:
        self.batch = batch
        self.learner = learner
        self.published: list[CostPair] = []
        self._hashes = key_hash([np.arange(distinct)])
        self._by_key_us = np.full(distinct, mean_us)
        self._scale, self._every_batch = 1.0, every_batch

    def costs_us(self, keys: NDArray[np.int64], true_us: Vector) -> Vector:
        found: Vector = self._scale * self._by_key_us[keys]
        return found

    def learn(self, keys: NDArray[np.int64], duration_us: Vector) -> bool:
        empty = self.learner.sketch.functions
        sample = CostSketch.empty(empty.rows, empty.columns, empty.seed).updated(self._hashes[keys], duration_us)
        self.learner, published = self.learner.after(sample)
        if published is not None:
            self.published.append(published)
            self._by_key_us = published.table.costs_us(self._hashes)
        if self._every_batch:
            self._scale = float(duration_us.sum() / self._by_key_us[keys].sum())
        return self._every_batch or published is not None


@dataclass(frozen=True)
class QueueResult:
    """What became of every tuple: whether it was `kept`, and how long it truly waited (NaN where it was dropped).

    `synchronised` are the tuples at whose arrival totals were, `skew_us` what estimated work was off by then.
    """

    stream: TimedStream
    kept: NDArray[np.bool_]
    waited_us: Vector
    synchronised: tuple[int, ...]
    skew_us: tuple[float, ...]

    @property
    def drop_share(self) -> float:
        return 1.0 - float(self.kept.mean())

    @property
    def completion_us(self) -> Vector:
        """Waiting and execution of the tuples that were kept, in order."""
        found: Vector = (self.waited_us + self.stream.duration_us)[self.kept]
        return found


def simulate_queue(stream: TimedStream, rule: LatencyRule, estimator: Estimator) -> QueueResult:
    """Run a stream through shedder, queue and operator; the same arguments give the same result."""
    gate = rule.gate()
    count = len(stream.keys)
    arrived, true = stream.arrived_us.tolist(), stream.duration_us.tolist()
    kept, waited = bytearray(count), [math.nan] * count
    done: list[int] = []  # kept tuples in order: the operator takes them one after the other
    estimates: list[float] = []
    free_us, event_us, learned = -math.inf, math.inf, 0
    synchronised, skew_us, first = [], [], 0
    while first < count:
        # Estimates stay as they are until the operator has executed a batch: `event_us`, known once it is let in.
        block = slice(first, min(count, first + 65_536))
        costs = estimator.costs_us(stream.keys[block], stream.duration_us[block]).tolist()
        for index, cost_us in enumerate(costs, start=first):
            now_us = arrived[index]
            if now_us >= event_us:
                break
            if not gate.admits(now_us, cost_us):
                continue
            kept[index] = 1
            wait_us = free_us - now_us if free_us > now_us else 0.0
            waited[index] = wait_us
            free_us = now_us + wait_us + true[index]
            done.append(index)
            estimates.append(cost_us)
            if estimator.batch and len(done) == learned + estimator.batch:
                event_us = free_us
        else:
            first = block.stop
            continue
        first = index
        chosen = np.array(done[learned : learned + estimator.batch])
        learned += estimator.batch
        changed = estimator.learn(stream.keys[chosen], stream.duration_us[chosen])
        if changed:
            rest_us = math.fsum(estimates[learned:])
            skew_us.append(event_us + rest_us - gate.free_us)
            gate.free_us = event_us + rest_us
            synchronised.append(index)
        event_us = math.inf
        if len(done) >= learned + estimator.batch:  # it is under way already
            last = done[learned + estimator.batch - 1]
            event_us = arrived[last] + waited[last] + true[last]
    flags = np.frombuffer(bytes(kept), np.uint8).astype(bool)
    return QueueResult(stream, flags, np.array(waited), tuple(synchronised), tuple(skew_us))
