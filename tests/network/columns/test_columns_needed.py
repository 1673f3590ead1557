"""Which columns a shared copy must hold: too many cost memory, one too few breaks a run."""

from __future__ import annotations

import pytest

from jettison.network import Network, Stream
from jettison.network.columns.columns_needed import needed_columns

pytestmark = pytest.mark.core


def trips() -> tuple[Network, Stream]:
    net = Network("taxi")
    return net, net.source("trips", "trip long, zone int, Fare double, note string, load int")


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        (("trip",), ("trip",)),
        (("FARE",), ("Fare",)),
        (("load AS x",), ("load",)),
        (("fare * 2 AS note",), ("Fare",)),
        (("fare * 2 AS twice", "twice + zone AS more"), ("zone", "Fare")),
        (("zone AS note", "note AS old"), ("zone", "note")),
        (("count(*) AS n", "trip"), ("trip",)),
        (("*",), None),
        ((" * ",), None),
        (("* EXCEPT (note)",), None),
        (("struct(*) AS whole",), None),
        (("zone IN (SELECT zone FROM t) AS known",), None),
    ],
)
def test_columns_that_a_select_needs(items: tuple[str, ...], columns: tuple[str, ...] | None) -> None:
    net, stream = trips()
    stream.select(*items, name="s").output("o")
    assert needed_columns(net.graph, "trips") == columns


def test_a_replaced_column_is_not_needed_whatever_its_case() -> None:
    net, stream = trips()
    stream.with_columns({"FARE": "zone * 2"}).where("fare > 1").select("trip").output("o")
    assert needed_columns(net.graph, "trips") == ("trip", "zone")


def test_everything_is_needed_where_nothing_says_less() -> None:
    net, stream = trips()
    stream.where("fare > 1").output("o")
    assert needed_columns(net.graph, "trips") is None
