"""DISSP's query files on Spark: whole seconds in JSON are event times, and windows are as the query says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spec.xml.queries import AVERAGE, operator

import jettison as jt
from jettison.spark.run.from_spec import start_spec

pytestmark = pytest.mark.spark


def test_the_average_of_the_listings_runs_on_files(spark: SparkSession, tmp_path: Path) -> None:
    """Two machines with 100 readings each in windows of 10 s, one reading in a second; the last window stays open."""
    readings = [{"ts": 1_000_000_000 + n, "idx": float(n % 2), "cpu": float(n)} for n in range(200)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("\n".join(map(json.dumps, readings)), encoding="utf-8")
    place = f'<parameter name="format" value="json"/><parameter name="path" value="{tmp_path / "in"}"/>'
    text = AVERAGE.replace('value="ts"/>', f'value="ts"/>{place}<parameter name="id" value="ts"/>')
    output = operator("MyOutput", "Output", [], parquet=str(tmp_path / "out"))
    text = text.replace('<operator name="MyOutput" type="Output"/>', output)
    run = start_spec(jt.from_xml(text), spark, mode="off")
    try:
        assert run.await_batches(1, timeout=60)
    finally:
        run.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).selectExpr("idx", "cpu", "bigint(window_start) AS start").collect()
    expected = {
        (float(machine), 1_000_000_000 + 10 * window): sum(range(10 * window + machine, 10 * window + 10, 2)) / 5
        for machine in (0, 1)
        for window in range(19)
    }
    assert {(row.idx, row.start): row.cpu for row in rows} == expected
