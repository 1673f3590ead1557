"""Drop locations (thesis 3.4.1): inputs and splits, and the segments between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.networks import LETTERS, Case, dags, drop_places, figure_3_3, steady

from jettison.network import Network
from jettison.plan.placement.locations import drop_arcs, layout
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core


def test_figure_3_3_has_locations_a_b_d_and_f() -> None:
    assert {LETTERS[arc] for arc in drop_arcs(figure_3_3())} == {"A", "B", "D", "F"}


def test_a_linear_stretch_pushes_the_drop_to_the_input() -> None:
    net = Network("chain")
    net.source("s", "x int").where("x > 0").where("x > 1").select("x").output("o")
    assert drop_arcs(net.graph) == ("s",)


def test_a_source_that_splits_keeps_its_own_location() -> None:
    net = Network("split")
    stream = net.source("s", "x int")
    stream.output("raw")
    stream.where("x > 0", name="w").output("o")
    assert drop_arcs(net.graph) == ("s", "s>raw", "s>w")


def test_streams_that_merge_without_a_split_have_only_their_inputs() -> None:
    net = Network("merge")
    left = net.source("l", "x int").where("x > 0", name="wl")
    left.union(net.source("r", "x int"), name="u").where("x > 1", name="w").output("o")
    profile = Profile({"l": 1, "wl": 2, "u": 3, "w": 4, "o": 5, "r": 6}, {"wl": 0.5, "w": 0.1})
    places = layout(net.graph, profile)
    assert places.arcs == ("l", "r")
    (segment,) = places.segments
    assert (segment.output, segment.entries, segment.branches) == ("o", (0, 1), ())
    # l: 1 + 2 + .5 * (3 + 4 + .1 * 5); r: 6 + 3 + 4 + .1 * 5
    assert [location.cost_us for location in places.locations] == pytest.approx([6.75, 13.5])
    assert [location.passes for location in places.locations] == pytest.approx([0.05, 0.1])


def test_a_split_that_merges_again_leads_into_one_segment() -> None:
    net = Network("diamond")
    a = net.source("s", "x int").where("x > 0", name="a")
    a.where("x > 1", name="b").union(a, name="u").output("o")
    places = layout(net.graph, Profile({}, {}))
    assert places.arcs == ("s", "a>b", "a>u")
    assert [(segment.end, segment.entries, segment.branches) for segment in places.segments] == [
        ("a", (0,), (1, 2)),
        ("o", (1, 2), ()),
    ]


@steady(100)
@given(dags())
def test_locations_are_inputs_and_splits_and_nothing_else(case: Case) -> None:
    assert sorted(drop_arcs(case.graph)) == sorted(drop_places(case.graph))
    assert len(set(drop_arcs(case.graph))) == len(drop_arcs(case.graph))
    assert set(drop_arcs(case.graph)) <= set(case.graph.arcs)


@steady(100)
@given(dags())
def test_segments_cover_the_network(case: Case) -> None:
    places = layout(case.graph, case.profile)
    loads = load_coefficients(case.graph, case.profile)
    outputs = [segment.output for segment in places.segments if segment.output is not None]
    assert sorted(outputs) == sorted(output.name for output in case.graph.outputs)
    for number, segment in enumerate(places.segments):
        assert bool(segment.branches) == (segment.output is None)
        assert segment.entries, "a segment that nothing enters"
        assert all(places.locations[entry].enters == number for entry in segment.entries)
        assert all(places.locations[branch].leaves == number for branch in segment.branches)
        assert all(places.locations[branch].enters > number for branch in segment.branches), "not topological"
        assert all(branch > entry for branch in segment.branches for entry in segment.entries), "not topological"
    for location in places.locations:
        after = sum(loads[places.locations[branch].arc] for branch in places.segments[location.enters].branches)
        assert location.cost_us + location.passes * after == pytest.approx(loads[location.arc])
