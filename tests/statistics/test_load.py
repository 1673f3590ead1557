"""Load coefficients (thesis 3.3.1): the golden numbers, and a second way to compute them on random networks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from tests.networks import Case, dags, steady

from jettison.errors import NetworkError
from jettison.network import Graph, Network, Output, Source, arc_name
from jettison.statistics.load import flows, load_coefficients, queue_load_us, total_load_us
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core


def flat(operators: int) -> Graph:
    net = Network("flat")
    stream = net.source("s", "x int")
    for number in range(1, operators + 1):
        stream = stream.where(f"x > {number}", name=f"w{number}")
    stream.output("o")
    return net.graph


def two_queries() -> Graph:
    """I1 fans out three ways, I2 merges into one of them: as many paths as in figure 3.2."""
    net = Network("two-queries")
    a = net.source("i1", "x int").where("x > 0", name="a")
    b, c, d = (a.where("x > 1", name=name) for name in "bcd")
    b.output("o1")
    e = net.source("i2", "x int").where("x > 2", name="e")
    c.union(e, name="u").where("x > 3", name="f").output("o2")
    d.output("o3")
    return net.graph


PROFILE = Profile(
    {"i1": 1, "a": 10, "b": 20, "c": 6, "d": 4, "e": 5, "u": 2, "f": 8, "o1": 3, "o2": 1, "o3": 7, "i2": 0.5},
    {"a": 0.5, "b": 0.1, "c": 0.5, "d": 0.25, "e": 0.8, "f": 0.5},
)


class TestGoldenNumbers:
    def test_thesis_3_3_1_prints_640_cycles(self) -> None:
        assert total_load_us({"i1": 26.5, "i2": 18.75}, {"i1": 10, "i2": 20}) == 640.0

    def test_equation_3_1_on_a_flat_query(self) -> None:
        # L = c1 + s1 c2 + s1 s2 c3 = 10 + 0.5 * 8 + 0.5 * 0.25 * 16
        profile = Profile({"w1": 10, "w2": 8, "w3": 16}, {"w1": 0.5, "w2": 0.25, "w3": 0.1})
        found = load_coefficients(flat(3), profile)
        assert found == {"s": 16.0, "s>w1": 16.0, "w1>w2": 12.0, "w2>w3": 16.0, "w3>o": 0.0}

    def test_equation_3_3_with_fan_out_and_union(self) -> None:
        # f: 8 + .5 * 1 = 8.5; u: 2 + 8.5 = 10.5; b: 20 + .1 * 3 = 20.3; c: 6 + .5 * 10.5 = 11.25
        # d: 4 + .25 * 7 = 5.75; a: 10 + .5 * (20.3 + 11.25 + 5.75) = 28.65; e: 5 + .8 * 10.5 = 13.4
        expected = {
            "i1": 29.65,
            "i2": 13.9,
            "i1>a": 28.65,
            "i2>e": 13.4,
            "a>b": 20.3,
            "a>c": 11.25,
            "a>d": 5.75,
            "c>u": 10.5,
            "e>u": 10.5,
            "u>f": 8.5,
            "b>o1": 3.0,
            "d>o3": 7.0,
            "f>o2": 1.0,
        }
        assert load_coefficients(two_queries(), PROFILE) == pytest.approx(expected)

    def test_flows_add_up_at_a_union(self) -> None:
        found = flows(two_queries(), PROFILE, {"i1": 100, "i2": 50})
        assert found["a>c"] == found["a>b"] == found["a>d"] == 50
        assert (found["c>u"], found["e>u"], found["u>f"], found["f>o2"]) == (25, 40, 65, 32.5)

    def test_a_source_without_rows_has_no_flow(self) -> None:
        assert flows(flat(1), Profile({}, {}), {}) == {"s": 0.0, "s>w1": 0.0, "w1>o": 0.0}

    def test_unmeasured_operators_cost_nothing_and_pass_everything(self) -> None:
        assert load_coefficients(flat(2), Profile({"o": 3}, {})) == {"s": 3, "s>w1": 3, "w1>w2": 3, "w2>o": 3}

    def test_queue_load_is_melt_rate_times_coefficient_times_length(self) -> None:
        assert queue_load_us({"s": 16.0, "w1>w2": 12.0}, {"s": 10, "w1>w2": 5}, melt_rate=0.2) == pytest.approx(44.0)
        assert queue_load_us({"s": 16.0}, {"s": 10}, melt_rate=0.0) == 0.0
        assert queue_load_us({"s": 16.0}, {}, melt_rate=1.0) == 0.0


def path_sum(case: Case, name: str) -> float:
    """Equation 3.3 as printed: work summed over all paths, each path's product of selectivities spelt out.

    Operators that paths share count once per path prefix, as a tuple passes them once.
    """
    total = case.profile.cost(name)
    for head in case.graph.consumers[name]:
        total += case.profile.passes(name) * path_sum(case, head)
    return total


@steady(60)
@given(dags())
def test_coefficients_equal_the_sum_over_paths(case: Case) -> None:
    coefficients = load_coefficients(case.graph, case.profile)
    assert set(coefficients) == set(case.graph.arcs)
    for operator in case.graph.operators:
        for arc in case.graph.arcs_into(operator.name):
            assert coefficients[arc] == pytest.approx(path_sum(case, operator.name))


@steady(60)
@given(dags())
def test_total_load_equals_flow_times_cost_arc_by_arc(case: Case) -> None:
    on = flows(case.graph, case.profile, case.rows)
    work = sum(
        on[arc] * case.profile.cost(operator.name)
        for operator in case.graph.operators
        for arc in case.graph.arcs_into(operator.name)
    )
    assert total_load_us(load_coefficients(case.graph, case.profile), case.rows) == pytest.approx(work)


@steady(60)
@given(dags())
def test_flow_is_conserved_at_every_operator(case: Case) -> None:
    on = flows(case.graph, case.profile, case.rows)
    for operator in case.graph.operators:
        arriving = sum(on[arc] for arc in case.graph.arcs_into(operator.name))
        for head in case.graph.consumers[operator.name]:
            assert on[arc_name(operator.name, head)] == pytest.approx(arriving * case.profile.passes(operator.name))


class TestProfile:
    graph = Graph("p", (Source("s", (("x", "int"),)), Output("o", ("s",))))

    def test_survives_plain_data(self) -> None:
        profile = Profile({"s": 1.5}, {"s": 0.5}, 2.0, {"s": 0.25}, 0.05)
        assert Profile.from_dict(profile.to_dict()) == profile

    @pytest.mark.parametrize("word", ["cost_us", "selectivity", "read_us"])
    def test_names_the_operator_that_does_not_exist(self, word: str) -> None:
        numbers = {"cost_us": {}, "selectivity": {}, word: {"ghost": 1.0}}
        with pytest.raises(NetworkError, match=f"{word}.*'ghost'.*'p'"):
            Profile(**numbers).check(self.graph)  # type: ignore[arg-type]

    @pytest.mark.parametrize("word", ["cost_us", "selectivity", "read_us"])
    @pytest.mark.parametrize("number", [-1.0, -1e-12, math.nan, math.inf])
    def test_refuses_numbers_that_cannot_be_right(self, word: str, number: float) -> None:
        numbers = {"cost_us": {}, "selectivity": {}, word: {"o": number}}
        with pytest.raises(NetworkError, match=f"{word} of 'o' is {number}"):
            Profile(**numbers).check(self.graph)  # type: ignore[arg-type]

    @pytest.mark.parametrize("word", ["fixed_ms", "drop_us"])
    @pytest.mark.parametrize("number", [-1.0, math.nan])
    def test_refuses_fixed_parts_that_cannot_be_right(self, word: str, number: float) -> None:
        with pytest.raises(NetworkError, match=word):
            Profile({}, {}, **{word: number}).check(self.graph)  # type: ignore[arg-type]
