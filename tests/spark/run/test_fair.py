"""Fair shedding on Spark: nested buckets are obeyed as logged, and a hundred queries run in one application."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import TRIGGER, TRIPS, counts, ended, logged_plans, same_trips, trips
from tests.spark.state.test_state_identity import TRIPS as SCHEMA
from tests.spark.state.test_state_identity import Restarted, counted, delivered
from tests.spark.state.test_state_identity import trips as made_trips

import jettison as jt
from jettison.plan.drops.buckets import Buckets
from jettison.spark.compile.drops import identity_of, keeps

PER_BATCH, BATCHES = 2000, 4


def _two_users() -> jt.Network:
    net = jt.Network("users")
    source = net.source("trips", **TRIPS)
    source.where("fare > 0", name="cheap").output("anna")
    source.where("fare > 1", name="dear").output("ben", qos=jt.QoS(priority=2))
    return net


def test_rows_are_dropped_in_nested_buckets_as_logged(spark: SparkSession, tmp_path: Path) -> None:
    """Twice the capacity: the source keeps what ben gets, anna's branch drops more; the log says which rows."""
    costs = jt.Profile({"cheap": 50.0, "dear": 100.0}, {}, fixed_ms=1.0)
    run = jt.start(
        _two_users(),
        {"trips": trips(spark, PER_BATCH * BATCHES, PER_BATCH)},
        {name: jt.parquet(str(tmp_path / name)) for name in ("anna", "ben")},
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "checkpoint"),
        shedding=jt.Shedding(shedder=jt.Fair(weights=True)),
        costs=jt.Costs(costs, learn=False, shared=()),
    )
    ended(run, PER_BATCH * BATCHES)
    plans = logged_plans(tmp_path / "checkpoint")
    assert run.report().uncertified_plans == 0
    assert all(isinstance(drop, Buckets) for plan in plans for drop in plan.drops.values())
    assert any("trips>cheap" in plan.drops for plan in plans)
    expected: dict[str, set[int]] = {"anna": set(), "ben": set()}
    for batch, plan in enumerate(plans):
        rows = same_trips(spark, batch * PER_BATCH, (batch + 1) * PER_BATCH).selectExpr("*", identity_of(["trip"]))
        for name, branch, least in (("anna", "trips>cheap", 0), ("ben", "trips>dear", 1)):
            kept = rows.where(f"fare > {least}")
            for arc in ("trips", branch):
                if arc in plan.drops:
                    kept = kept.where(keeps(arc, plan.drops[arc]))
            expected[name] |= {row.trip for row in kept.select("trip").collect()}
    found = {name: {row.trip for row in spark.read.parquet(str(tmp_path / name)).collect()} for name in expected}
    assert found == expected
    for (batch, arc), (rows_in, rows_shed) in counts(tmp_path / "checkpoint").items():
        drop = plans[batch].drops[arc]
        assert 1 - rows_shed / rows_in == pytest.approx(drop.keep, abs=0.06)
    sic = run.controller.sic
    assert sic.sic("ben") > 1.5 * sic.sic("anna")


def _many(numbers: range) -> jt.Network:
    """One query per number: two filters for every window."""
    net = jt.Network("many")
    source = net.source("trips", SCHEMA, event_time="at", id=["trip"])
    for number in numbers:
        here = source.where(f"trip % 10 = {number % 10}", name=f"filter_{number}")
        if number % 3 == 0:
            here = here.window("4 seconds", by="zone").agg(n="count(*)", name=f"windows_{number}")
        here.output(f"query_{number}")
    return net


@pytest.mark.long
def test_a_hundred_queries_run_and_one_may_leave_and_another_come(spark: SparkSession, tmp_path: Path) -> None:
    """After a restart without query 0 and with query 100, all others go on as if nothing had happened."""
    runs, fair = Restarted(spark, tmp_path), jt.Shedding(shedder="fair")
    _, first = runs.run(_many(range(100)), shedding=fair)
    run, second = runs.run(_many(range(1, 101)), shedding=fair)
    assert len(run.controller.sic.all()) == 100
    assert set(run.controller.sic.all().values()) == {1.0}
    every = made_trips(0, 4)
    for number in range(1, 100):
        sinks = (first[f"query_{number}"], second[f"query_{number}"])
        if number % 3:
            found = sorted(row.trip for sink in sinks for row in sink.rows)
            assert found == [trip[0] for trip in every if trip[0] % 10 == number % 10]
        else:
            windows = delivered(*sinks)
            truth = counted(every, lambda trip, number=number: trip[0] % 10 == number % 10)
            assert windows == {key: truth[key] for key in windows}
            # rows of the last batch close no window of their own; the one from 20 s on began before the restart
            assert set(windows) == {key for key in truth if key[1] < 28}
    new = [row.trip for row in second["query_100"].rows]
    assert sorted(new) == [trip[0] for trip in made_trips(2, 4) if trip[0] % 10 == 0]
