"""Columns that would change their meaning are refused where they are declared."""

from __future__ import annotations

from typing import Any

import pytest

import jettison as jt

pytestmark = pytest.mark.core

SCHEMA = "trip long, at timestamp, zone int, fare double"


def trips() -> Any:
    return jt.Network("taxi").source("trips", SCHEMA, event_time="at", id=["trip"])


@pytest.mark.parametrize("name", ["_kept", "_batch", "_Batch", "_sic"])
def test_trust_6_quality_overwrites_no_column(name: str) -> None:
    chosen = trips().select("trip", f"zone AS {name}")
    chosen.output("plain")  # without quality it is a column like others
    with pytest.raises(jt.NetworkError, match=rf"output 'told': quality=True adds a column '{name.lower()}'.*rename"):
        chosen.output("told", quality=True)


@pytest.mark.parametrize(
    ("declare", "match"),
    [
        (lambda: trips().select("trip", "fare", "zone AS FARE"), "column 'FARE' stands twice"),
        (lambda: trips().select("trip AS _jt_id"), "begins with _jt_"),
        (lambda: trips().with_columns({"_JT_time": "at"}), "begins with _jt_"),
        (lambda: trips().apply("m:f", columns=["trip", "_jt_weight"]), "begins with _jt_"),
        (lambda: trips().window("1 minute", by="zone").agg(window_start="count(*)"), "'window_start' stands twice"),
        (lambda: trips().window("1 minute", by="zone").agg(zone="count(*)"), "'zone' stands twice"),
        (
            lambda: (
                trips()
                .window("1 minute")
                .agg(n="count(*)", n_low="min(fare)")
                .output("out", qos=jt.QoS(on_loss="estimate"))
            ),
            "n_low|min",
        ),
        (
            lambda: (
                trips()
                .select("trip", "at", "zone AS n_low")
                .window("1 minute", by="n_low")
                .agg(n="count(*)")
                .output("out", qos=jt.QoS(on_loss="estimate"))
            ),
            "'n_low' stands twice",
        ),
    ],
)
def test_trust_6_names_that_are_taken_are_refused(declare: Any, match: str) -> None:
    with pytest.raises(jt.NetworkError, match=match):
        declare()
