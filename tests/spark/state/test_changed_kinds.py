"""An operator that keeps something of another kind than the checkpoint has under its name is refused by that name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended
from tests.spark.windowing import TRIPS, Hand, Row, S, frame_of, source

import jettison as jt
from jettison.errors import CheckpointError
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.state.state_kinds import COUNTS, JOIN, TIMES, check_kinds, remember_kinds

pytestmark = pytest.mark.spark

Build = Callable[[], jt.Network]
ROWS: list[Row] = [(n, n * S, 1, "cab", 2.0) for n in range(9)]


def windows(*sizes: str) -> Build:
    """Aggregates a, b, ... of one stream, with windows of these sizes."""

    def build() -> jt.Network:
        net = jt.Network("taxi")
        trips = source(net)
        for name, size in zip("abc", sizes, strict=False):
            trips.window(size, by="zone").agg(n="count(*)", name=name).output(f"{name}_out")
        return net

    return build


def joined() -> jt.Network:
    """What is called a is a join."""
    net = jt.Network("taxi")
    trips = source(net)
    cheap = trips.where("fare < 5", name="cheap").select("zone", "trip AS other", name="narrow")
    trips.join(cheap, "zone", within="1 second", name="a").output("a_out")
    return net


@pytest.mark.parametrize(
    ("before", "now", "fault"),
    [
        (windows("4 rows"), windows("4 seconds"), rf"aggregate 'a': .* keeps {COUNTS}, and now it keeps {TIMES}: decl"),
        (windows("4 seconds"), windows("4 rows"), rf"aggregate 'a': .* keeps {TIMES}, and now it keeps {COUNTS}: decl"),
        # neither is the first of its stream: its slices are under the name of another
        (windows("4 seconds", "2 seconds"), windows("4 seconds", "2 rows"), rf"aggregate 'b': .* keeps {TIMES}, and"),
        (windows("4 seconds", "2 rows"), windows("4 seconds", "2 seconds"), rf"aggregate 'b': .* keeps {COUNTS}, and"),
        (
            joined,
            windows("4 seconds"),
            rf"aggregate 'a': .* keeps {JOIN}, and now it keeps {TIMES}: .*another name",
        ),
        (windows("4 rows"), joined, rf"join 'a': .* keeps {COUNTS}, and now it keeps {JOIN}: .* a new checkpoint"),
    ],
    ids=["rows-time", "time-rows", "second-time-rows", "second-rows-time", "join-time", "rows-join"],
)
def test_it_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path, before: Build, now: Build, fault: str
) -> None:
    run = Hand(spark, tmp_path, before())
    run.run(0, ROWS)
    run.close()
    with pytest.raises(CheckpointError, match=fault):
        Hand(spark, tmp_path, now())
    again = Hand(spark, tmp_path, before())  # the refusal has changed nothing
    again.run(1, [(10, 20 * S, 1, "cab", 2.0)])
    again.close()


@pytest.mark.parametrize(("before", "now"), [("4 rows", "4 seconds"), ("4 seconds", "4 rows")])
def test_a_run_that_is_started_says_so(spark: SparkSession, tmp_path: Path, before: str, now: str) -> None:
    frame_of(spark, ROWS).coalesce(1).write.parquet(str(tmp_path / "trips" / "0"))

    def start(size: str) -> jt.Run:
        stream = spark.readStream.schema(TRIPS).parquet(f"{tmp_path}/trips/*")
        where, sinks = str(tmp_path / "checkpoint"), {"a_out": jt.memory()}
        return jt.start(windows(size)(), {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=where, costs=FREE)

    ended(start(before), len(ROWS))
    with pytest.raises(
        CheckpointError, match=r"aggregate 'a': the checkpoint keeps windows .* and now it keeps windows"
    ):
        start(now)


def test_a_checkpoint_from_before_kinds_were_written_down_is_told_apart_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = Hand(spark, tmp_path, windows("4 rows")())
    run.run(0, ROWS)
    run.close()
    (tmp_path / "kinds.json").unlink()
    with pytest.raises(CheckpointError, match=r"'a': .* 'aggregate .*size_rows=4 .*now there is .*size_us=4000"):
        Hand(spark, tmp_path, windows("4 seconds")())
    with pytest.raises(CheckpointError, match=r"join 'a': .*size_rows=4 .*and now there is 'where"):
        Hand(spark, tmp_path, joined())
    assert not (tmp_path / "kinds.json").exists(), "what was refused is not remembered"


def test_what_is_declared_no_more_is_remembered(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    remember_kinds(folder, {TIMES: ["a"], COUNTS: ["b"]})
    check_kinds(folder, {COUNTS: ["b"], JOIN: ["c"]})
    remember_kinds(folder, {COUNTS: ["b"], JOIN: ["c"]})
    kinds = json.loads((tmp_path / "kinds.json").read_text())
    assert kinds.pop("crc32")
    assert kinds == {"a": TIMES, "b": COUNTS, "c": JOIN}
    with pytest.raises(CheckpointError, match="aggregate 'a'"):
        check_kinds(folder, {COUNTS: ["a"]})
