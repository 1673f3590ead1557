"""`trigger="available now"`: all data that is there, the windows that the watermark closes, then the run ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import taxi, trips

import jettison as jt
from jettison.options.trigger import Trigger
from jettison.spark.checkpoint.small_files import Folder, LocalFolder
from jettison.spark.run import available_now
from jettison.spark.run.available_now import begin_empty_batch, newest_batch

SCHEMA = "trip long, at timestamp, zone int"
DEAR = jt.Profile({"busy": 1_000_000.0, "rows": 1_000_000.0}, {})
"""One row takes a second: a run with a trigger would shed nearly all."""


def network(*, longer: bool = True) -> jt.Network:
    """
    seconds   0         10        20        30
    rows      |x  x  x  |x  x  x  |x ...           a row a second; the watermark is 2 s behind
    """
    net = jt.Network("to_the_end")
    rows = net.source("rows", SCHEMA, event_time="at", id=["trip"])
    rows.output("all")
    minutes = rows.window("10 seconds", by="zone", delay="2 seconds").agg(n="count(*)", name="busy")
    minutes.output("counts")
    if longer:
        minutes.window("20 seconds").agg(n="sum(n)", name="longer").output("sums")
    return net


def write(spark: SparkSession, folder: Path, first: int, last: int) -> None:
    """A file with a row for every second."""
    rows = spark.range(first, last).selectExpr("id AS trip", "timestamp_seconds(id) AS at", "int(id % 2) AS zone")
    rows.coalesce(1).write.mode("append").parquet(str(folder / "in"))
    time.sleep(0.01)  # files are read in order of their times


def start(spark: SparkSession, folder: Path, *, longer: bool = True, **given: Any) -> jt.Run:
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    sinks = {name: jt.parquet(str(folder / name)) for name in ("all", "counts", "sums")[: 3 if longer else 2]}
    given = {"trigger": "available now", "checkpoint": folder / "checkpoint", "costs": DEAR, **given}
    return jt.start(network(longer=longer), {"rows": stream}, sinks, **given)


def begins(spark: SparkSession, folder: Path, name: str) -> list[tuple[int, int]]:
    """Windows as (seconds, n), in order."""
    found = spark.read.parquet(str(folder / name)).selectExpr("unix_seconds(window_start) AS at", "n").collect()
    return sorted((row.at, row.n) for row in found)


@pytest.mark.spark
def test_the_house_available_now_reads_all_closes_windows_and_ends(spark: SparkSession, tmp_path: Path) -> None:
    for first in (0, 15, 30):
        write(spark, tmp_path, first, first + 15)
    heard: list[int] = []
    run = start(spark, tmp_path, listeners=[lambda event: heard.append(sum(event.sample.rows_in.values()))])
    assert run.await_termination(timeout=120)
    assert not run.is_active
    assert heard == [15, 15, 15, 0], "a batch for each file, and one without rows that closes windows"
    assert run.report().rows_in == 45
    assert run.report().rows_shed == 0, "nothing has to be in time"
    assert spark.read.parquet(str(tmp_path / "all")).count() == 45
    # the newest row is at 44 s and the watermark at 42 s: windows up to 40 s are closed, those after it are not
    closed = [(at, 5) for at in (0, 0, 10, 10, 20, 20, 30, 30)]
    assert begins(spark, tmp_path, "counts") == closed
    assert begins(spark, tmp_path, "sums") == [(0, 20), (20, 20)]

    # nothing new: nothing runs, nothing is delivered again
    again = start(spark, tmp_path)
    assert again.await_termination(timeout=60)
    assert again.report().batches == 0

    # nor does it change anything that an operator has left: it is back before a batch runs
    state = tmp_path / "checkpoint" / "state"
    before = kept_state(state)
    assert start(spark, tmp_path, longer=False).await_termination(timeout=60)
    assert kept_state(state) == before

    # new files: what was open goes on where it was
    write(spark, tmp_path, 45, 63)
    later = start(spark, tmp_path)
    while later.is_active:  # it ends by itself, whether somebody waits or not
        time.sleep(0.05)
    assert later.report().rows_in == 18
    assert begins(spark, tmp_path, "counts") == [*closed, (40, 5), (40, 5), (50, 5), (50, 5)]
    assert begins(spark, tmp_path, "sums") == [(0, 20), (20, 20), (40, 20)]
    folder = LocalFolder(tmp_path / "checkpoint" / "spark")
    assert newest_batch(folder, "offsets") == newest_batch(folder, "commits") == 5


def kept_state(folder: Path) -> dict[str, bytes]:
    """Who keeps state, and every file of it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.spark
