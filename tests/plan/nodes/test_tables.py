"""Feasible input tables: the thesis's rows, bounds against the optimum, C-FIT and D-FIT alike, deltas."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from tests.plan.nodes.networks import random_network, random_rates, shop

import jettison as jt
from jettison.errors import NetworkError
from jettison.experiments.nodes.table_5_4 import PRINTED, tables
from jettison.plan.nodes.examples import chains, fan_out, two_chains
from jettison.plan.nodes.fit import generate, rate_limits, rows_as_tuples
from jettison.plan.nodes.fragment_structure import node_view
from jettison.plan.nodes.local_blocks import local_drops
from jettison.plan.nodes.messages import TableDelta, TableMessage, delta_between, with_delta
from jettison.plan.nodes.point_quadtree import PointQuadtree
from jettison.plan.nodes.solver import PerTick
from jettison.plan.nodes.structure import Structure, structure
from jettison.plan.nodes.tables import Grain, TableNode, Tables, whole_keeps

pytestmark = pytest.mark.core


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_thesis_5_5_table_5_4_row_by_row(name: str) -> None:
    assert rows_as_tuples(tables()[name]) == list(PRINTED[name])


def test_thesis_5_5_2_local_plans() -> None:
    view = node_view(fan_out(1.0, [2.0, 5.0]), "A")
    assert rate_limits(view, local_drops(view.own, view.worth)) == pytest.approx([1 / 3])
    fit = generate(view, np.array([0.1]))
    assert fit.score[2] == pytest.approx(0.28)
    assert fit.passing[2, 2] / fit.passing[2, 0] == pytest.approx(0.4), "60 % of the lower branch goes"
    assert PerTick(fan_out(1.0, [2.0, 5.0])).plan({"i": 0.125}).score == pytest.approx(0.25), "without a local plan"


def test_thesis_5_5_2_spreads_of_three_and_ten_hundredths_give_68_entries() -> None:
    fit = generate(node_view(two_chains((1.0, 2.0), (3.0, 1.0)), "B"), np.array([0.03, 0.1]))
    assert (len(fit), float(fit.score.max())) == (68, 1.0)


def test_the_quadtree_finds_what_looking_through_all_rows_finds() -> None:
    draw = np.random.default_rng(0)
    for inputs in (1, 2, 3, 5):
        rates = draw.integers(0, 8, (500, inputs)).astype(float)
        score = rates @ draw.random(inputs) + draw.random(500) * 0.1
        tree = PointQuadtree(rates, score)
        for point in draw.random((60, inputs)) * 8:
            fits = (rates <= point).all(axis=1)
            found = tree.find(point)
            assert (found >= 0) == fits.any()
            if found >= 0:
                assert fits[found]
                assert score[found] == score[fits].max()


def forests(count: int) -> list[Structure]:
    found = [random_network(seed) for seed in range(3 * count)]
    return [made for made in found if made.placement.is_forest][:count]


def test_rows_are_feasible_and_the_best_is_within_its_bound_of_the_optimum() -> None:
    """Rounding down to the grid of a node's own outputs and of its leaves loses at most a step of each."""
    for made in (chains((64, 32), (64, 32), capacity=1000.0), two_chains((1.0, 2.0), (3.0, 1.0))):
        planner, exact = Tables(made, Grain(0.05, fine=True)), PerTick(made)
        for seed in range(30):
            rates = random_rates(made, seed, load=1.5 + seed % 4)
            plan, best = planner.plan(rates), exact.plan(rates)
            assert max(plan.load.values()) <= 1 + 1e-6
            assert best.score * 0.95 - 1e-9 <= plan.score <= best.score * (1 + 1e-9)


def test_plans_of_tables_fit_on_random_trees() -> None:
    for seed, made in enumerate(forests(8)):
        planner, exact = Tables(made, Grain(0.34)), PerTick(made)
        for load in (0.8, 2.0, 5.0):
            rates = random_rates(made, seed, load)
            plan = planner.plan(rates)
            assert max(plan.load.values()) <= 1 + 1e-6
            assert plan.score <= exact.plan(rates).score * (1 + 1e-6)
            assert plan.score > 0


