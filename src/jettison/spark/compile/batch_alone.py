"""Operators with state on the rows of one batch alone: for checks before a start, for calibration, and by hand."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from jettison.errors import StartError
from jettison.network.arc import arc_head, arc_name
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Operator, StreamJoin
from jettison.network.windows.slice_groups import SliceGroup, slice_groups
from jettison.spark.compile.arriving import Arriving
from jettison.spark.compile.pairs import check_sides, paired, waiting
from jettison.spark.error_text import reason_of
from jettison.spark.windows.count_slices import CountShape, count_shape
from jettison.spark.windows.count_slices import direct as counted_directly
from jettison.spark.windows.slices import Shape, direct, shape_of


class BatchAlone:
    """Pairs what is in this batch, and gives all windows of it. What a state would have to keep shows here too:
    `shapes` of groups of aggregates, `counts` of windows of rows, `sides` of joins."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.shapes: dict[str, Shape] = {}
        self.counts: dict[str, CountShape] = {}
        self.sides: dict[str, tuple[StructType, StructType]] = {}

    def frames(self, operator: Operator, arriving: Arriving) -> Mapping[str, DataFrame]:
        """The results of an operator, and of those that share its slices."""
        if isinstance(operator, StreamJoin):
            return {operator.name: self._pairs(operator, arriving)}
        if isinstance(operator, CountAggregate):
            rows = _on(arriving, operator.inputs[0], operator.name)
            if operator.name not in self.counts:
                self.counts[operator.name] = count_shape(operator, rows)
            return {operator.name: counted_directly(self.counts[operator.name], rows)}
        assert isinstance(operator, Aggregate)
        return self._slices(group_of(self._graph, operator), arriving)

    def _slices(self, group: SliceGroup, arriving: Arriving) -> Mapping[str, DataFrame]:
        rows = {tuple(map(arc_head, arcs)): frame for arcs, frame in arriving.rows.items()}
        if group.name not in self.shapes:
            self.shapes[group.name] = shape_of(group, next(iter(rows.values())))
        shape = self.shapes[group.name]
        return direct(group, shape.of_tried_rows() if arriving.tried else shape, rows)

    def _pairs(self, join: StreamJoin, arriving: Arriving) -> DataFrame:
        left, right = (_on(arriving, tail, join.name) for tail in join.inputs)
        check_sides(join, left, right)
        try:
            left, right = waiting(join, 0, left), waiting(join, 1, right)
            self.sides[join.name] = (left.schema, right.schema)
            return paired(join, left, right)
        except AnalysisException as error:
            raise StartError(f"join {join.name!r}: {reason_of(error)}") from error


def group_of(graph: Graph, aggregate: Aggregate) -> SliceGroup:
    """The aggregates that share slices with one."""
    return next(group for group in slice_groups(graph) if aggregate in group.members)


def _on(arriving: Arriving, tail: str, head: str) -> DataFrame:
    rows = arriving.on(arc_name(tail, head))
    assert rows is not None
    return rows
