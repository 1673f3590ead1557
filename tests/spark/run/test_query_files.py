"""DISSP's query files on Spark: whole seconds in JSON are event times, and windows are as the query says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spec.xml.queries import AVERAGE, operator

import jettison as jt
from jettison.spark.run.from_spec import start_spec

pytestmark = pytest.mark.spark


def test_the_average_of_the_listings_runs_on_files(spark: SparkSession, tmp_path: Path) -> None:
    """Two machines, one reading in a second, windows of 10 s. The second batch closes what the first one filled; the
    window of its last ten readings stays open."""
    readings = [{"ts": 1_000_000_000 + n, "idx": float(n % 2), "cpu": float(n)} for n in range(201)]
    (tmp_path / "in").mkdir()
    for second, (name, rows) in enumerate({"a": readings[:-1], "b": readings[-1:]}.items()):
        file = tmp_path / "in" / f"{name}.json"
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        os.utime(file, (1_000_000_000 + second,) * 2)  # Spark reads the older file first
    given = {"format": "json", "path": str(tmp_path / "in"), "options": "{maxFilesPerTrigger: 1}", "id": "ts"}
    places = "".join(f'<parameter name="{name}" value="{value}"/>' for name, value in given.items())
    text = AVERAGE.replace('value="ts"/>', f'value="ts"/>{places}')
    output = operator("MyOutput", "Output", [], parquet=str(tmp_path / "out"))
    text = text.replace('<operator name="MyOutput" type="Output"/>', output)
    run = start_spec(jt.from_xml(text), spark, mode="off")
    try:
        assert run.await_batches(2, timeout=60)
    finally:
        run.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).selectExpr("idx", "cpu", "bigint(window_start) AS start").collect()
    expected = {
        (float(machine), 1_000_000_000 + 10 * window): sum(range(10 * window + machine, 10 * window + 10, 2)) / 5
        for machine in (0, 1)
        for window in range(19)
    }
    assert {(row.idx, row.start): row.cpu for row in rows} == expected
