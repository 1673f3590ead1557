"""The network as frozen data: operators in topological order, and the arcs between them.

An arc is named by where it is (`network.arc`): `trips` is what enters at source trips, `paid>alerts` is the stream from
operator paid to operator alerts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from jettison.errors import NetworkError
from jettison.network.arc import Arc
from jettison.network.arguments import check_text
from jettison.network.calls import checked_init
from jettison.network.columns.expressions import passed_column, result_name
from jettison.network.columns.join_columns import Columns
from jettison.network.columns.operator_columns import operator_columns
from jettison.network.columns.schema import as_ddl
from jettison.network.kafka import Kafka
from jettison.network.names import named_apart
from jettison.network.nodes.placement import Placement, placed
from jettison.network.operators import (
    Aggregate,
    CountAggregate,
    Operator,
    Output,
    Select,
    Source,
    StreamJoin,
    Where,
    WithColumns,
    kind_of,
)
from jettison.network.windows.estimated_aggregates import marked
from jettison.network.windows.estimates import interval_names

if TYPE_CHECKING:
    from jettison.network.columns.value_tracks import Tracks
    from jettison.network.nodes.fragments import Fragment


@checked_init("jt.Graph")
@dataclass(frozen=True)
class Graph:
    """A whole network. Building one checks it: names, cycles, columns.

    >>> from jettison.network.operators import Where
    >>> graph = Graph("taxi", (Source("trips", (("fare", "double"),)),
    ...                        Where("paid", ("trips",), "fare > 0"), Output("fares", ("paid",))))
    >>> graph.arcs
    ('trips', 'trips>paid', 'paid>fares')
    """

    name: str
    operators: tuple[Operator, ...]
    together: Mapping[str, str] = field(default_factory=dict, compare=False)
    """By aggregate, the folder of a checkpoint that has its slices: those in one folder go on to share them."""
    placement: Placement | None = None
    """Which node runs which operator; None where one application runs all of them."""

    def __post_init__(self) -> None:
        check_text("network", "name", self.name, "'taxi'")
        given: object = self.operators
        if not isinstance(given, tuple | list) or not all(hasattr(each, "inputs") for each in given):
            raise NetworkError(f"graph {self.name!r}: operators are {given!r}: give operators, or use jt.Network.")
        operators = named_apart(self.name, tuple(self.operators))
        seen = {operator.name: operator for operator in operators}
        for operator in operators:
            for tail in operator.inputs:
                if tail not in seen:
                    raise NetworkError(
                        f"{kind_of(operator)} {operator.name!r} reads {tail!r}, which network {self.name!r} does not "
                        f"have. Operators here: {', '.join(seen)}."
                    )
                if isinstance(seen[tail], Output):
                    raise NetworkError(f"{kind_of(operator)} {operator.name!r} reads output {tail!r}: an output ends.")
        object.__setattr__(self, "operators", marked(_topological(self.name, operators)))
        if self.placement is not None:
            object.__setattr__(self, "placement", placed(self.name, self.operators, self.placement.nodes))
        _ = self.columns
        if any(isinstance(operator, Output) and operator.qos.value is not None for operator in self.operators):
            _ = self.tracks
        self._check_filters()
        self._check_times()
        self._check_gaps()

    def with_topics(self, topics: Mapping[str, Kafka]) -> Graph:
        """The network with these sources read from Kafka; each keeps the columns that it is declared with."""
        return replace(self, operators=tuple(_on_topic(each, topics.get(each.name)) for each in self.operators))

    def with_stale(self, age: str) -> Graph:
        """The network with this age, from which on rows are worth nothing, for outputs that do not say otherwise."""
        return replace(
            self,
            operators=tuple(
                replace(each, qos=replace(each.qos, stale=age))
                if isinstance(each, Output) and each.qos.stale is None and not each.qos.latency
                else each
                for each in self.operators
            ),
        )

    def fragment(self, node: str) -> Fragment:
        """The part of the network that a node runs, as a network of its own."""
        from jettison.network.nodes.fragments import fragment  # a fragment knows graphs

        return fragment(self, node)

    @cached_property
    def by_name(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return tuple(operator for operator in self.operators if isinstance(operator, Source))

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(operator for operator in self.operators if isinstance(operator, Output))

    @cached_property
    def stream_joins(self) -> tuple[StreamJoin, ...]:
        return tuple(operator for operator in self.operators if isinstance(operator, StreamJoin))

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Those of windows of event time."""
        return tuple(operator for operator in self.operators if isinstance(operator, Aggregate))

    @cached_property
    def count_aggregates(self) -> tuple[CountAggregate, ...]:
        return tuple(operator for operator in self.operators if isinstance(operator, CountAggregate))

    @cached_property
    def consumers(self) -> dict[str, tuple[str, ...]]:
        """Names of the operators that read each operator, in declared order."""
        readers: dict[str, list[str]] = {operator.name: [] for operator in self.operators}
        for operator in self.operators:
            for tail in operator.inputs:
                readers[tail].append(operator.name)
        return {name: tuple(heads) for name, heads in readers.items()}

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        return tuple(arc for operator in self.operators for arc in self.arcs_into(operator.name))

    def arcs_into(self, name: str) -> tuple[Arc, ...]:
        """The arcs that end at an operator; a source's is the network's input."""
        return self._entering[name]

    def arcs_out_of(self, name: str) -> tuple[Arc, ...]:
        """The arcs that begin at an operator, in the order of `consumers`."""
        return self._leaving[name]

    @cached_property
    def wiring(self) -> tuple[tuple[Operator, tuple[Arc, ...], tuple[Arc, ...]], ...]:
        """Every operator in order, with the arcs that end at it and those that begin at it."""
        return tuple((each, self._entering[each.name], self._leaving[each.name]) for each in self.operators)

    @cached_property
    def _entering(self) -> dict[str, tuple[Arc, ...]]:
        return {
            operator.name: tuple(Arc.between(tail, operator.name) for tail in operator.inputs) or (Arc(operator.name),)
            for operator in self.operators
        }

    @cached_property
    def _leaving(self) -> dict[str, tuple[Arc, ...]]:
        return {name: tuple(Arc.between(name, head) for head in heads) for name, heads in self.consumers.items()}

    @cached_property
    def columns(self) -> dict[str, Columns]:
        """Column names that each operator gives; None where only Spark can know."""
        found: dict[str, Columns] = {}
        coming: dict[str, tuple[str, ...]] = {}
        for operator in self.operators:
            also = [name for tail in operator.inputs for name in coming[tail]]
            found[operator.name] = operator_columns(operator, found, also)
            if isinstance(operator, Aggregate) and not self.outputs_below(operator.name):
                also += interval_names(operator.aggregates)  # as long as no output says that there are none
            coming[operator.name] = tuple(also)
        return found

    def outputs_below(self, name: str) -> set[str]:
        """Outputs that an operator's rows reach."""
        found, waiting = set(), [name]
        while waiting:
            for head in self.consumers[waiting.pop()]:
                waiting.append(head)
                if isinstance(self.by_name[head], Output):
                    found.add(head)
        return found

    def sources_above(self, name: str) -> tuple[Source, ...]:
        """Sources whose rows reach an operator, in their order here; a source's is itself."""
        found, waiting = set(), [name]
        while waiting:
            operator = self.by_name[waiting.pop()]
            found.add(operator.name)
            waiting += operator.inputs
        return tuple(source for source in self.sources if source.name in found)

    def _check_filters(self) -> None:
        from jettison.network.columns.filters import check_filter  # it follows columns through graphs

        for operator in self.operators:
            if isinstance(operator, Where):
                check_filter(self, operator)

    def _check_times(self) -> None:
        timed: tuple[StreamJoin | Aggregate, ...] = (*self.stream_joins, *self.aggregates)
        for operator in timed:
            what = "a band is judged" if isinstance(operator, StreamJoin) else "windows are"
            for source in self.sources_above(operator.name):
                if source.event_time is None:
                    raise NetworkError(
                        f"{kind_of(operator)} {operator.name!r}: {what} by event time, and source {source.name!r} "
                        f"declares none: add event_time='column' to it."
                    )
                self._check_time_is_not_replaced(operator, source, source.event_time)

    def _check_time_is_not_replaced(self, timed: StreamJoin | Aggregate, source: Source, column: str) -> None:
        """Windows and bands go by the time that the source declares, whatever a column of its name becomes later."""
        waiting = list(timed.inputs)
        while waiting:
            operator = self.by_name[waiting.pop()]
            if isinstance(operator, Aggregate | CountAggregate | StreamJoin):
                continue  # from here on, times are those of results and pairs
            if source not in self.sources_above(operator.name):
                continue  # another source's column may get this name, so that the two can be merged
            made = [(result_name(each), each) for each in operator.expressions] if isinstance(operator, Select) else []
            made += list(operator.columns) if isinstance(operator, WithColumns) else []
            for name, expression in made:
                kept = passed_column(expression)
                if name is not None and name.lower() == column.lower() and (kept or "").lower() != column.lower():
                    raise NetworkError(
                        f"{kind_of(operator)} {operator.name!r}: it replaces {column!r}, the event time of its source, "
                        f"and {kind_of(timed)} {timed.name!r} below goes by the source's: give the column another "
                        f"name, or compute the time before the source is declared (in the stream's DataFrame)."
                    )
            waiting += operator.inputs

    def _check_gaps(self) -> None:
        for output in self.outputs:
            word = "a gap" if output.qos.gap is not None else None
            word = f"on_loss={output.qos.on_loss!r}" if output.qos.on_loss != "subset" else word
            if word is not None and not self._windowed(output.name):
                raise NetworkError(
                    f"output {output.name!r}: its QoS says {word}, which is about windows, and there are none on its "
                    f"way: leave it out, or put .window(...).agg(...) before it."
                )

    def _windowed(self, name: str) -> bool:
        tails = self.by_name[name].inputs
        return any(isinstance(self.by_name[tail], Aggregate | CountAggregate) or self._windowed(tail) for tail in tails)

    @cached_property
    def segment_ends(self) -> dict[str, str]:
        """The end of the segment that each operator is in: the next output or split downstream, itself included."""
        ends: dict[str, str] = {}
        for operator in reversed(self.operators):
            heads = self.consumers[operator.name]
            ends[operator.name] = ends[heads[0]] if len(heads) == 1 else operator.name
        return ends

    @cached_property
    def tracks(self) -> Tracks:
        """Which outputs are valued by one and the same column, and where that is."""
        from jettison.network.columns.value_tracks import tracks_of  # a track knows graphs

        return tracks_of(self)

    def check_complete(self) -> None:
        """Raise unless every stream leads to an output."""
        if not self.sources:
            raise NetworkError(f"network {self.name!r} has no source: begin with net.source(...).")
        if not self.outputs:
            raise NetworkError(f"network {self.name!r} has no output: end a stream with .output('name').")
        for operator in self.operators:
            if not self.consumers[operator.name] and not isinstance(operator, Output):
                raise NetworkError(
                    f"{kind_of(operator)} {operator.name!r} leads to no output: "
                    f"end it with .output('name') or remove it."
                )
        for output in self.outputs:
            if output.qos.stale_s is None:
                continue
            for source in self.sources:
                if source.event_time is None and output.name in self.outputs_below(source.name):
                    raise NetworkError(
                        f"output {output.name!r} is stale after {output.qos.stale_s:g} s, but source {source.name!r} "
                        f"does not say when its rows happened: declare its event_time."
                    )


