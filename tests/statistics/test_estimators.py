"""Estimators: each incremental result against the formula over all samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.network import Network
from jettison.statistics.costs import CostModel
from jettison.statistics.estimators import Smoothed, TupleCost
from jettison.statistics.latency import LatencyHistogram
from jettison.statistics.least_squares import LeastSquares
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile
from jettison.statistics.samples import LATENCY_QUANTILES

pytestmark = pytest.mark.core

positive = st.floats(0.1, 1e6)


def test_dissp_golden_number() -> None:
    cost = TupleCost()
    cost.update(elapsed_ms=300, tuples=5000)
    assert cost.get() == pytest.approx(0.06)
    assert int(cost.tuples_in(250)) == 4166
    assert cost.excess(waiting=5000, interval_ms=250) == pytest.approx(5000 - 250 / 0.06)
    assert cost.excess(waiting=4000, interval_ms=250) == 0.0


@given(st.lists(st.tuples(positive, st.integers(1, 10**6)), min_size=1, max_size=60))
def test_tuple_cost_is_the_mean_of_the_last_forty_samples(samples: list[tuple[float, int]]) -> None:
    cost = TupleCost(window=40)
    for count, (elapsed, tuples) in enumerate(samples, start=1):
        cost.update(elapsed, tuples)
        last = samples[max(0, count - 40) : count]
        assert cost.get() == pytest.approx(sum(e for e, _ in last) / sum(n for _, n in last))


@given(st.lists(positive, min_size=1, max_size=30), st.floats(0.05, 1))
def test_smoothed_equals_the_weighted_sum(values: list[float], weight: float) -> None:
    smoothed = Smoothed(weight)
    for value in values:
        smoothed.update(value)
    expected = values[0]
    for value in values[1:]:
        expected = (1 - weight) * expected + weight * value
    assert smoothed.get() == pytest.approx(expected)


def test_least_squares_without_forgetting_equals_the_batch_solution() -> None:
    draw = np.random.default_rng(1)
    features = draw.uniform(1, 10, (60, 3))
    truth = np.array([2.0, 0.5, 1.5])
    targets = features @ truth + draw.normal(0, 0.1, 60)
    fit = LeastSquares([1.0, 1.0, 1.0], uncertainty=100.0, forgetting=1.0)
    for count in range(60):
        fit.update(features[count], float(targets[count]), noise=0.1)
    batch = np.linalg.lstsq(features, targets, rcond=None)[0]
    assert fit.get() == pytest.approx(batch, abs=0.01)


def test_least_squares_follows_a_change_and_never_goes_negative() -> None:
    fit = LeastSquares([1.0, 1.0])
    draw = np.random.default_rng(2)
    for step in range(200):
        fixed, rows = 100.0, float(draw.uniform(100, 900))
        slope = 1.0 if step < 100 else 2.0
        fit.update([fixed, rows], fixed * 0.0 + rows * slope, noise=10.0)
        assert min(fit.get()) >= 0.0
    assert fit.get()[1] == pytest.approx(2.0, rel=0.05)


def test_a_direction_that_is_not_excited_does_not_blow_up() -> None:
    fit = LeastSquares([1.0, 1.0])
    for _ in range(2000):
        fit.update([100.0, 0.0], 100.0, noise=10.0)
    fit.update([100.0, 500.0], 900.0, noise=50.0)
    assert fit.get()[1] < 2.0


@given(st.lists(st.floats(1, 1e5), min_size=20, max_size=200))
def test_latency_histogram_against_all_values(values: list[float]) -> None:
    seen = LatencyHistogram()
    quantiles = tuple(float(np.quantile(values, share)) for share in LATENCY_QUANTILES)
    seen.add(len(values), quantiles)
    assert seen.quantile(1.0) == pytest.approx(max(values))
    for share in (0.25, 0.5, 0.75, 0.95):
        found = seen.quantile(share)
        low, high = np.quantile(values, max(0, share - 0.1)), np.quantile(values, min(1, share + 0.1))
        assert found is not None
        # a slot's middle is a sixteenth of its segment off, a bin's 1 %
        assert low * 0.92 - 1 <= found <= high * 1.05 + 1


def test_latency_histogram_weighs_batches_by_rows() -> None:
    seen = LatencyHistogram()
    assert seen.quantile(0.5) is None
    seen.add(990, (10.0,) * 8)
    seen.add(10, (5000.0,) * 8)
    assert seen.quantile(0.5) == pytest.approx(10, rel=0.03)
    assert seen.quantile(0.995) == pytest.approx(5000, rel=0.03)


def test_cost_model_learns_true_costs_from_batch_times() -> None:
    net = Network("n")
    split = net.source("s", "x int").where("x > 0", name="w")
    split.select("x", name="a").output("o1")
    split.where("x > 5", name="b").output("o2")
    started = Profile(dict.fromkeys(("s", "w", "a", "b", "o1", "o2"), 1.0), {"w": 0.5, "b": 0.1}, 100.0, {"s": 0.1})
    truth = {"s": 3.0, "w": 3.0, "a": 2.0, "o1": 2.0, "b": 1.0, "o2": 1.0}
    model = CostModel(net.graph, started)
    draw = np.random.default_rng(3)
    for _ in range(150):
        rows = {"s": float(draw.integers(20_000, 300_000))}
        keeps = {"s": float(draw.uniform(0.2, 1)), "w>a": float(draw.uniform(0, 1))}
        on = flows(net.graph, started, rows, keeps)
        work = sum(truth[o.name] * sum(on[arc] for arc in net.graph.arcs_into(o.name)) for o in net.graph.operators)
        model.update_time(rows, keeps, 150 + 0.0001 * rows["s"] + work / 1000)
    assert model.profile.cost("s") == pytest.approx(3.0, rel=0.1)
    assert model.profile.cost("a") == pytest.approx(2.0, rel=0.1)
    rows, keeps = {"s": 200_000.0}, {"s": 0.5}
    on = flows(net.graph, started, rows, keeps)
    work = sum(truth[o.name] * sum(on[arc] for arc in net.graph.arcs_into(o.name)) for o in net.graph.operators)
    assert model.predict_ms(rows, keeps) == pytest.approx(150 + 20 + work / 1000, rel=0.05)


def test_the_first_batch_with_a_drop_is_compiled_while_it_runs_and_tells_little() -> None:
    net = Network("n")
    net.source("s", "x int").where("x > 0", name="w").output("o")
    moved = []
    for times_before in (0, 3):
        model = CostModel(net.graph, Profile(dict.fromkeys("swo", 1.0), {}, 100.0))
        rows, dropped = {"s": 200_000.0}, {"s": 0.5}
        for keeps in [{}] * 10 + [dropped] * times_before:
            model.update_time(rows, keeps, model.predict_ms(rows, keeps))
        before_ms = model.predict_ms(rows, dropped)
        model.update_time(rows, dropped, 2 * before_ms)
        moved.append(model.predict_ms(rows, dropped) / before_ms - 1)
    first, fourth = moved
    assert 0 < first < 0.5 * fourth


def test_cost_model_learns_selectivities_from_what_outputs_receive() -> None:
    net = Network("n")
    split = net.source("s", "x int").where("x > 0", name="w")
    split.select("x", name="a").output("o1")
    split.where("x > 5", name="b").output("o2")
    model = CostModel(net.graph, Profile(dict.fromkeys(("s", "w", "a", "b", "o1", "o2"), 1.0), {"w": 0.9, "b": 0.5}))
    for _ in range(40):  # in truth w passes .25 and b passes .1; half of the rows are dropped before b
        model.update_rows({"s": 10_000}, {"w>b": 0.5}, {"o1": 2500, "o2": 125})
    assert model.profile.passes("w") == pytest.approx(0.25, abs=0.01)
    assert model.profile.passes("b") == pytest.approx(0.1, abs=0.01)
    model.update_rows({"s": 10_000}, {}, {"o1": 0, "o2": 0})
    assert model.profile.passes("w") == pytest.approx(0.25, abs=0.01), "an output that was not counted says nothing"


def test_trust_9_a_coefficient_that_stays_at_zero_does_not_make_others_rise() -> None:
    """Samples are below what is predicted, batch after batch: then no coefficient that has a part in it may rise."""
    fit = LeastSquares([1.0, 1.0], uncertainty=[2.0, 0.5])
    for rows in (100.0, 300.0, 200.0, 150.0):
        fit.update([50.0, rows], y=1.5 * rows - 40.0, noise=5.0)  # as if the fixed part were negative
    assert fit.get()[0] == 0.0
    before = fit.get()[1]
    for _ in range(50):
        fit.update([50.0, 100.0], y=0.8 * before * 100.0, noise=20.0)
    assert fit.get()[1] == pytest.approx(0.8 * before, rel=0.1)
