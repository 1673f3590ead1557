"""All sources as one stream: a single one as it is, several as one tagged stream with a struct per source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructType

from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.network.operators import Source
from jettison.spark.read.generator import SOURCE

TAG = "_jt_source"


def check_sources(graph: Graph, frames: Mapping[str, DataFrame]) -> None:
    """Raise unless there is a streaming DataFrame with fitting columns for every source, and no other."""
    declared = {source.name: source for source in graph.sources}
    for name, source in declared.items():
        if name not in frames:
            raise StartError(f"source {name!r} has no DataFrame: give one, such as {{{name!r}: stream_df}}.")
        frame = frames[name]
        if not frame.isStreaming:
            raise StartError(f"source {name!r}: the DataFrame does not stream: make it with spark.readStream.")
        _check_columns(source, frame)


def declared_types(source: Source) -> dict[str, DataType]:
    """Types of a source's columns as Spark knows them."""
    types = {}
    for name, kind in source.schema:
        try:
            parsed = StructType.fromDDL(f"`{name}` {kind}")
            assert isinstance(parsed, StructType)
            types[name] = parsed[name].dataType
        except ParseException as error:
            raise StartError(f"source {source.name!r}: column {name!r} has no type {kind!r} in Spark.") from error
    return types


def _check_columns(source: Source, frame: DataFrame) -> None:
    types = declared_types(source)
    found = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)
    if source.payload is not None and source.payload_column not in frame.columns:
        raise StartError(
            f"source {source.name!r}: no column {source.payload_column!r} holds the payload. It has: {found}."
        )
    if source.payload is not None:
        held = frame.schema[source.payload_column].dataType
        if not isinstance(held, StringType | BinaryType):
            raise StartError(
                f"source {source.name!r}: column {source.payload_column!r} is {held.simpleString()} and is to hold "
                f"{source.payload}, which is text or binary: cast it, or name the column that holds the payload."
            )
    for name, kind in types.items():
        if name not in frame.columns:
            if source.payload is not None:
                continue
            raise StartError(f"source {source.name!r}: column {name!r} is not in the stream. It has: {found}.")
        actual = frame.schema[name].dataType
        if actual.simpleString() != kind.simpleString():  # whether parts of it may be null does not matter
            raise StartError(
                f"source {source.name!r}: column {name!r} is {actual.simpleString()} in the stream and declared "
                f"{kind.simpleString()}: cast it, or declare it as it is."
            )


def is_generated(frame: DataFrame) -> bool:
    """Whether a stream is our own generator's."""
    return _source_name(frame) == SOURCE


def is_micro_rate(frame: DataFrame) -> bool:
    """Whether a stream is Spark's `rate-micro-batch`, whose offsets count rows."""
    return _source_name(frame) == "rate-micro-batch"


def _source_name(frame: DataFrame) -> str | None:
    """What the source of a stream is called; None where there are several, or it is not told."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    try:
        return str(leaves.head().sourceName()) if int(leaves.size()) == 1 else None
    except Py4JError:  # not a stream of this kind
        return None


def is_bare(frame: DataFrame) -> bool:
    """Whether a stream is a source with columns chosen at most, so that its offsets count its rows."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    while str(plan.nodeName()) in ("Project", "SubqueryAlias"):
        plan = plan.children().head()
    return bool(plan.children().isEmpty())


def merge(graph: Graph, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The one stream that the query reads."""
    names = [source.name for source in graph.sources]
    if len(names) == 1:
        return frames[names[0]]
    tagged = []
    for number, name in enumerate(names):
        columns = [
            (F.struct("*") if other == name else F.lit(None).cast(frames[other].schema)).alias(f"_jt_{index}")
            for index, other in enumerate(names)
        ]
        tagged.append(frames[name].select(F.lit(number).alias(TAG), *columns))
    merged = tagged[0]
    for other in tagged[1:]:
        merged = merged.union(other)
    return merged


def split(graph: Graph, batch: DataFrame) -> dict[str, DataFrame]:
    """A batch of the one stream, by source."""
    names = [source.name for source in graph.sources]
    if len(names) == 1:
        return {names[0]: batch}
    return {name: batch.where(F.col(TAG) == number).select(f"_jt_{number}.*") for number, name in enumerate(names)}


def count_rows(graph: Graph, batch: DataFrame) -> dict[str, int]:
    """Rows per source, by a job."""
    names = [source.name for source in graph.sources]
    if len(names) == 1:
        return {names[0]: batch.count()}
    counted = {row[TAG]: row["count"] for row in batch.groupBy(TAG).count().collect()}
    return {name: counted.get(number, 0) for number, name in enumerate(names)}
