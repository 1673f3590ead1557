"""Batches of files are read straight from the files, and Spark's own account of rows stays right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.running import ended

import jettison as jt
from jettison.spark.read.relations import file_frames, reads_files
from jettison.statistics.profile import Profile

SCHEMA = "id long, zone int, fare double, note string"
ROWS = 1000


def made(spark: SparkSession, first: int = 0) -> DataFrame:
    return spark.range(first, first + ROWS).selectExpr(
        "id", "int(id % 7) AS zone", "double(id) AS fare", "concat('n', id) AS note"
    )


def started(
    net: jt.Network, frames: dict[str, DataFrame], out: Any, folder: Path, **given: Any
) -> tuple[jt.Run, list[list[str]]]:
    """A run, and the files' columns that each of its outputs' jobs reads."""
    read: list[list[str]] = []

    def keep(rows: DataFrame, batch: int) -> None:
        plan: Any = rows._jdf.queryExecution().executedPlan().toString()
        read.extend(sorted(re.findall(r"(\w+):", each)) for each in re.findall(r"ReadSchema: struct<(.*?)>", plan))
        out.write(rows, batch)

    free = Profile({operator.name: 0.001 for operator in net.graph.operators}, {})
    run = jt.start(
        net,
        frames,
        {"out": keep},
        trigger="300 milliseconds",
        checkpoint=str(folder),
        costs=jt.Costs(free, shared=[]),
        **given,
    )
    return run, read


def counted(run: jt.Run) -> int:
    return sum(progress["numInputRows"] for progress in run.query.recentProgress)


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_only_columns_that_are_used_are_read(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    made(spark).write.format(kind).save(str(tmp_path / "in"))
    net = jt.Network("n")
    net.source("s", SCHEMA, id=["id"]).where("zone = 3").select("fare").output("out")
    out = jt.memory()
    run, read = started(net, {"s": spark.readStream.schema(SCHEMA).format(kind).load(f"{tmp_path}/in")}, out, tmp_path)
    ended(run, ROWS)
    assert sorted(row.fare for row in out.rows) == [float(number) for number in range(3, ROWS, 7)]
    assert read[0] == ["fare", "zone"]
    assert counted(run) == ROWS


def test_a_stream_that_is_more_than_its_files_is_read_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    made(spark).write.parquet(str(tmp_path / "in"))
    plain = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    frame = plain.where("id < 100")
    assert reads_files(plain)
    assert not reads_files(frame)
    assert not reads_files(spark.readStream.format("rate").load())
    net, out = jt.Network("n"), jt.memory()
    net.source("s", SCHEMA, id=["id"]).select("fare").output("out")
    run, _ = started(net, {"s": frame}, out, tmp_path / "checkpoint")
    ended(run, 100)
    assert len(out.rows) == 100
    assert counted(run) == ROWS, "Spark counts what it reads"


def test_folders_that_tell_a_column(spark: SparkSession, tmp_path: Path) -> None:
    made(spark).write.partitionBy("zone").parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    net, out = jt.Network("n"), jt.memory()
    net.source("s", SCHEMA, id=["id"]).select("zone", "id").output("out")
    run, _ = started(net, {"s": frame}, out, tmp_path / "checkpoint")
    ended(run, ROWS)
    assert sorted((row.id, row.zone) for row in out.rows) == [(number, number % 7) for number in range(ROWS)]


def test_two_sources_of_which_one_has_nothing_at_first(spark: SparkSession, tmp_path: Path) -> None:
    made(spark).write.parquet(str(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    frames = {name: spark.readStream.schema(SCHEMA).parquet(str(tmp_path / name)) for name in "ab"}
    net, out = jt.Network("n"), jt.memory()
    one, two = (net.source(name, SCHEMA, id=["id"]) for name in "ab")
    one.union(two).select("id").output("out")
    run, _ = started(net, frames, out, tmp_path / "checkpoint")
    while len(out.rows) < ROWS:
        assert not run.await_termination(timeout=0.1)
    made(spark, ROWS).write.mode("append").parquet(str(tmp_path / "b"))
    ended(run, 2 * ROWS)
    assert sorted(row.id for row in out.rows) == list(range(2 * ROWS))
    assert counted(run) == 2 * ROWS


def test_where_nothing_runs_nothing_is_read_straight(spark: SparkSession) -> None:
    assert file_frames(None, spark, {"s": ["id"]}) == {}
