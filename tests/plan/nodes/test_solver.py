"""Solver and Solver-W: the error bound holds at random points, plans fit, and likely cells are divided first."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from tests.plan.nodes.networks import random_network, random_rates

import jettison as jt
import jettison.plan.nodes.solver as solver_module
from jettison.errors import NetworkError
from jettison.plan.nodes.examples import chains, two_chains
from jettison.plan.nodes.program import Program
from jettison.plan.nodes.solver import PerTick, Solver
from jettison.plan.nodes.structure import structure
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


def test_sources_that_lead_to_no_output_are_dropped_first() -> None:
    """Without that no cell next to rates of 0 had a bound: a node was full of rows that are worth nothing."""
    made = chains((50.0, 40.0), capacity=1000.0, selectivity=(0.0, 1.0))
    solver, exact = Solver(made, {"i0": 100.0, "i1": 100.0}, 0.1), PerTick(made)
    assert solver.cells.worst_error <= 0.1
    for useful in (0.01, 3.0, 24.9, 26.0, 99.0):
        rates = {"i0": 90.0, "i1": useful}
        plan = solver.plan(rates)
        assert plan.keeps["i0"] == 0.0
        assert 0.9 * exact.plan(rates).score <= plan.score
        if useful < 25:
            assert plan.score == pytest.approx(useful), "all of the rest fits"


def test_a_bound_that_takes_too_many_cells_is_refused_and_not_just_missed() -> None:
    with (
        patch.object(solver_module, "MOST_CELLS", 100),
        pytest.raises(NetworkError, match=r"an error of 0\.001 takes more than 100 cells, which leave"),
    ):
        Solver(MADE, HIGHEST, 0.001)


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
    with pytest.raises(NetworkError, match="ticks have 3 rates, and the network has 2 sources"):
        Solver(MADE, HIGHEST, workload=Seen([[1.0, 2.0, 3.0]]))
    with pytest.raises(NetworkError, match="read_us of 'i1' is 2: Solver needs drops that save all work"):
        Solver(structure(MADE.graph, replace(MADE.profile, read_us={"i1": 2.0})), HIGHEST)


def test_floors_are_refused_as_no_bound_holds_with_them() -> None:
    net = jt.Network("floors")
    stream = net.source("s", "x int").where("true", name="a")
    stream.where("true", name="b").output("o", qos=jt.QoS(min_accuracy=0.1))
    net.place(jt.Node("A", ["a"], 1.0), jt.Node("B", ["b"], 1.0))
    made = structure(net.graph, jt.Profile({"a": 1.0, "b": 2.0}, {}))
    with pytest.raises(NetworkError, match=r"output 'o': min_accuracy is 0\.1: Solver bounds the error of throughput"):
        Solver(made, {"s": 1e7})
