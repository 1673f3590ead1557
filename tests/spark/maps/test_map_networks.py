"""Maps among other operators: behind a join, before a window, read by two outputs, from a file, in a dry run."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.maps.test_map import TRIPS, trips
from tests.spark.running import FREE, TRIGGER, ended

import jettison as jt
from jettison.errors import StartError
from jettison.network import Map
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.maps.mapped_rows import MappedRows
from jettison.testing import memory_source

pytestmark = pytest.mark.spark

FILE = """
network: shop
sources:
  orders: {schema: "order long, item string, placed timestamp, log string", event_time: placed, id: [order]}
  payments: {schema: "order long, amount double, paid timestamp", event_time: paid, id: [order]}
operators:
  pairs: {of: orders, join_stream: payments, on: [order], within: 1 minute}
  scored: {of: pairs, map: "tests.spark.maps.functions:scored", key: [item, order], schema: score double}
  windows: {of: scored, window: {size: 10 seconds, by: [item]}, agg: {n: count(*), total: sum(score)}}
outputs:
  scores: {of: scored}
  totals: {of: windows}
"""
BEGIN = datetime(2026, 1, 1)


def test_a_map_from_a_file_behind_a_join_is_called_once_for_an_output_and_a_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    numbers = [*range(40), 2000]  # the last one closes the windows of the others
    times = [BEGIN + timedelta(seconds=number) for number in numbers]
    items = [None if number % 5 == 0 else f"item {number % 3}" for number in numbers]
    orders = [(number, item, time, str(log)) for number, item, time in zip(numbers, items, times, strict=True)]
    payments = [(number, number + 0.5, time) for number, time in zip(numbers, times, strict=True)]
    graph = jt.from_yaml(FILE).graph()
    by_name = {source.name: source for source in graph.sources}
    rows = {"orders": orders, "payments": payments}
    schemas = {name: ", ".join(f"`{column}` {kind}" for column, kind in by_name[name].schema) for name in rows}
    sinks = {"scores": jt.memory(), "totals": jt.memory()}
    frames = {name: memory_source(spark, schemas[name], rows[name]).frame for name in rows}
    run = jt.start(graph, frames, sinks, trigger="available now", costs=FREE, checkpoint=str(tmp_path / "checkpoint"))
    run.await_termination()
    found = {row["order"]: (row["item"], row["score"]) for row in sinks["scores"].rows}
    assert found == {number: (item, 2 * number + 1.0) for number, item in zip(numbers, items, strict=True)}
    assert log.stat().st_size == len(numbers), "once for every row, though two outputs read it"
    expected: dict[tuple[Any, int], list[float]] = defaultdict(list)
    for number, item in list(zip(numbers, items, strict=True))[:-1]:
        expected[item, number // 10].append(2 * number + 1.0)
    windows = {
        (row["item"], (row["window_start"] - BEGIN).seconds // 10): (row["n"], row["total"])
        for row in sinks["totals"].rows
    }
    assert windows == {key: (len(scores), sum(scores)) for key, scores in expected.items()}


def test_a_dry_run_by_name_reports_what_its_shedder_learns(spark: SparkSession, tmp_path: Path) -> None:
    """Keys of two columns, one of which is null now and then; nothing is dropped."""
    net = jt.Network("dry")
    rides = net.source("trips", **TRIPS).with_columns({"kind": "IF(trip % 3 = 0, NULL, 'day')"}, name="kinds")
    scored = rides.map(lambda row: {"half": row["fare"] / 2}, key=["zone", "kind"], schema="half double", name="score")
    scored.where("half > 1", name="dear").output("dear", qos=jt.QoS(latency_goal="1 second"))
    scored.output("all")
    sinks = {"dear": jt.memory(), "all": jt.memory()}
    run = jt.start(
        net, {"trips": trips(spark, tmp_path / "trips", 2, 60)}, sinks, trigger=TRIGGER, costs=FREE,
        checkpoint=str(tmp_path / "checkpoint"), shedding=jt.Shedding("dry-run", shedder="las"),
    )  # fmt: skip
    ended(run, 120)
    assert len(sinks["all"].rows) == 120
    assert all(row["half"] == row["fare"] / 2 for row in sinks["all"].rows)
    timed = [sample.timed["score"] for sample, _ in run.history]
    assert sum(each.sketch.tuples for each in timed) == 120
    assert any(text.endswith(", null") for each in timed for text in each.keys.values())
    costs = run.report().costs
    assert list(costs) == ["score"]
    assert costs["score"].state == "START"


def test_a_key_that_is_no_column_or_of_no_fitting_type_is_named(spark: SparkSession) -> None:
    frame = spark.range(1).selectExpr("id", "array(id) AS many")
    for key, message in (
        ("idd", r"map 'm': key 'idd' is no column \(did you mean 'id'\?\): id, many"),
        ("many", r"map 'm': key 'many' is of type array<bigint>: use a number"),
    ):
        operator = Map("m", ("s",), "math:sqrt", (key,), (("x", "double"),))
        with pytest.raises(StartError, match=message):
            MappedRows(ExpressionCache()).rows(operator, frame, count=False)
