"""Windows on Spark: batch by batch they give what one aggregate of all rows gives, also when broken off."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.running import FREE, PATIENCE_S, TRIGGER, ended
from tests.spark.windowing import TRIPS, Hand, S, by_spark, frame_of, plain, source, trips_of

import jettison as jt
from jettison.errors import SinkError, StartError
from jettison.network.event_time import join_retention
from jettison.plan.plan import Plan
from jettison.spark.compile.compiler import Compiler
from jettison.spark.run.checks import check_compiles
from jettison.spark.run.run import Run

pytestmark = pytest.mark.spark


def test_a_run_that_is_broken_off_gives_what_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(4, 60, step_s=25, late_s=10)
    net = jt.Network("taxi")
    busy = (
        source(net).window("30 seconds", by="zone", delay="10 seconds").agg(n="count(*)", sum="sum(fare)", name="busy")
    )
    busy.output("table")
    busy.where("n > 5").output("alerts")
    fails_in = {2}  # the first batch that closes a window
    table, kept = jt.memory(), jt.memory()

    def alerts(rows: DataFrame, batch: int) -> None:
        if batch in fails_in:
            raise OSError("the disk is full")
        kept.write(rows, batch)

    def put(number: int) -> None:
        frame_of(spark, batches[number]).coalesce(1).write.parquet(str(tmp_path / "trips" / str(number)))

    def start() -> Run:
        stream = spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/trips/*")
        where = str(tmp_path / "checkpoint")
        sinks = {"table": table, "alerts": alerts}
        return jt.start(net, {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=where, costs=FREE)

    for number in range(3):
        put(number)
    with pytest.raises(SinkError, match="the disk is full"):
        start().await_termination(PATIENCE_S)
    assert (tmp_path / "checkpoint/state/busy/1.json").is_file()
    fails_in.clear()
    put(3)
    run = ended(start(), 120)
    assert run.history[-1][0].late == {"busy": 0}
    everything = frame_of(spark, [row for batch in batches for row in batch])
    assert run.report().rows_late == 0
    mark = max(row[1] for batch in batches[:3] for row in batch) - 10 * S
    wanted = by_spark(everything, "30 seconds", None, ["zone"], mark, n="count(*)", sum="sum(fare)")
    assert len(wanted) >= 4
    assert sorted(map(plain, table.rows), key=repr) == wanted
    assert sorted(map(plain, kept.rows), key=repr) == [row for row in wanted if row[3] > 5]
    assert list(table.rows[0].asDict()) == ["zone", "window_start", "window_end", "n", "sum"]


def test_sliding_windows_are_merged_of_slices_in_few_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_retention, "MOST_PARTS", 2)
    batches = trips_of(7, 30, step_s=9, late_s=12)
    net = jt.Network("taxi")
    shape = {"slide": "10 seconds", "by": ["zone", "kind"], "delay": "12 seconds"}
    source(net).window("25 seconds", **shape).agg(n="count(fare)", sum="sum(fare)", name="busy").output("table")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        assert run.run(number, batch).late == {"busy": 0}
        if number in (3, 5):  # broken off before Spark heard of it: a new process does it again
            before = run.rows("table")
            run = run.again()
            run.run(number, batch)
            assert run.rows("table") == before
    everything = frame_of(spark, [row for batch in batches for row in batch])
    mark = max(row[1] for batch in batches[:-1] for row in batch) - 12 * S
    wanted = by_spark(everything, "25 seconds", "10 seconds", ["zone", "kind"], mark, n="count(fare)", sum="sum(fare)")
    assert len(wanted) > 20
    assert run.rows("table") == wanted
    names = [path.name for path in (tmp_path / "busy").iterdir()]
    assert any("-m" in name for name in names), "some were merged"
    assert len(names) <= 10, "two parts per level, two records, and what goes with the next batch"
    run.close()


def local(windows: bool = True) -> jt.Network:
    """Trips whose event time has no time zone."""
    net = jt.Network("local")
    trips = net.source("trips", "trip long, at timestamp_ntz", event_time="at", id=["trip"])
    if windows:
        trips.window("1 day").agg(n="count(*)", name="days").output("table")
    else:
        trips.where("trip > 0").output("table")
    return net


def test_times_without_a_zone_are_for_utc_alone(spark: SparkSession) -> None:
    late = [datetime.datetime(2024, 3, day, 23, 30) for day in (30, 31)]
    rows = spark.createDataFrame(list(enumerate(late)), "trip long, at timestamp_ntz")
    other = spark.newSession()
    for zone in ("Europe/Berlin", "+02:00"):
        other.conf.set("spark.sql.session.timeZone", zone)
        fault = f"source 'trips': its event time 'at' is a timestamp_ntz, .*'days' .* session, '{re.escape(zone)}': set"
        with pytest.raises(StartError, match=fault):
            check_compiles(other, local().graph, {"trips": rows}, {})
        check_compiles(other, local(windows=False).graph, {"trips": rows}, {})
    net = local(windows=False)
    trips = net.stream("trips")
    others = trips.select("trip")
    trips.where("trip > 1").join(others, on="trip", within="1 minute", name="same").output("pairs")
    with pytest.raises(StartError, match=r"join 'same' would take it in that of the session, '\+02:00': set spark"):
        check_compiles(other, net.graph, {"trips": rows}, {})
    other.conf.set("spark.sql.session.timeZone", "Etc/UTC")
    check_compiles(other, local().graph, {"trips": rows}, {})
    made = Compiler(local().graph, {"trips": rows}, Plan(), {}).output("table", count=False)
    wanted = rows.groupBy(F.window("at", "1 day").alias("w")).agg(F.count("*").alias("n"))
    starts = "CAST(window_start AS timestamp_ntz) AS start"
    assert sorted(made.selectExpr(starts, "n").collect()) == sorted(wanted.select("w.start", "n").collect())
