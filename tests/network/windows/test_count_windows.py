"""Windows that count rows: declared, checked, written down, drawn, and their arithmetic against counting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jettison as jt
from jettison.errors import NetworkError
from jettison.network import CountAggregate, CountSpec
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.render import as_mermaid
from jettison.network.windows.slice_groups import complete_after_us, meets_windows, readers_below
from jettison.sim import simulate
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core


def quotes(net: jt.Network) -> jt.Stream:
    return net.source("quotes", "n long, at timestamp, symbol string, price double", event_time="at", id=["n"])


def means(**others: Any) -> jt.Network:
    net = jt.Network("stocks")
    windows = quotes(net).window("100 rows", slide="10 rows", by=["symbol"])
    windows.agg(price="avg(price)", name="means").output("table", **others)
    return net


@given(st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size))), st.integers(0, 200))
def test_windows_are_closed_by_their_last_row(shape: tuple[int, int], rows: int) -> None:
    spec = CountSpec(*shape)
    closed = [start for start in range(0, 200, spec.slide_rows) if start + spec.size_rows <= rows]
    assert spec.closed(rows) == len(closed)
    assert spec.first_open(rows) == len(closed) * spec.slide_rows
    for edge in (*closed, *(start + spec.size_rows for start in closed)):
        assert edge % spec.slice_rows == 0, "slices are whole in every window"


@pytest.mark.parametrize(
    ("size", "given_", "message"),
    [
        ("100 rows", {"slide": "5 seconds"}, "'100 rows' and its slide '5 seconds': say both in rows"),
        ("1 minute", {"slide": "5 rows"}, "'1 minute' and its slide '5 rows': say both in rows"),
        ("0 rows", {}, "the window's size is '0 rows': write a whole number of rows"),
        ("-5 rows", {}, "the window's size is '-5 rows'"),
        ("1.5 rows", {}, "the window's size is '1.5 rows'"),
        ("10 rows", {"slide": "0 rows"}, "the slide is '0 rows'"),
        ("10 rows", {"slide": "11 rows"}, "slides by 11 rows and has 10"),
        ("10 rows", {"delay": "5 seconds"}, "none is late: leave the delay out"),
        ("10 rows", {"by": ["symbol", "Symbol"]}, "names a column twice"),
        ("10 rows", {"by": "colour"}, "colour"),
        ("ten rows", {}, "write a duration"),
    ],
)
def test_windows_that_cannot_be_are_refused(size: str, given_: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match="aggregate 'a'") as caught:
        quotes(jt.Network("n")).window(size, **given_).agg(n="count(*)", name="a")
    assert message in str(caught.value)


def test_they_need_no_event_time_but_windows_of_their_results_may() -> None:
    net = jt.Network("plain")
    tens = net.source("rows", "x int").window("10 rows").agg(n="sum(x)", name="tens")
    tens.output("table")
    with pytest.raises(NetworkError, match="source 'rows' declares none"):
        tens.window("1 minute").agg(n="count(*)")


def test_they_are_written_down_and_read_back() -> None:
    net = means(qos=jt.QoS(gap=3))
    text = to_yaml(net.graph)
    assert "size: 100 rows" in text
    assert "slide: 10 rows" in text
    assert from_yaml(text).graph() == net.graph
    one = jt.Network("one")
    quotes(one).window("1 row").agg(n="count(*)", name="each").output("table")
    assert from_yaml(to_yaml(one.graph)).graph() == one.graph
    assert isinstance(one.graph.by_name["each"], CountAggregate)
    with pytest.raises(NetworkError, match=r"aggregate 'means'.*say both in rows"):
        from_yaml(text.replace("10 rows", "10 seconds")).graph()


def test_they_are_drawn() -> None:
    assert "means: aggregate 100 rows every 10 rows by symbol: price = avg(price)" in str(means())
    assert "100 rows every 10 rows by symbol" in as_mermaid(means().graph)


def test_what_stands_around_them() -> None:
    graph = means().graph
    assert needed_columns(graph, "quotes") == ("symbol", "price")
    assert readers_below(graph, "quotes") == {"means"}
    assert all(meets_windows(graph, arc) for arc in graph.arcs)
    assert complete_after_us(graph, "table") == 0, "a result is as fresh as its window's last row"
    assert graph.aggregates == ()


def test_the_simulator_takes_one_result_for_so_many_rows() -> None:
    graph = means().graph
    costs = Profile({"quotes": 1.0, "means": 1.0, "table": 1.0}, {})
    done = simulate(graph, costs, {"quotes": 1000}, trigger_ms=1000, seconds=60, noise=False)
    assert done.outputs["table"].rows == pytest.approx(6000, rel=0.05)
