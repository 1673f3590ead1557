"""Drops by cost as Spark judges them, beside the same rule in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.spark.compile.drops import ADMITTED, drawn
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.maps.cost_filter import COST, classes_seen, cost_metrics, judged
from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash

ROWS = 3000
START_US = 1_500_000.0


@pytest.mark.parametrize("order", ["worth", "arrival"])
def test_spark_drops_what_the_rule_drops(spark: SparkSession, order: str) -> None:
    keys = np.arange(50)
    hashes = key_hash([keys])
    pair = CostPair.of(CostSketch.empty(4, 60).updated(hashes, 100.0 * (1 + keys % 10)))
    known = ExpressionCache(cost_pair=lambda name: {pair.name: pair}[name])
    frame = spark.range(0, ROWS, numPartitions=3).selectExpr(
        "id AS _jt_id", "timestamp_micros(id * 500) AS _jt_time", "id % 50 AS k", "id % 4 AS v"
    )
    ids = np.arange(ROWS)
    costs_us = pair.table.costs_us(hashes)[ids % 50]
    worth = np.where(ids % 4 < 2, 1.0, 4.0)
    if order == "worth":
        classes = CostClasses.of(costs_us, worth)
        rule: WorthRule | LatencyRule = WorthRule(
            classes, classes.keeps_for(0.4), "v", (0.0, 2.0, 4.0), (1.0, 4.0, 0.0)
        )
    else:
        rule = LatencyRule(600_000.0, "each", lanes=2, start_us=START_US, scale=1.5)
    drop = CostBound("score", ("k",), pair.mean_us, rule, pair.name, 0.5)
    made = judged(frame, "a>score", drop, known)
    rows = made.selectExpr("_jt_id", COST, ADMITTED, f"{drawn('a>score')} AS drawn", "pmod(hash(_jt_id), 2) AS lane")
    found = rows.orderBy("_jt_id").toPandas()
    assert found[COST].to_numpy() == pytest.approx(costs_us)
    if order == "worth":
        expected = drop.kept(costs_us, np.zeros(ROWS), found["drawn"].to_numpy() / 2**20, worth)
    else:
        expected = np.zeros(ROWS, np.bool_)
        for lane in (0, 1):
            mine = found["lane"].to_numpy() == lane
            expected[mine] = drop.kept(costs_us[mine], 500.0 * ids[mine], np.zeros(mine.sum()))
    assert 0.1 * ROWS < expected.sum() < 0.9 * ROWS
    assert (found[ADMITTED].to_numpy() == expected).all()
    seen = made.selectExpr("count(1) AS rows", *cost_metrics(drop, 1)).first()
    assert seen is not None
    assert seen["estimated_us"] == pytest.approx(costs_us[expected].sum())
    counted = classes_seen(drop, seen.asDict())
    assert counted is not None
    assert sum(counted.rows) == pytest.approx(ROWS)
    assert counted.mean_us == pytest.approx(costs_us.mean(), rel=0.1)


def test_rows_of_one_identity_are_dropped_alike_however_they_are_spread(spark: SparkSession) -> None:
    """Behind a join with a table several rows have one identity and time, and different costs."""
    keys = np.arange(50)
    pair = CostPair.of(CostSketch.empty(4, 272).updated(key_hash([keys]), 100.0 * (1 + keys % 10)))
    known = ExpressionCache(cost_pair=lambda _: pair)
    drop = CostBound("score", ("k",), pair.mean_us, LatencyRule(1.4e6, "each", 2, start_us=START_US), pair.name, 0.5)
    rows = spark.range(0, ROWS).selectExpr(
        "id div 5 AS _jt_id",
        "timestamp_micros((id div 5) * 500) AS _jt_time",
        "id % 50 AS k",
        "map('n', id) AS m",
        "id",
    )
    spread = (rows.coalesce(1), rows.repartition(7, "id"), rows.repartition(3, "k"))
    kept = [{row["id"] for row in judged(each, "a>s", drop, known).where(ADMITTED).collect()} for each in spread]
    assert 0 < len(kept[0]) < ROWS
    assert kept[0] == kept[1] == kept[2]
