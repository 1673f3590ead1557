"""What a run is started with, checked before anything runs: sessions and streams, sinks, tables, the whole network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StructType, TimestampNTZType

from jettison.errors import StartError
from jettison.network.arc import Arc
from jettison.network.columns.reserved import added, hidden_by_folders, ours, twice
from jettison.network.columns.schema import literal, quoted
from jettison.network.columns.words import an, meant
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka
from jettison.network.operators import Aggregate, Join, Output, StreamJoin, kind_of
from jettison.network.windows.estimated_aggregates import weighed
from jettison.plan.plan import Plan
from jettison.plan.refine.staleness import stale_limits
from jettison.plan.windows.group_gaps import named_groups
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import HIDDEN, KEY, RECORD, TIME
from jettison.spark.connect import refuse_connect
from jettison.spark.read.kafka import read_stream
from jettison.spark.read.stream import declared_types
from jettison.spark.run.operator_code import code_of
from jettison.spark.state.join_state import Schemas
from jettison.spark.state.state_kinds import COUNTS, JOIN, TIMES
from jettison.spark.windows.count_slices import CountShape
from jettison.spark.windows.slices import ROWS, Shape
from jettison.spark.write.empty_results import result_schema
from jettison.spark.write.sinks import BATCH_COLUMN, ParquetSink, Sink


@dataclass(frozen=True)
class StateShapes:
    """The shapes of what a network keeps from batch to batch: rows that wait at joins, slices of aggregates."""

    sides: Schemas
    slices: Mapping[str, Shape]
    counts: Mapping[str, CountShape] = field(default_factory=dict)
    code: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By operator: the Python code that it runs (`code`)."""
    results: Mapping[str, StructType] = field(default_factory=dict)
    """By output, the columns that it writes."""

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The operators that keep something, by what they keep."""
        members = [member.name for shape in self.slices.values() for member in shape.group.members]
        return {JOIN: list(self.sides), TIMES: members, COUNTS: list(self.counts)}


def opened(
    graph: Graph, given: Mapping[str, DataFrame | Kafka], spark: SparkSession | None
) -> tuple[Graph, dict[str, DataFrame], SparkSession]:
    """The network with its topics, a stream for every source that has one, and the session that they belong to."""
    for name in given:
        if name not in {source.name for source in graph.sources}:
            known = ", ".join(source.name for source in graph.sources)
            raise StartError(f"{name!r} is not a source of network {graph.name!r}; sources: {known}.")
    graph = graph.with_topics({name: each for name, each in given.items() if isinstance(each, Kafka)})
    frames = {name: each for name, each in given.items() if not isinstance(each, Kafka)}
    session = next((frame.sparkSession for frame in frames.values()), spark) or SparkSession.getActiveSession()
    refuse_connect({"the active session": session})
    if session is None:
        raise StartError("there is no Spark session: make one first, such as jt.local_session().")
    for source in graph.sources:
        if source.kafka is not None and source.name not in frames:
            frames[source.name] = read_stream(session, source.kafka)
        elif source.kafka is not None:
            raise StartError(f"source {source.name!r} is declared with a Kafka topic: leave it out of `sources`.")
    return graph, frames, session


def check_tables(graph: Graph, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The table of every join, by the join's name."""
    named = [each.table for each in graph.operators if isinstance(each, Join) and isinstance(each.table, str)]
    for name in tables:
        if name not in named:
            known = f"joins name {', '.join(named)}" if named else "no join names one"
            raise StartError(f"tables: {name!r} is a table that no join names{meant(name, named)}: {known}.")
    joined = {}
    for operator in graph.operators:
        if isinstance(operator, Join):
            if isinstance(operator.table, str) and operator.table not in tables:
                raise StartError(f"join {operator.name!r}: no table {operator.table!r}: add tables={{...}} to start.")
            table = tables[operator.table] if isinstance(operator.table, str) else operator.table
            if getattr(table, "isStreaming", False):
                raise StartError(
                    f"join {operator.name!r}: its table streams: read it with spark.read, or declare it as a source "
                    f"and join the two streams with within=..."
                )
            joined[operator.name] = table
    return joined


def check_shared(graph: Graph, shared: Iterable[str] | None) -> None:
    """Raise for a name in `shared` that is no operator."""
    for name in shared or ():
        if name not in graph.by_name:
            raise StartError(
                f"jt.Costs: shared has {name!r}, which is no operator of network {graph.name!r}"
                f"{meant(name, graph.by_name)}: it has {', '.join(graph.by_name)}."
            )


def check_keys(graph: Graph, tables: Mapping[str, DataFrame]) -> None:
    """Above what is estimated a row must not become several: a table that it is joined with has every key once.

    That takes a job for each such join, which looks at the table as every batch will.
    """
    above = weighed(graph)
    for operator in graph.operators:
        if isinstance(operator, Join) and operator.name in above and operator.how in ("inner", "left"):
            keys = [quoted(name) for name in operator.on]
            there = tables[operator.name].where(" AND ".join(f"{key} IS NOT NULL" for key in keys))
            counted = there.groupBy(*keys).agg(F.expr(f"count(1) AS {ROWS}"))
            twice = counted.where(f"{ROWS} > 1").select(*keys).first()
            if twice is not None:
                table = f"table {operator.table!r}" if isinstance(operator.table, str) else "its table"
                example = ", ".join(f"{name} = {value!r}" for name, value in twice.asDict().items())
                raise StartError(
                    f"join {operator.name!r}: {table} has several rows with {example}, and what is behind is estimated "
                    f"(on_loss='estimate'): rows that one row becomes would go or stay together. Let it have one row "
                    f"for each {', '.join(operator.on)}, or join it behind the aggregate."
                )


