"""A run from its start to its end: whose folders it writes to, what it refuses, how it stops, what Spark's UI shows."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark import running
from tests.spark.running import FREE, TRIGGER, TRIPS, ended, taxi, until

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.job_descriptions import part
from jettison.spark.run.run import Run
from jettison.spark.write.owners import Owners

pytestmark = pytest.mark.spark


def started(spark: SparkSession, folder: Path, checkpoint: str, rows: int = 500, **others: Any) -> Run:
    """Trips into parquet folders below `folder`, 500 in each batch."""
    options: dict[str, Any] = {
        "sinks": {name: jt.parquet(f"{folder}/{name}") for name in ("fares", "alerts")},
        "trigger": TRIGGER,
        "checkpoint": f"{folder}/{checkpoint}",
        "costs": FREE,
    }
    network = others.pop("network", None) or taxi()
    return jt.start(network, {"trips": running.trips(spark, rows, 500)}, **{**options, **others})


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*.parquet"))


# --- two runs, one folder ---------------------------------------------------------------------------------------------


@contextmanager
def owners(spark: SparkSession, checkpoint: Path, sinks: Mapping[str, Any], network: str = "taxi") -> Iterator[Owners]:
    """What a start checks and writes down about its parquet folders, without the rest of it."""
    opened = Checkpoint(str(checkpoint), taxi(network).graph, spark)
    try:
        yield Owners(spark, opened, network, sinks)
    finally:
        opened.close()


def refuses(spark: SparkSession, checkpoint: Path, sinks: Mapping[str, Any], match: str, network: str = "taxi") -> None:
    with pytest.raises(jt.StartError, match=match), owners(spark, checkpoint, sinks, network):
        pass


def test_trust_5_a_folder_belongs_to_one_run(spark: SparkSession, tmp_path: Path) -> None:
    ended(started(spark, tmp_path, "first"), 500)
    rows = spark.read.parquet(f"{tmp_path}/fares").count()
    assert rows > 0
    before = files(tmp_path)

    whose = r"output 'fares': .*fares' belongs to output 'fares' of network 'taxi' with checkpoint '.*first', and "
    with pytest.raises(jt.StartError, match=whose + r".*Go on with that checkpoint, give another path, .*delete"):
        started(spark, tmp_path, "second")
    assert files(tmp_path) == before

    fares, alerts = jt.parquet(f"{tmp_path}/fares"), jt.parquet(f"{tmp_path}/alerts")
    spelled = jt.parquet(f"file://{tmp_path}/./fares/")
    refuses(spark, tmp_path / "third", {"output 'fares'": fares}, whose, network="other")
    refuses(spark, tmp_path / "fourth", {"output 'fares'": spelled}, rf"'{tmp_path}/fares' belongs to output 'fares'")
    for name in ("dead_letters", "on_shed trips"):
        refuses(spark, tmp_path / "fifth", {name: alerts}, f"{name}: .*alerts' belongs to output 'alerts'")
    swapped = {"output 'fares'": alerts, "output 'alerts'": fares}
    refuses(spark, tmp_path / "first", swapped, r"output 'fares': .* has the rows of output 'alerts' of this very run")
    same = {"output 'fares'": jt.parquet(f"{tmp_path}/x/../new"), "output 'alerts'": jt.parquet(f"{tmp_path}/new")}
    refuses(spark, tmp_path / "sixth", same, r"output 'fares' and output 'alerts' both write to")
    assert not (tmp_path / "new").exists()

    # the same checkpoint goes on, an output may get another name, and a checkpoint made anew is another run
    with owners(spark, tmp_path / "first", {"output 'prices'": fares, "output 'alerts'": alerts}) as found:
        found.take()
    assert json.loads((tmp_path / "fares" / "_jettison.json").read_text())["output"] == "output 'prices'"
    identity = (tmp_path / "first" / "run.json").read_text()
    (tmp_path / "first" / "run.json").unlink()
    for asked in (fares, jt.parquet(f"{tmp_path}/fares", on_other_run="replace")):
        refuses(
            spark, tmp_path / "first", {"output 'fares'": asked}, r"run.json, the identity of its run, is gone, and"
        )
    (tmp_path / "first" / "run.json").write_text(identity)
    shutil.rmtree(tmp_path / "first")
    earlier = r"belongs to an earlier run, whose checkpoint was in '.*first' before"
    refuses(spark, tmp_path / "first", {"output 'fares'": fares}, earlier)
    assert spark.read.parquet(f"{tmp_path}/fares").count() == rows


def test_trust_5_a_copied_checkpoint_does_not_write_into_the_folder_of_the_original(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = {"output 'fares'": jt.parquet(f"{tmp_path}/fares")}
    with owners(spark, tmp_path / "first", sink) as found:
        found.take()
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    told = (
        rf"output 'fares': '{tmp_path}/fares' has the rows of .*first', of which checkpoint '.*copy' is a copy: .*Go on"
    )
    refuses(spark, tmp_path / "copy", sink, told)
    with owners(spark, tmp_path / "first", sink):
        pass
    (tmp_path / "first").rename(tmp_path / "moved")
    with owners(spark, tmp_path / "moved", sink) as found:
        found.take()
    refuses(spark, tmp_path / "copy", sink, "is a copy")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_trust_5_old_folders_and_those_to_replace(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    folder = tmp_path / "fares"
    for batch in range(3):
        (folder / f"batch={batch}").mkdir(parents=True)
    sink = {"output 'fares'": jt.parquet(f"{scheme}{folder}")}
    unknown = r"output 'fares': .* has batches of a run that is not known.*Go on with the checkpoint of that run"
    refuses(spark, tmp_path / "new", sink, unknown)
    running.log_plans(tmp_path / "behind", [Plan()] * 2, {"trips": 1})  # it has planned 0 and 1, not 2
    refuses(spark, tmp_path / "behind", sink, unknown)
    running.log_plans(tmp_path / "old", [Plan()] * 3, {"trips": 1})
    with owners(spark, tmp_path / "old", sink) as found:
        found.take()
    owner = json.loads((folder / "_jettison.json").read_text())
    assert owner["run"] == json.loads((tmp_path / "old" / "run.json").read_text())["run"]
    refuses(spark, tmp_path / "behind", sink, r"belongs to output 'fares'")

    with owners(spark, tmp_path / "anew", {"output 'fares'": jt.parquet(str(folder), on_other_run="replace")}) as found:
        assert len(list(folder.glob("batch=*"))) == 3  # nothing is deleted before all is checked
        found.take()
    assert list(folder.glob("batch=*")) == []
    refuses(spark, tmp_path / "old", sink, r"belongs to output 'fares' of network 'taxi' with checkpoint '.*anew'")
    (folder / "_jettison.json").write_text("{")
    refuses(spark, tmp_path / "old", sink, r"_jettison.json, which says whose the folder is, is damaged")
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
    with owners(spark, tmp_path / "second", {"output 'fares'": jt.parquet(f"{tmp_path}/fares")}):
        pass


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


def ticking(spark: SparkSession, folder: Path, sink: Any) -> Run:
    """A stream that never runs dry: the next batch, of 50 rows, begins as soon as one has ended."""
    net = jt.Network("ticks")
    net.source("ticks", schema="value long", id=["value"]).where("value >= 0", name="all").output("out")
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    return jt.start(
        net,
        {"ticks": stream},
        {"out": sink},
        trigger="1 millisecond",
        checkpoint=f"{folder}/checkpoint",
        costs=FREE,
    )


def committed(folder: Path) -> set[int]:
    return {int(path.name) for path in (folder / "checkpoint/spark/commits").iterdir() if path.name.isdecimal()}


def test_trust_15_stop_is_no_failure(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    capfd.readouterr()
    run = ticking(spark, tmp_path, jt.parquet(f"{tmp_path}/out"))
    until(run, lambda: run.report().batches > 0)
    run._stopping = True  # as stop() does, which would be done before the next batch begins
    until(run, lambda: run._left)
    run.stop()
    assert run.query.exception() is None
    assert not run.is_active
    assert run.await_termination(1)
    assert (caplog.records, capfd.readouterr().err) == ([], "")
    left = max(committed(tmp_path)) + 1  # the batch that had begun: not committed, not written
    assert len(committed(tmp_path)) == left == run.report().batches
    assert not (tmp_path / "out" / f"batch={left}").exists()

    # the next start begins with it; now a batch is broken off
    begun = threading.Event()

    def endless(rows: DataFrame, batch: int) -> None:
        begun.set()
        rows.sparkSession.range(10**13).selectExpr("sum(hash(id))").collect()

    second = ticking(spark, tmp_path, endless)
    assert begun.wait(running.PATIENCE_S)
    time.sleep(0.5)
    second.stop(patience_s=0.1)
    assert second.query.exception() is None
    assert (second.report().batches, len(committed(tmp_path))) == (0, left)


@pytest.mark.slow
@pytest.mark.long
def test_trust_15_quick_stops_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    capfd.readouterr()
    left, rows = 0, 0
    for number in range(30):
        run = ticking(spark, tmp_path, jt.parquet(f"{tmp_path}/out"))
        if number % 2:
            until(run, lambda run=run: run.report().batches > 0)  # type: ignore[misc]
        time.sleep(0.07 * (number % 5))
        run.stop()
        left += run._left
        rows += run.report().rows_in
        assert run.query.exception() is None
        assert not run.is_active
        written = {int(path.name.partition("=")[2]) for path in (tmp_path / "out").glob("batch=*")}
        assert written == committed(tmp_path)
    assert rows == 50 * len(committed(tmp_path)) > 0
    found = [row.value for row in spark.read.parquet(f"{tmp_path}/out").select("value").collect()]
    assert sorted(found) == list(range(rows))
    assert (caplog.records, capfd.readouterr().err) == ([], "")
    print(f"{left} of 30 stops met a batch that had begun")


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
    monkeypatch.setattr(time, "time", lambda: real() - 3600 * next(looks))
    sinks = {name: jt.memory() for name in ("zones", "tens")}
    run = ended(started(spark, tmp_path, "checkpoint", rows=1000, network=net, sinks=sinks), 1000)
    monkeypatch.undo()
    for sample, _ in run.history:
        times_ms = {"duration": sample.duration_ms, "interval": sample.interval_ms, **sample.parts_ms}
        assert all(0 <= each < 600_000 for each in times_ms.values()), times_ms
    assert {"busy", "ten", "tens", "deciding"} <= set(times_ms)
    assert 0 < run.report().seconds < 600


# --- what Spark's UI shows --------------------------------------------------------------------------------------------


def descriptions(spark: SparkSession) -> set[str]:
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    told = (jobs.apply(number).description() for number in range(jobs.size()))
    return {str(each.get()) for each in told if each.isDefined()}


@pytest.mark.long
def test_trust_23_jobs_say_what_they_are_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = jt.Network("described")
    trips = net.source("trips", **TRIPS)
    trips.where("fare > 0", name="paid").output("fares")
    trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("zones")
    monkeypatch.setattr("jettison.spark.batch.costs.LEAST_ROWS", 100)
    running.log_plans(tmp_path / "checkpoint", [Plan({"trips>paid": Random(0.5)}, "tested", 1)], {"trips": 500})

    def start(checkpoint: str, profile: Any, rows: int) -> Run:
        return started(
            spark,
            tmp_path,
            checkpoint,
            rows=rows,
            network=net,
            sinks={"fares": jt.spark_format("noop"), "zones": jt.memory()},
            on_shed={"fares": jt.spark_format("noop")},
            costs=profile,
        )

    run = start("checkpoint", None, 1000)
    other = start("other", FREE, 500)
    assert (run.query.name, other.query.name) == ("jettison-described", "jettison-described-2")
    running.until(run, lambda: run.report().rows_in == 1000)
    assert run.await_calibration(60.0)
    assert other.await_batches(1, timeout=60.0)
    assert not other.await_batches(10**6, timeout=0.1)
    ended(run, 1000)
    ended(other, 500)
    assert not other.await_batches(10**6, timeout=60.0)  # it has ended, and says so at once
    assert other.await_batches(1, timeout=0.0)
    told = {each for each in descriptions(spark) if each.startswith("described: ")}
    for wanted in (
        "batch 0, output fares",
        "batch 1, output fares",
        "batch 1, slices of busy",
        "batch 0, on_shed fares",
        "calibration",
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
        r"table 'zones'": {"sources": {"trips": stream}, "tables": {"zones": frame}},
    }.items():
        with pytest.raises(
            jt.StartError, match=rf"^{what.rstrip('$')} belongs to Spark Connect, .*: use a session"
        ) as refused:
            jt.start(taxi(), sinks=sinks, checkpoint=str(tmp_path / "never"), **given)
        assert str(refused.value).count(". ") == 0
    assert not (tmp_path / "never").exists()
