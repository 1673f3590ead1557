"""Where a value comes from, which outputs share it, and into which cells it is cut (thesis table 3.1)."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.errors import NetworkError
from jettison.network import Network, QoS, Stream, Value
from jettison.network.columns.lineage import origins

pytestmark = pytest.mark.core

VALUED = QoS(value=Value("x", [(0, 50, 0.2), (50, 100, 1.0)]))


def network() -> tuple[Network, Stream]:
    net = Network("n")
    return net, net.source("s", "x double, y double, k string")


@pytest.mark.parametrize(
    ("change", "reaches"),
    [
        (lambda s: s.where("y > 1"), True),
        (lambda s: s.select("*"), True),
        (lambda s: s.select("x", "k"), True),
        (lambda s: s.select("X"), True),
        (lambda s: s.select("y AS x"), True),  # another column's values, unchanged
        (lambda s: s.select("x * 2 AS x"), False),
        (lambda s: s.with_columns({"z": "x + 1"}), True),
        (lambda s: s.with_columns({"x": "x + 1"}), False),
        (lambda s: s.with_columns({"x": "y"}), True),
        (lambda s: s.select("k", "x").where("x > 3").with_columns({"q": "1"}), True),
        (lambda s: s.apply("os.path:join", columns=["x"]), False),
        (lambda s: s.join("zones", "k"), True),
    ],
)
def test_a_value_is_followed_through_what_preserves_it(change: object, reaches: bool) -> None:
    net, stream = network()
    change(stream).output("o", qos=VALUED)  # type: ignore[operator]
    assert (net.graph.tracks.at("s") is not None) is reaches


def test_a_renamed_column_is_found_under_its_old_name() -> None:
    net, stream = network()
    stream.select("y AS x").output("o", qos=VALUED)
    at = net.graph.tracks.at("s")
    assert at is not None
    assert at[1] == "y"


def test_a_union_passes_values_of_all_its_inputs() -> None:
    net, stream = network()
    other = net.source("t", "x double, y double, k string").with_columns({"x": "x / 2"}, name="halved")
    stream.union(other, name="both").output("o", qos=VALUED)
    assert net.graph.tracks.at("s") is not None
    assert net.graph.tracks.at("t") is None  # computed anew on the way
    assert origins(net.graph, "o", "x") == {"o": "x", "both": "x", "s": "x", "halved": "x"}


def test_outputs_valued_by_one_column_share_a_track_and_those_by_others_do_not() -> None:
    net, stream = network()
    stream.where("y > 0", name="a").output("o1", qos=VALUED)
    stream.select("x AS z", name="b").output("o2", qos=QoS(value=Value("z", [(0, 30, 0.5), (30, 100, 1.0)])))
    assert net.graph.tracks.at("s") is not None
    shared = net.graph.tracks.by_output
    assert shared["o1"] is shared["o2"]
    assert {0.0, 30.0, 50.0, 100.0} <= set(shared["o1"].bounds)
    stream.select("y", name="c").output("o3", qos=QoS(value=Value("y", [(0, 1, 1.0)])))
    assert net.graph.tracks.at("s") is None  # no one value to judge by, before the split
    assert net.graph.tracks.at("s>c") is not None
    assert net.graph.tracks.at("s>a") is not None


def test_an_output_without_value_utility_does_not_hinder() -> None:
    net, stream = network()
    stream.where("y > 0", name="a").output("o1", qos=VALUED)
    stream.select("k", name="b").output("o2")
    assert net.graph.tracks.at("s") is not None
    assert net.graph.tracks.at("s>b") is None


def test_values_are_counted_by_cell_and_what_is_none_in_the_last() -> None:
    net, stream = network()
    stream.output("o", qos=VALUED)
    track = net.graph.tracks.by_output["o"]
    counts = track.count([0.0, 100.0, 100.1, -3.0, float("nan")])
    assert (counts[0], counts[-2], counts[-1]) == (1, 1, 3)
    assert track.spread(None).sum() == pytest.approx(1.0)
    assert track.spread(None)[-1] == 0.0
    assert np.allclose(track.spread([(-100, 0, 1.0), (0, 100, 1.0)])[-1], 0.5)


def test_on_every_way_to_the_output_the_values_must_be_the_same() -> None:
    """A tuple of s comes to o twice, once with its x doubled: at s it cannot be judged by what it will be worth."""
    net, stream = network()
    doubled = stream.select("x * 2 AS x", name="doubled")
    stream.select("x", name="plain").union(doubled, name="both").output("o", qos=VALUED)
    assert net.graph.tracks.at("s") is None
    assert set(net.graph.tracks.by_output["o"].columns) == {"o", "both", "plain", "doubled"}


@pytest.mark.parametrize("kind", ["string", "date", "boolean", "timestamp", "array<int>"])
def test_a_value_must_be_a_number(kind: str) -> None:
    net = Network("n")
    with pytest.raises(NetworkError, match=f"on 'x', an? {kind} of source 's'.*cast it"):
        net.source("s", f"x {kind}").output("o", qos=VALUED)
