"""A run from its start to its end: whose folders it writes to, what it refuses, how it stops, what Spark's UI shows."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark import running
from tests.spark.running import FREE, TRIGGER, TRIPS, ended, taxi, until

import jettison as jt
from jettison.plan.plan import Plan, Random
from jettison.spark.describe import part
from jettison.spark.run import Run

pytestmark = pytest.mark.spark


def started(spark: SparkSession, folder: Path, checkpoint: str, rows: int = 500, **others: Any) -> Run:
    """Trips into parquet folders below `folder`, 500 in each batch."""
    options: dict[str, Any] = {
        "sinks": {name: jt.parquet(f"{folder}/{name}") for name in ("fares", "alerts")},
        "trigger": TRIGGER,
        "checkpoint": f"{folder}/{checkpoint}",
        "profile": FREE,
    }
    network = others.pop("network", None) or taxi()
    return jt.start(network, {"trips": running.trips(spark, rows, 500)}, **{**options, **others})


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*.parquet"))


# --- two runs, one folder ---------------------------------------------------------------------------------------------


def test_trust_5_a_folder_belongs_to_one_run(spark: SparkSession, tmp_path: Path) -> None:
    ended(started(spark, tmp_path, "first"), 500)
    rows = spark.read.parquet(f"{tmp_path}/fares").count()
    assert rows > 0
    before = files(tmp_path)

    refused = r"output 'fares': .*fares' belongs to output 'fares' of network 'taxi' with checkpoint '.*first', and .*"
    with pytest.raises(jt.StartError, match=refused + r"Go on with that checkpoint, give another path, .*delete"):
        started(spark, tmp_path, "second")
    with pytest.raises(jt.StartError, match=r"output 'fares': .* belongs to"):
        started(spark, tmp_path, "third", network=taxi("other"))
    spelled = {"fares": jt.parquet(f"file://{tmp_path}/./fares/"), "alerts": jt.memory()}
    with pytest.raises(jt.StartError, match=r"output 'fares': .* belongs to"):
        started(spark, tmp_path, "fourth", sinks=spelled)
    for others in (
        {"rejects": jt.parquet(f"{tmp_path}/alerts")},
        {"on_shed": {"trips": jt.parquet(f"{tmp_path}/alerts")}},
    ):
        with pytest.raises(jt.StartError, match=r"(rejects|on_shed trips): .*alerts' belongs to output 'alerts'"):
            started(spark, tmp_path, "fifth", sinks={"fares": jt.memory(), "alerts": jt.memory()}, **others)
    swapped = {"fares": jt.parquet(f"{tmp_path}/alerts"), "alerts": jt.parquet(f"{tmp_path}/fares")}
    with pytest.raises(jt.StartError, match=r"output 'fares': .* has the rows of output 'alerts' of this very run"):
        started(spark, tmp_path, "first", sinks=swapped)
    same = {"fares": jt.parquet(f"{tmp_path}/new"), "alerts": jt.parquet(f"{tmp_path}/x/../new")}
    with pytest.raises(jt.StartError, match=r"output 'fares' and output 'alerts' both write to"):
        started(spark, tmp_path, "sixth", sinks=same)
    assert files(tmp_path) == before
    assert not (tmp_path / "new").exists()
    assert spark.read.parquet(f"{tmp_path}/fares").count() == rows

    # the same checkpoint goes on, and a lost checkpoint in the same place is another run
    ended(started(spark, tmp_path, "first", rows=1000), 500)
    assert spark.read.parquet(f"{tmp_path}/fares").count() > rows
    shutil.rmtree(tmp_path / "first")
    with pytest.raises(jt.StartError, match=r"belongs to an earlier run, whose checkpoint was in '.*first' before"):
        started(spark, tmp_path, "first")


def test_trust_5_old_folders_and_those_to_replace(spark: SparkSession, tmp_path: Path) -> None:
    ended(started(spark, tmp_path, "checkpoint", rows=1000), 1000)
    for name in ("fares/_jettison.json", "alerts/_jettison.json", "checkpoint/run.json"):
        (tmp_path / name).unlink()  # as an earlier version left them

    with pytest.raises(
        jt.StartError, match=r"output 'fares': .* has batches of a run that is not known.*Go on with the"
    ):
        started(spark, tmp_path, "other")
    ended(started(spark, tmp_path, "checkpoint", rows=1500), 500)  # its own checkpoint goes on
    assert sorted(path.name for path in (tmp_path / "fares").glob("batch=*")) == ["batch=0", "batch=1", "batch=2"]
    owner = json.loads((tmp_path / "fares" / "_jettison.json").read_text())
    assert owner["run"] == json.loads((tmp_path / "checkpoint" / "run.json").read_text())["run"]
    assert "batch" in spark.read.parquet(f"{tmp_path}/fares").columns

    anew = {name: jt.parquet(f"{tmp_path}/{name}", on_other_run="replace") for name in ("fares", "alerts")}
    ended(started(spark, tmp_path, "other", sinks=anew), 500)
    assert [path.name for path in (tmp_path / "fares").glob("batch=*")] == ["batch=0"]
    with pytest.raises(jt.StartError, match=r"belongs to output 'fares'"):
        started(spark, tmp_path, "checkpoint", rows=2000)
    with pytest.raises(jt.StartError, match=r"on_other_run='append' is not known: use 'refuse' or 'replace'"):
        jt.parquet("out", on_other_run="append")


def test_trust_5_a_start_that_fails_keeps_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    counted = running.trips(spark, 500, 500).groupBy("trip", "pickup", "zone", "fare").count()
    with pytest.raises(jt.StartError, match="network 'taxi'"):
        jt.start(
            taxi(),
            {"trips": counted},
            {"fares": jt.parquet(f"{tmp_path}/fares"), "alerts": jt.memory()},
            checkpoint=f"{tmp_path}/first",
        )
    assert not (tmp_path / "fares" / "_jettison.json").exists()
    ended(started(spark, tmp_path, "second"), 500)


# --- columns that change their meaning --------------------------------------------------------------------------------


def renamed(rows: DataFrame) -> DataFrame:
    return rows.withColumnRenamed("zone", "_kept")


def doubled_name(rows: DataFrame) -> DataFrame:
    return rows.withColumn("FARES", rows["fare"]).withColumnRenamed("trip", "fares")


def test_trust_6_columns_read_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    def start(stream: Any, sink: Any, quality: bool = False, **others: Any) -> None:
        network = stream._network
        stream.output("out", quality=quality)
        given = {"trips": running.trips(spark, 500, 500)}
        jt.start(network, given, {"out": sink}, checkpoint=f"{tmp_path}/checkpoint", **others).stop()

    def source() -> Any:
        return jt.Network("columns").source("trips", **TRIPS)

    files = jt.parquet(f"{tmp_path}/out")
    with pytest.raises(jt.StartError, match=r"output 'out': its column 'Batch' would read back .*batch=0.*rename it"):
        start(source().select("trip", "zone AS Batch"), files)
    with pytest.raises(jt.StartError, match=r"output 'out': quality=True adds a column '_kept'.*rename '_kept'"):
        start(source().apply(renamed), jt.memory(), quality=True)  # only Spark knows these columns
    with pytest.raises(jt.StartError, match=r"output 'out': columns 'fares' and 'FARES' have one name"):
        start(source().apply(doubled_name), jt.memory())
    table = spark.createDataFrame([(1, 2)], "zone int, _jt_id int")
    with pytest.raises(jt.StartError, match=r"join 'join1': its table has a column '_jt_id'.*rename it"):
        start(source().join(table, "zone"), jt.memory())
    assert not (tmp_path / "out").exists()
    start(source().select("trip", "zone AS batch"), jt.memory())  # other sinks have no such folders


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_trust_15_stop_is_no_failure(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Quick stops at any moment: nothing is said, nothing is lost, and what was not committed is repeated."""
    caplog.set_level(logging.WARNING)
    capfd.readouterr()
    left, rows = 0, 0
    for number in range(12):
        # a stream that never runs dry: the next batch begins as soon as one has ended
        run = started(spark, tmp_path, "checkpoint", rows=10**6, trigger="1 millisecond")
        until(run, lambda run=run, number=number: run.report().batches >= (number % 2))
        time.sleep(0.05 * (number % 4))
        run.stop()
        left += run._left
        rows += run.report().rows_in
        assert run.query.exception() is None
        assert not run.is_active
        assert run.await_termination(1)
        committed = {path.name for path in (tmp_path / "checkpoint/spark/commits").iterdir() if path.name.isdecimal()}
        written = {path.name.partition("=")[2] for path in (tmp_path / "fares").glob("batch=*")}
        assert written == committed
    assert left, "no stop met a batch that began: the test shows nothing"
    assert rows == 500 * len(committed)
    found = spark.read.parquet(f"{tmp_path}/fares")
    assert (
        found.count()
        == found.select("trip").distinct().count()
        == running.same_trips(spark, 0, rows).where("fare > 0").count()
    )
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_trust_15_a_batch_that_is_broken_off_is_no_failure(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = threading.Event()

    def slow(rows: DataFrame, batch: int) -> None:
        begun.set()
        rows.sparkSession.sparkContext._jvm.java.lang.Thread.sleep(3000)
        rows.count()

    run = started(spark, tmp_path, "checkpoint", sinks={"fares": slow, "alerts": jt.memory()})
    assert begun.wait(running.PATIENCE_S)
    run.stop(patience_s=0.1)
    assert run.query.exception() is None
    assert run.report().batches == 0
    second = started(spark, tmp_path, "checkpoint", sinks={"fares": jt.memory(), "alerts": jt.memory()})
    assert [sample.batch for sample, _ in ended(second, 500).history] == [0]


# --- clocks -----------------------------------------------------------------------------------------------------------


def test_trust_18_durations_do_not_follow_the_wall_clock(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wall clock goes back by an hour with every look at it."""
    real, looks = time.time, iter(range(10**9))
    net = jt.Network("clocks")
    trips = net.source("trips", **TRIPS)
    trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("zones")
    trips.window("10 rows", by="zone").agg(n="count(*)", name="ten").output("tens")
    trips.where("fare > 0", name="paid").join(
        trips.where("fare > 20", name="dear").select("trip"), "trip", within="1 minute"
    ).output("pairs")
    monkeypatch.setattr(time, "time", lambda: real() - 3600 * next(looks))
    monkeypatch.setattr("jettison.spark.run.LEAST_ROWS", 100)
    run = started(
        spark,
        tmp_path,
        "checkpoint",
        rows=1500,
        network=net,
        sinks={name: jt.memory() for name in ("zones", "tens", "pairs")},
        profile=None,
        on_shed={"trips": jt.memory()},
    )
    ended(run, 1500)
    monkeypatch.undo()
    for sample, _ in run.history:
        times_ms = {"duration": sample.duration_ms, "interval": sample.interval_ms, **sample.parts_ms}
        assert all(0 <= each < 600_000 for each in times_ms.values()), times_ms
    assert {"busy", "ten", "pairs", "deciding"} <= set(times_ms)
    assert 0 < run.report().seconds < 600
    assert all(cost < 1e6 for cost in run.controller.profile.cost_us.values())


# --- what Spark's UI shows --------------------------------------------------------------------------------------------


def descriptions(spark: SparkSession) -> set[str]:
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    told = (jobs.apply(number).description() for number in range(jobs.size()))
    return {str(each.get()) for each in told if each.isDefined()}


def test_trust_23_jobs_say_what_they_are_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = jt.Network("described")
    trips = net.source("trips", **TRIPS)
    trips.where("fare > 0", name="paid").output("fares")
    trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("zones")
    monkeypatch.setattr("jettison.spark.run.LEAST_ROWS", 100)
    running.log_plans(tmp_path / "checkpoint", [Plan({"trips>paid": Random(0.5)}, "tested", 1)], {"trips": 500})

    def start(checkpoint: str) -> Run:
        return started(
            spark,
            tmp_path,
            checkpoint,
            rows=1000,
            network=net,
            sinks={"fares": jt.spark_format("noop"), "zones": jt.memory()},
            on_shed={"fares": jt.spark_format("noop")},
            profile=None,
        )

    run = start("checkpoint")
    other = start("other")
    assert (run.query.name, other.query.name) == ("jettison-described", "jettison-described-2")
    ended(run, 1000)
    ended(other, 1000)
    told = {each for each in descriptions(spark) if each.startswith("described: ")}
    for wanted in (
        "batch 0, output fares",
        "batch 1, output fares",
        "batch 1, slices of busy",
        "batch 0, on_shed fares",
        "batch 0, calibration",
    ):
        assert f"described: {wanted}" in told, sorted(told)

    with part(spark, "tested"):
        spark.range(3).count()
    assert "jettison, tested" in descriptions(spark)
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


# --- Spark Connect ----------------------------------------------------------------------------------------------------


def test_trust_24_spark_connect_is_refused_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """Classes are told by where they are defined: pyspark.sql.connect cannot be imported without grpc."""
    module = "pyspark.sql.connect.session"
    session = type("SparkSession", (), {"__module__": module})()
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    mine = type("MySession", (type(session),), {"__module__": "my.sessions"})()
    stream = running.trips(spark, 500, 500)
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    for what, given in {
        r"source 'trips'": {"sources": {"trips": frame}},
        r"spark=": {"sources": {"trips": stream}, "spark": session},
        "spark=$": {"spark": mine},
        r"table 'zones'": {"sources": {"trips": stream}, "statics": {"zones": frame}},
    }.items():
        with pytest.raises(
            jt.StartError, match=rf"^{what.rstrip('$')} belongs to Spark Connect, .*: use a session"
        ) as refused:
            jt.start(taxi(), sinks=sinks, checkpoint=str(tmp_path / "never"), **given)
        assert str(refused.value).count(". ") == 0
    assert not (tmp_path / "never").exists()
