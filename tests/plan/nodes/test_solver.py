"""Solver and Solver-W: the error bound holds at random points, plans fit, and likely cells are divided first."""

from __future__ import annotations

import numpy as np
import pytest
from tests.plan.nodes.networks import random_network, random_rates

from jettison.errors import NetworkError
from jettison.plan.nodes.examples import chains, two_chains
from jettison.plan.nodes.program import Program
from jettison.plan.nodes.solver import PerTick, Solver
from jettison.plan.nodes.workload import Exponential, Seen

pytestmark = pytest.mark.core

MADE = two_chains((1.0, 2.0), (3.0, 1.0))
HIGHEST = {"i0": 4.0, "i1": 4.0}


@pytest.mark.parametrize("epsilon", [0.2, 0.05])
def test_the_bound_holds_at_random_points(epsilon: float) -> None:
    solver, exact, draw = Solver(MADE, HIGHEST, epsilon), PerTick(MADE), np.random.default_rng(1)
    assert solver.cells.worst_error <= epsilon
    for point in draw.random((60, 2)) * 4:
        rates = {"i0": float(point[0]), "i1": float(point[1])}
        plan, best = solver.plan(rates), exact.plan(rates)
        assert max(plan.load.values()) <= 1 + 1e-6
        assert best.score * (1 - epsilon) - 1e-9 <= plan.score <= best.score + 1e-9


def test_the_bound_holds_on_random_networks_and_plans_fit_beyond_the_space() -> None:
    for seed in (3, 5):
        made = random_network(seed)
        top = {name: 1.2 * rate for name, rate in random_rates(made, 1, load=3.0).items()}
        solver, exact, draw = Solver(made, top, 0.2), PerTick(made), np.random.default_rng(2)
        for _ in range(10):
            rates = {name: float(draw.random() * rate) for name, rate in top.items()}
            plan, best = solver.plan(rates), exact.plan(rates)
            assert max(plan.load.values()) <= 1 + 1e-6
            assert best.score * 0.8 - 1e-6 <= plan.score <= best.score + 1e-6
        beyond = solver.plan({name: 5 * rate for name, rate in top.items()})
        assert max(beyond.load.values()) <= 1 + 1e-6


def test_solver_w_stops_at_the_expected_error_and_solves_less() -> None:
    workload, made = Exponential(5.0), chains((64, 32), (64, 32), capacity=1000.0)
    highest = {"i0": 100.0, "i1": 100.0}
    plain = Solver(made, highest, 0.1)
    likely = workload.probability(plain.cells.low, plain.cells.high)
    expected = float((likely * plain.cells.error)[plain.cells.child < 0].sum())
    weighted = Solver(made, highest, expected, workload=workload)
    assert weighted.cells.expected_error <= expected
    chances = workload.probability(weighted.cells.low, weighted.cells.high)
    found = float((chances * weighted.cells.error)[weighted.cells.child < 0].sum())
    assert found == pytest.approx(weighted.cells.expected_error, abs=1e-9)
    assert weighted.program.solved < plain.program.solved


def test_a_trace_says_which_cells_matter() -> None:
    seen = Seen([[0.2, 0.2]] * 50 + [[3.0, 0.1]] * 50)
    solver = Solver(MADE, HIGHEST, 0.005, workload=seen)
    at = solver.cells.find(np.array([3.0, 0.1]))
    assert solver.cells.error[at] <= 0.01 + 1e-9
    assert solver.cells.worst_error > 0.1, "where nobody ever is, cells stay large"


def test_division_ends_in_time_and_says_how_far_it_got() -> None:
    solver = Solver(MADE, HIGHEST, 1e-4, most_s=0.0)
    assert solver.history[-1][2] == pytest.approx(1.0)
    plan = solver.plan({"i0": 1.0, "i1": 1.0})
    assert max(plan.load.values()) <= 1


def test_what_is_refused() -> None:
    with pytest.raises(NetworkError, match="epsilon is 0"):
        Solver(MADE, HIGHEST, 0.0)
    with pytest.raises(NetworkError, match="throughput alone"):
        Solver(MADE, HIGHEST, program=Program(MADE, "utility"))
    with pytest.raises(NetworkError, match="highest rates are"):
        Solver(MADE, {"i0": 0.0, "i1": 1.0})
    with pytest.raises(NetworkError, match="the scale is 0"):
        Exponential(0.0)
    with pytest.raises(NetworkError, match="give ticks as rows"):
        Seen([[1.0, float("nan")]])