def check_compiles(
    spark: SparkSession,
    graph: Graph,
    sources: Mapping[str, DataFrame],
    tables: Mapping[str, DataFrame],
    sinks: Mapping[str, Sink] | None = None,
) -> StateShapes:
    """Let Spark analyse the whole network on no rows, so that a fault shows before anything runs.

    What joins of streams and aggregates will have to keep shows too.
    """
    _check_zone(spark, graph)
    _check_own_names(sources, tables)
    empty = {name: spark.createDataFrame([], frame.schema) for name, frame in sources.items()}
    compiler = Compiler(graph, empty, Plan(), tables)
    results = {}
    for output in graph.outputs:
        rows = compiler.output(output.name, count=False)
        _check_result(output, rows, (sinks or {}).get(output.name))
        visible = StructType([each for each in rows.schema.fields if each.name not in HIDDEN])
        results[output.name] = result_schema(output, visible)
        if output.qos.value is not None:
            _check_value(output.name, output.qos.value.column, rows)
    for arc in stale_limits(graph):
        tail = Arc(arc).tail
        if tail and TIME not in compiler.operator(tail).columns:
            raise StartError(
                f"arc {arc!r}: what is stale is judged here by event time, which its rows have lost: let functions in "
                f".apply() before it keep column {TIME!r}, or say the same age for all outputs behind {tail!r}."
            )
    alone = compiler.batch_alone
    _check_gaps(spark, graph, alone.shapes)
    return StateShapes(alone.sides, alone.shapes, alone.counts, code_of(graph, compiler.operator), results)


def _check_own_names(sources: Mapping[str, DataFrame], tables: Mapping[str, DataFrame]) -> None:
    """Columns that only Spark knows must not be called as those that are added to every row."""
    for source, frame in sources.items():
        given = [name for name in frame.columns if name not in (*RECORD, KEY, "_jt_value")]
        _raise_if(ours(f"source {source!r}", given))
    for join, frame in tables.items():
        _raise_if(ours(f"join {join!r}: its table", frame.columns))


def _check_result(output: Output, rows: DataFrame, sink: Sink | None) -> None:
    """What an output delivers reads back as it was: no two columns of one name, none that is added to it later."""
    visible = [name for name in rows.columns if name not in HIDDEN]
    element = f"output {output.name!r}"
    _raise_if(ours(element, visible) or twice(element, visible) or added(element, visible, quality=output.quality))
    if isinstance(sink, ParquetSink):
        _raise_if(hidden_by_folders(element, visible, BATCH_COLUMN))


def _raise_if(fault: str | None) -> None:
    if fault is not None:
        raise StartError(fault)


def _check_gaps(spark: SparkSession, graph: Graph, shapes: Mapping[str, Shape]) -> None:
    """Groups are told by the text of a value: one that no value has would protect nobody."""
    by_member = {member.name: shape for shape in shapes.values() for member in shape.group.members}
    for name, cells in named_groups(graph).items():
        fields = by_member[name].schema.fields
        kind = next(each.dataType.simpleString() for each in fields if each.name.lower() == cells.column.lower())
        casts = [f"string(try_cast({literal(value)} AS {kind}))" for value in cells.names]
        try:
            texts = spark.sql(f"SELECT {', '.join(casts)}").head()
        except AnalysisException as error:
            raise StartError(
                f"aggregate {name!r}: QoS gaps of {cells.column!r}, {an(kind)}: no text says a value of it; "
                f"name groups by a column of numbers, texts or times."
            ) from error
        for value, text in zip(cells.names, texts or (), strict=True):
            if text != value:
                remedy = f"no {kind} is that" if text is None else f"as {an(kind)} that is {text!r}: write it so"
                raise StartError(f"aggregate {name!r}: QoS gaps of {cells.column!r} name {value!r}: {remedy}.")


def _check_zone(spark: SparkSession, graph: Graph) -> None:
    """Times without a zone are taken in the session's: only in UTC are windows and bands then those of Spark."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    jvm: Any = spark._jvm
    if str(jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(zone).normalized().toString()) == "Z":
        return
    timed: tuple[Aggregate | StreamJoin, ...] = (*graph.aggregates, *graph.stream_joins)
    for operator in timed:
        for source in graph.sources_above(operator.name):
            if source.event_time and isinstance(declared_types(source)[source.event_time], TimestampNTZType):
                raise StartError(
                    f"source {source.name!r}: its event time {source.event_time!r} is a timestamp_ntz, without a time "
                    f"zone, and {kind_of(operator)} {operator.name!r} would take it in that of the session, {zone!r}: "
                    f"set spark.sql.session.timeZone to 'UTC', or give a timestamp."
                )


def _check_value(output: str, column: str, rows: DataFrame) -> None:
    """Where only Spark knows the columns, a value that is not there or is no number shows here."""
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    if column.lower() not in kinds:
        shown = ", ".join(name for name in rows.columns if name not in HIDDEN)
        raise StartError(f"output {output!r}: its value utility is on {column!r}, which it does not have: {shown}.")
    if not isinstance(kinds[column.lower()], NumericType):
        kind = kinds[column.lower()].simpleString()
        raise StartError(
            f"output {output!r}: its value utility is on {column!r}, {an(kind)}: cast it to a number first."
        )
