"""Declaring a network: `Network` collects operators, `Stream` is a handle on one of them. Nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jettison.errors import NetworkError, UnknownNameError
from jettison.network.arguments import check_expression, check_text, mapping_of, names_of
from jettison.network.calls import checked_call
from jettison.network.columns.expressions import Expression
from jettison.network.columns.schema import parse_schema
from jettison.network.columns.words import meant
from jettison.network.durations import duration_ms
from jettison.network.ended import Ended
from jettison.network.graph import Graph
from jettison.network.identity.lineage_hash import renamed
from jettison.network.kafka import Kafka
from jettison.network.nodes.placement import Node, Placement
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
    Map,
    Operator,
    Output,
    Select,
    Source,
    StreamJoin,
    Union,
    Where,
    WithColumns,
    from_kafka,
    kind_of,
)
from jettison.network.qos import QoS
from jettison.network.windows.count_windows import CountSpec, windows_of
from jettison.network.windows.user_aggregates import Own

_IN_SPARK = {
    "filter": "use where",
    "withColumn": "use with_columns",
    "withColumns": "use with_columns",
    "selectExpr": "use select",
    "groupBy": "use window(size, by=...).agg(...)",
    "agg": "use window(size, by=...).agg(...)",
    "groupby": "use window(size, by=...).agg(...)",
    "transform": "use apply",
    "unionByName": "use union",
    "withWatermark": "say event_time= at the source and delay= at the window",
    "writeStream": "use output, and a sink in jt.start",
    "write": "use output, and a sink in jt.start",
}
"""What a user of Spark's DataFrames may look for, and what it is called here."""


class Network:
    """All queries together, under one name.

    >>> net = Network("taxi")
    >>> trips = net.source("trips", schema="trip long, fare double", id=["trip"])
    >>> _ = trips.where("fare > 200").select("trip").output("alerts")
    >>> print(net)
    network taxi
    trips: source trip long, fare double
      where1: where fare > 200
        select1: select trip
          alerts: output
    """

    @checked_call("jt.Network")
    def __init__(self, name: str) -> None:
        check_text("network", "name", name, "'taxi'")
        self.graph = Graph(name, ())

    @classmethod
    def of(cls, graph: Graph) -> Network:
        """A network around an existing graph, such as one read from YAML."""
        if not isinstance(graph, Graph):
            raise NetworkError(f"{graph!r} is no graph: give that of a file, such as jt.read_spec(path).graph().")
        network = cls(graph.name)
        network.graph = graph
        return network

    @property
    def name(self) -> str:
        return self.graph.name

    @checked_call("net.source")
    def source(
        self,
        name: str,
        schema: str | Kafka,
        *,
        event_time: str | None = None,
        id: Sequence[str] = (),
        payload: str | None = None,
    ) -> Stream:
        """Declare a stream that comes in: by its schema, or by the Kafka topic that it is read from.

        See `Source` for what the options mean.
        """
        element = f"source {name!r}"
        names = names_of(element, "id", id)
        if not isinstance(schema, Kafka):
            check_text(element, "schema", schema, "'trip long, fare double', or a topic: jt.kafka(servers, topic)")
        if isinstance(schema, Kafka):
            return self._add(from_kafka(name, schema, event_time, names, payload))
        return self._add(Source(name, parse_schema(schema, element), event_time, names, payload))

    @checked_call("net.stream")
    def stream(self, name: str) -> Stream:
        """The handle of an operator that is declared already."""
        check_text(f"network {self.name!r}", "the stream's name", name, "'trips'")
        if name not in self.graph.by_name:
            raise NetworkError(
                f"network {self.name!r} has no stream {name!r}. Operators here: {', '.join(self.graph.by_name)}."
            )
        return Stream(self, name)

    @checked_call("net.place")
    def place(self, *nodes: Node) -> None:
        """Say which node runs which operator, once all operators are declared.

        Sources and outputs that no node names run beside the operator that reads them, or that they read.
        """
        for node in nodes:
            if not isinstance(node, Node):
                raise NetworkError(f"net.place: {node!r} is no node: give jt.Node('parse', ['trips', 'paid'], 1.0).")
        self.graph = replace(self.graph, placement=Placement(nodes))

    def _add(self, operator: Operator) -> Stream:
        self.graph = replace(self.graph, operators=(*self.graph.operators, operator))
        return Stream(self, operator.name)

    def _add_keeping(self, operator: Operator, given: str | None) -> Stream:
        """Add an operator that keeps state. Without a name it is called after what it computes, not after its place: a
        program that has other outputs, or has them in another order, must find the same state under the same name."""
        return self._add(operator if given is not None else renamed(self.graph, operator))

    def _name(self, kind: str, given: str | None) -> str:
        if given is not None:
            return given
        count = 1 + sum(kind_of(operator) == kind for operator in self.graph.operators)
        while f"{kind}{count}" in self.graph.by_name:
            count += 1
        return f"{kind}{count}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "graph":  # not there yet, while it is copied
            raise AttributeError(f"'Network' object has no attribute {name!r}")
        known = sorted({*(each for each in dir(type(self)) if not each.startswith("_")), "graph"})
        raise UnknownNameError(f"network {self.name!r} has no {name!r}{meant(name, known)}: it has {', '.join(known)}.")

    def __repr__(self) -> str:
        names = ", ".join(repr(output.name) for output in self.graph.outputs) or "no outputs"
        return f"<network {self.name!r}: {names}>"

    def __str__(self) -> str:
        from jettison.network.render import as_text

        return as_text(self.graph)


