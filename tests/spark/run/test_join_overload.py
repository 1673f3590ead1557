"""A burst in two streams that are joined: the loop itself drops windows of pairs, at the inputs of both."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import TRIGGER, ended, logged_plans
from tests.spark.windowing import S, plain

import jettison as jt
from jettison.network.durations import duration_ms
from jettison.spark.run.run import Run
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

SCHEMAS = {"orders": "k int, o long, at timestamp, sum double", "payments": "k int, p long, at timestamp, paid double"}
KEYS, STEP_S, SIZE_S, GAP = 2, 12, 1, 4
BEFORE, BURST, BEHIND = 2, 5, 3
LATE = slice(BEFORE + 1, BEFORE + BURST)  # one batch tells little of a rate
SIZES = [48] * BEFORE + [288] * BURST + [48] * BEHIND  # of each stream
HALF_FULL_US = 0.5 * 900 * duration_ms(TRIGGER, "trigger") / (2 * SIZES[0])
"""What a row costs when the rows of a quiet batch take half of the budget: those of the burst take three times it."""


def market() -> jt.Network:
    net = jt.Network("market")
    orders = net.source("orders", SCHEMAS["orders"], event_time="at", id=["o"])
    payments = net.source("payments", SCHEMAS["payments"], event_time="at", id=["p"])
    left, right = orders.select("k", "sum", name="left"), payments.select("k", "paid", name="right")
    both = left.join(right, on="k", within="200 milliseconds", name="both")
    busy = both.window(f"{SIZE_S} seconds", by="k").agg(n="count(*)", sum="sum(sum + paid)", name="busy")
    busy.output("table", qos=jt.QoS(gap=GAP))
    return net


def write(spark: SparkSession, folder: Path) -> None:
    """Orders and payments that are evenly spread over time and keys, one file of each in a batch."""
    number = count()
    for batch, size in enumerate(SIZES):
        moments = [batch * STEP_S * S + each * STEP_S * S // size for each in range(size)]
        for name, schema in SCHEMAS.items():
            rows = [(each % KEYS, next(number), at, float(each % 7)) for each, at in enumerate(moments)]
            frame = spark.createDataFrame(rows, schema.replace("at timestamp", "us long"))
            shaped = frame.selectExpr(
                *(f"timestamp_micros(us) AS {column}" if column == "at" else column for column in columns(schema))
            )
            shaped.coalesce(1).write.parquet(str(folder / name / f"{batch:02}"))


def columns(schema: str) -> list[str]:
    return [each.split()[0] for each in schema.split(", ")]


def run(spark: SparkSession, folder: Path, name: str, *, shedding: bool) -> tuple[Run, Mapping[tuple[int, int], tuple]]:
    """A run over all files, and its windows by key and number."""
    table = jt.memory()
    sources = {
        each: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/{each}/*")
        for each, schema in SCHEMAS.items()
    }
    made = jt.start(
        market(),
        sources,
        {"table": table},
        trigger=TRIGGER,
        checkpoint=str(folder / name),
        # what this machine takes must not decide
        costs=jt.Costs(Profile({"both": HALF_FULL_US}, {"both": 1.0, "busy": 0.1}), learn=False, shared=()),
        shedding=shedding,
    )
    ended(made, 2 * sum(SIZES))
    rows = [plain(row) for row in table.rows]
    found = {(row[0], round(row[1]) // SIZE_S): row[3:] for row in rows}
    assert len(found) == len(rows), "every window comes once"
    return made, found


@pytest.mark.long
def test_a_burst_of_pairs(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path)
    _, truth = run(spark, tmp_path, "whole", shedding=False)
    made, came = run(spark, tmp_path, "shed", shedding=True)
    assert len(truth) > 0.8 * KEYS * len(SIZES) * STEP_S / SIZE_S
    assert came == {place: truth[place] for place in came}, "what comes is as if nothing was shed"

    plans = logged_plans(tmp_path / "shed")
    shares = [plan.fates["busy"].drop_share if plan.fates else 0.0 for plan in plans]
    assert shares[:BEFORE] == [0.0] * BEFORE, "before the burst nothing is too much"
    assert all(0.2 < share <= GAP / (GAP + 1) for share in shares[LATE]), shares
    assert shares[-1] == 0.0, "when it is over, nothing is"
    assert 0.2 * len(truth) < len(came) < 0.8 * len(truth)

    for name in SCHEMAS:
        went = sum(sample.arcs[name][0] - sample.arcs[name][1] for sample, _ in made.history)
        assert went > 0.2 * BURST * SIZES[BEFORE], f"rows of {name} went at the input"
    for key in range(KEYS):
        fared = "".join("x" if place in came else "." for place in sorted(truth) if place[0] == key)
        assert max(map(len, fared.split("x"))) <= GAP
