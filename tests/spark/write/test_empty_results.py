"""An output whose windows have not closed yet reads back as an empty table with its columns, not as an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, TRIPS, trips, until

import jettison as jt

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_trust_25_an_output_without_results_reads_back_empty(spark: SparkSession, tmp_path: Path) -> None:
    """One batch: no window can close in it. It was "Unable to infer schema", or no such path."""
    net = jt.Network("empty")
    source = net.source("trips", **TRIPS)
    windows = source.window("1 hour", by="zone").agg(n="count(*)", top="max(fare)", name="busy")
    windows.output("zones", quality=True)
    source.select("trip").output("rows")
    sinks = {name: jt.parquet(f"{tmp_path}/{name}") for name in ("zones", "rows")}
    run = jt.start(net, {"trips": trips(spark, 100, 100)}, sinks, trigger=TRIGGER, costs=FREE)
    try:
        until(run, lambda: run.report().rows_in == 100)
    finally:
        run.stop()
    zones = spark.read.parquet(f"{tmp_path}/zones")
    assert zones.count() == 0
    kinds = dict(zones.dtypes)
    assert [kinds[name] for name in ("zone", "window_start", "n", "top")] == ["int", "timestamp", "bigint", "double"]
    assert (kinds["_kept"], kinds["_batch"], kinds["_sic"]) == ("double", "bigint", "double")
    assert spark.read.parquet(f"{tmp_path}/rows").count() == 100
    assert [path.name for path in (tmp_path / "rows").glob("batch=*")] == ["batch=0"], "it had results"
