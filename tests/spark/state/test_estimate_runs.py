"""Whole runs in an overload: the loop learns which groups are large, and says so in the plans that it logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import TRIGGER, TRIPS, ended, logged_plans, same_trips, trips, until

import jettison as jt
from jettison.errors import StartError
from jettison.network.durations import duration_ms
from jettison.plan.drops.stratified import Stratified
from jettison.spark.write.sinks import MemorySink
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

PER_BATCH, BATCHES = 20_000, 4  # a batch is a window: rows are a microsecond apart
KEEP = 0.3


def network() -> jt.Network:
    net = jt.Network("taxi")
    zones = net.source("trips", **TRIPS).window("20 milliseconds", by="zone")
    zones.agg(n="count(*)", income="sum(fare)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    return net


def test_shares_of_groups_are_in_the_log_and_no_group_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    sink = MemorySink()
    cost_us = 1000 * duration_ms(TRIGGER, "trigger") * 0.9 / (KEEP * PER_BATCH)
    run = jt.start(
        network(),
        {"trips": trips(spark, PER_BATCH * BATCHES, PER_BATCH)},
        {"table": sink},
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "checkpoint"),
        costs=jt.Costs(Profile({"busy": cost_us}, {}), learn=False, shared=()),
    )
    ended(run, PER_BATCH * BATCHES)
    drops = [plan.drops["trips"] for plan in logged_plans(tmp_path / "checkpoint")]
    assert len(drops) >= BATCHES
    for drop in drops[:BATCHES]:
        assert isinstance(drop, Stratified)
        assert drop.groups, "the groups of the first batch were counted before it was shed"
        assert drop.rest == 1.0
    kept = [sample.arcs["trips"] for sample, _ in run.history if sample.arcs["trips"][0]]
    assert all(left / rows == pytest.approx(KEEP, rel=0.1) for rows, left in kept)
    every = same_trips(spark, 0, PER_BATCH * BATCHES).selectExpr(
        "*", "window(pickup, '20 milliseconds').start AS start"
    )
    truth = {(row.start, row.zone): row["count"] for row in every.groupBy("start", "zone").count().collect()}
    given = {(row.window_start, row.zone): row for row in sink.rows}
    starts = {start for start, _ in given}
    assert starts
    assert {place for place in truth if place[0] in starts} == given.keys()
    near = [row.n_low <= truth[place] <= row.n_high for place, row in given.items()]
    assert sum(near) >= 0.9 * len(near)
    assert any(row.n_low < row.n_high for row in given.values())


def test_costs_of_what_is_estimated_are_measured_as_of_other_windows(spark: SparkSession, tmp_path: Path) -> None:
    sink = MemorySink()
    run = jt.start(
        network(),
        {"trips": trips(spark, 12_000, 6_000)},
        {"table": sink},
        trigger="2 seconds",
        checkpoint=str(tmp_path / "checkpoint"),
    )
    until(run, lambda: run.report().rows_in == 12_000)
    assert run.await_calibration(60.0)
    ended(run, 12_000)
    assert run.calibration is not None
    assert run.calibration.profile.cost("busy") > 0
    assert all(row.n == row.n_low == row.n_high for row in sink.rows)


def test_a_run_with_a_table_that_has_a_key_twice_is_not_started(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("taxi")
    named = net.source("trips", **TRIPS).join("names", on="zone", name="named")
    named.window("1 second", by="zone").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    with pytest.raises(StartError, match=r"join 'named': table 'names' has several rows with zone = 1"):
        jt.start(
            net,
            {"trips": trips(spark, 10, 10)},
            {"table": MemorySink()},
            checkpoint=str(tmp_path / "checkpoint"),
            tables={"names": spark.createDataFrame([(1, "a"), (1, "b"), (2, "c")], "zone int, name string")},
        )
    assert not (tmp_path / "checkpoint").exists()
