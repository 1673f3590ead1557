"""Which splits share their rows, and how often others are computed."""

from __future__ import annotations

import pytest

from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.statistics.shared_rows import Copy, choose_shared, computed_times, slices_made_by, splits

pytestmark = pytest.mark.core


def two_splits() -> Graph:
    net = Network("n")
    s = net.source("s", "a int, at timestamp", event_time="at", id=["a"])
    w = s.where("a > 0", name="w")
    w.where("a > 1", name="x").output("o1")
    w.where("a > 2", name="y").output("o2")
    s.output("all")
    return net.graph


def test_a_copy_is_chosen_where_it_pays_and_not_below_another() -> None:
    dear, cheap = Copy(100.0, 10.0, 5.0), Copy(12.0, 10.0, 5.0)
    assert splits(two_splits()) == ("s", "w")
    assert choose_shared(two_splits(), {"s": dear, "w": dear}) == {"s"}
    assert choose_shared(two_splits(), {"s": cheap, "w": dear}) == {"w"}
    assert choose_shared(two_splits(), {"w": cheap}) == frozenset(), "of s nothing is known, w is cheap"


def test_what_is_not_shared_is_computed_once_per_reader() -> None:
    times = computed_times(two_splits(), frozenset())
    assert (times["s"], times["w"], times["x"], times["o1"]) == (3, 2, 1, 1)
    assert computed_times(two_splits(), frozenset({"w"}))["s"] == 2


def test_aggregates_of_the_same_slices_read_once() -> None:
    net = Network("n")
    s = net.source("s", "a int, at timestamp", event_time="at", id=["a"])
    s.window("10 seconds").agg(n="count(*)", name="one").output("o1")
    s.window("20 seconds", slide="10 seconds").agg(n="count(*)", name="two").output("o2")
    assert slices_made_by(net.graph) == {"one": "one", "two": "one"}
    assert computed_times(net.graph, frozenset())["s"] == 1
    assert splits(net.graph) == ()
