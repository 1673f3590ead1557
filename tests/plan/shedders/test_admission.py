"""Admission control (thesis 3.8.2): four shedders that drop at inputs only."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady

from jettison.network import Network
from jettison.plan.certify import certify, planned_load_us
from jettison.plan.drops.random import Random
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem, Shedder
from jettison.plan.shedders.admission import ADMISSION, InputRandom, InputTopCost, InputUniform, InputUniformCost
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

every_shedder = pytest.mark.parametrize("name", list(ADMISSION))
parts = st.floats(0.0, 1.3)
DROPS_US = (0.0, 0.05, 0.5, 3.0)


def problem_of(case: Case, part: float) -> Problem:
    """The budget is what is unavoidable and `part` of the rest."""
    full = Problem(case.graph, case.profile, case.rows, 0.0)
    return full.with_budget(full.unavoidable_us + part * (full.load_us - full.unavoidable_us))


def side_by_side(*loads_us: float, drop_us: float = 0.0, budget_us: float) -> Problem:
    """Inputs s1, s2, ... of 100 tuples each that cause so much work and have an output of their own."""
    net = Network("side-by-side")
    costs = {}
    for number, load_us in enumerate(loads_us, 1):
        net.source(f"s{number}", "x int").where("x > 0", name=f"w{number}").output(f"o{number}")
        costs[f"w{number}"] = load_us / 100
    profile = Profile(costs, {}, drop_us=drop_us)
    return Problem(net.graph, profile, dict.fromkeys((s.name for s in net.graph.sources), 100.0), budget_us)


def shed_us(problem: Problem, plan: Plan) -> dict[str, float]:
    """What each input gives, its own judging paid for."""
    return {
        arc: problem.load_us - planned_load_us(problem, Plan({arc: drop})) for arc, drop in sorted(plan.drops.items())
    }


def keeps(plan: Plan) -> dict[str, float]:
    return {arc: drop.keep for arc, drop in plan.drops.items()}


def planned(shedder: Shedder, problem: Problem) -> Plan:
    plan = shedder.plan(problem)
    assert isinstance(plan, Plan), plan
    return plan


# --- rules of every shedder -----------------------------------------------------------------------------------------


@every_shedder
@steady(50)
@given(dags(drops_us=DROPS_US), parts)
def test_plans_certify_and_stand_at_inputs(name: str, case: Case, part: float) -> None:
    problem = problem_of(case, part)
    plan = planned(ADMISSION[name], problem)
    certify(problem, plan)
    assert set(plan.drops) <= {source.name for source in case.graph.sources}
    assert all(drop.keep < 1.0 for drop in plan.drops.values())
    if problem.load_us <= problem.budget_us:
        assert (dict(plan.drops), plan.reason) == ({}, "predicted within budget")
        assert plan.utility == pytest.approx(sum(output.qos.priority for output in case.graph.outputs))
    else:
        assert plan.drops
        assert plan.reason == "overload"


@every_shedder
@steady(25)
@given(dags(), st.floats(0.0, 0.99))
def test_no_more_is_shed_than_needed_where_judging_is_free(name: str, case: Case, part: float) -> None:
    problem = problem_of(case, part)
    plan = planned(ADMISSION[name], problem)
    assert planned_load_us(problem, plan) == pytest.approx(problem.budget_us, abs=1e-6 * max(1.0, problem.load_us))


@every_shedder
@steady(25)
@given(dags(drops_us=DROPS_US), parts)
def test_the_same_question_has_the_same_answer(name: str, case: Case, part: float) -> None:
    again = replace(case, rows=dict(reversed(case.rows.items())))
    assert ADMISSION[name].plan(problem_of(case, part)) == ADMISSION[name].plan(problem_of(again, part))


@every_shedder
@steady(30)
@given(dags(drops_us=(0.0, 0.5)), st.floats(0.01, 10.0))
def test_infeasible_when_unavoidable_work_alone_is_over_the_budget(name: str, case: Case, over_us: float) -> None:
    full = problem_of(case, 0.0)
    problem = full.with_budget(full.unavoidable_us - over_us * max(1.0, full.load_us / 1000))
    answer = ADMISSION[name].plan(problem)
    assert isinstance(answer, Infeasible)
    assert "reading and fixed work" in answer.reason
    assert planned_load_us(problem, answer.best) == pytest.approx(full.unavoidable_us)
    assert answer.best.reason == "overload"
    certify(problem, answer.best, within_budget=False)


@every_shedder
def test_a_silent_input_is_left_alone(name: str) -> None:
    asked = side_by_side(100.0, 300.0, budget_us=100.0)
    plan = planned(ADMISSION[name], replace(asked, rows={"s1": 100.0}, budget_us=20.0))
    assert keeps(plan) == pytest.approx({"s1": 0.2})


# --- one input after another ----------------------------------------------------------------------------------------


def test_top_cost_takes_the_largest_load_first() -> None:
    plans = [
        planned(InputTopCost(), side_by_side(200, 500, 300, budget_us=1000 - excess)) for excess in (400, 600, 900)
    ]
    assert keeps(plans[0]) == pytest.approx({"s2": 0.2})
    assert keeps(plans[1]) == pytest.approx({"s2": 0.0, "s3": 2 / 3})
    assert keeps(plans[2]) == pytest.approx({"s1": 0.5, "s2": 0.0, "s3": 0.0})


@steady(60)
@given(dags(drops_us=DROPS_US), st.floats(0.0, 0.99))
def test_top_cost_touches_no_input_while_a_larger_one_is_open(case: Case, part: float) -> None:
    problem = problem_of(case, part)
    plan = planned(InputTopCost(), problem)
    loads = {name: problem.coefficients[name] * count for name, count in case.rows.items()}
    by_load = sorted((name for name in loads if loads[name] > 0), key=lambda name: -loads[name])
    for larger, smaller in pairwise(by_load):
        if loads[larger] > loads[smaller]:
            assert smaller not in plan.drops or plan.keep(larger) == 0.0


@steady(60)
@given(dags(drops_us=DROPS_US), st.floats(0.0, 0.99), st.integers(0, 5))
def test_random_leaves_at_most_one_input_partly_open(case: Case, part: float, seed: int) -> None:
    plan = planned(InputRandom(seed), problem_of(case, part))
    assert sum(drop.keep > 0 for drop in plan.drops.values()) <= 1


def test_random_is_drawn_by_seed_and_anew_for_every_problem() -> None:
    by_seed = [next(iter(planned(InputRandom(seed), side_by_side(9, 9, 9, budget_us=20)).drops)) for seed in range(90)]
    by_budget = [
        next(iter(planned(InputRandom(), side_by_side(9, 9, 9, budget_us=20 + n / 90)).drops)) for n in range(90)
    ]
    for chosen in (by_seed, by_budget):
        assert all(15 <= chosen.count(source) <= 45 for source in ("s1", "s2", "s3"))


# --- water filling --------------------------------------------------------------------------------------------------


def level_us(loads_us: list[float], excess_us: float) -> float:
    """The level w at which the sum of min(load, w) is the excess, by halving: no loop over closed inputs."""
    low, high = 0.0, max(loads_us)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(min(load, middle) for load in loads_us) < excess_us else (low, middle)
    return high


@steady(80)
@given(st.lists(st.floats(0.1, 1000.0), min_size=1, max_size=6), st.floats(0.01, 0.99))
def test_uniform_is_water_filling(loads_us: list[float], part: float) -> None:
    excess_us = part * sum(loads_us)
    problem = side_by_side(*loads_us, budget_us=sum(loads_us) - excess_us)
    level = level_us(loads_us, excess_us)
    expected = {f"s{number}": min(load, level) for number, load in enumerate(loads_us, 1)}
    assert shed_us(problem, planned(InputUniform(), problem)) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_what_one_cannot_give_is_spread_evenly() -> None:
    """Each of four should give 150; s1 has 60, so the others give 180; s2 has 170, so s3 and s4 give 185."""
    problem = side_by_side(60, 170, 400, 500, budget_us=1130 - 600)
    plan = planned(InputUniform(), problem)
    assert shed_us(problem, plan) == pytest.approx({"s1": 60, "s2": 170, "s3": 185, "s4": 185})


@steady(60)
@given(st.lists(st.floats(1.0, 1000.0), min_size=1, max_size=6), st.floats(0.01, 0.99), st.floats(0.001, 2.0))
def test_uniform_pays_for_judging(loads_us: list[float], part: float, drop_us: float) -> None:
    """Inputs that keep something give the same after judging; those that keep nothing had no more than that to give."""
    problem = side_by_side(*loads_us, drop_us=drop_us, budget_us=(1 - part) * sum(loads_us))
    plan = planned(InputUniform(), problem)
    gives = {arc: us for arc, us in shed_us(problem, plan).items() if plan.keep(arc) > 0}
    assume(gives)
    level = max(gives.values())
    assert min(gives.values()) == pytest.approx(level, rel=1e-6, abs=1e-6)
    assert planned_load_us(problem, plan) == pytest.approx(problem.budget_us, rel=1e-6)


def test_no_second_input_is_closed_when_closing_one_is_enough() -> None:
    """Judging takes 60 of 100: half of the load cannot come from two drops that keep something."""
    problem = side_by_side(100, 100, drop_us=0.6, budget_us=100)
    assert planned(InputUniform(), problem).drops == {"s1": Random(0.0)}


@steady(80)
@given(dags(), st.floats(0.01, 0.99))
def test_uniform_cost_keeps_the_same_share_of_every_input_that_works(case: Case, part: float) -> None:
    problem = problem_of(case, part)
    working = {name for name, count in case.rows.items() if problem.coefficients[name] * count > 0}
    assume(working)
    plan = planned(InputUniformCost(), problem)
    assert keeps(plan) == pytest.approx(dict.fromkeys(working, part), abs=1e-9)
