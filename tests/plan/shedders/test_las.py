"""The shedder las: what it plans from what it has observed, and the same loop over it as over every other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jettison.errors import StartError
from jettison.experiments.las.mentions import mentions
from jettison.network import Network, QoS
from jettison.network.graph import Graph
from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.fair.shedder import Fair
from jettison.plan.shedders.las import Las
from jettison.sim.timed.batches import BatchesResult, simulate_batches
from jettison.sim.timed.queue import TimedStream
from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow
from jettison.statistics.sketches.cost_learner import CostLearning
from jettison.statistics.sketches.cost_sketch import CostSketch, sketch_size
from jettison.statistics.sketches.key_hash import key_hash
from jettison.statistics.timed import TimedSample

pytestmark = pytest.mark.core

_ARC = "tweets>score"
LEARNING = CostLearning(window=100)


def _graph(qos: QoS | None = None) -> Graph:
    net = Network("mentions")
    tweets = net.source("tweets", "id long, entity long", id=["id"])
    tweets.map("math:sqrt", key="entity", schema="score double", name="score").output("scored", qos=qos)
    return net.graph


def _observed(las: Las, batches: int = 2, estimated_us: float = 0.0) -> Las:
    """Half of the tuples take 100 us, half 900 us."""
    keys = key_hash([np.arange(100)])
    durations = np.where(np.arange(100) % 2 == 0, 100.0, 900.0)
    sketch = CostSketch.empty(*sketch_size(0.01, 0.02)).updated(keys, durations)
    for number in range(batches):
        timed = TimedSample(sketch, lanes=2, estimated_us=estimated_us)
        las.observe(BatchSample(number, 0.0, 1000.0, 900.0, {"tweets": 100}, timed={"score": timed}))
    return las


def _problem(graph: Graph, budget_us: float) -> Problem:
    return Problem(graph, Profile({"score": 250.0}, {}), {"tweets": 1000}, budget_us, now_ms=5000.0)


def _drop(las: Las, problem: Problem) -> CostBound | None:
    plan = las.plan(problem)
    assert isinstance(plan, Plan)
    drop = plan.drops.get(_ARC)
    assert drop is None or isinstance(drop, CostBound)
    return drop


def test_without_a_goal_and_within_the_budget_nothing_is_dropped() -> None:
    assert _drop(_observed(Las()), _problem(_graph(), 300_000.0)) is None


def test_before_anything_is_measured_the_road_map_plans() -> None:
    plan = Las(tau="1 second").plan(_problem(_graph(), 100_000.0))
    assert isinstance(plan, Plan)
    assert list(plan.drops) == ["tweets"]


def test_the_goal_of_an_output_stands_in_the_drop_with_all_that_is_planned() -> None:
    las = _observed(Las(learning=CostLearning(window=1000)), estimated_us=40_000.0)
    drop = _drop(las, _problem(_graph(QoS(latency_goal="2 seconds")), 300_000.0))
    assert drop is not None
    assert isinstance(drop.rule, LatencyRule)
    assert (drop.rule.tau_us, drop.rule.lanes, drop.rule.start_us) == (2e6, 2, 5e6)
    assert (drop.sketch, drop.mean_us) == (None, 500.0)  # no pair yet: the mean
    assert drop.rule.scale == pytest.approx(1.25**0.75)  # measured over estimated is 1.25; half of the way each time
    assert las.costs["score"].skew_us == pytest.approx(50_000.0 - 1.25**0.5 * 40_000.0)  # what is left of 10 ms


def test_a_stable_pair_is_published_and_named_by_the_plan() -> None:
    las = _observed(Las(tau="2 seconds", learning=LEARNING))
    drop = _drop(las, _problem(_graph(), 300_000.0))
    assert drop is not None
    assert drop.sketch is not None
    pair = las.pair_named(drop.sketch)
    assert pair is not None
    assert pair.table.costs_us(key_hash([np.arange(2)])).tolist() == [100.0, 900.0]
    again = Las(tau="2 seconds")
    again.restore("score", pair)
    assert again.pair_named(drop.sketch) == pair


def test_worth_per_cost_drops_the_dear_ones_down_to_the_budget() -> None:
    las = _observed(Las(order="worth", learning=LEARNING))
    problem = _problem(_graph(), 50_000.0)  # a fifth of the work
    drop = _drop(las, problem)
    assert drop is not None
    assert isinstance(drop.rule, WorthRule)
    assert drop.work_share == pytest.approx(0.2)
    # all that take 100 us, and 1 in 9 of the others; a few share their cells with one of the other kind
    assert drop.keep == pytest.approx(0.5 + 0.5 / 9, abs=0.04)
    assert drop.kept(np.array([100.0, 900.0]), np.zeros(2), np.full(2, 0.5)).tolist() == [True, False]


def test_what_dropped_keys_cost_is_remembered_when_a_new_pair_is_published() -> None:
    """By worth per cost, dear keys are dropped, so nobody times them: their costs are those of the pair before."""
    las = _observed(Las(order="worth", learning=LEARNING))
    cheap, dear = key_hash([np.arange(0, 100, 2)]), key_hash([np.arange(1, 100, 2)])
    executed = CostSketch.empty(*sketch_size(0.01, 0.02)).updated(cheap, np.full(50, 120.0))
    for number in range(2, 12):
        pair = las.known("score").pair
        assert pair is not None
        came = CostClasses.of(pair.table.costs_us(key_hash([np.arange(100)])))
        estimated_us = float(pair.table.costs_us(cheap).sum())
        timed = TimedSample(executed, lanes=2, estimated_us=estimated_us, arrived=came)
        las.observe(BatchSample(number, 0.0, 1000.0, 900.0, {"tweets": 100}, timed={"score": timed}))
    known = las.known("score")
    assert known.published >= 3
    assert known.pair is not None
    costs_us = known.pair.table.costs_us(np.concatenate([cheap, dear]))
    assert np.mean(costs_us[:50] == 120.0) > 0.9  # a few share their cells with dear keys
    assert np.mean(costs_us[50:] == 900.0) > 0.8
    assert known.mean_us == pytest.approx(510.0, rel=0.15)  # of all that came, not of those that were executed
    drop = _drop(las, _problem(_graph(), 50_000.0))
    assert drop is not None
    assert drop.kept(np.array([120.0, 900.0]), np.zeros(2), np.full(2, 0.5)).tolist() == [True, False]
    assert drop.keep == pytest.approx(0.55, abs=0.06)


def test_before_a_pair_a_mean_that_moves_does_not_let_everything_pass() -> None:
    """A machine that becomes faster: tuples, all believed to cost the mean, fell in a class that nobody had counted."""
    las = Las(order="worth", learning=CostLearning(window=10**6))
    keys = key_hash([np.arange(100)])
    for number, cost_us in enumerate((4000.0, 500.0, 100.0)):
        drop = _drop(las, _problem(_graph(), 50_000.0)) if number else None
        came = None if drop is None else CostClasses.of(np.full(100, drop.mean_us))
        sketch = CostSketch.empty(*sketch_size(0.01, 0.02)).updated(keys, np.full(100, cost_us))
        timed = TimedSample(sketch, lanes=2, estimated_us=0.0 if drop is None else 100 * drop.mean_us, arrived=came)
        las.observe(BatchSample(number, 0.0, 1000.0, 900.0, {"tweets": 100}, timed={"score": timed}))
        drop = _drop(las, _problem(_graph(), 50_000.0))
        assert drop is not None
        assert drop.sketch is None
        drawn = np.arange(100) / 100
        assert drop.kept(np.full(100, drop.mean_us), np.zeros(100), drawn).mean() == pytest.approx(drop.keep, abs=0.01)


@pytest.mark.parametrize("factor", [0.3, 1.0, 1.1, 2.0])
def test_classes_move_when_everything_costs_more_or_less(factor: float) -> None:
    costs_us = np.random.default_rng(1).lognormal(6.0, 1.5, 20_000)
    moved, anew = CostClasses.of(costs_us).scaled(factor), CostClasses.of(factor * costs_us)
    assert moved.mean_us == pytest.approx(anew.mean_us)
    assert np.abs(np.cumsum(moved.rows) - np.cumsum(anew.rows)).max() < 0.02 * len(costs_us)


def test_the_straw_man_never_learns() -> None:
    drop = _drop(_observed(Las(tau="2 seconds", learning=None)), _problem(_graph(), 300_000.0))
    assert drop is not None
    assert (drop.sketch, drop.mean_us) == (None, 500.0)


def test_wrong_settings_are_named() -> None:
    for wrong, message in (
        ({"check": "max"}, "check is 'max'"),
        ({"order": "cost"}, "order is 'cost'"),
        ({"least_keep": 2}, "least_keep is 2"),
        ({"learning": False}, "learning is False"),
        ({"least_keep": 0.1}, "least_keep is 0.1, and order is 'arrival'"),
        ({"rest": 3}, "rest is 3"),
        ({"tua": "2 seconds"}, "did you mean 'tau'"),
    ):
        with pytest.raises(StartError, match=message):
            Las(**wrong)  # type: ignore[arg-type]


def _run(las: Las, tuples: int = 15_000) -> BatchesResult:
    """Two lanes, twice what they can do, batches of a second."""
    stream = mentions(tuples, 1.0)
    spaced = np.arange(tuples) * float(stream.duration_us.mean()) / 4
    return simulate_batches(_graph(), replace(stream, arrived_us=spaced), las, trigger_ms=1000.0, lanes=2)


def test_in_micro_batches_the_goal_is_held_and_worth_per_cost_keeps_more() -> None:
    goal, learning = "2 seconds", CostLearning(window=512, tolerance=0.2)
    seeds = _run(Las(goal, check="p99", learning=learning))
    worth = _run(Las(goal, order="worth", learning=learning))
    assert np.quantile(seeds.age_us, 0.99) <= 1.3 * 2e6
    assert np.quantile(worth.age_us, 0.99) <= 1.3 * 2e6
    assert worth.kept.mean() >= 1.3 * seeds.kept.mean()
    assert 0.35 <= seeds.kept.mean() <= 0.55
    again = _run(Las(goal, check="p99", learning=learning))
    assert np.array_equal(again.kept, seeds.kept)  # only estimates and planned times decide


@pytest.mark.parametrize("order", ["worth", "arrival"])
def test_costs_stay_right_however_often_a_pair_is_published(order: str) -> None:
    """200 keys, one in seven of them forty times as dear, at twice what can be done, for 40 batches."""
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 200, 40_000)
    duration_us = np.where(keys % 7 == 3, 12_000.0, 300.0)
    spaced = np.arange(len(keys)) * duration_us.mean() / 2
    las = Las(order=order, learning=CostLearning(window=512, tolerance=0.2))
    simulate_batches(_graph(), TimedStream(keys, spaced, duration_us), las, trigger_ms=1000.0)
    known = las.known("score")
    assert known.published >= 5
    assert known.mean_us == pytest.approx(duration_us.mean(), rel=0.1)
    assert known.pair is not None
    dear = known.pair.table.costs_us(key_hash([np.arange(3, 200, 7)]))
    assert np.median(dear) == pytest.approx(12_000.0, rel=0.05)


def test_tuple_by_tuple_needs_one_source_and_one_map() -> None:
    net = Network("plain")
    net.source("s", "x int").output("o")
    stream = TimedStream(np.zeros(1, np.int64), np.zeros(1), np.ones(1))
    with pytest.raises(StartError, match="one source and one map"):
        simulate_batches(net.graph, stream, Las(), trigger_ms=1000.0)


def test_what_plans_the_rest_hears_of_the_sic_of_outputs() -> None:
    heard: list[SicWindow] = []

    class Rest(Fair):
        def follow_sic(self, window: SicWindow) -> None:
            heard.append(window)

    net = Network("rest")
    net.source("s", "x int").output("o")
    window = SicWindow(net.graph, 10_000.0)
    Las(rest=Rest()).follow_sic(window)
    assert heard == [window]
    Las().follow_sic(window)  # the road map does not ask for it
