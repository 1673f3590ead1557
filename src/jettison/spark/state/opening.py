"""All state of a network in a checkpoint, as a list of one protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from jettison.network.graph import Graph
from jettison.network.row_bounds import most_rows_of
from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.state.count_state import CountState
from jettison.spark.state.join_state import JoinState
from jettison.spark.state.operator_state import OperatorState
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_state import SliceState
from jettison.spark.windows.count_slices import CountShape
from jettison.spark.windows.slices import Shape


class Shapes(Protocol):
    """What operators keep: rows of both sides by join, slices by group of aggregates, slices by counted windows."""

    @property
    def sides(self) -> Mapping[str, tuple[StructType, StructType]]: ...
    @property
    def slices(self) -> Mapping[str, Shape]: ...
    @property
    def counts(self) -> Mapping[str, CountShape]: ...


def open_states(
    spark: SparkSession, graph: Graph, folder: Folder, path: str, kept: Shapes, presence: Presence | None = None
) -> list[OperatorState]:
    """The state of a network's operators in a folder, which Spark finds at `path`. Without `presence` all operators are
    taken to have been there from the first batch on."""
    states: list[OperatorState] = []
    if kept.sides:
        nothing = {source.name: 0 for source in graph.sources}
        bounded = [
            join.name
            for join in graph.stream_joins
            if all(most_rows_of(graph, tail, nothing) is not None for tail in join.inputs)
        ]
        states.append(JoinState(spark, folder, path, kept.sides, presence, bounded))
    if kept.slices:
        states.append(SliceState(spark, graph, folder, path, kept.slices, presence))
    if kept.counts:
        states.append(CountState(spark, folder, path, kept.counts, presence))
    return states