def test_the_house_stopped_before_the_batch_without_rows_nothing_hangs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stop() comes when the batch without rows is begun and its query has not started."""
    begun = threading.Event()

    def slowly(folder: Folder, has_more: Callable[[int], bool]) -> bool:
        found = begin_empty_batch(folder, has_more)
        begun.set()
        time.sleep(1)
        return found

    monkeypatch.setattr(available_now, "begin_empty_batch", slowly)
    write(spark, tmp_path, 0, 15)
    run = start(spark, tmp_path)
    assert begun.wait(60)
    run.stop()
    assert not run.is_active
    assert not spark.streams.active
    assert run.query.exception() is None
    monkeypatch.undo()
    assert start(spark, tmp_path).await_termination(timeout=60), "the checkpoint was released"
    assert begins(spark, tmp_path, "counts") == [(0, 5), (0, 5)]


@pytest.mark.spark
def test_the_house_stop_waits_for_a_start_that_hangs_no_longer_than_its_patience(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, hangs = threading.Event(), threading.Event()

    def hanging(folder: Folder, has_more: Callable[[int], bool]) -> bool:
        begun.set()
        hangs.wait(60)
        return begin_empty_batch(folder, has_more)

    monkeypatch.setattr(available_now, "begin_empty_batch", hanging)
    write(spark, tmp_path, 0, 15)
    run = start(spark, tmp_path)
    assert begun.wait(60)
    raised: list[BaseException] = []

    def stop() -> None:
        try:
            run.stop(patience_s=0.2)
        except jt.JettisonError as error:
            raised.append(error)

    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    stopping.join(10)
    hung = stopping.is_alive()
    hangs.set()
    assert not hung
    assert "a query of it is still starting, though stop() waited 0.2 s" in str(raised[0])
    monkeypatch.undo()
    while run._query._to_the_end is not None and not run._closed:  # it ends as soon as it can
        time.sleep(0.05)
    assert not spark.streams.active
    assert start(spark, tmp_path).await_termination(timeout=60), "the checkpoint was released"


@pytest.mark.spark
def test_the_house_a_failure_between_batches_is_raised_and_all_is_released(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(folder: Folder, has_more: Callable[[int], bool]) -> bool:
        raise OSError("no listing")

    monkeypatch.setattr(available_now, "begin_empty_batch", broken)
    write(spark, tmp_path, 0, 15)
    run = start(spark, tmp_path)
    while run.is_active:
        time.sleep(0.05)
    assert "network 'to_the_end' has failed: " in caplog.text, "also when nobody waits"
    for ending in (run.await_termination, run.stop):
        with pytest.raises(jt.SourceError, match="no listing"):
            ending()
    monkeypatch.undo()
    assert start(spark, tmp_path).await_termination(timeout=60), "the checkpoint was released"


@pytest.mark.long
@pytest.mark.spark
def test_the_house_generated_rows_to_the_end(spark: SparkSession, tmp_path: Path) -> None:
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    given: dict[str, Any] = {"trigger": "availableNow", "checkpoint": tmp_path, "costs": jt.Profile({}, {})}
    run = jt.start(taxi(), {"trips": trips(spark, 900, 300)}, sinks, **given)
    assert run.await_termination(timeout=60)
    assert (run.report().batches, run.report().rows_in) == (3, 900)


@pytest.mark.spark
def test_the_house_a_failure_on_the_way_is_raised(spark: SparkSession, tmp_path: Path) -> None:
    def broken(rows: Any, batch: int) -> None:
        raise ValueError("no room")

    write(spark, tmp_path, 0, 15)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    net = jt.Network("n")
    net.source("rows", SCHEMA, event_time="at").output("all")
    run = jt.start(net, {"rows": stream}, {"all": broken}, trigger="available now", costs=jt.Profile({}, {}))
    with pytest.raises(jt.SinkError, match="no room"):
        run.await_termination(timeout=60)
    assert not run.is_active


@pytest.mark.core
def test_the_house_a_batch_without_rows_is_begun_behind_the_last_one(tmp_path: Path) -> None:
    asked: list[int] = []

    def has_more(batch: int) -> bool:
        asked.append(batch)
        return batch != 9

    folder = LocalFolder(tmp_path)
    assert not begin_empty_batch(folder, has_more), "nothing has run"
    for batch in (6, 7):
        folder.write(f"offsets/{batch}", f"v1\n{{}}\n{batch}")
    folder.write("commits/6", "v1\n{}")
    assert not begin_empty_batch(folder, has_more), "batch 7 is not committed: Spark repeats it first"
    folder.write("commits/7", "v1\n{}")
    assert begin_empty_batch(folder, has_more)
    assert folder.read("offsets/8") == folder.read("offsets/7"), "up to where the last one read: no rows"
    assert not begin_empty_batch(folder, has_more), "it was begun, and Spark has not run it yet"
    folder.write("commits/8", "v1\n{}")
    assert not begin_empty_batch(folder, has_more), "no more windows close"
    assert asked == [8, 9]


@pytest.mark.core
def test_the_house_available_now_sheds_nothing() -> None:
    trigger = Trigger.of("Available Now")
    assert trigger.shedding(jt.Shedding(headroom=0.5)) == jt.Shedding("off", headroom=0.5, catch_up="all")
    for asked, says in (
        (jt.Shedding("dry-run"), r"trigger='available now' sheds nothing, so there is nothing to try"),
        (jt.Shedding(catch_up="newest"), r"trigger='available now' reads all data, and catch_up='newest' skips"),
    ):
        with pytest.raises(jt.StartError, match=says):
            trigger.shedding(asked)
    with pytest.raises(jt.StartError, match=r"trigger is '1 s econd': write a duration, .* or 'available now'"):
        Trigger.of("1 s econd")
