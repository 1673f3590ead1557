"""A YAML file that runs: every kind of source, table and sink, and faults told by their place in the file."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from examples import fares
from pyspark.sql import SparkSession
from tests.spark.running import PATIENCE_S

import jettison as jt
from jettison.errors import StartError
from jettison.spark.run.from_spec import start_spec
from jettison.spark.run.run import Run
from jettison.spark.write.sinks import ConsoleSink, MemorySink
from jettison.spec.network_file import Spec, from_yaml

pytestmark = pytest.mark.spark

EXAMPLES = str(Path(__file__).resolve().parents[3] / "examples")
TRIPS: dict[str, Any] = {
    "schema": "trip long, pickup timestamp, zone int, fare double",
    "event_time": "pickup",
    "id": ["trip"],
}


def spec(
    run: dict[str, Any],
    operators: dict[str, Any],
    source: dict[str, Any] | None = None,
    outputs: tuple[str, ...] = ("out",),
) -> Spec:
    """A network on source trips whose outputs all read the last operator."""
    last = list(operators)[-1] if operators else "trips"
    content = {
        "network": "yaml",
        "sources": {"trips": source or TRIPS},
        "operators": operators,
        "outputs": {name: {"of": last} for name in outputs},
        "run": {"trigger": "800 ms", **run},
    }
    return from_yaml(yaml.safe_dump(content))


def ended(run: Run, done: Callable[[], bool]) -> Run:
    """Wait for what a test waits for, then end the run."""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not done() and time.monotonic() < deadline:
            assert not run.await_termination(0.1)
    finally:
        run.stop()
    assert done(), str(run.report())
    return run


def test_generated_rows_joined_and_written_as_parquet(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([(0, "Centre"), (1, "North")], "zone int, name string").write.parquet(str(tmp_path / "zones"))
    declared = spec(
        {
            "checkpoint": str(tmp_path / "checkpoint"),
            "sources": {
                "trips": {"generator": {"preset": "taxi", "seed": 3, "rows_per_batch": 500, "limit_rows": 1200}}
            },
            "tables": {"zones": {"format": "parquet", "path": str(tmp_path / "zones")}},
            "sinks": {"out": {"parquet": str(tmp_path / "out")}},
        },
        {"named": {"of": "trips", "join": "zones", "on": ["zone"]}},
    )

    run = start_spec(declared, spark, mode="off")
    ended(run, lambda: run.report().rows_in == 1200)

    written = spark.read.parquet(str(tmp_path / "out"))
    assert {row["name"] for row in written.select("name").distinct().collect()} == {"Centre", "North"}
    assert written.count() == run.report().outputs["out"].rows > 0
    assert not run.settings.shedding
    assert run.settings.trigger_ms == 800
    assert (tmp_path / "checkpoint" / "network.json").is_file()


def test_declared_fields_with_a_rate_into_memory_and_console(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = {
        "trip": {"kind": "row_number"},
        "pickup": {"kind": "arrival"},
        "zone": {"kind": "uniform", "low": 5, "high": 6},
        "fare": {"kind": "normal", "mean": 10, "sd": 0},
    }
    rate = {"kind": "constant", "rows_per_s": 2000, "end_s": 0.5}
    declared = spec(
        {
            "trigger": "2 seconds",  # room enough that nothing is shed
            "shedding": {"headroom": 0.5},
            "sources": {"trips": {"generator": {"fields": fields, "rate": rate}}},
            "sinks": {"kept": {"memory": 700}, "shown": {"console": 2}},
        },
        {},
        outputs=("kept", "shown"),
    )

    run = start_spec(declared, spark)
    ended(run, lambda: run.report().rows_in == 1000)

    sinks = run._runner.sinks.outputs
    kept = sinks["kept"]
    assert isinstance(kept, MemorySink)
    assert kept.limit == 700
    assert {row["zone"] for row in kept.rows} == {5, 6}
    assert sinks["shown"] == ConsoleSink(2)
    assert run.settings.headroom == 0.5
    # Not batch 0: it is empty, and no sink is called, when it starts before the first row arrives.
    assert re.search(r"^--- batch \d+: trip, pickup, zone, fare$", capsys.readouterr().out, re.MULTILINE)


def test_any_source_and_sink_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1;2.5\n2;-1\n3;4\n", encoding="utf-8")
    source = {
        "format": "csv",
        "schema": "trip long, fare double",
        "options": {"path": str(tmp_path / "in"), "sep": ";"},
    }
    declared = spec(
        {
            "sources": {"trips": source},
            "sinks": {"out": {"format": "json", "options": {"path": str(tmp_path / "out"), "ignoreNullFields": True}}},
        },
        {"paid": {"of": "trips", "where": "fare > 0"}},
        {"schema": "trip long, fare double"},
    )

    run = start_spec(declared, spark)
    ended(run, lambda: run.report().rows_in == 3)

    assert sorted(row["trip"] for row in spark.read.json(str(tmp_path / "out")).collect()) == [1, 3]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"sources": {"trips": {"format": "nonsense"}}}, ["run.sources.trips.format", "'nonsense'"]),
        ({"sources": {"trips": {"format": "csv", "path": EXAMPLES}}}, ["run.sources.trips.schema"]),
        ({"sources": {"trips": {"format": "rate", "schema": "a nonsense"}}}, ["run.sources.trips"]),
        ({"sources": {"trips": {"format": "rate"}}}, ["'trips'", "'trip'", "timestamp"]),
        (
            {"tables": {"zones": {"format": "parquet", "path": "/nowhere/at/all"}}},
            ["run.tables.zones", "/nowhere/at/all"],
        ),
        ({"tables": {}}, ["run.tables", "'zones'"]),
        ({"sinks": {}}, ["run.sinks", "'out'"]),
        ({"shedding": {"headroom": 7.0}}, ["run.shedding.headroom", "7"]),
    ],
)
def test_faults_name_the_place(spark: SparkSession, tmp_path: Path, run: dict[str, Any], words: list[str]) -> None:
    zones = tmp_path / "zones.csv"
    zones.write_text("zone\n1\n", encoding="utf-8")
    good = {
        "sources": {"trips": {"generator": {"preset": "taxi"}}},
        "tables": {"zones": {"format": "csv", "options": {"header": True}, "schema": "zone int", "path": str(zones)}},
        "sinks": {"out": {"memory": None}},
    }
    declared = spec({**good, **run}, {"named": {"of": "trips", "join": "zones", "on": ["zone"]}})

    with pytest.raises(StartError) as caught:
        start_spec(declared, spark)

    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_run_section_says_what_to_add(spark: SparkSession) -> None:
    bare = from_yaml(yaml.safe_dump({"network": "n", "sources": {"trips": TRIPS}, "outputs": {"out": {"of": "trips"}}}))
    with pytest.raises(StartError, match=r"run\.sources.*run\.sinks"):
        start_spec(bare, spark)


@pytest.mark.long
def test_functions_of_your_own_in_yaml_give_what_they_give_in_python(spark: SparkSession, tmp_path: Path) -> None:
    """The windows of examples/fares.yaml, of time and of rows, beside the same ones declared with the functions."""
    read = yaml.safe_load(Path(EXAMPLES, "fares.yaml").read_text(encoding="utf-8"))
    in_yaml = read["operators"]["fares"]["agg"]
    mean = jt.aggregate(
        init=fares.nothing,
        incr=fares.added,
        merge=fares.joined,
        final=fares.geometric_mean,
        columns=["fare"],
        type="double",
    )
    in_python = {"n": "count(*)", "typical": mean, "trend": jt.whole_window(fares.trend, columns="fare", type="double")}
    assert set(in_yaml) == set(in_python)
    for batch in range(3):
        trips = spark.range(200 * batch, 200 * batch + 200).selectExpr(
            "id AS trip",
            "timestamp_millis(1700000000000 + id * 100) AS pickup",
            "int(id % 3) AS zone",
            "double(1 + pmod(xxhash64(id), 97)) AS fare",
        )
        trips.coalesce(1).write.parquet(str(tmp_path / "trips" / str(batch)))
    stored = {"format": "parquet", "schema": TRIPS["schema"], "options": {"maxFilesPerTrigger": 1}}
    declared = from_yaml(
        yaml.safe_dump(
            {
                "network": "yaml",
                "sources": {"trips": TRIPS},
                "operators": {
                    "fares": {"of": "trips", "window": {"size": "10 seconds", "by": ["zone"]}, "agg": in_yaml},
                    "last": {"of": "trips", "window": {"size": "20 rows", "by": ["zone"]}, "agg": in_yaml},
                },
                "outputs": {"zones": {"of": "fares"}, "rows": {"of": "last"}},
                "run": {
                    "trigger": "800 ms",
                    "sources": {"trips": {**stored, "path": f"{tmp_path}/trips/*"}},
                    "sinks": {"zones": {"memory": 1000}, "rows": {"memory": 1000}},
                },
            },
            sort_keys=False,
        )
    )
    run = start_spec(declared, spark, mode="off")
    ended(run, lambda: run.report().rows_in == 600)

    net = jt.Network("python")
    trips = net.source("trips", **TRIPS)
    trips.window("10 seconds", by="zone").agg(in_python, name="fares").output("zones")
    trips.window("20 rows", by="zone").agg(in_python, name="last").output("rows")
    stream = spark.readStream.schema(TRIPS["schema"]).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/trips/*")
    sinks = {"zones": jt.memory(1000), "rows": jt.memory(1000)}
    other = jt.start(net, {"trips": stream}, sinks, trigger="800 ms", shedding=False)
    ended(other, lambda: other.report().rows_in == 600)

    for name, sink in sinks.items():
        given = run._runner.sinks.outputs[name]
        assert isinstance(given, MemorySink)
        assert len(sink.rows) >= 9
        assert sorted(given.rows) == sorted(sink.rows)
        assert all(row["typical"] is not None and row["trend"] is not None for row in sink.rows)
    assert run.report().windows_failed == 0


def test_a_function_that_is_not_there_is_told_before_anything_runs(spark: SparkSession) -> None:
    places = {
        "sources": {"trips": {"generator": {"preset": "taxi"}}},
        "sinks": {"out": {"memory": None}},
    }
    trend = {"whole_window": "examples.fares:trends", "columns": ["fare"], "type": "double"}
    declared = spec(places, {"fares": {"of": "trips", "window": {"size": "1 second"}, "agg": {"trend": trend}}})
    with pytest.raises(StartError, match=r"aggregate 'fares': 'trend': whole_window: cannot import 'examples\.fares:t"):
        start_spec(declared, spark)
