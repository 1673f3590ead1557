"""Joins of two streams as declared: what is refused and why, the same in Python, YAML and pictures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.errors import NetworkError
from jettison.network import Network, Stream, StreamJoin, kind_of
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.durations import duration_ms, duration_text
from jettison.network.render import as_mermaid, as_text
from jettison.spec.as_yaml import to_dict, to_yaml
from jettison.spec.network_file import from_yaml

pytestmark = pytest.mark.core


def shop() -> tuple[Network, Stream, Stream]:
    net = Network("shop")
    orders = net.source("orders", "Order long, placed timestamp", event_time="placed")
    payments = net.source("payments", "amount double, order int, paid timestamp", event_time="paid")
    return net, orders, payments


YAML = """
network: shop
sources:
  orders: {schema: "Order long, placed timestamp", event_time: placed}
  payments: {schema: "amount double, order int, paid timestamp", event_time: paid}
operators:
  joined: {of: orders, join_stream: payments, on: [order], within: 10 minutes, delay: 10 seconds}
outputs:
  pairs: {of: joined}
"""


def test_a_join_of_streams_is_declared_by_the_same_word() -> None:
    net, orders, payments = shop()
    joined = orders.join(payments, on="order", within="10 minutes", delay="10 seconds")
    assert joined.columns == ("Order", "placed", "amount", "paid")
    assert re.fullmatch("join_[0-9a-f]{8}", joined.name), "after what it computes, for it keeps state"
    assert net.graph.by_name[joined.name] == StreamJoin(
        joined.name, ("orders", "payments"), ("order",), 600_000.0, "inner", 10_000.0
    )
    assert kind_of(net.graph.by_name[joined.name]) == "join"
    assert [join.name for join in net.graph.stream_joins] == [joined.name]
    assert orders.join("table", on="order").name == "join2"
    plain = orders.join(payments, on=["order"], within="1 second", name="plain")
    assert plain._network.graph.by_name["plain"].delay_ms == 0  # type: ignore[union-attr]


def test_yaml_both_ways() -> None:
    net, orders, payments = shop()
    orders.join(payments, on="order", within="10 minutes", delay="10 seconds", name="joined").output("pairs")
    assert from_yaml(YAML).graph() == net.graph
    assert from_yaml(to_yaml(net.graph)).graph() == net.graph
    declared = to_dict(net.graph)["operators"]["joined"]
    assert declared == {
        "of": "orders",
        "join_stream": "payments",
        "on": ["order"],
        "within": "10 minutes",
        "delay": "10 seconds",
    }


def test_pictures_show_both_streams_and_the_band() -> None:
    graph = from_yaml(YAML).graph()
    text = "join orders with payments on order within 10 minutes, delay 10 seconds"
    assert f"  joined: {text}" in as_text(graph).splitlines()
    assert f'joined["joined<br/>{text}"]' in as_mermaid(graph)
    assert "  payments --> joined" in as_mermaid(graph).splitlines()


def test_what_waits_for_partners_is_kept_whole() -> None:
    net, orders, payments = shop()
    orders.join(payments, on="order", within="1 minute", name="joined").select("amount").output("o")
    assert needed_columns(net.graph, "orders") is None
    assert needed_columns(net.graph, "joined") == ("amount",)


def other_network(orders: Stream) -> Any:
    _, _, theirs = shop()
    return orders.join(theirs, on="order", within="1 minute")


@pytest.mark.parametrize(
    ("declare", "fault"),
    [
        (lambda o, p: o.join(p, on="order"), "join 'join1': a join of two streams needs a band: within='1 minute'"),
        (lambda o, p: o.join("zones", on="order", within="1 minute"), "static table has no event times.*'within'"),
        (lambda o, p: o.join("zones", on="order", delay="1 minute"), "static table has no event times.*'delay'"),
        (lambda o, p: o.join(o, on="order", within="1 minute"), r"same stream twice \(orders\)"),
        (lambda o, p: other_network(o), "join 'join1': stream 'payments' belongs to another network"),
        (lambda o, p: o.join(p, on=[], within="1 minute"), "at least one column in `on`"),
        (lambda o, p: o.join(p, on="order", within="1 minute", how="left"), "how='left' is not known .* only 'inner'"),
        (lambda o, p: o.join(p, on="order", within="soon"), "join 'join1': within is 'soon'"),
        (lambda o, p: o.join(p, on="order", within="0 seconds"), "within is '0 seconds': write a duration above 0"),
        (lambda o, p: o.join(p, on="order", within="1 s", delay="-1 s"), "delay is '-1 s': write a duration of 0 or"),
        (lambda o, p: o.join(p, on="amount", within="1 s"), "'orders' has no column 'amount'. It has: Order, placed"),
        (lambda o, p: o.join(p, on="placed", within="1 s"), "'payments' has no column 'placed'. It has: amount, order"),
        (
            lambda o, p: o.join(p.with_columns({"Placed": "paid"}, name="w"), on="order", within="1 s"),
            "'orders' and 'w' both have column 'Placed': rename it",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(declare: Callable[[Stream, Stream], Any], fault: str) -> None:
    net, orders, payments = shop()
    before = len(net.graph.operators)
    with pytest.raises(NetworkError, match=fault):
        declare(orders, payments)
    assert all(not isinstance(operator, StreamJoin) for operator in net.graph.operators[before:])


def test_every_source_above_must_have_an_event_time() -> None:
    net, orders, payments = shop()
    timeless = net.source("refunds", "amount double, order int, paid timestamp")
    merged = payments.where("amount > 0").union(timeless)
    with pytest.raises(NetworkError, match=r"join 'join_.*source 'refunds' declares none: add event_time"):
        orders.join(merged, on="order", within="1 minute")


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("within: 10 minutes, ", "a join of two streams needs a band"),
        ("join_stream: payments, ", "exactly one of"),
        ("on: [order], ", "join 'joined': name at least one column"),
    ],
)
def test_yaml_that_leaves_out_what_a_join_needs(given: str, fault: str) -> None:
    with pytest.raises(NetworkError, match=fault):
        from_yaml(YAML.replace(given, "")).graph()
    with pytest.raises(NetworkError, match="go with `join_stream`"):
        from_yaml(re.sub(r"join_stream: payments, on: \[order\]", "where: 'true'", YAML)).graph()


@pytest.mark.parametrize(
    ("text", "milliseconds", "printed"),
    [
        ("1 day", 86_400_000, "1 day"),
        ("24 hours", 86_400_000, "1 day"),
        ("1.5 d", 129_600_000, "36 hours"),
        ("14 days", 1_209_600_000, "2 weeks"),
        ("3 Weeks", 1_814_400_000, "3 weeks"),
        ("5 ms", 5, "5 milliseconds"),
        ("7 us", 0.007, "0.007 milliseconds"),
        ("250000 microseconds", 250, "250 milliseconds"),
        ("2 mins", 120_000, "2 minutes"),
    ],
)
def test_a_duration_in_every_unit(text: str, milliseconds: float, printed: str) -> None:
    assert duration_ms(text, "band") == milliseconds
    assert duration_text(milliseconds) == printed
    assert duration_ms(printed, "band") == milliseconds


@steady(200)
@given(st.one_of(st.integers(1, 10**9).map(float), st.floats(1e-9, 1e12)))
def test_a_duration_is_read_back(milliseconds: float) -> None:
    assert duration_ms(duration_text(milliseconds), "band") == milliseconds
