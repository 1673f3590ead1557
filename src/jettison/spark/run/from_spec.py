"""A YAML file that runs: the `run` section's places as streams, tables and sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession

from jettison.errors import SessionError, StartError
from jettison.network.kafka import Kafka
from jettison.options.shedding import Mode
from jettison.spark.read.generator import generate
from jettison.spark.read.kafka import KafkaSink
from jettison.spark.run.run import Run
from jettison.spark.run.start import start
from jettison.spark.write.sinks import FormatSink, Sink, console, memory, parquet
from jettison.spec.network_file import Spec
from jettison.spec.run_section import Generated, Places, Stored, Target, read_places


def start_spec(
    spec: Spec,
    spark: SparkSession,
    *,
    mode: Mode | None = None,
    shedder: str | None = None,
    metrics: str | int | None = None,
    live: bool = False,
) -> Run:
    """Run what a file declares; `mode` and `shedder` in place of the file's `run.shedding`.

    Costs are measured on the first batch, unless the file says `costs: {profile: true}`.

    >>> run = start_spec(jt.read_spec("examples/taxi.yaml"), jt.local_session())  # doctest: +SKIP
    """
    graph = spec.graph()
    places = read_places(spec, graph)
    streams, tables = streams_and_tables(spark, places)
    shedding = places.shedding if mode is None else replace(places.shedding, mode=mode)
    return start(
        graph,
        streams,
        {name: _sink(place) for name, place in places.sinks.items()},
        trigger=places.trigger,
        checkpoint=places.checkpoint,
        shedding=shedding if shedder is None else replace(shedding, shedder=shedder),
        costs=places.costs,
        tables=tables,
        dead_letters=None if places.dead_letters is None else _sink(places.dead_letters),
        on_shed={name: _sink(place) for name, place in places.on_shed.items()},
        metrics=metrics,
        live=live,
        spark=spark,
    )


def streams_and_tables(spark: SparkSession, places: Places) -> tuple[dict[str, DataFrame], dict[str, DataFrame]]:
    """New streams for the sources of a file, from their beginning, and the tables that its joins name."""
    streams = {name: _stream(spark, f"run.sources.{name}", place) for name, place in places.sources.items()}
    return streams, {name: _table(spark, f"run.tables.{name}", place) for name, place in places.tables.items()}


def _stream(spark: SparkSession, place: str, source: Generated | Stored) -> DataFrame:
    if isinstance(source, Stored):
        return _loaded(spark.readStream, place, source)
    return generate(
        spark,
        source.fields,
        rate=source.rate,
        seed=source.seed,
        rows_per_batch=source.rows_per_batch,
        limit_rows=source.limit_rows,
    )


def _table(spark: SparkSession, place: str, table: Stored) -> DataFrame:
    return _loaded(spark.read, place, table)


def _loaded(reader: Any, place: str, stored: Stored) -> DataFrame:
    """What Spark reads; its own words when it cannot, with the place in the file."""
    try:
        chosen = reader.format(stored.format).options(**stored.options)
        frame: DataFrame = (chosen if stored.schema is None else chosen.schema(stored.schema)).load()
        return frame
    except Py4JNetworkError as error:
        raise SessionError("the Spark session has ended (the driver's JVM is gone): start again.") from error
    except Exception as error:  # PySpark's own, and Java's where PySpark does not translate them
        reason = _reason(error)
        raise StartError(
            f"{place}: Spark cannot read format {stored.format!r} with options {_shown(stored.options)}: {reason} "
            f"Mend {place}.{_wrong_part(reason)}."
        ) from error


def _reason(error: Exception) -> str:
    """Spark's own words in one line. PySpark leaves some faults (an unknown format) wrapped as Java threw them."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    thrown = [line.removeprefix(": ").partition(": ")[2] for line in lines if line.startswith(": ")]
    return next(iter(thrown or lines), type(error).__name__)


def _wrong_part(reason: str) -> str:
    if "DATA_SOURCE_NOT_FOUND" in reason or "Failed to find" in reason:
        return "format, or start with the package that brings it"
    return "schema: give the columns, such as 'trip long, fare double'" if "schema" in reason.lower() else "options"


def _shown(options: Mapping[str, str]) -> str:
    """Option names alone: a value may be a password."""
    return ", ".join(options) or "none"


def _sink(sink: Target) -> Sink:
    if isinstance(sink, Kafka):
        return KafkaSink(sink)
    if isinstance(sink, Stored):
        return FormatSink(sink.format, dict(sink.options))
    if sink.kind == "parquet":
        return parquet(str(sink.setting), on_other_run=sink.on_other_run)
    make = console if sink.kind == "console" else memory
    return make() if sink.setting is None else make(int(sink.setting))
