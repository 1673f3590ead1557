"""Bad input, bad sinks, bad declarations: each ends in a count or in an error that names the element and what to do."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType
from tests.spark import running
from tests.spark.running import FREE, PATIENCE_S, START_US, TRIGGER, TRIPS, Expected, ended, pairs, taxi

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.read.generator import generate, generated
from jettison.statistics.profile import Profile
from jettison.synthetic.fields import Arrival, Choice, Normal, Payload, RowNumber, Uniform

pytestmark = pytest.mark.spark

HALF = Plan({"trips": Random(0.5)}, "tested", 1, {"out": 0.5})


def passing(name: str = "bad", **source: Any) -> jt.Network:
    """A network that delivers all that it reads."""
    net = jt.Network(name)
    net.source("trips", **(source or TRIPS)).output("out")
    return net


def start(net: jt.Network, stream: DataFrame, sink: Any, checkpoint: Path, **others: Any) -> jt.Run:
    options = {"trigger": TRIGGER, "costs": FREE, **others}
    return jt.start(net, {"trips": stream}, {"out": sink}, checkpoint=str(checkpoint), **options)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_rows_that_do_not_parse_are_counted_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    body = {"zone": Uniform(1, 9), "fare": Normal(13, 4), "paid": Choice(("card", "cash"))}
    fields = {"trip": RowNumber(), "value": Payload(body, pool=300, bad_share=0.1)}
    stream = generate(spark, fields, seed=3, rows_per_batch=500, limit_rows=1000, start_us=START_US)
    net = passing(schema="trip long, zone int, fare double, paid string", id=["trip"], payload="json")
    out = jt.memory()
    running.log_plans(tmp_path, [Plan(), HALF], {"trips": 500})
    run = ended(start(net, stream, out, tmp_path), 1000)

    rows = generated(spark, fields, 0, 1000, seed=3, start_us=START_US).selectExpr("*", "xxhash64(trip) AS _jt_id")
    kept = rows.where(f"trip < 500 OR {running.keeps('trips', Random(0.5))}").collect()
    good, bad = [], []
    for row in kept:
        try:
            good.append((row.trip, *json.loads(row.value).values()))
        except json.JSONDecodeError:
            bad.append((row.trip, row.value))
    assert len(bad) > 30
    assert sorted(map(tuple, out.rows)) == sorted(good)
    dead_letters = spark.read.parquet(str(tmp_path / "dead_letters")).collect()
    assert sorted((json.loads(row.beside)["trip"], bytes(row.value).decode()) for row in dead_letters) == sorted(bad)
    assert {(row._arc, row._reason) for row in dead_letters} == {("trips", "does not parse")}
    report = run.report()
    assert (report.rows_rejected, report.rows_shed) == (len(bad), 1000 - len(kept))
    assert f"{len(bad)} rejected" in str(report)
    by_reason = run.ledger().groupBy("reason").agg(F.sum("rows_shed"), F.sum("rows_rejected")).collect()
    assert {reason: counts for reason, *counts in map(tuple, by_reason)} == {
        "": [0, 0],
        "does not parse": [0, len(bad)],
        "tested": [1000 - len(kept), 0],
    }


def test_rows_of_every_odd_shape_inside_a_payload(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    texts = ['{"fare": 1.5}', '{"fare": "dear"}', "{", "", "[1]", "null", '{"other": 1}', '{"fare": null}', "5"]
    lines = [json.dumps({"trip": trip, "value": text}) for trip, text in enumerate(texts)]
    lines.append(json.dumps({"trip": len(texts), "value": None}))
    (source / "a.json").write_text("\n".join(lines), encoding="utf-8")
    stream = spark.readStream.schema("trip long, value string").json(str(source))
    out = jt.memory()
    net = passing(schema="trip long, fare double", id=["trip"], payload="json")
    run = ended(start(net, stream, out, tmp_path / "checkpoint"), 10)

    assert sorted(map(tuple, out.rows), key=str) == [(0, 1.5), (6, None), (7, None)]
    dead_letters = spark.read.parquet(str(tmp_path / "checkpoint" / "dead_letters"))
    assert sorted(json.loads(row.beside)["trip"] for row in dead_letters.collect()) == [1, 2, 3, 4, 5, 8, 9]
    assert run.report().rows_rejected == 7


def test_rows_without_event_time_are_counted_and_delivered(spark: SparkSession, tmp_path: Path) -> None:
    fields = {"trip": RowNumber(), "pickup": Arrival(null_share=0.2)}
    stream = generate(spark, fields, rows_per_batch=400, limit_rows=800, start_us=START_US)
    out = jt.memory()
    net = passing(schema="trip long, pickup timestamp", event_time="pickup", id=["trip"])
    run = ended(start(net, stream, out, tmp_path), 800)

    rows = generated(spark, fields, 0, 800, start_us=START_US)
    assert sorted(out.rows, key=str) == sorted(rows.collect(), key=str)
    missing = rows.where("pickup IS NULL").count()
    assert run.report().rows_without_time == missing > 0
    assert re.search(rf"\b{missing} .*event time", str(run.report()))
    assert run.report().outputs["out"].latency_ms["max"] is not None


def test_empty_batches_and_a_source_that_stops(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number, text in enumerate(["1,2.5\n2,3.5\n", "", "3,4.5\n"]):
        (source / f"{number}.csv").write_text(text, encoding="utf-8")
        os.utime(source / f"{number}.csv", (1_700_000_000 + number,) * 2)
    schema = "trip long, fare double"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(source))
    out = jt.memory()
    run = start(passing(schema=schema, id=["trip"]), stream, out, tmp_path / "checkpoint", metrics=0)
    running.until(run, lambda: run.report().batches == 3)

    time.sleep(1)  # some triggers without anything to read
    assert run.is_active
    assert run.report().batches == 3
    (source / "3.csv").write_text("4,5.5\n", encoding="utf-8")
    ended(run, 4)
    assert [sample.rows_in["trips"] for sample, _ in run.history] == [2, 0, 1, 1]
    assert [row.trip for row in out.rows] == [1, 2, 3, 4]
    run.stop()  # a second time does no harm
    assert run.report().rows_in == 4


# --- failures while it runs -------------------------------------------------------------------------------------------


def test_a_sink_that_throws_loses_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    tight = Profile({"trips": 300.0, "paid": 300.0, "fares": 20.0, "alerts": 20.0}, {"paid": 0.98, "dear": 0.3})
    checkpoint = tmp_path / "checkpoint"
    files = jt.parquet(str(tmp_path / "fares"))
    broken = [True]

    def fragile(rows: DataFrame, batch: int) -> None:
        files.write(rows, batch)
        if batch == 1 and broken[0]:
            raise OSError("no space left")

    def run() -> jt.Run:
        sinks = {"fares": fragile, "alerts": jt.parquet(str(tmp_path / "alerts"))}
        stream = running.trips(spark, 3000, 1000)
        return jt.start(taxi(), {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=str(checkpoint), costs=tight)

    failed = run()
    with pytest.raises(jt.SinkError, match=r"output 'fares': writing batch 1 failed \(OSError: no space left\).*mend"):
        failed.await_termination(timeout=PATIENCE_S)
    assert not failed.is_active
    assert failed.report().batches == 1
    with pytest.raises(jt.SinkError, match="output 'fares'"):
        failed.stop()
    planned = (checkpoint / "plans" / "1.json").read_text()

    broken[0] = False
    second = ended(run(), 2000)
    assert [sample.batch for sample, _ in second.history] == [1, 2]
    assert (checkpoint / "plans" / "1.json").read_text() == planned
    plans = running.logged_plans(checkpoint)
    assert plans[1].drops
    expected = Expected(spark, plans, per_batch=1000)
    assert sorted(pairs(spark.read.parquet(str(tmp_path / "fares")))) == sorted(expected.fares)
    assert sorted(pairs(spark.read.parquet(str(tmp_path / "alerts")))) == sorted(expected.alerts)
    assert running.counts(checkpoint) == expected.counts


@pytest.mark.long
def test_an_operator_that_throws_in_a_task(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("broken")
    net.source("trips", **TRIPS).apply(running.breaking, name="break").output("out")
    sink, checkpoint = jt.parquet(str(tmp_path / "out")), tmp_path / "checkpoint"
    run = start(net, running.trips(spark, 500, 500), sink, checkpoint)
    with pytest.raises(jt.OperatorError, match=r"apply 'break' fails on each of 4 rows .*the fare is broken.*mend"):
        run.await_termination(timeout=PATIENCE_S)

    # Mended, the same checkpoint goes on, and nothing is missing.
    ended(start(passing("broken"), running.trips(spark, 500, 500), sink, checkpoint), 500)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 500


class FailingSource(DataSource):
    """A source whose server goes away after the first batch."""

    @classmethod
    def name(cls) -> str:
        return "jettison-test-failing"

    def schema(self) -> str:
        return "trip long"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        return FailingReader()


class FailingReader(DataSourceStreamReader):
    def __init__(self) -> None:
        self._asked = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        self._asked += 1
        if self._asked > 3:
            raise ConnectionError("the server has gone away")
        return {"at": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (1,)


def test_a_source_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(FailingSource)
    stream = spark.readStream.format("jettison-test-failing").load()
    out = jt.memory()
    run = start(passing(schema="trip long"), stream, out, tmp_path)
    with pytest.raises(jt.SourceError, match=r"network 'bad' stopped: .*the server has gone away.*'trips'.*mend"):
        run.await_termination(timeout=PATIENCE_S)
    with pytest.raises(jt.SourceError, match="the server has gone away"):
        run.stop()
    assert [row.trip for row in out.rows] == [1]


def test_a_sink_that_ignores_its_rows_does_not_hang(spark: SparkSession, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    running.log_plans(tmp_path, [Plan(), HALF], {"trips": 500})
    run = ended(start(passing(), running.trips(spark, 1500, 500), lambda rows, batch: None, tmp_path), 1500)

    assert max(sample.parts_ms["measuring"] for sample, _ in run.history) < 60_000
    assert run.report().outputs["out"].rows == 0
    shed = running.same_trips(spark, 500, 1000).selectExpr("xxhash64(trip) AS _jt_id")
    kept = shed.where(running.keeps("trips", Random(0.5))).count()
    assert running.counts(tmp_path) == {(0, "trips"): (500, 0), (1, "trips"): (500, 500 - kept), (2, "trips"): (500, 0)}
    # A thread that waits for ever would keep the process from ending.
    assert [t.name for t in set(threading.enumerate()) - before if t.name.startswith("ThreadPool")] == []


# --- checkpoints that a run must not use ------------------------------------------------------------------------------


def test_checkpoints_of_others(spark: SparkSession, tmp_path: Path) -> None:
    stream = running.trips(spark, 500, 500)
    run = start(passing("mine"), stream, jt.memory(), tmp_path)
    with pytest.raises(jt.CheckpointError, match=rf"in use by process {os.getpid()}: stop that run first"):
        start(passing("mine"), stream, jt.memory(), tmp_path)
    ended(run, 500)  # the first one goes on

    with pytest.raises(jt.CheckpointError, match=r"belongs to network 'mine', not to 'yours': give"):
        start(passing("yours"), stream, jt.memory(), tmp_path)

    other = stream.withColumn("zone", F.col("zone").cast("long"))
    schema = "trip long, pickup timestamp, zone long, fare double"
    with pytest.raises(jt.CheckpointError, match=r"source 'trips', column 'zone' was int and is long.*new checkpoint"):
        start(passing("mine", **{**TRIPS, "schema": schema}), other, jt.memory(), tmp_path)
    fewer = {**TRIPS, "schema": "trip long, pickup timestamp, zone int"}
    with pytest.raises(jt.CheckpointError, match=r"column 'fare' was double and is absent"):
        start(passing("mine", **fewer), stream, jt.memory(), tmp_path)
    with pytest.raises(jt.CheckpointError, match=r"source 'trips', id was \['trip'\] and is \['zone'\]"):
        start(passing("mine", **{**TRIPS, "id": ["zone"]}), stream, jt.memory(), tmp_path)

    # None of them left the folder locked or changed.
    ended(start(passing("mine"), running.trips(spark, 1000, 500), jt.memory(), tmp_path), 500)


# --- what cannot start ------------------------------------------------------------------------------------------------


def raising(function: Callable[[DataFrame], Any]) -> Callable[[jt.Stream], None]:
    return lambda trips: trips.apply(function, name="odd").output("out")


def keyed(rows: DataFrame) -> DataFrame:
    return {"a": rows}["b"]


FAULTS: dict[str, tuple[Callable[[jt.Stream], None] | None, dict[str, Any], str]] = {
    "no sink": (None, {"sinks": {}}, r"output 'out' has no sink: add sinks="),
    "another sink": (None, {"sinks": {"out": jt.memory(), "ou": jt.memory()}}, r"sink for 'ou'.*Outputs: out"),
    "not a sink": (None, {"sinks": {"out": "path"}}, r"output 'out': 'path' is not a sink. Use jt.parquet"),
    "no source": (None, {"sources": []}, r"source 'trips' has no DataFrame: give one"),
    "another source": (None, {"sources": ["trip"]}, r"'trip' is not a source of network .*; sources: trips"),
    "bad trigger": (None, {"trigger": "soon"}, r"trigger is 'soon': write a duration"),
    "no trigger": (None, {"trigger": "0 seconds"}, r"trigger is '0 seconds'"),
    "profile": (None, {"costs": Profile({"nobody": 1.0}, {})}, r"profile cost_us: 'nobody' is not an operator"),
    "no table": (
        lambda trips: trips.join("zones", "zone", name="named").output("out"),
        {},
        r"join 'named': no table 'zones': add tables=",
    ),
    "column": (
        lambda trips: trips.where(F.col("fair") > 0, name="paid").output("out"),
        {},
        r"where 'paid': .*fair.* Columns here: trip, pickup, zone, fare\.",
    ),
    "columns": (
        lambda trips: trips.with_columns({"x": F.col("fair") * 2}, name="more").output("out"),
        {},
        r"with_columns 'more': .*fair.* Columns here: trip",
    ),
    "selected": (lambda trips: trips.select(F.col("fair"), name="few").output("out"), {}, r"select 'few': .*fair"),
    "types": (lambda trips: trips.where("fare > map()", name="odd").output("out"), {}, r"where 'odd': .*DATATYPE"),
    "applied": (raising(lambda rows: rows.select("fair")), {}, r"apply 'odd': .*fair.* Columns here: trip"),
    "attribute": (raising(lambda rows: rows.where(rows.fair > 0)), {}, r"apply 'odd': .*fair.* Columns here: trip"),
    "key": (raising(keyed), {}, r"apply 'odd': KeyError.* Columns here: trip"),
    "nothing": (raising(lambda rows: None), {}, r"apply 'odd': .*DataFrame"),
    "path": (lambda trips: trips.apply("no.such:thing", name="odd").output("out"), {}, r"apply 'odd': cannot import"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_start_says_why(spark: SparkSession, tmp_path: Path, fault: str) -> None:
    declare, options, message = FAULTS[fault]
    net = jt.Network("faulty")
    trips = net.source("trips", **TRIPS)
    (declare or (lambda trips: trips.output("out")))(trips)
    stream = running.trips(spark, 500, 500)
    sources = dict.fromkeys(options.get("sources", ["trips"]), stream)
    arguments = {"sinks": {"out": jt.memory()}, "trigger": TRIGGER, "costs": FREE, **options, "sources": sources}
    with pytest.raises(jt.JettisonError, match=message) as caught:
        jt.start(net, checkpoint=str(tmp_path / "checkpoint"), **arguments)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "checkpoint").exists()
    assert not spark.streams.active


def test_streams_and_tables_that_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    stream = running.trips(spark, 500, 500)
    with pytest.raises(jt.StartError, match=r"source 'trips': the DataFrame does not stream: make it with spark.read"):
        start(passing(), running.same_trips(spark, 0, 10), jt.memory(), tmp_path)
    with pytest.raises(jt.StartError, match=r"column 'fare' is string in the stream and declared double: cast it"):
        start(passing(), stream.withColumn("fare", F.col("fare").cast("string")), jt.memory(), tmp_path)
    with pytest.raises(jt.StartError, match=r"column 'fare' is not in the stream. It has: trip bigint"):
        start(passing(), stream.drop("fare"), jt.memory(), tmp_path)
    with pytest.raises(jt.StartError, match=r"source 'trips': no column 'value' holds the payload. It has: trip"):
        start(passing(schema="trip long", payload="json"), stream, jt.memory(), tmp_path)

    named = jt.Network("bad")
    named.source("trips", **TRIPS).join("zones", "zone", name="named").output("out")
    clash = spark.createDataFrame([(1, 2.0)], "zone int, fare double")
    with pytest.raises(jt.StartError, match=r"join 'named': both sides have column 'fare': rename it"):
        start(named, stream, jt.memory(), tmp_path, tables={"zones": clash})
    without = spark.createDataFrame([(1,)], "place int")
    with pytest.raises(jt.StartError, match=r"join 'named': .*zone"):
        start(named, stream, jt.memory(), tmp_path, tables={"zones": without})

    mapped = stream.withColumn("tags", F.create_map(F.lit("a"), F.lit(1)))
    with pytest.raises(jt.StartError, match=r"source 'trips': .*map.* id"):
        start(passing(schema="trip long, tags map<string, int>"), mapped, jt.memory(), tmp_path)
    counted = stream.groupBy("trip").count()
    with pytest.raises(jt.StartError, match=r"network 'bad'.*Sources: 'trips'"):
        start(passing(schema="trip long"), counted.select("trip"), jt.memory(), tmp_path)
    assert not spark.streams.active


def test_a_metrics_port_that_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    stream = running.trips(spark, 500, 500)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(jt.StartError, match=rf"metrics 127.0.0.1:{port}: cannot listen there: .*in use"):
            start(passing(), stream, jt.memory(), tmp_path, metrics=port)
    # A start that fails later gives the port back.
    counted = stream.groupBy("trip").count().select("trip")
    with pytest.raises(jt.StartError, match="network 'bad'"):
        start(passing(schema="trip long"), counted, jt.memory(), tmp_path / "other", metrics=port)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
        free.listen()
    Checkpoint(str(tmp_path), passing().graph, spark).close()  # it is not locked
