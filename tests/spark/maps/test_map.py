"""Maps on Spark: columns that a Python function adds, bad rows with their reasons, and costs that are learned."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.running import FREE, START_US, TRIGGER, ended, logged_plans

import jettison as jt
from jettison.plan.drops.cost_bound import CostBound

pytestmark = pytest.mark.spark

TRIPS = {"schema": "trip long, pickup timestamp, zone int, fare double", "event_time": "pickup", "id": ["trip"]}
ROWS = 2000


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    if row["trip"] == 7:
        raise KeyError("no such trip")
    if row["trip"] == 8:
        return {"twice": "many", "fare": 1.0}
    return {"twice": 2 * row["fare"], "fare": row["fare"] + 1}


def doubled_rows(frame: pd.DataFrame) -> pd.DataFrame:
    if (frame["trip"] == 7).any():
        raise KeyError("no such trip")
    return frame.assign(twice=2 * frame["fare"], fare=frame["fare"] + 1)


def doubled_table(table: pa.Table) -> dict[str, Any]:
    fares = table["fare"].to_numpy()
    return {"twice": 2 * fares, "fare": fares + 1}


def by_zone(row: dict[str, Any]) -> tuple[float]:
    """A tenth of the zones cost fifty times as much as the others."""
    until = time.perf_counter() + (0.005 if row["zone"] % 10 == 0 else 0.0001)
    while time.perf_counter() < until:
        pass
    return (row["fare"] / 2,)


def trips(spark: SparkSession, folder: Path, batches: int, per_batch: int) -> DataFrame:
    """A stream of trips, one file for every batch; a tenth of the zones are dear."""
    folder.mkdir(exist_ok=True)
    for batch in range(batches):
        ids = np.arange(batch * per_batch, (batch + 1) * per_batch)
        times = pa.array(START_US + 1000 * ids, pa.timestamp("us", tz="UTC"))
        zones, fares = pa.array(ids % 40, pa.int32()), pa.array(1.0 + ids % 9)
        path = folder / f"{batch}.parquet"
        pq.write_table(pa.table({"trip": ids, "pickup": times, "zone": zones, "fare": fares}), path)
        os.utime(path, (1000 + batch, 1000 + batch))
    return spark.readStream.schema(str(TRIPS["schema"])).option("maxFilesPerTrigger", 1).parquet(str(folder))


def network(function: Any, *, schema: str = "twice double, fare double", **others: Any) -> jt.Network:
    net = jt.Network("mapped")
    rides = net.source("trips", **TRIPS).where("fare > 0", name="paid")
    mapped = rides.map(function, key="zone", schema=schema, name="score", **others)
    mapped.where("trip >= 0", name="all").output("rides", qos=jt.QoS(latency_goal="60 seconds"))
    return net


@pytest.mark.parametrize("function", [doubled, doubled_rows, doubled_table], ids=["row", "rows", "table"])
def test_a_map_adds_columns_and_rejects_bad_rows_with_their_reasons(
    spark: SparkSession, tmp_path: Path, function: Any
) -> None:
    sink, many = jt.memory(), function is not doubled
    run = jt.start(
        network(function, rows=many), {"trips": trips(spark, tmp_path / "trips", 2, 20)}, {"rides": sink},
        trigger=TRIGGER, checkpoint=str(tmp_path / "checkpoint"), costs=FREE,
    )  # fmt: skip
    ended(run, 40)
    found = {row["trip"]: row for row in sink.rows}
    bad = {7, 8} if function is doubled else {7} if function is doubled_rows else set()
    assert set(found) == set(range(40)) - bad
    assert all(row["twice"] == 2 * (row["fare"] - 1) for row in found.values())
    assert sum(sum(sample.unfit.values()) for sample, _ in run.history) == len(bad)
    if bad:
        letters = spark.read.parquet(str(tmp_path / "checkpoint" / "dead_letters")).collect()
        reasons = {json.loads(bytes(each["value"]))["trip"]: each["_reason"] for each in letters}
        assert set(reasons) == bad
        assert reasons[7] == "map 'score': KeyError: 'no such trip'"
        if 8 in bad:
            assert reasons[8] == "map 'score': column twice is 'many', a str, and declared double."


@pytest.mark.parametrize("order", ["arrival", "worth"])
def test_las_learns_what_zones_cost_and_drops_by_it(spark: SparkSession, tmp_path: Path, order: str) -> None:
    learning = jt.CostLearning(window=300, tolerance=2.0, epsilon=0.05)
    las = jt.Las(order=order, check="each", learning=learning)
    sink = jt.memory()
    run = jt.start(
        network(by_zone, schema="half double"), {"trips": trips(spark, tmp_path / "trips", 6, ROWS)}, {"rides": sink},
        trigger="1 second", checkpoint=str(tmp_path / "checkpoint"), shedding=jt.Shedding(shedder=las),
        costs=jt.Costs(jt.Profile({"score": 2000.0}, {}), learn=False),
    )  # fmt: skip
    ended(run, 6 * ROWS)
    timed = [sample.timed["score"] for sample, _ in run.history]
    assert all(each.lanes == 2 for each in timed)
    known = las.known("score")
    assert known.published >= 1
    plans = logged_plans(tmp_path / "checkpoint")
    drops = [drop for plan in plans for drop in plan.drops.values() if isinstance(drop, CostBound)]
    named = {drop.sketch for drop in drops if drop.sketch is not None}
    assert named
    assert all((tmp_path / "checkpoint" / "costs" / f"{name}.pair").exists() for name in named)
    last, kept = run.history[-1][0].arcs["paid>score"]
    assert 0 < kept < last == ROWS
    if order == "worth":  # dear zones are dropped, cheap ones stay
        late = [row for row in sink.rows if row["trip"] >= 5 * ROWS]
        dear = sum(row["zone"] % 10 == 0 for row in late)
        assert dear < 0.5 * (len(late) / 10)
