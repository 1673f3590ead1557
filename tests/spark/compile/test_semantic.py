"""Drops by value and by age on Spark: exactly the rows that the plan names, wherever the value is."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark import running
from tests.spark.running import FREE, TRIGGER, ended, log_plans

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Plan
from jettison.spark.compile.drops import cell
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

VALUE = jt.Value("x", [(0, 50, 0.2), (50, 100, 1.0)], otherwise=0.5)
ODD: list[float | None] = [None, math.nan, -0.5, 0.0, 49.999, 50.0, 99.0, 100.0, 100.5, math.inf, -math.inf]
ROWS = 4000


def rows(spark: SparkSession) -> DataFrame:
    """Numbered rows whose x is spread over 0 to 100, the first ones odd."""
    spread = [(number, None if x is None else float(x)) for number, x in enumerate(ODD)]
    spread += [(number, (number * 37 % 1000) / 10) for number in range(len(ODD), ROWS)]
    return spark.createDataFrame(spread, "id long, x double").selectExpr(
        "id", "x", "timestamp_seconds(1000 + id) AS at"
    )


def stream(spark: SparkSession, folder: Path, payload: bool) -> DataFrame:
    """The rows as a stream of one batch, typed or as JSON."""
    made = rows(spark)
    if payload:
        made = made.selectExpr("to_json(struct(*)) AS value")
    made.coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema(made.schema).parquet(str(folder))


def network(payload: bool, **qos: Any) -> jt.Network:
    net = jt.Network("valued")
    source = net.source(
        "s", "id long, x double, at timestamp", event_time="at", id=["id"], payload="json" if payload else None
    )
    source.where("id >= 0", name="all").output("some", qos=jt.QoS(value=VALUE, **qos))
    source.select("id", "x AS z", "at", name="renamed").output("others", qos=jt.QoS(value=jt.Value("z", [(0, 100, 1)])))
    return net


def drop(net: jt.Network, arc: str, keep_from: float, partial: float = 1.0, other: float = 0.0) -> Semantic:
    """Keep values from one on, a part of the lowest of those cells, and a part of all other values."""
    at = net.graph.tracks.at(arc)
    assert at is not None
    track, column = at
    first = next(number for number, low in enumerate(track.bounds) if low >= keep_from)
    keeps = [0.0] * first + [partial] + [1.0] * (track.cells - first - 2) + [other]
    return Semantic(column, track.bounds, tuple(keeps), keep=0.5)


def ids(written: DataFrame) -> set[int]:
    return {row.id for row in written.select("id").collect()}


@pytest.mark.parametrize("payload", [False, True], ids=["columns", "payload"])
def test_a_drop_by_value_keeps_what_its_predicate_says(spark: SparkSession, tmp_path: Path, payload: bool) -> None:
    net = network(payload)
    plan = Plan({"s": drop(net, "s", 25.0), "s>renamed": drop(net, "s>renamed", 75.0)}, "tested", 1)
    log_plans(tmp_path / "checkpoint", [plan], {"s": ROWS})
    run = jt.start(
        net,
        {"s": stream(spark, tmp_path / "in", payload)},
        {"some": jt.parquet(str(tmp_path / "some")), "others": jt.parquet(str(tmp_path / "others"))},
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "checkpoint"),
        costs=FREE,
        on_shed={"s": jt.parquet(str(tmp_path / "shed"))},
    )
    ended(run, ROWS)
    known = {row.id: row.x for row in rows(spark).collect()}
    inside = {number: x for number, x in known.items() if x is not None and 0 <= x <= 100}
    assert ids(spark.read.parquet(str(tmp_path / "some"))) == {number for number, x in inside.items() if x >= 25}
    assert ids(spark.read.parquet(str(tmp_path / "others"))) == {number for number, x in inside.items() if x >= 75}
    shed = spark.read.parquet(str(tmp_path / "shed"))
    assert shed.count() + spark.read.parquet(str(tmp_path / "some")).count() == ROWS
    sample = run.history[-1][0]
    assert sample.arcs["s"] == (ROWS, ROWS - shed.count())
    assert sample.values["some.x"].rows > 100
    assert min(sample.values["some.x"].points) >= 25


def test_of_a_part_of_a_cell_a_hash_decides_and_other_values_are_a_cell(spark: SparkSession, tmp_path: Path) -> None:
    net = network(False)
    plan = Plan({"s": drop(net, "s", 50.0, partial=0.5, other=1.0)}, "tested", 1)
    found = []
    for attempt in ("a", "b"):
        log_plans(tmp_path / attempt, [plan], {"s": ROWS})
        run = jt.start(
            net,
            {"s": stream(spark, tmp_path / f"in-{attempt}", False)},
            {"some": jt.parquet(str(tmp_path / f"some-{attempt}")), "others": jt.spark_format("noop")},
            trigger=TRIGGER,
            checkpoint=str(tmp_path / attempt),
            costs=FREE,
        )
        ended(run, ROWS)
        found.append(spark.read.parquet(str(tmp_path / f"some-{attempt}")))
    assert ids(found[0]) == ids(found[1])
    bounds = net.graph.tracks.by_output["some"].bounds
    cut = next(high for high in bounds if high > 50)
    whole = rows(spark).where(f"x >= {cut} AND x <= 100")
    part = rows(spark).where(f"x >= 50 AND x < {cut}")
    assert ids(whole) <= ids(found[0])
    assert 0.25 * part.count() < len(ids(part) & ids(found[0])) < 0.75 * part.count()
    odd = {number for number, x in enumerate(ODD) if x is None or not 0 <= x <= 100}
    assert odd <= ids(found[0])


def test_names_differ_in_case_and_values_in_type(spark: SparkSession, tmp_path: Path) -> None:
    made = spark.range(1000).selectExpr("id AS Id", "decimal(id / 10) AS Fare")
    made.coalesce(1).write.parquet(str(tmp_path / "in"))
    net = jt.Network("case")
    source = net.source("s", "Id long, Fare decimal(10,0)", id=["Id"])
    source.output("o", qos=jt.QoS(value=jt.Value("fare", [(0, 50, 0.2), (50, 100, 1.0)])))
    log_plans(tmp_path / "checkpoint", [Plan({"s": drop(net, "s", 50.0)}, "tested", 1)], {"s": 1000})
    run = jt.start(
        net,
        {"s": spark.readStream.schema(made.schema).parquet(str(tmp_path / "in"))},
        {"o": jt.parquet(str(tmp_path / "o"))},
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "checkpoint"),
        costs=FREE,
    )
    ended(run, 1000)
    fares = [row.Fare for row in spark.read.parquet(str(tmp_path / "o")).collect()]
    assert len(fares) == made.where("Fare >= 50 AND Fare <= 100").count()
    assert min(fares) >= 50


def test_cells_in_sql_and_in_numpy_agree(spark: SparkSession) -> None:
    track = network(False).graph.tracks.by_output["some"]
    for row in rows(spark).selectExpr("x", f"{cell(track.bounds, 'x')} AS c").collect():
        counted = track.count([math.nan if row.x is None else row.x])
        assert counted[row.c] == 1, row


def test_an_overload_is_met_by_value_and_says_what_that_is_worth(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("dear")
    trips = net.source("trips", **running.TRIPS)
    value = jt.Value("fare", [(-50, 10, 0.1), (10, 500, 1.0)])
    trips.where("fare > 0", name="paid").output("fares", qos=jt.QoS(value=value))
    profile = Profile({"trips": 1.0, "paid": 20.0, "fares": 1.0}, {"paid": 0.98}, fixed_ms=10.0)
    run = jt.start(
        net,
        {"trips": running.trips(spark, 60_000, 20_000)},
        {"fares": jt.parquet(str(tmp_path / "fares"))},
        trigger="300 milliseconds",
        checkpoint=str(tmp_path / "checkpoint"),
        costs=jt.Costs(profile, learn=False, shared=[]),  # what this machine takes must not decide,
    )
    ended(run, 60_000)
    plans = running.logged_plans(tmp_path / "checkpoint")
    assert any(isinstance(each, Semantic) for plan in plans for each in plan.drops.values())
    report = run.report().outputs["fares"]
    assert report.utility > report.delivered_share + 0.05
    assert report.delivered_share == pytest.approx(report.rows / 60_000, abs=0.02)  # as counted; a filter takes 2 %
    written = spark.read.parquet(str(tmp_path / "fares")).selectExpr("count_if(fare < 10) / count(*) AS low").first()
    whole = running.same_trips(spark, 0, 60_000).where("fare > 0").selectExpr("count_if(fare < 10) / count(*) AS low")
    everything = whole.first()
    assert written is not None
    assert everything is not None
    assert written.low < 0.7 * everything.low
    learned = run.controller.profile.values["trips.fare"]
    assert learned != pytest.approx(net.graph.tracks.by_output["fares"].spread(None), abs=0.01)


@pytest.mark.parametrize("payload", [False, True], ids=["columns", "payload"])
def test_what_is_older_than_the_plan_says_is_dropped(spark: SparkSession, tmp_path: Path, payload: bool) -> None:
    net = network(payload, stale="1 minute")
    plan = Plan({"s": Random(0.5)}, "tested", 1, stale={"s": 2000.0, "s>renamed": 3000.0})
    log_plans(tmp_path / "checkpoint", [plan], {"s": ROWS})
    run = jt.start(
        net,
        {"s": stream(spark, tmp_path / "in", payload)},
        {"some": jt.parquet(str(tmp_path / "some")), "others": jt.parquet(str(tmp_path / "others"))},
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "checkpoint"),
        costs=FREE,
    )
    ended(run, ROWS)
    some, others = ids(spark.read.parquet(str(tmp_path / "some"))), ids(spark.read.parquet(str(tmp_path / "others")))
    assert min(some) >= 1000
    assert others == {number for number in some if number >= 2000}
    assert 0.4 * 3000 < len(some) < 0.6 * 3000
    assert run.history[-1][0].arcs["s"] == (ROWS, len(some))


def test_after_an_outage_the_old_backlog_makes_way_for_the_new(spark: SparkSession, tmp_path: Path) -> None:
    """Half of the rows are an hour old: with a limit of a minute all of the others come through."""
    now = time.time()
    half = [(number, 1.0, now - 3600.0 if number < 2000 else now + 60.0) for number in range(ROWS)]
    made = spark.createDataFrame(half, "id long, x double, s double").selectExpr(
        "id", "x", "timestamp_micros(bigint(1e6 * s)) AS at"
    )
    made.coalesce(1).write.parquet(str(tmp_path / "in"))
    net = jt.Network("outage")
    net.source("s", "id long, x double, at timestamp", event_time="at", id=["id"]).output("o")
    run = jt.start(
        net,
        {"s": spark.readStream.schema(made.schema).parquet(str(tmp_path / "in"))},
        {"o": jt.parquet(str(tmp_path / "o"))},
        trigger="1 second",
        checkpoint=str(tmp_path / "checkpoint"),
        costs=jt.Costs(Profile({"o": 400.0}, {}), shared=[]),
        shedding=jt.Shedding(stale="1 minute"),
    )
    ended(run, ROWS)
    assert ids(spark.read.parquet(str(tmp_path / "o"))) == set(range(2000, ROWS))
    (plan,) = running.logged_plans(tmp_path / "checkpoint")
    assert plan.reason == "stale"
    assert run.report().outputs["o"].delivered_share == pytest.approx(0.5)
    assert run.report().outputs["o"].utility == pytest.approx(0.5)  # dropped or late: the other half is lost
    entry = running.ledger(tmp_path / "checkpoint")[0]
    assert (entry["rows_in"], entry["rows_shed"], entry["reason"]) == (ROWS, 2000, "stale")
