"""Networks that run on Spark: exact while they keep up, and when they shed, exactly what the plan log says."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark import running
from tests.spark.running import FREE, TRIGGER, TRIPS, Expected, ended, pairs, same_trips, taxi

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.small_files import Folder, LocalFolder, open_folder, resolved
from jettison.spark.read.offsets import batch_rows
from jettison.spark.run.run import Run
from jettison.spark.write.sinks import CallableSink, as_sink
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

HALF = Plan({"trips": Random(0.5), "paid>narrow": Random(0.25)}, "tested", 1, {"fares": 0.125, "alerts": 0.5})
CLOSED = Plan({"paid>narrow": Random(0.0)}, "tested", 2, {"fares": 0.0, "alerts": 1.0})
EXACT = Plan(reason="within budget")


def test_the_example_as_written(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = os.path.relpath(tmp_path)  # Spark and Python were started in the same folder
    stream_df = running.trips(spark, 4000, 2000)
    net = jt.Network("taxi")
    trips = net.source(
        "trips",
        schema="trip long, pickup timestamp, zone int, fare double",
        event_time="pickup",
        id=["trip"],
    )
    paid = trips.where("fare > 0")
    paid.select("zone", "fare").output("fares", qos=jt.QoS(loss=[(100, 1.0), (50, 0.8), (0, 0.0)]))
    paid.where("fare > 200").output("alerts", qos=jt.QoS(loss=[(100, 1.0), (0, 0.0)], priority=5))
    run = jt.start(
        net,
        {"trips": stream_df},
        sinks={"fares": jt.parquet(f"{here}/out/fares"), "alerts": jt.console()},
        trigger="1 second",
        shedding=jt.Shedding(headroom=0.9),
        checkpoint=f"{here}/checkpoint",
    )
    assert run.await_termination(timeout=0.1) is False
    ended(run, 4000)
    print(run.report())

    shown = capsys.readouterr().out
    report = run.report()
    written = spark.read.parquet(str(tmp_path / "out/fares"))
    assert report.network == "taxi"
    assert written.columns == ["zone", "fare", "batch"]
    assert written.count() == report.outputs["fares"].rows
    assert re.search(r"^--- batch \d: trip, pickup, zone, fare$", shown, re.MULTILINE)
    assert re.search(r"^network taxi: 2 batches in \d+ s", shown, re.MULTILINE)
    assert re.search(r"4,000 rows in; outputs lost [\d.]+% of them to shedding \([\d,]+ drops\)", shown)
    assert not run.is_active
    assert run.await_termination(timeout=1)


def test_every_operator_gives_what_a_batch_job_gives(spark: SparkSession, tmp_path: Path) -> None:
    zones = spark.createDataFrame([(zone, f"zone {zone}") for zone in range(10)], "zone int, zone_name string")
    closed = spark.createDataFrame([(0,), (2,)], "zone int")
    net = jt.Network("operators")
    trips = net.source("trips", **TRIPS)
    paid = trips.where("fare > 0", name="paid")
    paid.select("trip", "fare * 2 AS twice").output("sql")
    dear = paid.where(F.col("fare") > 20, name="dear")
    dear.select(F.col("trip"), (F.col("fare") + 1).alias("more"), "zone").output("columns")
    paid.with_columns({"band": "int(fare / 10)", "fare": F.round("fare")}).output("banded")
    dear.union(trips.where("fare <= 0", name="refunds"), name="odd").output("merged")
    paid.join(zones, "zone").output("joined")
    paid.join("closed", on=["zone"], how="left_anti").output("open")
    paid.apply(running.doubled, columns=["trip", "pickup", "zone", "fare"], name="first").apply(
        "tests.spark.running:doubled"
    ).select("trip", "fare").output("applied")
    trips.select("*", "fare > 0 AS is_paid").output("marked", quality=True)
    sinks = {output.name: jt.memory() for output in net.graph.outputs}

    run = jt.start(
        net,
        {"trips": running.trips(spark, 1500, 1000)},
        sinks,
        trigger=TRIGGER,
        checkpoint=str(tmp_path),
        shedding=False,
        tables={"closed": closed},
    )
    ended(run, 1500)

    rows = same_trips(spark, 0, 1500)
    paid_rows, dear_rows = rows.where("fare > 0"), rows.where("fare > 20")
    four_times = paid_rows.selectExpr("trip", "fare * 2 AS fare").selectExpr("trip", "fare * 2 AS fare")
    wanted = {
        "sql": paid_rows.selectExpr("trip", "fare * 2 AS twice"),
        "columns": dear_rows.selectExpr("trip", "fare + 1 AS more", "zone"),
        "banded": paid_rows.selectExpr("trip", "pickup", "zone", "round(fare) AS fare", "int(fare / 10) AS band"),
        "merged": dear_rows.union(rows.where("fare <= 0")),
        "joined": paid_rows.join(zones, "zone"),
        "open": paid_rows.join(closed, "zone", "left_anti").select("zone", "trip", "pickup", "fare"),
        "applied": four_times,
        "marked": rows.selectExpr(
            "*", "fare > 0 AS is_paid", "1D AS _kept", "bigint(trip >= 1000) AS _batch", "1D AS _sic"
        ),
    }
    for name, frame in wanted.items():
        got = sinks[name].rows
        assert set(got[0].asDict()) == set(frame.columns), name
        assert sorted(got, key=str) == sorted(frame.select(*got[0].asDict()).collect(), key=str), name
        assert run.report().outputs[name].rows == len(got), name
        assert run.report().outputs[name].delivered_share == 1.0
    assert run.report().rows_shed == 0
    assert run.ledger().where("rows_shed > 0").count() == 0


def test_what_is_shed_is_exactly_what_the_plan_log_says(spark: SparkSession, tmp_path: Path) -> None:
    # 500 ms of work for every batch, and 180 ms to do it in: the first plan, at least, must shed.
    costs = {"trips": 60.0, "paid": 60.0, "narrow": 100.0, "fares": 20.0, "dear": 10.0, "alerts": 10.0}
    tight = Profile(costs, {"paid": 0.98, "dear": 0.3})
    once, again = tmp_path / "once", tmp_path / "again"

    def start(folder: Path, **others: Any) -> tuple[Run, dict[str, Any]]:
        sinks = {"fares": jt.memory(), "alerts": jt.parquet(str(folder / "alerts"))}
        run = jt.start(
            taxi(),
            {"trips": running.trips(spark, 6000, 2000)},
            sinks,
            trigger=TRIGGER,
            checkpoint=str(folder / "checkpoint"),
            **others,
        )
        return ended(run, 6000), sinks

    run, sinks = start(once, costs=tight)
    plans = running.logged_plans(once / "checkpoint")
    expected = Expected(spark, plans, per_batch=2000)
    unshed = Expected(spark, [Plan()] * 3, per_batch=2000)
    fares, alerts = sinks["fares"], pairs(spark.read.parquet(str(once / "alerts")))
    delivered = [(row.trip, row.fare) for row in fares.rows]

    assert plans[0].drops
    assert plans[0].reason == "overload"
    assert sorted(delivered) == sorted(expected.fares)
    assert sorted(alerts) == sorted(expected.alerts)
    assert set(delivered) < set(unshed.fares)
    assert set(alerts) <= set(unshed.alerts)
    assert running.counts(once / "checkpoint") == expected.counts
    for (batch, arc), (rows, shed) in expected.counts.items():
        keep = plans[batch].keep(arc)
        assert abs(rows - shed - keep * rows) <= 5 * (keep * (1 - keep) * rows) ** 0.5 + 2

    report = run.report()
    shed = sum(shed for _, shed in expected.counts.values())
    assert (report.batches, report.rows_in, report.rows_shed) == (3, 6000, shed)
    assert report.plan == plans[-1]
    shares = {"fares": len(delivered) / len(unshed.fares), "alerts": len(alerts) / len(unshed.alerts)}
    for name, rows in (("fares", delivered), ("alerts", alerts)):
        output = report.outputs[name]
        assert output.rows == len(rows)
        assert output.delivered_share == pytest.approx(shares[name], abs=0.03)  # what would have come is not counted
        assert output.utility == pytest.approx(run.graph.by_name[name].qos.utility(output.delivered_share))
        if rows:  # a slow machine may close an output
            assert output.latency_ms["p50"] <= output.latency_ms["p99"] <= output.latency_ms["max"]
    assert f"6,000 rows in; outputs lost {report.shed_share:.1%} of them to shedding ({shed:,} drops)" in str(report)
    assert re.search(rf"^fares +{len(delivered):,} +[\d.]+%", str(report), re.MULTILINE)
    total = run.ledger().groupBy().sum("rows_shed").first()
    assert total is not None
    assert total[0] == shed

    # From the plan log alone, with rows that are persisted at the split: the same rows go, and are counted alike.
    shutil.copytree(once / "checkpoint" / "plans", again / "checkpoint" / "plans")
    _, repeated = start(again, costs=jt.Costs(FREE, shared=["paid"]))
    assert sorted(repeated["fares"].rows) == sorted(fares.rows)
    assert sorted(pairs(spark.read.parquet(str(again / "alerts")))) == sorted(alerts)
    assert running.counts(again / "checkpoint") == expected.counts


def test_counts_are_exact_whatever_sinks_do_with_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    plans = [HALF, CLOSED, EXACT, HALF]
    expected = Expected(spark, plans, per_batch=500)
    full = len(expected.fares), len(expected.alerts)
    seen: list[int] = []
    # The slow output makes the shared rows, the fast one is done with them before: its counts come too early.
    slow = jt.Network("taxi")
    paid = slow.source("trips", **TRIPS).where("fare > 0", name="paid")
    paid.select("trip", "zone", "fare", name="narrow").apply(running.slowly, name="slow").output("fares")
    paid.where("fare > 20", name="dear").output("alerts")
    cases: dict[str, tuple[jt.Network, dict[str, Any], tuple[int, int], list[str]]] = {
        "shown": (taxi(), {"fares": jt.console(3), "alerts": jt.memory(5)}, full, []),
        "ignored": (taxi(), {"fares": lambda rows, batch: seen.append(batch), "alerts": jt.memory()}, (0, full[1]), []),
        "shared": (slow, {"fares": jt.spark_format("noop"), "alerts": jt.spark_format("noop")}, full, ["paid"]),
    }
    for name, (net, sinks, rows, shared) in cases.items():
        checkpoint = tmp_path / name
        running.log_plans(checkpoint, plans, {"trips": 500})
        stream = running.trips(spark, 2000, 500, partitions=1)
        run = jt.start(
            net,
            {"trips": stream},
            sinks,
            trigger=TRIGGER,
            checkpoint=str(checkpoint),
            costs=jt.Costs(FREE, shared=shared),
        )
        ended(run, 2000)

        assert running.counts(checkpoint) == expected.counts, name
        outputs = run.report().outputs
        assert (outputs["fares"].rows, outputs["alerts"].rows) == rows, name
    assert seen == [0, 2, 3]  # nothing reaches the output in batch 1


def test_several_sources_are_one_tagged_stream(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("two")
    trips, calls = net.source("trips", **TRIPS), net.source("calls", **TRIPS)
    trips.where("fare > 0", name="paid").union(calls.select("*", name="all")).output("both")
    calls.where("fare > 20").output("dear")
    plan = Plan({"calls": Random(0.5)}, "tested", 1)
    running.log_plans(tmp_path, [plan], {"trips": 600, "calls": 400})
    sinks = {"both": jt.memory(), "dear": jt.memory()}

    run = jt.start(
        net,
        {"calls": running.trips(spark, 600, 400), "trips": running.trips(spark, 1800, 600)},
        sinks,
        trigger=TRIGGER,
        checkpoint=str(tmp_path),
        costs=FREE,
    )
    ended(run, 2400)

    assert [dict(sample.rows_in) for sample, _ in run.history] == [
        {"trips": 600, "calls": 400},
        {"trips": 600, "calls": 200},
        {"trips": 600, "calls": 0},
    ]
    first = same_trips(spark, 0, 400).selectExpr("*", "xxhash64(trip) AS _jt_id")
    kept = first.where(running.keeps("calls", Random(0.5))).drop("_jt_id")
    called = kept.union(same_trips(spark, 400, 600))
    both = same_trips(spark, 0, 1800).where("fare > 0").union(called)
    assert sorted(sinks["both"].rows) == sorted(both.collect())
    assert sorted(sinks["dear"].rows) == sorted(called.where("fare > 20").collect())
    ledger = running.counts(tmp_path)
    assert ledger[0, "calls"] == (400, 400 - kept.count())
    assert ledger[0, "trips"] == (600, 0)
    assert ledger[2, "calls"] == (0, 0)


def test_a_copy_for_several_outputs_holds_what_a_union_needs(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("shared")
    source = net.source("trips", **TRIPS)
    paid, refunds = source.where("fare > 0", name="paid"), source.where("fare <= 0", name="refunds")
    paid.union(refunds, name="one_way").select("trip").output("ids")
    refunds.union(paid, name="other_way").select("zone").output("zones")
    sinks = {"ids": jt.memory(), "zones": jt.memory()}
    stream = running.trips(spark, 500, 500)
    run = jt.start(
        net, {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=str(tmp_path), costs=jt.Costs(FREE, shared=["paid"])
    )
    ended(run, 500)
    assert sorted(row.trip for row in sinks["ids"].rows) == list(range(500))
    assert sorted(sinks["zones"].rows) == sorted(same_trips(spark, 0, 500).select("zone").collect())


# --- sinks ------------------------------------------------------------------------------------------------------------


def test_sinks(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, fewer = spark.range(30).repartition(3), spark.range(20)

    files = jt.parquet(str(tmp_path / "out"))
    files.write(rows, 0)
    files.write(rows, 1)
    files.write(fewer, 1)  # what is written again replaces what was there
    written = spark.read.parquet(str(tmp_path / "out"))
    assert written.groupBy("batch").count().orderBy("batch").collect() == [(0, 30), (1, 20)]

    kept = jt.memory(limit=50)
    for batch, frame in enumerate([rows, fewer, fewer, spark.range(1000)]):
        kept.write(frame, batch)
        kept.write(frame, batch)
        assert len(kept.rows) <= 50
    assert kept.batches.keys() == {3}  # the oldest went first, and the largest is cut
    assert len(kept.rows) == 50

    seen: list[tuple[int, int]] = []
    function = as_sink("out", lambda frame, batch: seen.append((frame.count(), batch)))
    function.write(rows, 7)
    assert isinstance(function, CallableSink)
    assert seen == [(30, 7)]

    jt.spark_format("noop").write(rows, 0)
    lines = jt.spark_format("json", path=str(tmp_path / "json"))
    lines.write(fewer, 0)
    lines.write(fewer, 1)
    assert spark.read.json(str(tmp_path / "json")).count() == 40

    capsys.readouterr()
    jt.console(2).write(fewer.selectExpr("id", "id * 2 AS twice"), 3)
    assert capsys.readouterr().out == "--- batch 3: id, twice\n0, 0\n1, 2\n"

    with pytest.raises(jt.StartError, match=r"output 'out': 5 is not a sink. Use jt.parquet"):
        as_sink("out", 5)


# --- what a run tells -------------------------------------------------------------------------------------------------


def test_calibration_measures_once_and_a_restart_remembers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def network() -> jt.Network:
        net = jt.Network("calibrated")
        paid = net.source("trips", **TRIPS).where("fare > 0", name="paid")
        slow = paid.where("zone < 30", name="central").apply(running.slowly, name="slow")
        slow.where("fare > 20", name="dear").output("alerts")
        slow.select("zone").output("zones")
        return net

    def start(rows: int) -> Run:
        stream = running.trips(spark, rows, 5000)
        sinks = {"alerts": jt.spark_format("noop"), "zones": jt.spark_format("noop")}
        # without shedding: of the few rows that a slow machine keeps selectivities would be learned anew
        return jt.start(
            network(), {"trips": stream}, sinks, trigger="1 second", checkpoint=str(tmp_path), shedding=False
        )

    run = start(5000)
    running.until(run, lambda: run.report().rows_in == 5000)
    assert run.await_calibration(60.0)
    assert run.calibration is None, "the loop takes it over between two batches, or at the end"
    ended(run, 5000)
    assert run.calibration is not None

    rows = same_trips(spark, 0, 5000)
    paid = rows.where("fare > 0").count()
    central = rows.where("fare > 0 AND zone < 30").count()
    dear = rows.where("fare > 20 AND zone < 30").count()
    truth = {"trips": 1.0, "paid": paid / 5000, "central": central / paid, "slow": 1.0, "dear": dear / central}
    profile = run.controller.profile
    assert {name: profile.passes(name) for name in truth} == pytest.approx(truth, abs=0.06), "of a sample"
    assert all(profile.cost(operator.name) > 0 for operator in run.graph.operators)
    assert profile.read_us["trips"] > 0
    assert profile.fixed_ms > 0
    assert profile.cost("slow") > 10 * profile.cost("paid")
    assert run.shared == {"slow"}  # a millisecond a row, twice, against one copy

    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("jettison.spark.batch.costs.calibrate", never)
    caplog.set_level(logging.INFO, "jettison")
    second = start(10_000)
    assert "goes on with batch 1" in caplog.text
    assert second.shared == {"slow"}
    assert second.controller.profile == profile
    ended(second, 5000)
    assert [sample.batch for sample, _ in second.history] == [1]


def test_a_saved_profile_of_other_operators_is_not_used(spark: SparkSession, tmp_path: Path) -> None:
    def start(name: str, rows: int) -> Run:
        net = jt.Network("changing")
        net.source("trips", **TRIPS).where("fare > 0", name=name).output("out")
        full = Profile({"trips": 0.1, name: 0.1, "out": 0.1}, {})
        return jt.start(
            net,
            {"trips": running.trips(spark, rows, 500)},
            {"out": jt.spark_format("noop")},
            trigger="5 seconds",
            checkpoint=str(tmp_path),
            costs=full if name == "paid" else None,
        )

    ended(start("paid", 500), 500)
    assert "paid" in json.loads((tmp_path / "profile.json").read_text())["cost_us"]
    ended(start("positive", 1000), 500)


# --- the checkpoint ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_restart_goes_on_where_the_run_was(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    checkpoint = tmp_path / "checkpoint"
    running.log_plans(checkpoint, [EXACT, HALF, EXACT, HALF], {"trips": 500})
    batches = []
    for rows, fresh in ((1000, 1000), (2000, 1000)):
        sinks = {name: jt.parquet(f"{scheme}{tmp_path}/{name}") for name in ("fares", "alerts")}
        stream = running.trips(spark, rows, 500)
        run = jt.start(
            taxi(), {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=f"{scheme}{checkpoint}", costs=FREE
        )
        ended(run, fresh)
        batches += [sample.batch for sample, _ in run.history]

    assert batches == [0, 1, 2, 3]
    expected = Expected(spark, [EXACT, HALF, EXACT, HALF], per_batch=500)
    assert sorted(pairs(spark.read.parquet(str(tmp_path / "fares")))) == sorted(expected.fares)
    assert sorted(pairs(spark.read.parquet(str(tmp_path / "alerts")))) == sorted(expected.alerts)
    assert running.counts(checkpoint) == expected.counts
    assert json.loads((checkpoint / "network.json").read_text())["network"] == "taxi"
    assert [batch_rows(LocalFolder(checkpoint / "spark"), batch, 1) for batch in range(5)] == [[500]] * 4 + [None]


def test_rows_are_counted_where_offsets_do_not_tell(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    for number in range(3):
        lines = [f"{trip},{trip % 7}" for trip in range(100 * number, 100 * number + 100 - number)]
        (source / f"{number}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        time.sleep(0.01)  # files are read in the order of their age
    net = jt.Network("files")
    net.source("trips", schema="trip long, zone int", id=["trip"]).where("zone > 0", name="some").output("out")
    stream = spark.readStream.schema("trip long, zone int").option("maxFilesPerTrigger", 1).csv(str(source))
    sizes: dict[int, int] = {}

    def keep(rows: DataFrame, batch: int) -> None:
        sizes[batch] = rows.count()

    run = jt.start(net, {"trips": stream}, {"out": keep}, trigger=TRIGGER, checkpoint=str(checkpoint), costs=FREE)
    ended(run, 297)

    assert [batch_rows(LocalFolder(checkpoint / "spark"), batch, 1) for batch in range(3)] == [None] * 3
    assert [sample.rows_in for sample, _ in run.history] == [{"trips": 100}, {"trips": 99}, {"trips": 98}]
    zones = [trip % 7 for number in range(3) for trip in range(100 * number, 100 * number + 100 - number)]
    assert sum(sizes.values()) == sum(zone > 0 for zone in zones)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_folders_read_write_list_and_delete_alike(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    folder: Folder = open_folder(f"{scheme}{tmp_path}/deep/down", spark)
    assert isinstance(folder, LocalFolder)
    assert folder.read("plans/1.json") is None
    assert folder.names("plans") == []
    folder.write("plans/10.json", '{"fare": "12 €"}\nsecond line')
    folder.write("plans/1.json", "old")
    folder.write("plans/1.json", "new")
    folder.write("plans/deeper/2.json", "not of this folder")
    folder.write("top.json", "top")
    assert folder.read("plans/10.json") == '{"fare": "12 €"}\nsecond line'
    assert folder.read("plans/1.json") == "new"
    assert folder.read("top.json") == "top"
    assert folder.names("plans") == ["1.json", "10.json"]
    assert LocalFolder(tmp_path / "deep" / "down").read("plans/1.json") == "new"
    for name in ("plans/1.json", "plans/deeper", "plans/never"):
        folder.delete(name)
    assert folder.names("plans") == ["10.json"]
    assert folder.read("plans/deeper/2.json") is None


def test_a_local_checkpoint_stays_local_where_files_are_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """What Python writes and what Spark writes must be in one place, whatever Spark takes a bare path for."""
    settings = spark._jsc.hadoopConfiguration()
    assert resolved(f"file://{tmp_path}/run", spark) == resolved(f"{tmp_path}/run", spark) == f"{tmp_path}/run"
    usual = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", "hdfs://nowhere:8020")
    try:
        assert resolved(f"file://{tmp_path}/run", spark) == f"file://{tmp_path}/run"
    finally:
        settings.set("fs.defaultFS", usual)


def test_streams_that_are_not_generated_need_no_taxi(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own rate source, a temporary checkpoint, and rows without identity or time."""
    net = jt.Network("rate")
    net.source("ticks", schema="value long").where("value % 2 = 0", name="even").output("out")
    stream = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    out = jt.memory()
    run = jt.start(net, {"ticks": stream}, {"out": out}, trigger="300 ms", costs=FREE)
    try:
        running.until(run, lambda: run.report().rows_in >= 200)
    finally:
        run.stop()
    assert [row.value for row in sorted(out.rows)] == list(range(0, run.report().rows_in, 2))
    assert run.report().outputs["out"].latency_ms["p50"] is None
