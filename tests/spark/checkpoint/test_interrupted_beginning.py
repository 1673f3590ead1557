"""Trust 15: a run that was stopped while Spark wrote its very first offsets starts again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended, taxi, trips

import jettison as jt

pytestmark = pytest.mark.spark


def test_trust_15_what_an_interrupted_first_write_left_behind_does_not_stop_the_next_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark writes a draft and renames it. Stopped in between, it finds the draft at the next start, where it wants
    the folder to be empty: STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY, and no start ever came further."""
    offsets = tmp_path / "checkpoint" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.7b2d6b34-6d1c-4d2c-9f0f-5d1f0c0f9d11.tmp", "..0.7b2d6b34-6d1c-4d2c-9f0f-5d1f0c0f9d11.tmp.crc"):
        (offsets / name).write_text("v1")
    sinks = {"fares": jt.memory(), "alerts": jt.memory()}
    where = str(tmp_path / "checkpoint")
    run = jt.start(taxi(), {"trips": trips(spark, 500, 500)}, sinks, trigger=TRIGGER, checkpoint=where, costs=FREE)
    ended(run, 500)
    assert sinks["fares"].rows
    assert sorted(path.name for path in offsets.iterdir() if not path.name.startswith(".")) == ["0"]
