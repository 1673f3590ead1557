"""Aggregates of aggregates, and aggregates that share: results as one pass over all rows gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, S, by_spark, frame_of, source, trips_of

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.batch import calibration
from jettison.spark.batch.processor_time import Meter, Work
from jettison.spark.compile.drops import identity_of, keeps

pytestmark = pytest.mark.spark


def test_results_are_put_into_windows_again(spark: SparkSession, tmp_path: Path) -> None:
    """Thesis figure 4.1: how often in an hour a symbol's high and low price of five minutes differ by more than 5."""
    net = jt.Network("stocks")
    quotes = source(net).select("kind AS symbol", "fare AS price", "at", name="quotes")  # box 1 is a filter
    spans = (
        quotes.where("symbol = 'cab'", name="ibm")
        .window("5 minutes", by="symbol", delay="60 seconds")
        .agg(high="max(price)", low="min(price)", name="spans")
    )
    wide = spans.with_columns({"apart": "high - low"}).where("apart > 44", name="wide")
    named = wide.join("names", on="symbol", name="named")
    named.window("1 hour", by=["symbol", "title"]).agg(n="count(*)", name="hours").output("extremes")
    spans.output("spans_out")
    rows = sorted(
        (row for batch in trips_of(1, 1600, step_s=3 * 3600, late_s=3 * 3600) for row in batch), key=lambda r: r[1]
    )
    batches = [rows[begin : begin + 400] for begin in range(0, 1600, 400)]
    for batch in batches:
        batch.reverse()  # out of order, but no later than the delay where batches meet
    names = spark.createDataFrame([("cab", "Cab Inc")], "symbol string, title string")
    run = Hand(spark, tmp_path, net, {"named": names})
    for number, batch in enumerate(batches):
        assert run.run(number, batch).late == {"spans": 0, "hours": 0}
        if number == 2:
            run = run.again()
            run.run(number, batch)

    everything = frame_of(spark, rows).where("kind = 'cab'").selectExpr("kind AS symbol", "fare AS price", "at")
    mark = max(row[1] for batch in batches[:-1] for row in batch) - 60 * S
    wanted = by_spark(everything, "5 minutes", None, ["symbol"], mark, high="max(price)", low="min(price)")
    assert run.rows("spans_out") == wanted
    hours: dict[int, int] = {}
    for _, start, _, high, low in wanted:
        hours[int(start // 3600)] = hours.get(int(start // 3600), 0) + (high - low > 44)
    closed = {hour: n for hour, n in hours.items() if n and 3600 * (hour + 1) * S <= mark}
    assert len(closed) >= 2
    assert run.rows("extremes") == [
        ("cab", "Cab Inc", 3600.0 * hour, 3600.0 * (hour + 1), n) for hour, n in closed.items()
    ]
    run.close()


def test_aggregates_of_one_stream_share_slices_unless_a_drop_tells_them_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    net = jt.Network("taxi")
    trips = source(net)
    shape = {"by": "zone", "delay": "10 seconds"}
    trips.window("20 seconds", slide="5 seconds", **shape).agg(n="count(*)", mean="avg(fare)", name="a").output("as")
    trips.window("10 seconds", **shape).agg(n="count(*)", sum="sum(fare)", name="b").output("bs")
    trips.window("10 seconds", by="kind").agg(n="count(*)", name="c").where("n < 0").output("cs")
    batches = trips_of(4, 40, step_s=14, late_s=10)
    half = Plan({"trips>b": Random(0.5)})
    run = Hand(spark, tmp_path, net)
    run.runner.shared = frozenset({"trips"})
    for number, batch in enumerate(batches):
        measured = run.run(number, batch, half if number == 2 else None)
        assert {"a", "b", "c"} == set(measured.late)
        assert measured.arcs["trips"] == (40, 40)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["a", "c"], "a and b share"
    parts = [path.name for path in (tmp_path / "a").iterdir() if path.name.startswith("2-")]
    assert len(parts) == 2, "in batch 2 they are told apart"

    rows = [row for batch in batches for row in batch]
    mark = max(row[1] for batch in batches[:-1] for row in batch) - 10 * S
    shared = {"n": "count(*)", "mean": "avg(fare)"}
    assert run.rows("as") == by_spark(frame_of(spark, rows), "20 seconds", "5 seconds", ["zone"], mark, **shared)
    second = frame_of(spark, batches[2]).selectExpr("*", identity_of(["trip"]))
    kept = {row.trip for row in second.where(keeps("trips>b", Random(0.5))).collect()}
    assert 5 < len(kept) < 35
    fewer = [row for number, batch in enumerate(batches) for row in batch if number != 2 or row[0] in kept]
    assert run.rows("bs") == by_spark(
        frame_of(spark, fewer), "10 seconds", None, ["zone"], mark, n="count(*)", sum="sum(fare)"
    )
    run.close()


def test_the_slowest_of_several_streams_holds_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("taxi")
    trips = source(net)
    fives = trips.window("5 seconds", delay="3 seconds").agg(n="count(*)", name="fives")
    eights = trips.window("8 seconds", delay="9 seconds").agg(n="count(*)", name="eights")
    fives.union(eights).window("20 seconds").agg(windows="count(*)", rows="sum(n)", name="all").output("table")
    batches = trips_of(4, 40, step_s=20, late_s=3)
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        assert run.run(number, batch).late == {"fives": 0, "eights": 0, "all": 0}
    rows = [row[1] for batch in batches for row in batch]
    starts = [at // (5 * S) * 5 for at in rows], [at // (8 * S) * 8 for at in rows]
    newest = max(row[1] for batch in batches[:-1] for row in batch)
    next_eight = 8 * ((newest - 17 * S) // (8 * S) + 1)
    wanted = []
    for begin in range(0, next_eight - 19, 20):
        inside = [[at for at in each if begin <= at < begin + 20] for each in starts]
        wanted.append((float(begin), begin + 20.0, sum(len(set(each)) for each in inside), sum(map(len, inside))))
    assert len(wanted) >= 2
    assert run.rows("table") == sorted((row for row in wanted if row[2]), key=repr)
    run.close()


def test_an_aggregate_is_calibrated(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    net = jt.Network("taxi")
    trips = source(net).where("fare > 0", name="paid")
    trips.window("1 minute", slide="10 seconds", by="zone").agg(n="count(*)", name="busy").output("table")
    trips.window("20 seconds", slide="10 seconds", by="zone").agg(n="count(*)", name="again").output("other")
    trips.select("zone").output("zones")
    frame = spark.range(6000).selectExpr(
        "id AS trip",
        "timestamp_millis(id * 5) AS at",
        "int(id % 20) AS zone",
        "'cab' AS kind",
        "double(id % 9) AS fare",
    )
    calls = iter(range(1, 100))
    # every job takes 100 ms longer than the one before it: what it cost is no matter of chance
    monkeypatch.setattr(Meter, "_work", lambda *_: Work(100.0 * next(calls), 0.0, 0.0, 1))
    found = calibration.calibrate(net.graph, {"trips": frame}, {"trips": 6000}, {}).profile
    side_by_side = min(3, spark.sparkContext.defaultParallelism)
    # 30 s of rows give 3 windows of 20 zones in the long run, of 5,333 paid trips
    assert found.passes("busy") == pytest.approx(3 * 20 / 5333, rel=0.2)
    assert found.cost("busy") == pytest.approx(1e5 / 5333 / side_by_side, rel=0.01)
    assert found.cost("again") == pytest.approx(1e5 / 5333 / side_by_side, rel=0.01), (
        "over the slices, not over what they are made of"
    )
