"""Trust 25: what only a start with a session can find wrong, each in one line of ours, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIPS, trips

import jettison as jt

pytestmark = pytest.mark.spark


def test_trust_25_starts_are_refused_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    """Raw were FileNotFoundError, Py4JJavaError, AnalysisException and KeyError; unknown tables and an empty path for
    the checkpoint (a temporary one, without a word) were accepted."""
    stream = trips(spark, 100, 100)
    zones = spark.createDataFrame([(1, "a")], "zone int, name string")

    def start(*, joins: bool = False, sink: Any = None, applied: tuple[str, ...] = (), **named: Any) -> None:
        net = jt.Network("n")
        source = net.source("trips", **TRIPS)
        source = source.apply(lambda rows: rows.drop("zone"), columns=applied) if applied else source
        (source.join("zones", on="zone") if joins else source.where("trip > 0", name="paid")).output("o")
        jt.start(net, {"trips": stream}, {"o": sink or jt.memory()}, **{"costs": FREE, **named})

    cases: list[tuple[dict[str, Any], str]] = [
        ({"sink": jt.parquet("/proc/none/such")}, r"output 'o': '/proc/none/such' is no folder to write into: No such"),
        ({"sink": jt.parquet("s9://a/b")}, r"output 'o': 's9://a/b' cannot be opened .*No FileSystem for scheme .s9"),
        ({"checkpoint": "s9://a/b"}, r"checkpoint: 's9://a/b' cannot be opened .*No FileSystem for scheme .s9"),
        ({"checkpoint": " "}, r"checkpoint is ' ': give the path of a folder"),
        (
            {"costs": jt.Costs(FREE, shared=["payd"])},
            r"shared has 'payd', which is no operator of network 'n' \(did you mean 'paid'\?\)",
        ),
        ({"tables": {"zones": zones}}, r"tables: 'zones' is a table that no join names: no join names one"),
        ({"joins": True, "tables": {"zones": zones, "zone": zones}}, r"'zone' is a table .*did you mean 'zones'"),
        ({"joins": True, "tables": {"zones": stream}}, r"join 'join1': its table streams: read it with spark.read"),
        (
            {"applied": ("trip", "pickup", "fair")},
            r"apply 'apply1': the function gives columns trip, pickup, fare, and columns= declares trip, pickup, fair",
        ),
        ({"shedding": "dryrun"}, r"shedding is 'dryrun' \(did you mean 'dry-run'\?\): say True, False, 'dry-run'"),
    ]
    numbers = jt.Network("payload")
    numbers.source("trips", "fare double", payload="json").output("o")
    with pytest.raises(jt.StartError, match=r"column 'value' is bigint and is to hold json, which is text or binary"):
        jt.start(numbers, {"trips": stream.selectExpr("trip AS value")}, {"o": jt.memory()}, costs=FREE)
    for named, message in cases:
        given = {"checkpoint": str(tmp_path / "checkpoint"), **named}
        with pytest.raises(jt.JettisonError, match=message) as caught:
            start(**given)
        assert "\n" not in str(caught.value)
    assert not spark.streams.active
