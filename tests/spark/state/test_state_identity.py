"""State belongs to what is computed: a restart with other outputs goes on right, or begins anew and says so."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.running import FREE, TRIGGER, ended, slowly
from tests.spark.windowing import S

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.logs import Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.checks import check_compiles
from jettison.statistics.records import Records

pytestmark = pytest.mark.spark

TRIPS = "trip long, at timestamp, zone int, fare double"
Trip = tuple[int, int, int, float]
"""A trip: its number, event time in microseconds, zone, fare."""
PER_BATCH = 32


def trips(first: int, last: int) -> list[Trip]:
    """Trips of some batches: three a second, every other one dear."""
    numbers = range(first * PER_BATCH, last * PER_BATCH)
    return [(n, n * S // 3, n % 2, float(10 * (n % 7) + 100 * (n % 4 > 1))) for n in numbers]


class Restarted:
    """Runs one network after another on the same checkpoint, two batches each unless a test says more."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._batches = 0
        (folder / "trips").mkdir()

    def run(
        self, network: jt.Network, batches: int = 2, shedding: jt.Shedding | bool = True
    ) -> tuple[jt.Run, dict[str, jt.MemorySink]]:
        for number in range(self._batches, self._batches + batches):
            self._write(number, trips(number, number + 1))
        self._batches += batches
        reader = self._spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(str(self._folder / "trips"))
        sinks = {output.name: jt.memory() for output in network.graph.outputs}
        where = str(self._folder / "checkpoint")
        options = {"trigger": TRIGGER, "checkpoint": where, "costs": FREE, "shedding": shedding}
        run = jt.start(network, {"trips": stream}, sinks, **options)
        return ended(run, batches * PER_BATCH), sinks

    def _write(self, number: int, rows: Sequence[Trip]) -> None:
        trip, at, zone, fare = zip(*rows, strict=True)
        columns = {
            "trip": pa.array(trip, pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "zone": pa.array(zone, pa.int32()),
            "fare": pa.array(fare, pa.float64()),
        }
        path = self._folder / "trips" / f"{number:03}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def counted(rows: Iterable[Trip], wanted: Callable[[Trip], bool], size_s: int = 4) -> dict[tuple[int, int], int]:
    """Rows by zone and second at which their window begins: what an aggregate must deliver, in plain Python."""
    return Counter(
        (zone, at // S // size_s * size_s) for trip, at, zone, fare in rows if wanted((trip, at, zone, fare))
    )


def delivered(*sinks: jt.MemorySink) -> dict[tuple[int, int], int]:
    rows: list[Any] = [row for sink in sinks for row in sink.rows]
    found = {(row.zone, round(row.window_start.timestamp())): row.n for row in rows}
    assert len(found) == len(rows), "no window comes twice"
    return found


def dear(trip: Trip) -> bool:
    return trip[3] > 50


def cheap(trip: Trip) -> bool:
    return trip[3] <= 50


def split(*conditions: str, name: str | None = None) -> jt.Network:
    """One aggregate without a name (or with this one) for every condition."""
    net = jt.Network("taxi")
    source = net.source("trips", TRIPS, event_time="at", id=["trip"])
    for number, condition in enumerate(conditions):
        windows = source.where(condition).window("4 seconds", by="zone")
        windows.agg(n="count(*)", name=name).output(f"{'dear' if '>' in condition else 'cheap'}{number}")
    return net


def test_trust_1_an_aggregate_goes_on_with_its_own_state_when_another_is_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = Restarted(spark, tmp_path)
    _, first = runs.run(split("fare > 50", "fare <= 50"))
    # of a batch that was planned for these, then broken off: by place its drop would stand on the other stream now
    plans = PlanLog(LocalFolder(tmp_path / "checkpoint"))
    dropping = Plan({"trips>where1": Random(0.0)}, reason="overload")
    plans.write(Logged(2, dropping, Records({"trips": PER_BATCH}), network="as it was"))
    run, second = runs.run(split("fare <= 50"))
    assert any("left the network before batch 2" in note for note in run.report().notes)
    assert [logged.plan.sheds for logged in map(plans.read, range(4)) if logged] == [False] * 4
    run_again, third = runs.run(split("fare <= 50", "fare > 50"))
    found = delivered(first["cheap1"], second["cheap0"], third["cheap0"])
    truth = counted(trips(0, 6), cheap)
    assert len(found) > 16
    assert found == {key: truth[key] for key in found}
    assert {start for _, start in found} == set(range(0, 52, 4)), "and none is missing"
    # what was left out for two batches delivers what it has seen from the first row on
    again = delivered(third["dear1"])
    truth = counted(trips(0, 6), dear)
    assert again == {key: truth[key] for key in again}
    assert min(start for _, start in again) == 44
    report = str(run_again.report())
    assert run_again.report().windows_withheld == sum(run_again.report().withheld.values()) == 1
    assert "1 windows withheld, which it has not seen from the first row on" in report
    assert "begins anew with batch 4: windows that it has not seen from their first row on are withheld" in report


def with_udf(function: Callable[[float], bool]) -> jt.Network:
    """Rows that a function in Python lets through."""
    net = jt.Network("taxi")
    source = net.source("trips", TRIPS, event_time="at", id=["trip"])
    passes = F.udf(function, "boolean")
    windows = source.where(passes("fare")).window("4 seconds", by="zone")
    windows.agg(n="count(*)").output("out")
    return net


def test_trust_1_a_udf_exchanged_behind_the_same_name_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    runs = Restarted(spark, tmp_path)
    runs.run(with_udf(lambda fare: fare > 50))
    run, second = runs.run(with_udf(lambda fare: fare <= 50))
    (said,) = run.report().notes
    assert "begins anew with batch 2 (the checkpoint keeps its state, and since then function 'tests.spark" in said
    truth = counted(trips(0, 4), cheap)
    found = delivered(second["out"])
    assert found == {key: truth[key] for key in found}
    assert min(start for _, start in found) == 24, "the first that it has seen whole"


def test_trust_1_udfs_are_found_in_columns_in_sql_and_in_functions(spark: SparkSession) -> None:
    spark.udf.register("jt_test_rate", lambda fare: fare * 2, "double")
    net = jt.Network("taxi")
    source = net.source("trips", TRIPS, event_time="at", id=["trip"])
    limit = 7.0
    columned = source.where(F.udf(lambda fare: fare > limit, "boolean")("fare"))
    columned.window("4 seconds").agg(n="count(*)", name="column").output("a")
    source.with_columns({"rate": "jt_test_rate(fare)"}).window("4 seconds").agg(n="sum(rate)", name="sql").output("b")
    source.window("4 seconds").agg(n="sum(jt_test_rate(fare))", name="call").output("c")
    source.apply(slowly).window("4 seconds").agg(n="count(*)", name="function").output("d")
    source.where("fare > 5").window("4 seconds").agg(n="count(*)", name="none").output("e")
    empty = spark.createDataFrame([], TRIPS)
    found = check_compiles(spark, net.graph, {"trips": empty}, {}).code
    assert {name: len(found[name]) for name in ("column", "sql", "call", "none")} == {
        "column": 1,
        "sql": 1,
        "call": 1,
        "none": 0,
    }
    assert [line.partition(" ")[0] for line in found["function"]] == [
        "tests.spark.running:_sleeping",
        "tests.spark.running:slowly",
    ]
    limit = 8.0
    assert check_compiles(spark, net.graph, {"trips": empty}, {}).code["sql"] == found["sql"]
