"""The program for all nodes: known optima, an independent solver, floors, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.plan.nodes.networks import random_network, random_rates, shop

import jettison as jt
from jettison.errors import NetworkError
from jettison.plan.nodes.examples import fan_out, two_chains
from jettison.plan.nodes.local import plan_locally
from jettison.plan.nodes.plans import fragment_keeps
from jettison.plan.nodes.program import OBJECTIVES, Program
from jettison.plan.nodes.solver import PerTick
from jettison.plan.nodes.structure import Structure, structure
from jettison.plan.placement.locations import drop_arcs
from jettison.statistics.load import flows

pytestmark = pytest.mark.core

SEEDS = range(12)


def optimum(made: Structure, rates: np.ndarray) -> float:
    """The best throughput, by another solver and a program of its own."""
    count, branches = len(made.arcs), np.flatnonzero(~made.is_input)
    matrix = np.vstack([made.work_us / made.capacity_us[:, None], (np.eye(count) - made.reaches)[branches]])
    limits = np.concatenate([np.ones(len(made.nodes)), np.zeros(len(branches))])
    found = linprog(-made.gives.sum(axis=0), matrix, limits, bounds=[(0, each) for each in made.whole @ rates])
    return -float(found.fun)


def test_thesis_5_1_the_optimum_keeps_a_fifth_and_two_fifths() -> None:
    plan = PerTick(two_chains((1.0, 2.0), (3.0, 1.0))).plan({"i0": 1.0, "i1": 1.0})
    assert plan.keeps == pytest.approx({"i0": 0.2, "i1": 0.4})
    assert plan.load == pytest.approx({"A": 1.0, "B": 1.0})


def test_thesis_5_5_2_by_the_program() -> None:
    plan = PerTick(fan_out(1.0, [2.0, 5.0])).plan({"i": 0.2})
    assert plan.score == pytest.approx(0.28)
    assert plan.keeps == pytest.approx({"shared>b1": 0.4})


@pytest.mark.parametrize("merges", [False, True])
def test_plans_are_feasible_best_and_warm_starts_change_nothing(merges: bool) -> None:
    for seed in SEEDS:
        made = random_network(seed, merges=merges)
        warm = PerTick(made)
        for tick in range(4):
            rates = random_rates(made, tick, load=0.5 + tick)
            plan = warm.plan(rates)
            assert max(plan.load.values()) <= 1 + 1e-6
            assert plan.score == pytest.approx(optimum(made, made.rates(rates)), rel=1e-6)
            assert not plan.keeps or tick, "nothing is dropped below capacity"
            assert plan.score >= plan_locally(made, rates).score - 1e-6


def test_fragments_together_do_what_the_whole_plan_says() -> None:
    """Shares cut for fragments give, fragment after fragment, what the plan says that outputs get."""
    for seed in SEEDS:
        made = random_network(seed)
        rates = random_rates(made, seed)
        plan = PerTick(made, Program(made, "utility")).plan(rates)
        parts, coming = fragment_keeps(made.graph, plan.keeps), dict(rates)
        got: dict[str, float] = {}
        for node in made.placement.order:
            part = made.graph.fragment(node)
            here = {name for name in part.graph.by_name if name not in part.reads}
            own = jt.Profile({}, {name: share for name, share in made.profile.selectivity.items() if name in here})
            rows = {source.name: coming[source.name] for source in part.graph.sources}
            on = flows(part.graph, own, rows, parts[node])
            for output in part.graph.outputs:
                rate = on[part.graph.arcs_into(output.name)[0]]
                if output.name in part.sends:
                    coming[part.sends[output.name].operator] = rate
                else:
                    got[output.name] = rate
        assert got == pytest.approx(plan.delivered, rel=1e-6, abs=1e-6)


def test_utility_is_never_less_than_what_the_plan_for_throughput_is_worth() -> None:
    for seed in SEEDS:
        made = random_network(seed)
        rates = made.rates(random_rates(made, seed))
        worth, full = Program(made, "utility"), made.throughput @ rates
        most = Program(made).solve(rates)
        assert worth.solve(rates).score >= worth.score(most.passing, full) - 1e-6


def test_floors_are_held_and_win_over_capacity() -> None:
    for seed in SEEDS:
        made = random_network(seed, floors=True)
        rates = random_rates(made, seed)
        plan, whole = PerTick(made, Program(made, "utility")).plan(rates), made.throughput @ made.rates(rates)
        for output, full in zip(made.graph.outputs, whole, strict=True):
            assert plan.delivered[output.name] >= output.qos.min_accuracy * full * (1 - 1e-6)
        assert plan.infeasible is not None or max(plan.load.values()) <= 1 + 1e-6
    net = jt.Network("n")
    net.source("s", "x int").where("true", name="a").output("o", qos=jt.QoS(min_accuracy=0.5))
    net.place(jt.Node("one", ["a"], 1.0))
    plan = PerTick(structure(net.graph, jt.Profile({"a": 10.0}, {}))).plan({"s": 400_000.0})
    assert plan.infeasible is not None
    assert "200 % of the capacity of node 'one'" in plan.infeasible
    assert plan.keeps == pytest.approx({"s": 0.5})


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf"), None, True, "many"])
def test_rates_that_are_none(rate: float) -> None:
    with pytest.raises(NetworkError, match="rate of source 'i0' is"):
        PerTick(two_chains((1.0, 2.0), (3.0, 1.0))).plan({"i0": rate, "i1": 1.0})


def test_a_source_may_be_silent_but_not_all_of_them() -> None:
    made = two_chains((1.0, 2.0), (3.0, 1.0))
    for objective in OBJECTIVES:
        planner = PerTick(made, Program(made, objective))
        assert planner.plan({"i0": 0.0, "i1": 9.0}).delivered == pytest.approx({"o0": 0.0, "o1": 0.5})
        with pytest.raises(NetworkError, match="the rates of i0, i1 are 0"):
            planner.plan({"i0": 0.0, "i1": 0.0})


def test_nobody_works_for_what_is_dropped_downstream() -> None:
    made, rates = shop()
    plan = PerTick(made, Program(made, "utility")).plan(rates)
    assert plan.keeps == pytest.approx({"views": 0.529, "buys": 2 / 3, "seen>hot": 0.0}, abs=0.001)
    assert plan.load["ingest"] < 0.8, "the first node need not fill up"


def test_a_plan_for_fragments_stands_where_nodes_can_drop() -> None:
    """Two operators of another node read one stream: the sender has no split there, and drops at its input."""
    made, _ = shop()
    keeps = {"views": 0.8, "seen>hot": 0.0, "seen>item": 0.5}
    parts = fragment_keeps(made.graph, keeps)
    assert parts == {"ingest": {"views": pytest.approx(0.4)}, "left": {"seen>hot": 0.0}, "right": {}}
    for node, drops in parts.items():
        assert set(drops) <= set(drop_arcs(made.graph.fragment(node).graph))


def test_nodes_by_themselves_use_the_headroom_of_the_plan_that_they_are_compared_with() -> None:
    made = two_chains((1.0, 2.0), (3.0, 1.0))
    alone = plan_locally(made.usable(0.5, 1000.0), {"i0": 1.0, "i1": 1.0})
    assert alone.delivered == pytest.approx({"o0": 0.125, "o1": 0.125})


def test_a_fixed_part_that_leaves_nothing_is_refused() -> None:
    net = jt.Network("n")
    net.source("s", "x int").where("true", name="a").output("o")
    net.place(jt.Node("one", ["a"], 1.0))
    made = structure(net.graph, jt.Profile({"a": 1.0}, {}, fixed_ms=950.0))
    with pytest.raises(NetworkError, match="fixed_ms is 950"):
        made.usable(0.9, 1000.0)


def reading(read_us: float, floor: float = 0.0) -> Structure:
    """Two nodes; the first also reads a source, which no drop saves."""
    net = jt.Network("reading")
    stream = net.source("s", "x int").where("true", name="a")
    stream.where("true", name="b").output("o", qos=jt.QoS(min_accuracy=floor))
    net.place(jt.Node("A", ["a"], 1.0), jt.Node("B", ["b"], 1.0))
    return structure(net.graph, jt.Profile({"a": 6.0, "b": 3.0}, {}, read_us={"s": read_us}))


def test_reading_is_work_that_no_drop_saves() -> None:
    """200,000 rows/s at 2 us leave .6 s of the first node: 100,000 rows at 6 us."""
    plan = PerTick(reading(2.0)).plan({"s": 2e5})
    assert plan.keeps == pytest.approx({"s": 0.5})
    assert plan.load == pytest.approx({"A": 1.0, "B": 0.3})
    alone = plan_locally(reading(2.0), {"s": 2e5})
    assert alone.delivered == pytest.approx({"o": 1e5})
    assert alone.load["A"] == pytest.approx(1.6)
    assert PerTick(reading(2.0)).plan({"s": 1.25e5}).keeps == {}, "8 us a row: it just fits"


def test_reading_that_fills_a_node_is_infeasible_with_the_reason() -> None:
    for objective in OBJECTIVES:
        made = reading(10.0)
        plan = PerTick(made, Program(made, objective)).plan({"s": 2e5})
        assert plan.infeasible == (
            "reading alone takes 200 % of the capacity of node 'A', and no drop saves it: give the node more capacity."
        )
        assert plan.keeps == {"s": 0.0}
        assert plan.load == pytest.approx({"A": 2.0, "B": 0.0})
    assert plan_locally(reading(10.0), {"s": 2e5}).delivered == {"o": 0.0}


@pytest.mark.parametrize(("read_us", "over"), [(2.0, 1.24), (10.0, 2.84)])
def test_floors_beside_reading(read_us: float, over: float) -> None:
    made = reading(read_us, floor=0.7)
    plan = PerTick(made, Program(made, "utility")).plan({"s": 2e5})
    assert plan.delivered["o"] == pytest.approx(1.4e5)
    assert plan.load["A"] == pytest.approx(over)
    assert plan.infeasible is not None
    assert f"takes {100 * over:.0f} % of the capacity of node 'A'" in plan.infeasible


def test_what_cannot_be_planned() -> None:
    net = jt.Network("n")
    net.source("s", "x int").where("true", name="a").output("o")
    with pytest.raises(NetworkError, match="has no nodes"):
        structure(net.graph, jt.Profile({"a": 1.0}, {}))
    net.place(jt.Node("one", ["a"], 1.0))
    with pytest.raises(NetworkError, match="none of its operators costs anything"):
        structure(net.graph, jt.Profile({"a": 0.0}, {}))
    made = structure(net.graph, jt.Profile({"a": 1.0}, {}))
    with pytest.raises(NetworkError, match="objective is 'worth'"):
        Program(made, "worth")  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="'t' is not a source"):
        PerTick(made).plan({"s": 1.0, "t": 1.0})
