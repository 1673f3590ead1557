"""The network as DataFrames of one batch, with the plan's drops on its arcs. Nothing is run or written here.

Every row carries two hidden columns: its identity, by which drops judge it, and its event time, from which latency is
measured. They are cut off at the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Observation

from jettison.network.arc import Arc, arc_head, arc_name
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.event_time.progress import time_places
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Map, Operator, Output, Source, StreamJoin
from jettison.network.windows.estimated_aggregates import weighed
from jettison.network.windows.estimates import WEIGHT
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.plan import Plan
from jettison.spark.compile.applied import Applier
from jettison.spark.compile.arriving import Arriving
from jettison.spark.compile.batch_alone import BatchAlone, group_of
from jettison.spark.compile.drops import ALL, TIME, passes, weight
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.observed_places import Counted, arc_metrics
from jettison.spark.compile.raw_rows import (
    newest_metric,
)
from jettison.spark.compile.source_rows import SourceRows
from jettison.spark.guard.guard import Guard
from jettison.spark.maps.cost_filter import cost_metrics, judged, without_judgement
from jettison.spark.maps.mapped_rows import MappedRows
from jettison.statistics.sketches.universal import HashFunctions

Outside = Callable[[str, tuple[str, ...]], str]
"""See `spark.state.operator_state.BatchState.outside`."""


@dataclass(frozen=True)
class Scope:
    """What is special about the operators of one batch.

    Frames of `shared` operators are built once and persisted; of `whole` operators with all their columns. On `closed`
    arcs there are no rows. Operators that are `stateful` keep rows from batch to batch, and their results are given
    from outside (`Compiler.give`). `mask` says which rows are looked at before drops by value. Maps are timed into
    sketches of these `sketch_functions`, if any.
    """

    shared: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    stateful: frozenset[str] = frozenset()
    mask: int = 0
    sketch_functions: HashFunctions | None = None


class Compiler:
    """Builds the frames of one batch. Operators with state that are not `stateful` see this batch's rows alone."""

    def __init__(
        self,
        graph: Graph,
        raw: Mapping[str, DataFrame],
        plan: Plan,
        tables: Mapping[str, DataFrame],
        known: ExpressionCache | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.known = known or ExpressionCache()
        self.scope = scope or Scope()
        self._graph = graph
        self._raw = raw
        self._plan = plan
        judging: tuple[Operator, ...] = (*graph.aggregates, *graph.stream_joins)
        self.timed = frozenset(place for each in judging for place in time_places(graph, each.name))
        self._weighed = weighed(graph)
        # whether slices tell what comes to them
        self._told = any(each.name in self.scope.stateful for each in graph.aggregates)
        self._results: dict[str, DataFrame] = {}  # of operators with state
        self.batch_alone = BatchAlone(graph)
        self.persisted: dict[str, DataFrame] = {}
        self._built: dict[str, DataFrame] = {}  # in which nothing is counted: the same for every output
        self.counted = Counted()
        self._sources = SourceRows(graph, raw, plan, self.known, self.counted, self.mask, self.timed)
        self.maps = MappedRows(self.known, self.scope.sketch_functions, self.counted.maps)
        applier = Applier(self.known, tables, self._weighed)
        self.guard = Guard(self.known, tables, partial(applier.apply, narrowed=self.persisted))

    @property
    def mask(self) -> int:
        return self.scope.mask

    def output(self, name: str, *, count: bool) -> DataFrame:
        """The rows of an output, hidden columns included. With `count`, what is passed the first time is counted."""
        return self._build(name, count)

    def operator(self, name: str) -> DataFrame:
        """The rows that an operator gives, for calibration."""
        return self._build(name, False)

    def give(self, results: Mapping[str, DataFrame]) -> None:
        """Take the results of operators with state: what is below them is built of these."""
        self._results |= results

    def replace(self, name: str, rows: DataFrame) -> None:
        """Build what is below an operator of these rows: a copy of its own."""
        self.persisted[name] = rows

    def has_results(self, name: str) -> bool:
        """Whether the results of an operator with state are known."""
        return name in self._results

    def arriving(self, operator: Operator, *, count: bool, outside: Outside | None = None) -> Arriving:
        """The rows that come to an operator with state; with an aggregate's, those of all that share its slices: what
        no drop tells apart is one frame."""
        if isinstance(operator, Aggregate):
            return self._arriving_in_slices(operator, count, outside or (lambda name, of: ""))
        open_arcs = [
            (tail, arc)
            for tail, arc in zip(operator.inputs, self._graph.arcs_into(operator.name), strict=True)
            if arc not in self.scope.closed
        ]
        rows: dict[tuple[str, ...], DataFrame] = {
            (arc,): self._arc(tail, operator.name, count) for tail, arc in open_arcs
        }
        if isinstance(operator, CountAggregate):
            rows = {arcs: self.guard.countable(operator, frame) for arcs, frame in rows.items()}
        return Arriving(rows)

    def _arriving_in_slices(self, aggregate: Aggregate, count: bool, outside: Outside) -> Arriving:
        group = group_of(self._graph, aggregate)
        alike: dict[str, list[str]] = {}
        for member in group.members:
            arc = arc_name(group.tail, member.name)
            if arc not in self.scope.closed:
                alike.setdefault(passes(arc, self._plan) or ALL, []).append(member.name)
        rows = {tuple(names): self._arc(group.tail, names[0], count) for names in alike.values()}
        tried = self.guard.tried(group.members, rows, outside)
        return Arriving(
            {tuple(arc_name(group.tail, name) for name in names): frame for names, frame in (tried or rows).items()},
            tried is not None,
        )

    def _build(self, name: str, count: bool) -> DataFrame:
        if name in self.persisted:
            return self.persisted[name]
        if name in self._built:
            return self._built[name]
        operator = self._graph.by_name[name]
        before = self.counted.places()
        if isinstance(operator, Source):
            frame = self._source(operator, count)
        elif isinstance(operator, StreamJoin | Aggregate | CountAggregate):
            if name not in self._results:
                self.give(self.batch_alone.frames(operator, self.arriving(operator, count=count)))
            frame = self._results[name]
        elif isinstance(operator, Map):
            frame = self._mapped(operator, count)
        else:
            frames = [self._arc(tail, name, count) for tail in operator.inputs]
            frames[:1] = [self.guard.without_set_aside(operator, frames[0])]
            frame = self.guard.apply(operator, frames)
        self.known.columns(name, frame)
        if count:
            if name in self.timed and operator.inputs and name not in self.counted.newest:
                observation = self.counted.newest[name] = Observation()
                frame = frame.observe(observation, self.known.expression(newest_metric(TIME)))
            frame = self._closed_counted(name, frame)
        if name in self.scope.shared:
            frame = self.narrowed(name, frame).persist()
            self.persisted[name] = frame
            for place in self.counted.places() - before:
                self.counted.within.setdefault(place, frame)
        elif not self.known.careful and self.counted.places() == before:
            self._built[name] = frame
        return frame

    def _mapped(self, operator: Map, count: bool) -> DataFrame:
        tail, arc = operator.inputs[0], self._graph.arcs_into(operator.name)[0]
        drop = self._plan.drops.get(arc)
        goal_us, since_us = math.inf, -math.inf
        if isinstance(drop, CostBound) and isinstance(drop.rule, LatencyRule):
            goal_us, since_us = drop.rule.tau_us, drop.rule.since_us
        return self.maps.rows(operator, self._arc(tail, operator.name, count), goal_us, since_us, count=count)

    def _closed_counted(self, name: str, frame: DataFrame) -> DataFrame:
        """Count what reaches arcs that let nothing through: what is behind them may never be built."""
        for arc in self._graph.arcs_out_of(name):
            if self._plan.closes(arc) and arc not in self.counted.arcs:
                observation = self.counted.arcs[arc] = Observation()
                frame = frame.observe(observation, self.known.expression("count(1) AS rows"))
        return frame

    def _arc(self, tail: str, head: str, count: bool) -> DataFrame:
        arc = arc_name(tail, head)
        return self._dropped(arc, self._build(tail, count), count)

    def before_drop(self, arc: str) -> DataFrame:
        """The rows that come to the drop on an inner arc, with what it judges them by."""
        return self._judged(arc, self.operator(Arc(arc).origin))

    def _judged(self, arc: str, frame: DataFrame) -> DataFrame:
        drop = self._plan.drops.get(arc)
        return judged(frame, arc, drop, self.known) if isinstance(drop, CostBound) else frame

    def arc_metrics(self, arc: str) -> list[str]:
        """What is observed of an inner arc's rows before its drop, in SQL."""
        drop = self._plan.drops.get(arc)
        metrics = arc_metrics(self._graph, arc, passes(arc, self._plan) or ALL, self.mask)
        return [*metrics, *cost_metrics(drop, self.mask)] if isinstance(drop, CostBound) else metrics

    def _dropped(self, arc: str, frame: DataFrame, count: bool) -> DataFrame:
        condition = passes(arc, self._plan)
        head = self._graph.by_name[arc_head(arc)]
        into_slices = self._told and isinstance(head, Aggregate)
        if condition is None or (condition == ALL and (into_slices or isinstance(head, Output))):
            return frame  # the output counts its rows, and so do slices
        frame = self._judged(arc, frame)
        if count and into_slices:
            frame = self._tail_counted(arc, frame)
        elif count and arc not in self.counted.arcs:
            observation = self.counted.arcs[arc] = Observation()
            frame = frame.observe(observation, *map(self.known.expression, self.arc_metrics(arc)))
        if condition != ALL:
            frame = frame.where(self.known.expression(condition))
        if isinstance(self._plan.drops.get(arc), CostBound):
            frame = without_judgement(frame)
        if arc_head(arc) in self._weighed and arc in self._plan.drops:
            frame = frame.withColumn(WEIGHT, self.known.expression(weight(self._plan.drops[arc], WEIGHT)))
        return frame

    def _tail_counted(self, arc: str, frame: DataFrame) -> DataFrame:
        """Count the rows that come to all drops behind an operator, once; of sources they are known."""
        tail = Arc(arc).origin
        if tail in self.counted.tails or isinstance(self._graph.by_name[tail], Source):
            return frame
        observation = self.counted.tails[tail] = Observation()
        return frame.observe(observation, self.known.expression("count(1) AS rows"))

    def _source(self, source: Source, count: bool) -> DataFrame:
        frame = self._sources.rows(source, count)
        if source.name in self._weighed:
            stands_for = weight(self._plan.drops.get(source.name))
            frame = self.known.select(frame, ["*", f"{stands_for} AS {WEIGHT}"])
        return frame

    def narrowed(self, name: str, frame: DataFrame) -> DataFrame:
        """An operator's rows with the columns that anybody below needs: a persisted copy holds no more."""
        needed = needed_columns(self._graph, name)
        if needed is None or name in self.scope.whole:
            return frame
        return self.known.select(frame, [*(f"`{column}`" for column in needed), *self.known.hidden(name, frame)])

    def arriving_at(self, operator: Operator) -> DataFrame:
        """The rows that come to an operator of one input, without those that were set aside."""
        return self.guard.without_set_aside(operator, self._arc(operator.inputs[0], operator.name, False))

    def alone(self, operator: Operator, rows: DataFrame) -> DataFrame:
        """One operator on some rows."""
        return self.guard.apply(operator, [rows])

    def is_built_above(self, name: str) -> bool:
        """Whether all that keeps state above an operator has its rows: it is never asked twice."""
        if not self.scope.stateful or name in self._results:
            return True
        operator = self._graph.by_name[name]
        waits = isinstance(operator, Aggregate | CountAggregate | StreamJoin)
        return not waits and all(map(self.is_built_above, operator.inputs))