def assert_within(made: Structure, epsilon: float) -> None:
    """Fine tables are feasible and within epsilon of the optimum, from a little too much to far too much."""
    tables, exact = Tables(made, Grain(epsilon, fine=True)), PerTick(made)
    for seed in range(12):
        rates = random_rates(made, seed, load=(1.1, 2.0, 6.0)[seed % 3])
        plan, best = tables.plan(rates), exact.plan(rates)
        assert max(plan.load.values()) <= 1 + 1e-6
        assert best.score * (1 - epsilon) <= plan.score <= best.score * (1 + 1e-6)


def test_a_split_at_the_entry_of_a_node() -> None:
    """Local drops can save all work of such a node; its limit is what the best branch can take."""
    made, _ = shop()
    assert_within(made, 0.1)
    left = node_view(made, "left")
    assert rate_limits(left, local_drops(left.own, left.worth)) == pytest.approx([0.5e6 / 7])


def test_outputs_of_a_node_beside_links_that_cost_it_much() -> None:
    """What outputs of the node itself are given may go far beyond what would fit beside all links."""
    net = jt.Network("dear-links")
    head = net.source("a", "x int").where("true", name="head")
    head.where("true", name="near").output("o")
    head.where("true", name="dear").where("true", name="far").output("p")
    net.place(jt.Node("top", ["head", "near", "dear"], 1.0), jt.Node("leaf", ["far"], 1.0))
    made = structure(net.graph, jt.Profile({"head": 1.0, "near": 2.0, "dear": 90.0, "far": 5.0}, {}))
    assert PerTick(made).plan({"a": 1e6}).keeps["a"] == pytest.approx(1 / 3), "all of it for the near one"
    assert_within(made, 0.1)


def test_a_branch_that_leads_to_outputs_of_its_own_node_and_to_others() -> None:
    """The dear branch is dropped as far as the node below does not need it; its input passes more than that."""
    net = jt.Network("mixed")
    source = net.source("s", "x int").where("true", name="head")
    source.where("true", name="cheap").output("o")
    both = source.where("true", name="dear")
    both.output("p")
    both.where("true", name="far").output("q")
    net.place(jt.Node("top", ["head", "cheap", "dear"], 1.0), jt.Node("leaf", ["far"], 1.0))
    made = structure(net.graph, jt.Profile({"head": 1.0, "cheap": 1.0, "dear": 50.0, "far": 400.0}, {"dear": 0.3}))
    optimum = PerTick(made).plan({"s": 3e5})
    assert (optimum.delivered["o"], optimum.keeps["head>dear"]) == (pytest.approx(3e5), pytest.approx(8000 / 3e5))
    assert_within(made, 0.1)


def test_streams_that_merge_and_split_again() -> None:
    net = jt.Network("merged")
    left, right = (net.source(name, "x int").where("true", name=f"w{name}") for name in "ab")
    both = left.union(right, name="u")
    both.where("true", name="dear").output("x")
    both.where("true", name="cheap").output("y")
    net.place(jt.Node("L", ["wa", "wb"], 1.0), jt.Node("M", ["u", "dear", "cheap"], 0.5))
    costs = {"wa": 1.0, "wb": 1.0, "dear": 30.0, "cheap": 3.0}
    assert_within(structure(net.graph, jt.Profile(costs, {"wb": 0.5})), 0.2)


def test_a_branch_above_a_merge_is_not_dropped_and_rows_give_what_they_say() -> None:
    net = jt.Network("merged")
    left, right = (net.source(name, "x int").where("true", name=f"w{name}") for name in "ab")
    left.where("true", name="own").output("direct")
    both = left.where("true", name="second").union(right, name="u")
    both.where("true", name="dear").output("x")
    both.where("true", name="cheap").output("y")
    net.place(jt.Node("L", ["wa", "wb"], 1.0), jt.Node("M", ["own", "second", "u", "dear", "cheap"], 0.5))
    costs = {"wa": 1.0, "wb": 1.0, "own": 1.0, "second": 0.5, "dear": 30.0, "cheap": 3.0}
    made = structure(net.graph, jt.Profile(costs, {"wb": 0.5}))
    tables, exact = Tables(made, Grain(0.1)), PerTick(made)
    for seed in range(6):
        rates = random_rates(made, seed, load=3.0)
        plan = tables.plan(rates)
        row = tables.fits["L"].best(made.rates(rates))
        assert plan.score == pytest.approx(float(tables.fits["L"].score[row]))
        assert max(plan.load.values()) <= 1 + 1e-6
        assert plan.score <= exact.plan(rates).score * (1 + 1e-6)


