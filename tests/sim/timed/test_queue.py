"""One queue, one operator: waiting as computed by hand, learning, synchronisation."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.experiments.las.mentions import DURATIONS, ENTITIES, mentions
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.sim.timed.queue import FullKnowledge, LoadAware, StrawMan, TimedStream, simulate_queue
from jettison.statistics.sketches.cost_learner import CostLearner
from jettison.statistics.sketches.cost_sketch import CostSketch

pytestmark = pytest.mark.core


def test_waiting_is_that_of_a_queue() -> None:
    stream = TimedStream(np.arange(4), np.array([0.0, 1.0, 2.0, 50.0]), np.array([10.0, 10.0, 10.0, 5.0]))
    found = simulate_queue(stream, LatencyRule(1e9), FullKnowledge())
    assert found.waited_us.tolist() == [0.0, 9.0, 18.0, 0.0]
    assert found.completion_us.tolist() == [10.0, 19.0, 28.0, 5.0]


def test_full_knowledge_holds_the_average_and_the_straw_man_does_not() -> None:
    stream = mentions(60_000, 0.97)
    rule = LatencyRule(1e6)
    full = simulate_queue(stream, rule, FullKnowledge())
    running = np.cumsum(full.waited_us[full.kept]) / np.arange(1, full.kept.sum() + 1)
    assert running.max() <= 1e6 * (1 + 1e-9)
    straw = simulate_queue(stream, rule, StrawMan(float(stream.duration_us.mean())))
    assert straw.drop_share == 0.0
    assert straw.waited_us.mean() > 5e6


def test_costs_are_learned_and_totals_synchronised() -> None:
    keys = np.tile(np.array([0, 1]), 2000)
    stream = TimedStream(keys, np.arange(4000) * 500.0, np.where(keys == 0, 100.0, 1100.0))
    learner = CostLearner(CostSketch.empty(4, 50), window=500, tolerance=0.05)
    las = LoadAware(learner, mean_us=10.0, distinct=2, batch=100)
    found = simulate_queue(stream, LatencyRule(20_000.0), las)
    assert len(las.published) >= 3
    assert las.costs_us(np.array([0, 1]), np.zeros(2)) == pytest.approx([100.0, 1100.0])
    assert max(found.skew_us) > 5000  # the first guess, a mean of 10 us, was far too low
    assert abs(found.skew_us[-1]) < 500
    full = simulate_queue(stream, LatencyRule(20_000.0), FullKnowledge())
    assert found.drop_share == pytest.approx(full.drop_share, abs=0.02)


def test_the_stream_is_like_the_seeds() -> None:
    stream = mentions(100_000, 0.97)
    assert len(np.unique(stream.duration_us)) == DURATIONS == 110
    assert (stream.duration_us.min(), stream.duration_us.max()) == (1000.0, pytest.approx(152_000.0))
    assert stream.distinct <= ENTITIES == 35_000
    counts = np.sort(np.bincount(stream.keys))[::-1]
    assert counts[:100].sum() > 0.3 * 100_000  # a heavy tail
    assert (counts > 0).sum() > 10_000
