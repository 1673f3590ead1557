"""Declaring: each call adds one checked operator, and a call that fails adds none."""

from __future__ import annotations

import pytest

from jettison.errors import NetworkError
from jettison.network import Apply, Graph, Join, Network, Output, QoS, Select, Source, Stream, Union, Where, WithColumns

pytestmark = pytest.mark.core


def taxi() -> tuple[Network, Stream]:
    net = Network("taxi")
    return net, net.source("trips", "trip long, fare double, pickup timestamp", event_time="pickup", id=["trip"])


def test_every_method_declares_its_operator() -> None:
    net, trips = taxi()
    paid = trips.where("fare > 0", name="paid")
    slim = paid.select("trip", "fare AS f", name="slim")
    wide = slim.with_columns({"twice": "f * 2"}, name="wide")
    known = wide.join("drivers", on="trip", how="left", name="known")
    done = known.apply("m:f", columns=["trip"], name="done")
    both = done.union(paid.select("trip", name="ids"), name="both")
    both.output("out", qos=QoS(priority=2), quality=True)
    schema = (("trip", "long"), ("fare", "double"), ("pickup", "timestamp"))
    assert set(net.graph.operators) == {
        Source("trips", schema, "pickup", ("trip",)),
        Where("paid", ("trips",), "fare > 0"),
        Select("slim", ("paid",), ("trip", "fare AS f")),
        WithColumns("wide", ("slim",), (("twice", "f * 2"),)),
        Join("known", ("wide",), "drivers", ("trip",), "left"),
        Apply("done", ("known",), "m:f", ("trip",)),
        Select("ids", ("paid",), ("trip",)),
        Union("both", ("done", "ids")),
        Output("out", ("both",), QoS(priority=2), True),
    }
    net.graph.check_complete()


def test_streams_know_their_columns() -> None:
    _, trips = taxi()
    assert trips.columns == ("trip", "fare", "pickup")
    assert trips.select("fare * 2 AS twice").columns == ("twice",)
    assert trips.apply("m:f").columns is None


def test_names_are_given_where_none_is() -> None:
    _, trips = taxi()
    assert [trips.where("true").name for _ in range(3)] == ["where1", "where2", "where3"]
    assert trips.with_columns({"a": "1"}).name == "with_columns1"


def test_given_names_never_clash_with_chosen_ones() -> None:
    net, trips = taxi()
    trips.where("true", name="where2")
    trips.select("trip", name="where3")
    assert trips.where("true").name == "where4"
    assert len(net.graph.by_name) == 4


def test_one_column_needs_no_list() -> None:
    net = Network("n")
    stream = net.source("s", "a int, bc int", id="bc")
    assert net.graph.sources[0].id == ("bc",)
    stream.join("t", on="bc", name="j")
    assert net.graph.by_name["j"].on == ("bc",)  # type: ignore[union-attr]
    stream.apply("m:f", columns="bc", name="a")
    assert net.graph.by_name["a"].columns == ("bc",)  # type: ignore[union-attr]


def test_a_call_that_fails_leaves_the_network_as_it_was() -> None:
    net, trips = taxi()
    before = net.graph
    for wrong in (
        lambda: trips.where("fair > 0"),
        lambda: trips.select("fare * 2"),
        lambda: trips.select(),
        lambda: trips.with_columns({}),
        lambda: trips.union(),
        lambda: trips.union(trips),
        lambda: trips.join("t", on=[]),
        lambda: trips.output("trips"),
        lambda: trips.output("a b"),
        lambda: net.source("trips", "x int"),
        lambda: net.source("s", "x"),
        lambda: trips.where("fare > 0", name=""),
    ):
        with pytest.raises(NetworkError):
            wrong()
        assert net.graph is before


def test_a_stream_of_another_network_is_refused() -> None:
    """Both have a stream called where1: taking the name alone would silently merge the wrong stream."""
    _, trips = taxi()
    _, other_trips = taxi()
    mine, theirs = trips.where("fare > 1"), other_trips.where("fare > 2", name="where1")
    second = trips.where("fare > 3")
    assert theirs.name == mine.name
    with pytest.raises(NetworkError):
        second.union(theirs)


def test_an_unknown_stream_lists_those_that_exist() -> None:
    net, _ = taxi()
    assert net.stream("trips").name == "trips"
    with pytest.raises(NetworkError, match=r"'tripps'.*trips"):
        net.stream("tripps")


def test_a_stream_has_no_life_after_its_output() -> None:
    net, trips = taxi()
    trips.output("raw")
    with pytest.raises(NetworkError, match="output"):
        net.stream("raw").where("fare > 0")


def test_a_network_around_a_graph_goes_on_from_there() -> None:
    graph = Graph("g", (Source("s", (("x", "int"),)),))
    net = Network.of(graph)
    net.stream("s").where("x > 0").output("o")
    assert (net.name, len(net.graph.operators), len(graph.operators)) == ("g", 3, 1)


def test_printing_a_network_draws_it() -> None:
    net, trips = taxi()
    trips.where("fare > 0").output("o")
    assert str(net).splitlines()[-1] == "    o: output"