def exchange(made: Structure, grain: Grain) -> dict[str, TableNode]:
    nodes = {node: TableNode(node_view(made, node), grain) for node in made.placement.order}
    for node in reversed(made.placement.order):
        message = nodes[node].send()
        assert isinstance(message, TableMessage)
        for parent in made.placement.parents(node):
            assert nodes[parent].receive(message)
    return nodes


def test_d_fit_equals_c_fit_when_no_message_is_lost() -> None:
    for seed, made in enumerate(forests(6)):
        grain = Grain(0.34)
        central, nodes = Tables(made, grain), exchange(made, grain)
        for node, fit in central.fits.items():
            assert np.allclose(nodes[node].fit.rates, fit.rates)
            assert np.allclose(nodes[node].fit.score, fit.score)
        rates = random_rates(made, seed)
        shares, coming = {}, dict(rates)
        for node in made.placement.order:
            view = nodes[node].view
            here = nodes[node].plan(np.array([coming[name] for name in view.inputs]))
            shares |= {(node, arc): keep for arc, keep in here.items()}
            keeps = np.array([here.get(arc, 1.0) for arc in view.own.arcs])
            given = view.own.gives @ view.own.passing(keeps, np.array([coming[name] for name in view.inputs]))
            for output, rate in zip(view.own.graph.outputs, given, strict=True):
                if output.name in view.part.sends:
                    coming[view.part.sends[output.name].operator] = float(rate)
        views = {node: each.view for node, each in nodes.items()}
        passing = made.passing(whole_keeps(made, views, shares), made.rates(rates))
        assert (made.gives @ passing).sum() == pytest.approx(central.plan(rates).score, rel=1e-6)


def walked(made: Structure, nodes: dict[str, TableNode], rates: dict[str, float]) -> tuple[float, float]:
    """Rows per second at outputs, and the largest load, when every node follows its own table."""
    coming, delivered, load = dict(rates), 0.0, 0.0
    for node in made.placement.order:
        view = nodes[node].view
        here = np.array([coming[name] for name in view.inputs])
        keeps = nodes[node].plan(here)
        passing = view.own.passing(np.array([keeps.get(arc, 1.0) for arc in view.own.arcs]), here)
        load = max(load, float(view.own.load(passing, here)[0]))
        for output, rate in zip(view.own.graph.outputs, view.given(keeps, here), strict=True):
            if output.name in view.part.sends:
                coming[view.part.sends[output.name].operator] = float(rate)
            else:
                delivered += float(rate)
    return delivered, load


def hub() -> Structure:
    """A root that hands its streams to a leaf which drops by itself: the dear branch there goes first."""
    net = jt.Network("hub")
    stream = net.source("s", "x int").where("true", name="top")
    for name in ("cheap", "dear"):
        stream.where("true", name=name).output(f"o_{name}")
    net.source("t", "x int").where("true", name="beside").output("o_beside")
    net.place(jt.Node("A", ["top"], 1.0), jt.Node("B", ["cheap", "dear"], 1.0), jt.Node("C", ["beside"], 1.0))
    return structure(net.graph, jt.Profile({"top": 1.0, "cheap": 2.0, "dear": 8.0, "beside": 10.0}, {}))


@pytest.mark.parametrize("rates", [(1.5e5, 5e4), (1.5e5, 3e5), (7.03e5, 1e4), (9.9e4, 9.9e4), (9.97e4, 1e6)])
def test_d_fit_equals_c_fit_where_leaves_drop_by_themselves_and_between_the_steps_of_the_grid(
    rates: tuple[float, float],
) -> None:
    """Also below capacity: 99,700 rows fit beside a last step of the grid at 90,000, and nothing is dropped."""
    made, grain = hub(), Grain(0.3)
    nodes, central, point = exchange(made, grain), Tables(made, grain), dict(zip("st", rates, strict=True))
    delivered, load = walked(made, nodes, point)
    plan = central.plan(point)
    assert delivered == pytest.approx(plan.score, rel=1e-9)
    assert max(load, *plan.load.values()) <= 1 + 1e-9
    if rates[0] <= 1e5:
        assert plan.delivered["o_cheap"] == plan.delivered["o_dear"] == pytest.approx(rates[0])
    if rates[1] <= 1e5:
        assert plan.delivered["o_beside"] == pytest.approx(rates[1]), "another tree is overloaded, not this one"


