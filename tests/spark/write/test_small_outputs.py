"""A few rows that the driver writes are the rows that Spark would write: types, nulls, extremes, repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.running import FREE, TRIGGER, TRIPS, trips, until

import jettison as jt
from jettison.spark.write.sinks import MemorySink, ParquetSink
from jettison.spark.write.small_outputs import FIXED, OTHER, PLAIN, fast_way, width_of

pytestmark = pytest.mark.spark

_KINDS = (
    "CAST({0} AS boolean)",
    "CAST({0} AS tinyint)",
    "CAST({0} AS smallint)",
    "CAST({0} AS int)",
    "CAST({0} AS bigint)",
    "CAST({0} AS float)",
    "CAST({0} AS double)",
    "CAST({0} AS decimal(38, 18))",
    "CAST({0} AS string)",
    "CAST(CAST({0} AS string) AS binary)",
    "date_from_unix_date(CAST(-200000 * {0} AS int))",
    "timestamp_micros(CAST(-17000000000000000 * {0} AS bigint))",
)
_OTHERS = (
    "CAST(timestamp_micros({0}) AS timestamp_ntz)",
    "array({0}, NULL)",
    "named_struct('a', {0}, 'b', CAST(NULL AS string))",
    "map('k', {0})",
    "collate(string({0}), 'UTF8_LCASE')",
)


def _rows(spark: SparkSession, kinds: tuple[str, ...]) -> DataFrame:
    columns = [f"{kind.format('x')} AS c{index}" for index, kind in enumerate(kinds)]
    made = spark.sql("SELECT col1 AS x FROM VALUES (1), (0), (NULL), (-1)")
    return made.selectExpr(*columns, "double('NaN') AS nan", "double('-Infinity') AS `a b`")


def _texts(frame: DataFrame) -> list[str]:
    """Rows as Spark shows them: Python has no dates before the year 1."""
    return sorted(row[0] for row in frame.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))").collect())


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_what_the_driver_writes_reads_back_as_what_spark_writes(
    spark: SparkSession, tmp_path: Path, times: str
) -> None:
    rows = _rows(spark, _KINDS)
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    few, many = ParquetSink(str(tmp_path / "few")), ParquetSink(str(tmp_path / "many"))
    try:
        few.write_few(rows, 3)
        many.write(rows, 3)
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", before)
    one, other = spark.read.parquet(few.path), spark.read.parquet(many.path)
    assert one.dtypes == other.dtypes
    assert _texts(one) == _texts(other)
    (file, *_), (spark_file, *_) = (sorted((tmp_path / name / "batch=3").glob("*.parquet")) for name in ("few", "many"))
    kinds = [pyarrow.parquet.read_schema(each).types for each in (file, spark_file)]
    assert kinds[0] == kinds[1], "as others read it"
    assert (file.name == "part-00000.parquet") is (times != "TIMESTAMP_MILLIS"), "which is left to Spark"


def test_only_what_both_write_alike_is_written_by_the_driver(spark: SparkSession) -> None:
    assert width_of(_rows(spark, _KINDS[:8]).schema) == FIXED
    assert width_of(_rows(spark, _KINDS).schema) == PLAIN
    assert {width_of(_rows(spark, (kind,)).schema) for kind in _OTHERS} == {OTHER}


def test_no_rows_read_back_as_no_rows_with_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "none"))
    sink.write_few(_rows(spark, _KINDS).where("c3 > 5"), 0)
    found = spark.read.parquet(sink.path)
    assert found.count() == 0
    assert found.columns == [*_rows(spark, _KINDS).columns, "batch"]


def test_a_repeated_batch_replaces_what_is_there_whoever_wrote_it(spark: SparkSession, tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "rows"))
    sink.write(spark.range(100), 0)
    (tmp_path / "rows" / ".batch=0").mkdir()  # as a kill leaves it
    (tmp_path / "rows" / ".batch=0" / "part-00000.parquet").write_bytes(b"PAR1")
    assert spark.read.parquet(sink.path).count() == 100, "readers pass over it"
    for size in (7, 5):
        sink.write_few(spark.range(size), 0)
        assert spark.read.parquet(sink.path).count() == size
    assert not (tmp_path / "rows" / ".batch=0").exists()
    sink.write(spark.range(9), 0)
    assert spark.read.parquet(sink.path).count() == 9


@pytest.mark.long
def test_rows_that_are_too_large_for_the_driver_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Outputs, slices and rows that wait at a join: nothing is lost, and counts are right, before and after."""
    net = jt.Network("large")
    left, right = (net.source(name, **TRIPS) for name in ("trips", "rides"))
    long_text = "repeat(string(trip % 10), 20000) AS text"
    left.select("trip", long_text, name="texts").output("rows")
    texts = left.select("trip", "zone", long_text, name="keyed")
    texts.join(right.select("trip", "fare", name="fares"), on="trip", within="1 minute", name="both").output("pairs")
    windows = left.select("concat(repeat('z', 5000), trip) AS zone", name="named").window("50 microseconds", by="zone")
    windows.agg(n="count(*)", name="busy").output("zones")
    left.select("trip", name="narrow").output("appended")
    written: list[int] = []
    sinks = {name: ParquetSink(str(tmp_path / name)) for name in ("rows", "pairs", "zones")}
    outputs = {**sinks, "appended": lambda rows, batch: written.extend(row.trip for row in rows.collect())}
    streams = {name: trips(spark, 600, 100) for name in ("trips", "rides")}
    conf: Any = spark.sparkContext._jsc.sc().conf()  # type: ignore[union-attr]
    run = jt.start(net, streams, outputs, trigger=TRIGGER, costs=jt.Costs(FREE, shared=()))
    try:
        until(run, lambda: run.report().rows_in >= 400)
        conf.set("spark.driver.maxResultSize", "100k")
        until(run, lambda: run.report().rows_in == 1200)
    finally:
        conf.remove("spark.driver.maxResultSize")
        run.stop()
    assert any("too large for the driver" in each.message for each in caplog.records)
    report = run.report()
    for name in ("rows", "pairs"):
        found = spark.read.parquet(sinks[name].path)
        assert (found.count(), found.select("trip").distinct().count()) == (600, 600)
        assert report.outputs[name].rows == 600
        assert found.where("length(text) = 20000").count() == 600
    assert sorted(written) == list(range(600)), "an output that was written already is not written again"
    zones = spark.read.parquet(sinks["zones"].path)
    closed = zones.count()
    assert closed >= 450, "windows of the batches before the last are closed"
    assert zones.where("n = 1").select("zone").distinct().count() == closed == report.outputs["zones"].rows


def test_memory_takes_a_few_rows_in_one_job(spark: SparkSession) -> None:
    sink = MemorySink(limit=3)
    sink.write_few(spark.range(5), 0)
    assert len(sink.rows) == 3
    far = spark.sql("SELECT timestamp_micros(-99999999999999999) AS at, 1 AS n")
    sink.write_few(far, 1)
    assert [(row.at, row.n) for row in sink.batches[1]] == [(None, 1)], "Python knows no such year"


@pytest.mark.core
def test_a_sink_of_a_users_own_that_writes_otherwise_is_asked_as_before() -> None:
    class Loud(ParquetSink):
        def write(self, rows: Any, batch: int) -> None: ...

    class Other:
        def write(self, rows: Any, batch: int) -> None: ...

    class Named(ParquetSink):
        name = "as it is"

    assert fast_way(Loud("x")) is None
    assert fast_way(Other()) is None
    assert fast_way(ParquetSink("x")) is not None
    assert fast_way(Named("x")) is not None
