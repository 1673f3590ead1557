"""Rows of the generated source are the same, to the last bit, whether Python makes them or Spark does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended

import jettison as jt
from jettison.spark.read.generated_rows import GeneratedRows
from jettison.spark.read.generator import generate, generated
from jettison.synthetic.distributions import Quantiles, Uniform, Zipf
from jettison.synthetic.fields import TAXI, TAXI_PAYLOAD, Arrival, Choice, Field, Normal, Payload, RowNumber, Shift
from jettison.synthetic.presets import ENEMY_UNITS
from jettison.synthetic.rates import Burst, Constant, Rate, Sine, Square, Step, Trace

pytestmark = pytest.mark.spark

START_US = 1_700_000_000_123_456
KINDS: dict[str, Field] = {
    "trip": RowNumber(),
    "at": Arrival(null_share=0.1),
    "few": Zipf(9, s=1.3),
    "zone": Zipf(265),
    "many": Zipf(2000, s=0.8),
    "int": Uniform(-5, 5),
    "long": Uniform(0, 2**40, type="long"),
    "double": Uniform(-0.1, 0.2, type="double"),
    "fare": Quantiles(((0, -20), (0.02, 0), (0.5, 13), (1, 60.5))),
    "paid": Choice(("card", 'it\'s \\ "cash"'), weights=(3, 1)),
    "seats": Choice((2, 4)),
    "rate": Choice((1, 0.5)),
    "city": Choice(tuple(f"${{user}} {number}" for number in range(20))),
    "long tail": Quantiles(tuple((k / 40, k * k / 7) for k in range(41))),
    "moved": Shift(Uniform(0, 9), Uniform(100, 109), from_row=900, over_rows=2000),
    "value": Payload({"fare": Normal(13, 4), "note": Choice(("a, b", 'c\'s \\ "d"'))}, pool=100, bad_share=0.1),
}
RATES: dict[str, tuple[Rate | None, int, int]] = {
    "closed loop": (None, 0, 3001),
    "constant": (Constant(333.3), 10**6, 10**6 + 5000),
    "burst": (Burst(1000, 4000, at_s=1, length_s=1), 0, 7000),
    "step": (Step(0, 400, at_s=10), 0, 777),
    "square": (Square(100, 300, period_s=2, duty=0.3), 5, 4000),
    "sine": (Sine(1000, 1000, period_s=60), 10_000, 12_000),
    "trace": (Trace((0, 3, 3.5, 9), (100.5, 0, 900, 7)), 0, 5000),
}


def made(fields: dict[str, Field], rate: Rate | None, spark: SparkSession, first: int, end: int, parts: int) -> Any:
    rows = GeneratedRows.of(generate(spark, fields, rate=rate, seed=7, partitions=parts))
    assert rows is not None
    return rows.rows(spark, first, end, START_US)


@pytest.mark.parametrize("name", RATES)
def test_spark_makes_the_rows_that_python_makes(name: str, spark: SparkSession) -> None:
    rate, first, end = RATES[name]
    fields = KINDS if name in ("closed loop", "burst") else {"trip": RowNumber(), "at": Arrival()}
    theirs = generated(spark, fields, first, end, start_us=START_US, rate=rate, seed=7)
    ours = made(fields, rate, spark, first, end, parts=3)
    assert ours.dtypes == theirs.dtypes
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))


def test_presets_are_made_by_spark_but_not_what_it_draws_otherwise(spark: SparkSession) -> None:
    for fields in (TAXI, TAXI_PAYLOAD, ENEMY_UNITS):
        ours = made(fields, Constant(1000), spark, 5, 2005, parts=2)
        theirs = generated(spark, fields, 5, 2005, start_us=START_US, rate=Constant(1000), seed=7)
        assert ours.exceptAll(theirs).count() == theirs.exceptAll(ours).count() == 0
    wide: dict[str, Field] = {"x": Uniform(-1e308, 1e308, type="double")}
    large: dict[str, Field] = {"x": Payload({"y": Choice(("z" * 1000,))}, pool=5000)}
    for fields in ({"x": Normal(0, 1)}, {"x": Zipf(10**6)}, large, wide):
        assert GeneratedRows.of(generate(spark, fields)) is None
    stream = generate(spark, TAXI)
    assert GeneratedRows.of(stream.where("fare > 0")) is None
    assert made(TAXI, Constant(10, end_s=1), spark, 5, 50, parts=2) is None  # rows that never arrive
    assert made(TAXI, Sine(1000, 500, period_s=1), spark, 0, 10_000, parts=2) is None  # more pieces than a plan holds
    assert made(TAXI, None, spark, 7, 7, parts=2).collect() == []
    assert GeneratedRows.of(spark.readStream.format("rate").load()) is None


def test_a_run_reads_generated_rows_without_python(spark: SparkSession, tmp_path: Path) -> None:
    """Batches are those of the offsets, Spark counts their rows, and a restart goes on."""
    out, plans = jt.memory(), []

    def network() -> jt.Network:
        net = jt.Network("taxi")
        trips = net.source("trips", "trip long, pickup timestamp, zone int, fare double", event_time="pickup")
        trips.where("fare > 0", name="paid").output("fares")
        net.source("more", "trip long, zone int, fare double, pickup timestamp").output("all")
        return net

    def look(frame: Any, batch: int) -> None:
        plans.append(frame._jdf.queryExecution().toString())

    for rows in (1000, 2500):
        streams = {  # the second one has no rows behind its first thousand
            name: generate(spark, TAXI, seed=seed, rows_per_batch=500, limit_rows=limit, start_us=START_US)
            for name, seed, limit in (("trips", 1, rows), ("more", 2, 1000))
        }
        run = jt.start(
            network(), streams, {"fares": out, "all": look}, trigger=TRIGGER, checkpoint=tmp_path, costs=FREE
        )
        ended(run, 2000 if rows == 1000 else 1500)
        assert run.query.recentProgress[0]["numInputRows"] == (1000 if rows == 1000 else 500)
    assert len(plans) == 2
    assert all("Range (0, " in plan and "ExistingRDD" not in plan for plan in plans)
    expected = generated(spark, TAXI, 0, 2500, start_us=START_US, seed=1).where("fare > 0").collect()
    assert sorted(map(tuple, out.rows)) == sorted(map(tuple, expected))
