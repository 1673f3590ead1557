"""Properties of all planners on networks that Hypothesis draws, against the independent optimum of `oracle`."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.plan.nodes.networks import random_network, random_rates
from tests.plan.nodes.oracle import Case, best, draw_case

from jettison.errors import NetworkError
from jettison.plan.nodes import fit
from jettison.plan.nodes.local import plan_locally
from jettison.plan.nodes.plans import NodesPlan
from jettison.plan.nodes.program import OBJECTIVES, Objective, Program
from jettison.plan.nodes.solver import PerTick, Solver
from jettison.plan.nodes.structure import Structure, structure
from jettison.plan.nodes.tables import Grain, Tables

pytestmark = pytest.mark.core

seeds = st.integers(0, 10**6)
loads = st.floats(1.05, 8.0)


def placed(case: Case) -> Structure:
    net, profile = case.network()
    return structure(net.graph, profile)


def feasible(plan: NodesPlan) -> bool:
    return max(plan.load.values()) <= 1 + 1e-6


@settings(max_examples=40)
@given(seeds, st.sampled_from(OBJECTIVES), st.sampled_from([1.0, 4.0, 8.0]))
def test_plans_fit_on_every_node_and_are_the_optimum(seed: int, objective: Objective, decades: float) -> None:
    """Also where some rates are a hundred million times as large as others."""
    case = draw_case(seed, decades=decades)
    made = placed(case)
    plan, (optimum, _) = PerTick(made, Program(made, objective)).plan(case.rates), best(case, objective)
    assert feasible(plan)
    assert plan.score == pytest.approx(optimum, rel=1e-6)


@settings(max_examples=30)
@given(seeds)
def test_floors_win_over_capacity_by_no_more_than_they_must(seed: int) -> None:
    case = draw_case(seed, floors=True)
    made = placed(case)
    plan, (optimum, least) = PerTick(made, Program(made, "utility")).plan(case.rates), best(case, "utility")
    assert (plan.infeasible is None) == (least <= 1 + 1e-7)
    assert max(plan.load.values()) <= least * (1 + 1e-6)
    if plan.infeasible is None:
        assert plan.score == pytest.approx(optimum, rel=1e-6)


@settings(max_examples=6)
@given(seeds, st.lists(st.floats(0.0, 1.3), min_size=12, max_size=12), st.sampled_from([0.3, 0.2]))
def test_solver_is_within_its_bound_fits_and_is_no_worse_than_local_plans(
    seed: int, shares: list[float], epsilon: float
) -> None:
    """At the corners of cells Solver is the optimum, so never worse than local plans; elsewhere by epsilon at most."""
    made = random_network(seed)
    top = random_rates(made, seed, load=3.0)
    solver, exact = Solver(made, top, epsilon), PerTick(made)
    for at in range(0, len(shares), len(top)):
        point = dict(zip(top, shares[at : at + len(top)], strict=False))
        rates = {name: rate * min(1.0, point.get(name, 1.0)) for name, rate in top.items()}
        if not any(rates.values()):
            continue
        plan, optimum = solver.plan(rates), exact.plan(rates)
        assert feasible(plan)
        assert optimum.score * (1 - epsilon) - 1e-6 <= plan.score <= optimum.score * (1 + 1e-6) + 1e-6
        assert optimum.score >= plan_locally(made, rates).score * (1 - 1e-6)


@example(240803, 5.0, 0.3)
@settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much])
@given(seeds, loads, st.sampled_from([0.5, 0.3]))
def test_the_best_row_of_fine_tables_is_within_its_bound(seed: int, load: float, epsilon: float) -> None:
    """Also where a node above lets pass less than a step of the limit of a node below."""
    made = random_network(seed)
    assume(made.placement.is_forest)
    try:
        with patch.object(fit, "MOST_ROWS", 200_000):  # larger ones take seconds, and claim the same
            tables = Tables(made, Grain(epsilon, fine=True))
    except NetworkError as error:
        assume("combinations" not in str(error) and "rows: use a larger" not in str(error))
        raise
    rates = random_rates(made, seed + 1, load)
    plan, optimum = tables.plan(rates), PerTick(made).plan(rates)
    assert feasible(plan)
    assert optimum.score * (1 - epsilon) - 1e-6 <= plan.score <= optimum.score * (1 + 1e-6)


def test_tables_where_the_node_above_is_the_bottleneck() -> None:
    """A leaf that can take a hundred times what comes to it: a step of its own limit would be more than all of it."""
    from jettison.plan.nodes.examples import two_chains

    made = two_chains((10.0, 10.0), (0.1, 0.1))
    rates = {"i0": 1.0, "i1": 0.5}
    optimum = PerTick(made).plan(rates)
    assert optimum.score == pytest.approx(0.1)
    fine = Tables(made, Grain(0.1, fine=True)).plan(rates)
    assert np.isclose(fine.score, optimum.score, rtol=0.1)
