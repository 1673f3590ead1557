"""Aggregates of the user's own, without Spark: how they are declared, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import jettison as jt
from jettison.errors import NetworkError
from jettison.network.needed import needed_columns
from jettison.network.render import as_text
from jettison.network.spec import to_yaml

pytestmark = pytest.mark.core


def total(value: float, fare: float) -> float:
    return value + fare


GIVEN: dict[str, Any] = {
    "init": float,
    "incr": total,
    "merge": total,
    "final": float,
    "columns": ["fare"],
    "type": "double",
}


def network(**aggregates: Any) -> jt.Network:
    net = jt.Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, zone int, fare double, note string", event_time="at")
    trips.window("1 minute", by="zone").agg(aggregates, name="busy").output("table")
    return net


def test_they_stand_beside_sql() -> None:
    own = jt.whole_window(len, columns="trip", type="long")
    net = network(n="count(*)", sum=jt.aggregate(**GIVEN), rows=own)
    assert net.stream("busy").columns == ("zone", "window_start", "window_end", "n", "sum", "rows")
    assert "busy: aggregate 1 minute by zone: n = count(*), sum = total(fare), rows = len(trip)" in as_text(net.graph)
    assert needed_columns(net.graph, "trips") == ("trip", "zone", "fare")
    with pytest.raises(NetworkError, match=r"busy.*'sum' is of your own, in Python: YAML can say SQL only"):
        to_yaml(net.graph)


def test_an_unknown_column_shows_when_it_is_declared() -> None:
    with pytest.raises(NetworkError, match=r"aggregate 'busy'.*'price'.*fare"):
        network(sum=jt.aggregate(**{**GIVEN, "columns": ["price"]}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init": 0.0}, r"aggregate\(\): init=0.0 cannot be called: give a function"),
        ({"merge": None}, r"aggregate\(\): merge=None cannot be called"),
        ({"columns": []}, r"aggregate\(\): name at least one column"),
        ({"columns": ["fare", "Fare"]}, r"`columns` names a column twice \(fare, Fare\)"),
        ({"columns": [1]}, r"aggregate\(\): 1 in `columns` is not a column's name"),
        ({"columns": 7}, r"aggregate\(\): columns=7 is not a list of names"),
        ({"type": ""}, r"aggregate\(\): type='' is not a type of Spark, such as 'double'"),
    ],
)
def test_bad_input_is_refused_at_once(given: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        jt.aggregate(**{**GIVEN, **given})


def test_a_bare_function_is_refused_with_what_to_do() -> None:
    with pytest.raises(NetworkError, match=r"aggregate 'busy': .*is not one call.*jettison.whole_window\(...\)"):
        network(sum=total)
    with pytest.raises(NetworkError, match=r"whole_window\(\): function='sum' cannot be called"):
        jt.whole_window("sum", columns="fare", type="double")  # type: ignore[arg-type]