def test_sources_that_lead_to_no_output_are_dropped_before_rows_that_do() -> None:
    """What overloads the node is worth nothing, so the rest of it passes whole, however little it is."""
    net = jt.Network("useless")
    net.source("a", "x int").where("false", name="none").output("o")
    net.source("b", "x int").where("true", name="all").output("p")
    net.place(jt.Node("A", ["none", "all"], 1.0))
    made = structure(net.graph, jt.Profile({"none": 50.0, "all": 40.0}, {"none": 0.0}))
    rates = {"a": 1e6, "b": 37.0}
    for plan in (Tables(made, Grain(0.1, fine=True)).plan(rates), Tables(made).plan(rates)):
        assert (plan.score, dict(plan.keeps)) == (pytest.approx(37.0), {"a": 0.0})
    nodes = exchange(made, Grain(0.1))
    assert nodes["A"].plan(np.array([1e6, 37.0])) == {"a": 0.0}
    assert len(nodes["A"].fit) == 11, "and no row asks for any of it"


def test_a_table_of_one_input_has_an_index_however_fine_it_is() -> None:
    tables = Tables(chains((1.0,)), Grain(1 / 5000))
    assert len(tables.fits["A"]) == 5001
    assert tables.fits["A"].index.depth < 20
    assert tables.plan({"i0": 3.0}).score == pytest.approx(1.0)


def message(version: int, rates: np.ndarray, score: np.ndarray) -> TableMessage:  # type: ignore[type-arg]
    return TableMessage("B", version, ("a", "b"), rates, score, np.ones((1, 2)))


def test_deltas_of_large_tables_take_no_time_and_give_the_whole_table() -> None:
    """Forty thousand rows, a tenth of them with another score, some gone and some new."""
    draw = np.random.default_rng(0)
    grid = np.array([(x, y) for x in range(200) for y in range(200)], dtype=float)
    score = grid.sum(axis=1)
    stays, changed = draw.random(len(grid)) < 0.99, draw.random(len(grid)) < 0.1
    before = message(1, grid, score)
    after = message(
        2, np.vstack([grid[stays], grid[:50] + 0.5]), np.concatenate([(score + changed)[stays], np.zeros(50)])
    )
    began = time.process_time()
    delta = delta_between(before, after)
    assert time.process_time() - began < 5
    assert delta.entries == int((stays & changed).sum() + (~stays).sum() + 50)
    known, order = with_delta(before, delta), np.lexsort(after.rates.T[::-1])
    assert np.array_equal(known.rates, after.rates[order])
    assert np.array_equal(known.score, after.score[order])


def test_a_tolerance_leaves_the_receiver_within_it() -> None:
    draw = np.random.default_rng(1)
    grid = np.array([(x, y) for x in range(12) for y in range(12)], dtype=float)
    before = message(1, grid[::2], grid[::2].sum(axis=1))
    after = message(2, grid[20:], grid[20:].sum(axis=1) * draw.uniform(0.8, 1.2, len(grid) - 20))
    delta = delta_between(before, after, tolerance=0.1)
    known = with_delta(before, delta)
    assert 0 < delta.entries < after.entries
    for rates, score in zip(after.rates, after.score, strict=True):
        fits = (known.rates <= rates + 1e-9).all(axis=1)
        assert known.score[fits].max() >= 0.9 * score - 1e-9
    assert {*map(tuple, known.rates)} <= {*map(tuple, after.rates)}, "rows that no longer hold are gone"


def test_what_changes_the_load_but_no_row_travels_too() -> None:
    """A table with a tolerance: no score is off by more, yet the parent learns what the node can take."""
    made, dearer = two_chains((1.0, 2.0), (3.0, 1.0)), two_chains((1.0, 2.0), (3.0001, 1.0))
    below, above = (TableNode(node_view(made, node), Grain(0.3), tolerance=0.5) for node in ("B", "A"))
    first = below.send()
    assert first is not None
    assert above.receive(first)
    below.changed(node_view(dearer, "B"))
    second = below.send()
    assert second is not None
    assert above.receive(second)
    assert above.fit.loads[1] == pytest.approx(node_view(dearer, "B").loads({})[0])
    assert below.send() is None


