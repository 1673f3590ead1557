"""Windows that count rows, on Spark: batch by batch they give what plain Python makes of the rows in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.running import FREE, PATIENCE_S, TRIGGER, ended
from tests.spark.windowing import TRIPS, Hand, Row, frame_of, plain, source, trips_of

import jettison as jt
from jettison.errors import CheckpointError, SinkError
from jettison.network.event_time import join_retention
from jettison.spark.compile.drops import identity_of
from jettison.spark.run.run import Run

pytestmark = pytest.mark.spark

TRIP, AT, ZONE, KIND, FARE = range(5)


def identities(spark: SparkSession, batches: Sequence[Sequence[Row]]) -> dict[int, int]:
    """The identity of every trip, by its number: what orders rows of the same time."""
    rows = frame_of(spark, [row for batch in batches for row in batch]).selectExpr("trip", identity_of(["trip"]))
    return {row[0]: row[1] for row in rows.collect()}


def windows(
    batches: Sequence[Sequence[Row]],
    order: dict[int, int],
    size: int,
    slide: int,
    by: Sequence[int],
    made: Callable[[list[Row]], tuple[Any, ...]],
) -> list[Row]:
    """All complete windows, in plain Python: the rows of a group one after the other, cut."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for batch in batches:
        for row in sorted(batch, key=lambda row: (row[AT] is not None, row[AT] or 0, order[row[TRIP]])):
            groups.setdefault(tuple(row[column] for column in by), []).append(row)
    found = [
        plain((*group, start, start + size, *made(rows[start : start + size])))
        for group, rows in groups.items()
        for start in range(0, len(rows) - size + 1, slide)
    ]
    return sorted(found, key=repr)


def counted(rows: list[Row]) -> tuple[Any, ...]:
    fares = [row[FARE] for row in rows if row[FARE] is not None]
    return len(rows), sum(fares) if fares else None, rows[0][TRIP], rows[-1][TRIP]


CALLS = {"n": "count(*)", "sum": "sum(fare)", "first": "first(trip)", "last": "last(trip)"}


def test_tumbling_windows_of_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(3, 25, step_s=10, late_s=12)
    net = jt.Network("taxi")
    source(net).window("7 rows").agg(CALLS, name="sevens").output("table")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        run.run(number, batch)
        so_far = windows(batches[: number + 1], identities(spark, batches), 7, 7, (), counted)
        assert run.rows("table") == so_far, "a window is given in the batch of its last row"
    assert len(so_far) == 75 // 7
    run.close()


@pytest.mark.parametrize(
    ("size", "slide"),
    [(10, 4), *(pytest.param(*each, marks=pytest.mark.long) for each in ((6, 6), (9, 3), (5, 1)))],
)
def test_sliding_windows_by_groups_that_are_broken_off(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, slide: int
) -> None:
    monkeypatch.setattr(join_retention, "MOST_PARTS", 2)
    batches = trips_of(7, 31, step_s=9, late_s=12, seed=size)
    net = jt.Network("taxi")
    windowed = source(net).window(f"{size} rows", slide=f"{slide} rows", by=["zone", "kind"])
    windowed.agg(CALLS, name="some").output("table")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        run.run(number, batch)
        if number in (2, 3, 6):  # broken off before Spark heard of it: a new process does it again
            before = run.rows("table")
            run = run.again()
            run.run(number, list(reversed(batch)))  # read in another order
            assert run.rows("table") == before
    wanted = windows(batches, identities(spark, batches), size, slide, (ZONE, KIND), counted)
    assert len(wanted) > 10
    assert run.rows("table") == wanted
    names = [path.name for path in (tmp_path / "some").iterdir()]
    assert any("-m" in name for name in names), "some were merged"
    assert len(names) <= 10, "few parts, two records, and what goes with the next batch"
    run.close()


def test_a_run_that_is_broken_off_anywhere_gives_every_window_once(spark: SparkSession, tmp_path: Path) -> None:
    """The sink fails, then writing the record does: what was kept of the broken tries does no harm."""
    batches = trips_of(5, 40, step_s=25, late_s=10)
    net = jt.Network("taxi")
    busy = source(net).window("8 rows", slide="4 rows", by="zone").agg(CALLS, name="busy")
    busy.output("table")
    busy.where("sum > 150").output("alerts")
    fails_in = {1}
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

    for number in range(2):
        put(number)
    with pytest.raises(SinkError, match="the disk is full"):
        start().await_termination(PATIENCE_S)
    state = tmp_path / "checkpoint/state/busy"
    assert (state / "1-0").is_dir(), "slices were written"
    assert not (state / "1.json").exists(), "but are not counted"
    fails_in.clear()
    for number in range(2, 5):
        put(number)
    run = ended(start(), 160)
    wanted = windows(batches, identities(spark, batches), 8, 4, (ZONE,), counted)
    assert sorted(map(plain, table.rows), key=repr) == wanted
    assert sorted(map(plain, kept.rows), key=repr) == [row for row in wanted if (row[4] or 0) > 150]
    assert list(table.rows[0].asDict()) == ["zone", "window_start", "window_end", "n", "sum", "first", "last"]
    assert run.report().rows_late == 0

    other = jt.Network("taxi")
    changed = source(other).window("9 rows", slide="3 rows", by="zone").agg(CALLS, name="busy")
    changed.output("table")
    changed.where("sum > 150").output("alerts")
    net = other
    with pytest.raises(CheckpointError, match=r"'busy': .*size_rows=8 slide_rows=4 .*now there is .*=9 .*=3 "):
        start()