def _on_topic(operator: Operator, topic: Kafka | None) -> Operator:
    if topic is None or not isinstance(operator, Source):
        return operator
    beside = [(name, kind) for name, kind in ((topic.key, "string"), (topic.timestamp, "timestamp")) if name]
    declared = dict(operator.schema)
    for name, kind in (*beside, *(topic.columns(f"source {operator.name!r}") if topic.schema else ())):
        if declared.get(name) != kind:
            raise NetworkError(
                f"source {operator.name!r}: kafka topic {topic.topic!r} gives column {name!r} as {kind}, which is "
                f"{'not declared' if name not in declared else f'declared {declared[name]}'}: let both say the same."
            )
    inside = tuple(column for column in operator.schema if column not in beside)
    given = topic if topic.schema else replace(topic, schema=as_ddl(inside))
    return replace(operator, payload=topic.value, kafka=given)


def _topological(network: str, operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """Operators by their distance from a source; at equal distance outputs first, else as declared.

    YAML has outputs in a section of their own, so their place among the others cannot be what was declared: a
    network that is read back must be equal to the one that was written.
    """
    done: dict[str, Operator] = {}
    waiting = list(operators)
    while waiting:
        ready = [operator for operator in waiting if all(tail in done for tail in operator.inputs)]
        if not ready:
            names = ", ".join(operator.name for operator in waiting)
            raise NetworkError(f"network {network!r} has a cycle among {names}: a stream cannot feed itself.")
        ready.sort(key=lambda operator: not isinstance(operator, Output))
        done.update((operator.name, operator) for operator in ready)
        waiting = [operator for operator in waiting if operator.name not in done]
    return tuple(done.values())
