"""Value utility: intervals, chunks, the loss graph that follows (thesis 3.7.1), latency and staleness, bad input."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.errors import NetworkError
from jettison.network import Network, QoS, Value
from jettison.network.value import loss_graph

pytestmark = pytest.mark.core

TWO = [(0, 50, 0.2), (50, 100, 1.0)]


def test_the_loss_graph_of_the_thesis() -> None:
    graph = loss_graph([0.2, 1.0], [0.4, 0.6])
    assert [(round(percent), round(utility, 2)) for percent, utility in graph] == [(100, 1.0), (60, 0.88), (0, 0.0)]


def test_the_normalised_utilities_of_a_join() -> None:
    """Table 3.4: output x 0-50 (u .25, f .1), 51-100 (u 1, f .9) normalise to .027 and .973."""
    graph = loss_graph([0.25, 1.0], [0.1, 0.9])
    assert 1 - graph[1][1] == pytest.approx(0.027, abs=5e-4)
    assert graph[1][1] == pytest.approx(0.973, abs=5e-4)


@steady(200)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_a_derived_loss_graph_is_a_loss_graph(pieces: list[tuple[float, float]]) -> None:
    """It starts at (100, 1), ends at (0, 0), never rises and is concave: what QoS asks of a declared one."""
    utilities, shares = zip(*pieces, strict=True)
    if sum(u * f for u, f in pieces) <= 1e-6:
        return
    graph = loss_graph(utilities, shares)
    assert graph[0] == (100.0, 1.0)
    assert graph[-1] == (0.0, 0.0)
    slopes = [(high - low) / (right - left) for (right, high), (left, low) in pairwise(graph) if right - left > 1e-6]
    assert all(after >= before - 1e-6 for before, after in pairwise(slopes))


def test_linear_pieces_are_worth_the_mean_of_their_chunk() -> None:
    value = Value("x", [(0, 100, 0.0, 1.0)], chunk=40)
    assert [piece[:2] for piece in value.pieces] == [(0, 40), (40, 80), (80, 100)]
    assert [piece.utility for piece in value.pieces] == pytest.approx([0.2, 0.6, 0.9])
    assert len(Value("x", [(0, 100, 0.0, 1.0)]).pieces) == 10


def test_what_has_no_value_is_worth_otherwise() -> None:
    value = Value("x", TWO, otherwise=0.5)
    assert [value.of(x) for x in (None, math.nan, -1.0, 100.5, math.inf)] == [0.5] * 5
    assert (value.of(49.9), value.of(50.0), value.of(100.0)) == (0.2, 1.0, 1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Value("x", [(0, 50, 0.2), (40, 100, 1)]), "overlap from 40 to 50"),
        (lambda: Value("x", [(0, 50, 0.2), (51, 100, 1)]), "gap from 50 to 51"),
        (lambda: Value("x", [(50, 100, 1), (0, 50, 0.2)]), "overlap"),
        (lambda: Value("x", [(50, 50, 1)]), "holds no values"),
        (lambda: Value("x", [(0, math.inf, 1)]), "holds no values"),
        (lambda: Value("x", [(0, 50, 1.2)]), "1.2"),
        (lambda: Value("x", [(0, 50)]), "give \\(from, to, utility\\)"),
        (lambda: Value("x", []), "give \\(from, to, utility\\)"),
        (lambda: Value("x", [(0, 50, 0.0)]), "worth anything"),
        (lambda: Value("", TWO), "name the column"),
        (lambda: Value("x", TWO, chunk=0), "chunk is 0"),
        (lambda: Value("x", [(0, 1e6, 0, 1)], chunk=1), "a wider one"),
        (lambda: Value("x", TWO, otherwise=2), "otherwise is 2"),
        (lambda: Value("x", TWO, histogram=[(0, 100, 0.0)]), "no mass"),
        (lambda: Value("x", TWO, histogram=[(0, 50, -1), (50, 100, 2)]), "at least 0"),
        (lambda: Value("x", TWO, histogram=[(0, 40, 0.5), (50, 100, 0.5)]), "gap from 40 to 50"),
        (lambda: Value("x", TWO, histogram=[(0, 40)]), "give \\(from, to, share\\)"),  # type: ignore[list-item]
        (lambda: QoS(loss=[(100, 1), (50, 0.9), (0, 0)], value=Value("x", TWO)), "leave one of them out"),
        (lambda: QoS(stale="1 minute", latency=[(0, 1), (60, 0)]), "leave one of them out"),
        (lambda: QoS(stale="soon"), "QoS stale is 'soon'"),
        (lambda: QoS(latency=[(0, 1), (10, 0.5), (20, 0.6)]), "never rise"),
        (lambda: QoS(latency=[(1, 1), (10, 0)]), "start at \\(0, 1.0\\)"),
        (lambda: QoS(latency=[(0, 1), ("later", 0)]), "QoS latency"),
        (lambda: loss_graph([0.0, 1.0], [1.0, 0.0]), "no mass"),
    ],
)
def test_bad_input_is_named(make: object, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        make()  # type: ignore[operator]


def test_a_value_column_must_reach_its_output() -> None:
    net = Network("taxi")
    trips = net.source("trips", "trip long, fare double")
    with pytest.raises(NetworkError, match=r"output 'ids'.*'fare'.*Columns here: trip"):
        trips.select("trip").output("ids", qos=QoS(value=Value("fare", TWO)))


def test_staleness_needs_an_event_time() -> None:
    net = Network("taxi")
    net.source("trips", "trip long").output("all", qos=QoS(stale="1 minute"))
    with pytest.raises(NetworkError, match=r"output 'all' is stale after 60 s, but source 'trips'.*event_time"):
        net.graph.check_complete()


@steady(100)
@given(st.floats(0, 200))
def test_latency_utility_falls_between_its_points(age_s: float) -> None:
    qos = QoS(latency=[("0 seconds", 1.0), (10, 1.0), ("1 minute", 0.0)])
    assert qos.latency_utility(age_s) == pytest.approx(min(1.0, max(0.0, (60 - age_s) / 50)))
    assert qos.stale_s == 60.0
    assert QoS().stale_s is None