class Stream:
    """A stream of the network. Each method declares an operator that reads it and returns the stream after it."""

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self.name = name

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns here; None where only Spark can know them."""
        return self._network.graph.columns[self.name]

    def __getattr__(self, name: str) -> Any:
        """What Spark's DataFrames have under another name, or streams have not at all."""
        if name.startswith("_") or name == "name":  # not there yet, while it is copied
            raise AttributeError(f"'Stream' object has no attribute {name!r}")
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        hint = f" ({_IN_SPARK[name]})" if name in _IN_SPARK else meant(name, known)
        raise UnknownNameError(f"stream {self.name!r} has no {name!r}{hint}: it has {', '.join(known)}.")

    def __getitem__(self, name: object) -> Any:
        raise NetworkError(
            f"stream {self.name!r} has no columns to take out: name them in SQL, such as .where('fare > 0') or "
            f".select('fare')."
        )

    def __repr__(self) -> str:
        columns = "columns that only Spark knows" if self.columns is None else ", ".join(self.columns)
        return f"<stream {self.name!r} of network {self._network.name!r}: {columns}>"

    @checked_call("stream.where")
    def where(self, predicate: Expression, *, name: str | None = None) -> Stream:
        """Keep the rows for which `predicate` is true."""
        name = self._network._name("where", name)
        check_expression(f"where {name!r}", predicate)
        return self._network._add(Where(name, (self.name,), predicate))

    @checked_call("stream.select")
    def select(self, *expressions: Expression, name: str | None = None) -> Stream:
        """Compute exactly these columns."""
        name = self._network._name("select", name)
        for expression in expressions:
            check_expression(f"select {name!r}", expression)
        return self._network._add(Select(name, (self.name,), expressions))

    @checked_call("stream.with_columns")
    def with_columns(self, columns: Mapping[str, Expression], *, name: str | None = None) -> Stream:
        """Add or replace columns."""
        name = self._network._name("with_columns", name)
        given = mapping_of(f"with_columns {name!r}", "columns", columns, '{"total": "fare + tip"}')
        for expression in given.values():
            check_expression(f"with_columns {name!r}", expression)
        return self._network._add(WithColumns(name, (self.name,), tuple(given.items())))

    @checked_call("stream.union")
    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """Merge with streams that have the same columns."""
        name = self._network._name("union", name)
        for other in others:
            self._check_network("union", name, other)
        return self._network._add(Union(name, (self.name, *(other.name for other in others))))

    @checked_call("stream.join")
    def join(
        self,
        other: Any,
        on: str | Sequence[str],
        *,
        how: str = "inner",
        within: str | None = None,
        delay: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """Join with a table that does not stream (a DataFrame, or a name given at the start in `tables`), or a stream.

        Rows of two streams pair when `on` is equal and their event times are at most `within` apart. `delay` says
        how far behind the newest row a row may come and still find all of its partners (by default "0 seconds").
        """
        given, name = name, self._network._name("join", name)
        columns = names_of(f"join {name!r}", "on", on)
        if not isinstance(other, Stream | str) and not hasattr(other, "columns"):
            raise NetworkError(
                f"join {name!r}: {other!r} is nothing to join with: give a stream, a DataFrame, or the name of a table "
                f"that jt.start gets in `tables`."
            )
        if isinstance(other, str):
            check_text(f"join {name!r}", "the table's name", other, "'zones'")
        if isinstance(other, Stream):
            self._check_network("join", name, other)
            if within is None:
                raise NetworkError(f"join {name!r}: a join of two streams needs a band: within='1 minute'.")
            within_ms = duration_ms(within, f"join {name!r}: within")
            delay_ms = duration_ms("0 seconds" if delay is None else delay, f"join {name!r}: delay", zero=True)
            joined = StreamJoin(name, (self.name, other.name), columns, within_ms, how, delay_ms)
            return self._network._add_keeping(joined, given)
        if within is not None or delay is not None:
            raise NetworkError(f"join {name!r}: a static table has no event times: leave 'within' and 'delay' out.")
        return self._network._add(Join(name, (self.name,), other, columns, how))

    @checked_call("stream.window")
    def window(
        self, size: str, *, slide: str | None = None, by: str | Sequence[str] = (), delay: str | None = None
    ) -> Windowed:
        """Windows of event time: `size` long, one every `slide` (tumbling without it), of rows with equal `by`.

        `delay` says how far behind the newest row a row may come and still be counted (by default "0 seconds"). Event
        time is what the source declares, or the `window_start` of results: it goes with a row wherever that goes, also
        where its column is renamed, changed or left out.

        Windows may count rows instead: `window("100 rows", slide="10 rows", by="symbol")` is, per symbol, the last 100
        rows every 10 rows. Rows of a batch come behind those of earlier ones; inside it they are in order of event
        time, then of identity. Such windows need no event time and no delay.
        """
        return Windowed(self, size, slide, names_of(f"window of {self.name!r}", "by", by), delay)

    @checked_call("stream.apply")
    def apply(
        self, function: Callable[..., Any] | str, *, columns: str | Sequence[str] | None = None, name: str | None = None
    ) -> Stream:
        """Run a function from DataFrame to DataFrame on every batch.

        Rows on which it fails, up to 32 of a batch, are found by running it on halves of the rows, and are rejected.
        A function that fails on more ends the run (`jt.OperatorError`).
        """
        name = self._network._name("apply", name)
        declared = None if columns is None else names_of(f"apply {name!r}", "columns", columns)
        return self._network._add(Apply(name, (self.name,), function, declared))

    @checked_call("stream.map")
    def map(
        self,
        function: Callable[..., Any] | str,
        *,
        key: str | Sequence[str],
        schema: str,
        rows: bool = False,
        limit: str = "1 minute",
        name: str | None = None,
    ) -> Stream:
        """Add the columns of `schema`, computed of each row by a Python function that is timed by `key` (see `Map`)."""
        name = self._network._name("map", name)
        element = f"map {name!r}"
        check_text(element, "schema", schema, "'score double'")
        keys, most_ms = names_of(element, "key", key), duration_ms(limit, f"{element}: limit")
        return self._network._add(Map(name, (self.name,), function, keys, parse_schema(schema, element), rows, most_ms))

    @checked_call("stream.output")
    def output(self, name: str, *, qos: QoS | None = None, quality: bool = False) -> Ended:
        """End the stream here: results leave under this name, worth what `qos` says."""
        if qos is not None and not isinstance(qos, QoS):
            raise NetworkError(f"output {name!r}: qos is {qos!r}: give jt.QoS(...), such as jt.QoS(priority=5).")
        if not isinstance(quality, bool):
            raise NetworkError(f"output {name!r}: quality is {quality!r}: say True or False.")
        self._network._add(Output(name, (self.name,), qos or QoS(), quality))
        return Ended(name, self.name)

    def _check_network(self, kind: str, name: str, other: Stream) -> None:
        if not isinstance(other, Stream):
            raise NetworkError(f"{kind} {name!r}: {other!r} is no stream: give streams of this network one by one.")
        if other._network is not self._network:
            raise NetworkError(
                f"{kind} {name!r}: stream {other.name!r} belongs to another network ({other._network.name!r}): "
                f"declare it in this one ({self._network.name!r}) too."
            )


class Windowed:
    """Windows of a stream, before it is said what is computed of them.

    >>> net = Network("taxi")
    >>> trips = net.source("trips", "trip long, at timestamp, zone int, fare double", event_time="at", id=["trip"])
    >>> busy = trips.window("60 seconds", slide="5 seconds", by=["zone"]).agg(n="count(*)", fare="avg(fare)")
    >>> busy.columns
    ('zone', 'window_start', 'window_end', 'n', 'fare')
    >>> trips.window("60 seconds", slide="5 seconds", by="zone")
    <window of 'trips': 60 seconds every 5 seconds by zone; say what is computed: .agg(n='count(*)')>
    >>> trips.window("100 rows", by="zone").agg(fare="avg(fare)").columns
    ('zone', 'window_start', 'window_end', 'fare')
    """

    def __init__(self, stream: Stream, size: str, slide: str | None, by: tuple[str, ...], delay: str | None) -> None:
        self._stream = stream
        self._shape = (size, slide, by, delay)

    def __getattr__(self, name: str) -> Any:
        """What a stream has, windows have not before it is said what is computed of them."""
        if not name.startswith("_") and hasattr(Stream, name):
            raise NetworkError(
                f"window of {self._stream.name!r} has no {name!r}: say first what is computed of it, "
                f"such as .window(...).agg(n='count(*)').{name}(...)."
            )
        if name.startswith("_"):  # not there yet, while it is copied
            raise AttributeError(f"'Windowed' object has no attribute {name!r}")
        hint = " (say by= in window(...))" if name.lower() == "groupby" else meant(name, ["agg"])
        raise UnknownNameError(
            f"window of {self._stream.name!r} has no {name!r}{hint}: it has agg, such as .agg(n='count(*)')."
        )

    def __repr__(self) -> str:
        size, slide, by, delay = self._shape
        parts = (slide and f" every {slide}", by and f" by {', '.join(by)}", delay and f", delay {delay}")
        shape = f"{size}{''.join(part for part in parts if part)}"
        return f"<window of {self._stream.name!r}: {shape}; say what is computed: .agg(n='count(*)')>"

    @checked_call("window.agg")
    def agg(
        self, aggregates: Mapping[str, str | Own] | None = None, /, *, name: str | None = None, **named: str | Own
    ) -> Stream:
        """The results of windows: the `by` columns, `window_start`, `window_end`, then one column per aggregate.

        An aggregate is SQL, one call of a function: n="count(*)", or of your own: `jettison.aggregate(...)`,
        `jettison.whole_window(...)`. In a mapping it may also be called `name`. A result's event time is its
        `window_start`, so that results can be put into windows again.
        """
        network = self._stream._network
        given, name = name, network._name("aggregate", name)
        window = windows_of(f"aggregate {name!r}", *self._shape)
        example = '{"n": "count(*)"}'
        first = {} if aggregates is None else mapping_of(f"aggregate {name!r}", "aggregates", aggregates, example)
        calls = (*first.items(), *named.items())
        if isinstance(window, CountSpec):
            return network._add_keeping(CountAggregate(name, (self._stream.name,), window, calls), given)
        return network._add_keeping(Aggregate(name, (self._stream.name,), window, calls), given)
