"""Killed again and again, windows that count rows give what plain Python makes of the rows: each window once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conftest import ROOT
from tests.spark.count_driver import BATCHES, PER_BATCH, SIZE, SLIDE
from tests.spark.running import same_trips

from jettison.spark.compile.drops import identity_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def drive(folder: Path, kill_after: int | None, delay_s: float) -> bool:
    """Run the driver, and kill it some time after it has begun to write so many batches; whether it got to the end."""
    command = [sys.executable, "-m", "tests.spark.count_driver", str(folder)]
    with (folder / "errors").open("ab") as errors:
        driver = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, start_new_session=True
        )
    assert driver.stdout is not None
    begun: set[str] = set()
    try:
        for line in driver.stdout:
            begun.add(line.strip())
            if "finished" in begun:
                return driver.wait(60) == 0
            if kill_after is not None and len(begun) > kill_after:
                time.sleep(delay_s)
                return False
        raise AssertionError((folder / "errors").read_text()[-2000:])
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def test_killed_at_any_point_every_window_comes_once(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(4)
    for _ in range(2):
        drive(tmp_path, draw.randint(2, 5), draw.uniform(0.0, 0.9))
    assert drive(tmp_path, None, 0.0)

    rows = same_trips(spark, 0, BATCHES * PER_BATCH).selectExpr("trip", "pickup", "zone", identity_of(["trip"]))
    ordered = sorted(rows.collect(), key=lambda row: (row.trip // PER_BATCH, row.pickup, row._jt_id))
    groups: dict[int | None, list[int]] = {}
    for row in ordered:
        groups.setdefault(row.zone, []).append(row.trip)

    def windows(trips: list[int]) -> list[tuple[int, ...]]:
        cut = [(at, trips[at : at + SIZE]) for at in range(0, len(trips) - SIZE + 1, SLIDE)]
        return [(at, at + SIZE, SIZE, sum(held), held[0], held[-1]) for at, held in cut]

    columns = ("window_start", "window_end", "n", "sum", "first", "last")
    everywhere = [tuple(row) for row in spark.read.parquet(str(tmp_path / "everywhere")).select(*columns).collect()]
    wanted = windows([row.trip for row in ordered])
    assert len(wanted) == (BATCHES * PER_BATCH - SIZE) // SLIDE + 1
    assert Counter(everywhere) == Counter(wanted)
    zones = [tuple(row) for row in spark.read.parquet(str(tmp_path / "zones")).select("zone", *columns).collect()]
    assert Counter(zones) == Counter((zone, *each) for zone, trips in groups.items() for each in windows(trips))
    assert len(zones) > 100
