"""Expressions are tried only for as long as rows are bad: then they are trusted again, until the next bad row."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, Row, S, source

import jettison as jt
from jettison.spark.guard.care_period import CarePeriod

pytestmark = pytest.mark.spark


def test_trust_12_care_ends_after_clean_batches_and_comes_back_with_a_bad_row(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jettison")
    net = jt.Network("taxi")
    source(net).select("trip", "100 div zone AS part", name="parts").output("table")
    hand = Hand(spark, tmp_path, net)
    hand.runner._care = CarePeriod(2)

    def batch(number: int, *zones: int) -> tuple[int, bool]:
        rows: list[Row] = [(10 * number + place, S, zone, "cab", 1.0) for place, zone in enumerate(zones)]
        rejected = hand.run(number, rows).unfit.get("parts", 0)
        return rejected, hand.runner.known.careful

    seen = [batch(number, *zones) for number, zones in enumerate([(1,), (0, 2), (3,), (4,), (5,), (0, 0, 5), (6,)])]
    assert seen == [(0, False), (1, True), (0, True), (0, False), (0, False), (2, True), (0, True)]
    ends = [line for line in caplog.messages if "expressions are trusted again" in line]
    assert ends == ["no row was rejected for a while: expressions are trusted again (from batch 4 on)"]
    assert hand.rows("table") == sorted(
        [(0, 100), (11, 50), (20, 33), (30, 25), (40, 20), (52, 20), (60, 16)], key=repr
    )
    hand.close()