def test_a_bounded_error_stays_bounded_after_a_change() -> None:
    """The grid is divided where it is too coarse by now; old rows stay rows, so deltas stay small."""
    made, slow = chains((64, 32), (64, 32), capacity=1000.0), chains((64, 32), (640, 32), capacity=1000.0)
    grain = Grain(0.1, fine=True)
    nodes = exchange(made, grain)
    for node in ("B", "A"):
        nodes[node].changed(node_view(slow, node))
    sent = nodes["B"].send()
    assert sent is not None
    assert nodes["A"].receive(sent)
    for seed in range(20):
        rates = random_rates(slow, seed, load=1.2 + seed % 5)
        delivered, load = walked(slow, nodes, rates)
        assert load <= 1 + 1e-9
        assert delivered >= 0.9 * PerTick(slow).plan(rates).score


def test_a_node_that_was_restarted_is_heard_again() -> None:
    """Its versions begin at the time of its restart, not at those that its parent knows already."""
    made, slow = two_chains((1.0, 2.0), (3.0, 1.0)), two_chains((1.0, 2.0), (4.0, 1.0))
    below, above = (TableNode(node_view(made, node), Grain(0.1)) for node in ("B", "A"))
    for view in (made, slow, made):
        below.changed(node_view(view, "B"))
        sent = below.send()
        assert sent is not None
        assert above.receive(sent)
    anew = TableNode(node_view(slow, "B"), Grain(0.1), version=9_000)
    heard = anew.send()
    assert heard is not None
    assert above.receive(heard)
    assert np.array_equal(above.fit.loads[1], node_view(slow, "B").loads({})[0])


def test_late_and_lost_messages_leave_the_newest_table() -> None:
    made = two_chains((1.0, 2.0), (3.0, 1.0))
    slow = two_chains((1.0, 2.0), (3.5, 1.0))
    slower = two_chains((1.0, 2.0), (4.0, 1.0))
    below, above = (TableNode(node_view(made, node), Grain(0.1)) for node in ("B", "A"))
    first = below.send()
    assert isinstance(first, TableMessage)
    below.changed(node_view(slow, "B"))
    second = below.send()
    below.changed(node_view(slower, "B"))
    third = below.send()
    assert isinstance(second, TableDelta)
    assert isinstance(third, TableDelta)
    assert 0 < third.entries < first.entries
    assert above.plan(np.array([1.0, 1.0])) == {}, "it knows nothing of B yet, and looks after itself"
    assert above.receive(first)
    assert not above.receive(third), "the second one never came"
    below.ask_whole()
    whole = below.send()
    assert isinstance(whole, TableMessage)
    assert above.receive(whole)
    assert above.receive(second), "late, and not applied"
    anew = TableNode(node_view(made, "A"), Grain(0.1))
    assert anew.receive(replace(whole, version=1))
    assert np.allclose(above.fit.rates, anew.fit.rates)
    assert np.allclose(above.fit.score, anew.fit.score)


def test_what_tables_cannot_do_is_refused() -> None:
    net = jt.Network("merge")
    left = net.source("a", "x int").where("true", name="l")
    right = net.source("b", "x int").where("true", name="r")
    left.union(right, name="u").where("true", name="w").output("o")
    net.place(jt.Node("L", ["l"], 1.0), jt.Node("R", ["r"], 1.0), jt.Node("M", ["u", "w"], 1.0))
    made = structure(net.graph, jt.Profile({"l": 1.0, "r": 1.0, "w": 2.0}, {}))
    with pytest.raises(NetworkError, match="node 'M' reads from L and R"):
        Tables(made)
    assert PerTick(made).plan({"a": 4e5, "b": 4e5}).load["M"] == pytest.approx(1.0), "programs can"
    net.place(jt.Node("L", ["l", "r", "u"], 1.0), jt.Node("M", ["w"], 1.0))
    with pytest.raises(NetworkError, match="merges streams on the way to 'u_to_M'"):
        Tables(structure(net.graph, jt.Profile({"l": 1.0, "r": 1.0, "w": 2.0}, {})))
    with pytest.raises(NetworkError, match="rows of 'i1' come to an output there without any work"):
        generate(node_view(chains((1.0, 0.0)), "A"))
    with pytest.raises(NetworkError, match="spread is"):
        generate(node_view(chains((1.0, 1.0)), "A"), np.array([0.0, 1.0]))
    one = chains((1.0, 1.0))
    with pytest.raises(NetworkError, match="read_us of 'i0' is 2: a feasible input table needs drops that save all"):
        Tables(structure(one.graph, replace(one.profile, read_us={"i0": 2.0})))
