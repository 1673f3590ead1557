"""One bad row stops nothing: nulls, NaN, infinities, extremes of every type, empty and huge texts, under ANSI."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.running import TRIGGER, ended, until
from tests.spark.windowing import Hand, S, by_spark, frame_of, source

import jettison as jt
from jettison.spark.write.sinks import MemorySink

pytestmark = pytest.mark.spark


def test_trust_12_a_null_event_time_in_a_later_batch_joins_no_window(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    net = jt.Network("timeless")
    trips = source(net)
    trips.window("10 seconds", by=["zone"]).agg(n="count(*)", sum="sum(fare)", name="t").output("tumbling")
    trips.window("10 seconds", slide="5 seconds", by=["zone"]).agg(n="count(*)", name="s").output("sliding")
    trips.where("fare >= 0").output("rows")
    batches = [
        [(1, 3 * S, 1, "cab", 5.0), (2, 8 * S, 2, "cab", 6.0)],
        [(3, None, 1, "cab", 7.0), (4, None, None, None, None), (5, 21 * S, 1, "bus", 8.0)],
        [(6, None, 1, "cab", 9.0), (7, 60 * S, 1, "bus", 10.0)],
        [(8, 61 * S, 1, "bus", 11.0), (9, None, 2, "bus", 12.0)],
    ]
    run = Hand(spark, tmp_path, net)
    measured = [run.run(number, rows) for number, rows in enumerate(batches)]
    everything = frame_of(spark, [row for rows in batches for row in rows])

    assert [each.timeless["trips"] for each in measured] == [0, 2, 1, 1]
    assert [each.late for each in measured] == [{"t": 0, "s": 0}] * 4
    aggregates = {"n": "count(*)", "sum": "sum(fare)"}
    assert run.rows("tumbling") == by_spark(everything, "10 seconds", None, ["zone"], 60 * S, **aggregates)
    assert run.rows("sliding") == by_spark(everything, "10 seconds", "5 seconds", ["zone"], 60 * S, n="count(*)")
    assert [row[0] for row in run.rows("rows")] == sorted([1, 2, 3, 5, 6, 7, 8, 9], key=lambda trip: repr((trip,)))
    run.close()


@pytest.mark.long
def test_trust_12_rows_on_which_an_expression_fails_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    most = 2**63 - 1
    net = jt.Network("faulty")
    trips = source(net)
    trips.where("100 / zone > 0", name="ratio").output("kept")
    trips.select("trip", "int(kind) AS number", "int(kind) + 1 AS next", name="numbers").output("parsed")
    trips.with_columns({"part": "100 div zone", "fare": "fare + 100 div zone"}, name="parts").output("added")
    trips.window("10 seconds").agg(n="count(*)", all="sum(100 div zone)", name="shares").output("windows")
    trips.where("true").window("10 seconds").agg(n="count(*)", all="sum(trip)", name="trips_sum").output("sums")
    batches = [
        [(1, 1 * S, 1, "7", 1.0), (2, 2 * S, 2, "8", 2.0)],
        [(3, 3 * S, 0, "9", 3.0), (4, 11 * S, 4, "x", 4.0), (5, 12 * S, None, None, None), (most, 12 * S, 1, "", 0.0)],
        [(6, 31 * S, 5, "11", 5.0)],
        [(7, 32 * S, 1, "12", 6.0)],
    ]
    run = Hand(spark, tmp_path, net)
    measured = [run.run(number, rows) for number, rows in enumerate(batches)]

    def numbers(output: str, *columns: int) -> list[tuple[Any, ...]]:
        return sorted((tuple(row[column] for column in columns) for row in run.rows(output)), key=repr)

    assert measured[0].unfit == {}
    assert measured[1].unfit == {"ratio": 1, "numbers": 2, "parts": 1, "shares": 1}
    assert numbers("kept", 0) == sorted([(1,), (2,), (4,), (most,), (6,), (7,)], key=repr)
    assert numbers("parsed", 0, 1, 2) == sorted(
        [(1, 7, 8), (2, 8, 9), (3, 9, 10), (5, None, None), (6, 11, 12), (7, 12, 13)], key=repr
    )
    assert (3, 0) not in numbers("added", 0, 2)
    assert len(run.rows("added")) == 7
    assert numbers("windows", 0, 2, 3) == [(0.0, 3, 150), (10.0, 3, 125)]  # the argument is null, the row is there
    # a sum that no bigint holds is null and counted, also where it is merged with others
    assert numbers("sums", 0, 2, 3) == [(0.0, 3, 6), (10.0, 3, None)]
    failed = [each.failed["trips_sum"] for each in measured if each.failed]
    assert [each.windows for each in failed] == [1]
    assert "sum(trip) is beyond what a bigint holds" in failed[0].reason
    dead_letters: MemorySink = run.runner.sinks.dead_letters  # type: ignore[assignment]
    found = sorted((row._arc, row._reason, json.loads(bytes(row.value))["trip"]) for row in dead_letters.rows)
    assert found == [
        ("trips>numbers", "select 'numbers' fails on it", 4),
        ("trips>numbers", "select 'numbers' fails on it", most),
        ("trips>parts", "with_columns 'parts' fails on it", 3),
        ("trips>ratio", "where 'ratio' fails on it", 3),
        ("trips>shares", "aggregate 'shares' fails on it", 3),
    ]
    run.close()


def fussy(rows: DataFrame) -> DataFrame:
    """A function in Python that throws on two rows, and a time that Python has no date for."""

    def halved(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for part in parts:
            for number in part["id"]:
                if number in (77, 4999):
                    raise KeyError(number)
            yield part

    return rows.mapInPandas(halved, rows.schema).withColumn("when", F.expr("timestamp_micros(9223372036854775807L)"))


@pytest.mark.long
def test_trust_12_and_22_a_run_goes_on_and_tells_of_bad_rows(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.range(6000).coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    net = jt.Network("faulty")
    rows = net.source("rows", "id long", id=["id"])
    rows.where("100 / (id % 100) > 0", name="ratio").output("out")
    rows.apply(fussy, name="fussy").output("all")
    out, everything = jt.memory(), jt.memory()
    sinks = {"out": out, "all": everything}
    with caplog.at_level(logging.DEBUG, logger="jettison"):
        run = jt.start(net, {"rows": stream}, sinks, trigger=TRIGGER, checkpoint=str(tmp_path / "checkpoint"))
        until(run, lambda: run.report().rows_in == 6000)
        assert run.await_calibration(120.0), "calibration leaves out the rows that the batch has rejected"
        ended(run, 6000)

    assert sorted(row.id for row in out.rows) == [number for number in range(6000) if number % 100]
    report = run.report()
    assert (report.unfit, report.rows_unfit, report.rows_rejected) == ({"ratio": 60, "fussy": 2}, 62, 0)
    assert sorted(row.id for row in everything.rows) == [number for number in range(6000) if number not in (77, 4999)]
    assert all(row.when is None for row in everything.rows)  # a time that is none in Python stops nothing
    assert "operator ratio: its expression failed on 60 rows" in str(report)
    dead_letters = spark.read.parquet(str(tmp_path / "checkpoint" / "dead_letters")).collect()
    assert sorted(json.loads(bytes(row.value))["id"] for row in dead_letters) == sorted(
        [*range(0, 6000, 100), 77, 4999]
    )
    assert {row._reason for row in dead_letters} == {"where 'ratio' fails on it", "apply 'fussy' fails on it"}
    unfit = [row for row in run.ledger().collect() if row.reason == "an expression failed"]
    assert sum(row.rows_rejected for row in unfit) == 62
    assert not any(row.rows_shed for row in unfit)
    said = [record.getMessage() for record in caplog.records if record.name == "jettison"]
    of_batches = ["'faulty' starts", "DIVIDE_BY_ZERO", "62 rows make", "stopped"]
    of_calibration = ["'faulty' starts", "measuring costs", "costs are measured", "stopped"]  # beside the batches
    for in_order in (of_batches, of_calibration):
        places = [next(number for number, line in enumerate(said) if word in line) for word in in_order]
        assert places == sorted(places), said
