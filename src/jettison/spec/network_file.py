"""Networks as YAML, both ways: `from_yaml` reads one and checks it, `to_yaml` writes one.

The file has the network (`network`, `sources`, `operators`, `outputs`) and, where it is to run by itself, a `run`
section (where data comes from and goes to) and a `profile` (what a calibration measured, for planning without Spark).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.network.columns.schema import as_ddl, parse_schema
from jettison.network.durations import duration_ms, duration_text
from jettison.network.graph import Graph
from jettison.network.import_paths import import_path
from jettison.network.kafka import Kafka
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
    Operator,
    Output,
    Select,
    Source,
    StreamJoin,
    Union,
    Where,
    WithColumns,
    from_kafka,
)
from jettison.network.qos import QoS
from jettison.network.value import Value
from jettison.network.windows.count_windows import CountSpec, rows_text, windows_of
from jettison.network.windows.time_windows import WindowSpec
from jettison.spec.faults import spec_faults, syntax_fault
from jettison.spec.user_aggregate_spec import CallSpec, call_dict, calls_of

_KINDS = ("where", "select", "with_columns", "union", "join", "join_stream", "window", "apply")


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: `on` is a word, not true, and a key that stands twice is a fault."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} stands twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return node


_Loader.yaml_implicit_resolvers = {
    char: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for char, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF"))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class KafkaSpec(_Strict):
    """A topic; see `jettison.network.kafka.Kafka`."""

    servers: str
    topic: str
    value: str = "json"
    columns: str | None = Field(default=None, alias="schema")
    key: str | None = None
    timestamp: str | None = None
    starting_offsets: str = "latest"
    fail_on_data_loss: bool = True
    options: dict[str, str | bool | int | float] = {}

    def kafka(self) -> Kafka:
        return Kafka(
            self.servers,
            self.topic,
            self.value,
            self.columns,
            self.key,
            self.timestamp,
            self.starting_offsets,
            self.fail_on_data_loss,
            {
                name: str(value).lower() if isinstance(value, bool) else str(value)
                for name, value in self.options.items()
            },
        )


class SourceSpec(_Strict):
    columns: str | None = Field(default=None, alias="schema")
    kafka: KafkaSpec | None = None
    event_time: str | None = None
    id: tuple[str, ...] = ()
    payload: str | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> SourceSpec:
        if (self.columns is None) == (self.kafka is None):
            raise ValueError("say either `schema`, or `kafka` with the schema inside it")
        return self

    def source(self, name: str) -> Source:
        if self.kafka is not None:
            return from_kafka(name, self.kafka.kafka(), self.event_time, self.id, self.payload)
        columns = parse_schema(self.columns or "", f"source {name!r}")
        return Source(name, columns, self.event_time, self.id, self.payload)


class WindowsSpec(_Strict):
    """Windows of event time, or of rows; see `jettison.network.windows.time_windows` and `count_windows`."""

    size: str
    slide: str | None = None
    by: tuple[str, ...] = ()
    delay: str | None = None


class OperatorSpec(_Strict):
    of: str | None = None
    where: str | None = None
    select: tuple[str, ...] | None = None
    with_columns: dict[str, str] | None = None
    union: tuple[str, ...] | None = None
    join: str | None = None
    on: tuple[str, ...] = ()
    how: str = "inner"
    join_stream: str | None = None
    within: str | None = None
    delay: str | None = None
    window: WindowsSpec | None = None
    agg: dict[str, CallSpec] | None = None
    apply: str | None = None
    columns: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> OperatorSpec:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"say exactly one of {', '.join(_KINDS)} (found: {', '.join(given) or 'none'})")
        if self.of is None and self.union is None:
            raise ValueError("say `of`: the source or operator that this one reads")
        if self.join_stream is not None and self.within is None:
            raise ValueError("a join of two streams needs a band: within: 1 minute")
        if self.join_stream is None and (self.within is not None or self.delay is not None):
            raise ValueError("`within` and `delay` go with `join_stream`: leave them out")
        if (self.window is None) != (self.agg is None):
            raise ValueError("`window` and `agg` go together: say both, such as agg: {n: count(*)}")
        return self


class ValueSpec(_Strict):
    """Which values of a column matter; see `jettison.network.value.Value`."""

    column: str
    intervals: tuple[tuple[float, ...], ...]
    chunk: float | None = None
    otherwise: float = 0.0
    histogram: tuple[tuple[float, float, float], ...] | None = None

    def value(self) -> Value:
        return Value(self.column, self.intervals, self.chunk, self.otherwise, self.histogram)


class QoSSpec(_Strict):
    loss: tuple[tuple[float, float], ...] = ((100.0, 1.0), (0.0, 0.0))
    priority: float = 1.0
    value: ValueSpec | None = None
    latency: tuple[tuple[float | str, float], ...] = ()
    stale: str | None = None
    gap: int | None = None
    on_loss: str = "subset"
    gaps: dict[str, dict[str | int, int]] | None = None
    min_accuracy: float = 0.0


class OutputSpec(_Strict):
    of: str
    qos: QoSSpec = QoSSpec()
    quality: bool = False


class ProfileSpec(_Strict):
    """What was measured, for planning without Spark."""

    fixed_ms: float = Field(default=0.0, ge=0)
    cost_us: dict[str, float] = {}
    selectivity: dict[str, float] = {}
    rows_per_s: dict[str, float] = {}
    read_us: dict[str, float] = {}
    drop_us: float = Field(default=0.0, ge=0)
    look_us: dict[str, float] = {}
    values: dict[str, tuple[tuple[float, float, float], ...]] = {}


class RunSpec(_Strict):
    """Where data comes from and goes to, and how fast."""

    trigger: str = "1 second"
    headroom: float = 0.9
    checkpoint: str | None = None
    shedder: str = "semantic"
    stale: str | None = None
    shedding: bool | Literal["dry-run"] = True
    catch_up: Literal["shed", "newest", "all"] = "shed"
    retention: str | int | None = "7 days"
    sources: dict[str, dict[str, Any]] = {}
    sinks: dict[str, dict[str, Any]] = {}
    tables: dict[str, dict[str, Any]] = {}
    dead_letters: dict[str, Any] | None = None
    on_shed: dict[str, dict[str, Any]] = {}


class Spec(_Strict):
    """A whole YAML file."""

    network: str
    sources: dict[str, SourceSpec]
    operators: dict[str, OperatorSpec] = {}
    outputs: dict[str, OutputSpec]
    profile: ProfileSpec | None = None
    run: RunSpec | None = None

    def graph(self) -> Graph:
        """The network that the file declares, checked."""
        operators: list[Operator] = [spec.source(name) for name, spec in self.sources.items()]
        operators += [_operator(name, spec) for name, spec in self.operators.items()]
        operators += [
            Output(name, (spec.of,), _qos(name, spec.qos), spec.quality) for name, spec in self.outputs.items()
        ]
        graph = Graph(self.network, tuple(operators))
        graph.check_complete()
        return graph


@checked_call("jt.from_yaml")
def from_yaml(text: str, origin: str = "the YAML") -> Spec:
    """Read a specification; `origin` is named in errors."""
    if not isinstance(text, str):
        raise NetworkError(f"{origin} is {text!r}: give the text of a specification; jt.read_spec(path) reads a file.")
    try:
        content = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise NetworkError(f"{origin} is not valid YAML: {syntax_fault(error)}.") from error
    except RecursionError as error:
        raise NetworkError(f"{origin} is nested too deeply to be read: a specification has five levels.") from error
    if not isinstance(content, dict):
        raise NetworkError(f"{origin} holds no mapping: begin with `network: name`.")
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        raise NetworkError(f"{origin}: {'; '.join(spec_faults(error, Spec))}.") from error
    except RecursionError as error:
        raise NetworkError(f"{origin} refers to itself: write out what the alias stands for.") from error


@checked_call("jt.read_spec")
def read_spec(path: str | Path) -> Spec:
    """Read a specification file."""
    if not isinstance(path, str | Path):
        raise NetworkError(f"{path!r} is no path: give that of a YAML specification.")
    file = Path(path)
    if not file.is_file():
        raise NetworkError(f"there is no file {str(path)!r}: give the path of a YAML specification.")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkError(f"{path} cannot be read: {error}. Give a YAML file in UTF-8.") from error
    return from_yaml(text, origin=str(path))


def to_dict(graph: Graph) -> dict[str, Any]:
    """A network as plain data; raises where a part cannot be written down (a Column, a lambda, a DataFrame)."""
    sources = {source.name: _source_dict(source) for source in graph.sources}
    operators = {
        operator.name: _operator_dict(operator)
        for operator in graph.operators
        if not isinstance(operator, Source | Output)
    }
    outputs = {output.name: _output_dict(output) for output in graph.outputs}
    parts = {"network": graph.name, "sources": sources, "operators": operators, "outputs": outputs}
    return {key: value for key, value in parts.items() if value != {}}


@checked_call("jt.to_yaml")
def to_yaml(graph: Graph) -> str:
    """A network as YAML that `from_yaml` reads back to an equal network."""
    graph = getattr(graph, "graph", graph)  # a Network is around one
    if not isinstance(graph, Graph):
        raise NetworkError(f"{graph!r} is no network: give a jt.Network.")
    return yaml.safe_dump(to_dict(graph), sort_keys=False, default_flow_style=None, width=110)


def _qos(output: str, spec: QoSSpec) -> QoS:
    try:
        value = None if spec.value is None else spec.value.value()
        windows = (spec.gap, spec.on_loss, spec.gaps)
        return QoS(spec.loss, spec.priority, value, spec.latency, spec.stale, *windows, spec.min_accuracy)
    except NetworkError as error:
        raise NetworkError(f"output {output!r}: {error}") from error


def _operator(name: str, spec: OperatorSpec) -> Operator:
    inputs = (spec.of,) if spec.of is not None else ()
    if spec.where is not None:
        return Where(name, inputs, spec.where)
    if spec.select is not None:
        return Select(name, inputs, spec.select)
    if spec.with_columns is not None:
        return WithColumns(name, inputs, tuple(spec.with_columns.items()))
    if spec.union is not None:
        return Union(name, (*inputs, *spec.union))
    if spec.join is not None:
        return Join(name, inputs, spec.join, spec.on, spec.how)
    if spec.join_stream is not None:
        within_ms = duration_ms(spec.within or "", f"join {name!r}: within")
        delay_ms = duration_ms(spec.delay or "0 seconds", f"join {name!r}: delay", zero=True)
        return StreamJoin(name, (*inputs, spec.join_stream), spec.on, within_ms, spec.how, delay_ms)
    if spec.window is not None and spec.agg is not None:
        given, element = spec.window, f"aggregate {name!r}"
        window = windows_of(element, given.size, given.slide, given.by, given.delay)
        calls = calls_of(element, spec.agg)
        if isinstance(window, CountSpec):
            return CountAggregate(name, inputs, window, calls)
        return Aggregate(name, inputs, window, calls)
    assert spec.apply is not None
    return Apply(name, inputs, spec.apply, spec.columns)


def _window_dict(window: WindowSpec | CountSpec) -> dict[str, Any]:
    if isinstance(window, CountSpec):
        slide = None if window.tumbling else rows_text(window.slide_rows)
        return {"size": rows_text(window.size_rows), "slide": slide, "by": list(window.by)}
    return {
        "size": duration_text(window.size_us / 1000),
        "slide": None if window.tumbling else duration_text(window.slide_us / 1000),
        "by": list(window.by),
        "delay": duration_text(window.delay_us / 1000) if window.delay_us else None,
    }


def _source_dict(source: Source) -> dict[str, Any]:
    beside = {"event_time": source.event_time, "id": list(source.id)}
    if source.kafka is not None:
        return _trim({"kafka": kafka_dict(source.kafka), **beside})
    return _trim({"schema": as_ddl(source.schema), **beside, "payload": source.payload})


def kafka_dict(topic: Kafka) -> dict[str, Any]:
    """A topic as plain data, without what is as it would be anyway."""
    usual = {each.name: each.default for each in fields(Kafka)}
    given = {each.name: getattr(topic, each.name) for each in fields(Kafka)}
    given["options"] = dict(topic.options) or None
    return _trim({name: value for name, value in given.items() if value != usual[name]})


def _operator_dict(operator: Operator) -> dict[str, Any]:
    element = f"operator {operator.name!r}"
    if isinstance(operator, Where):
        return {"where": _sql(element, operator.predicate), "of": operator.inputs[0]}
    if isinstance(operator, Select):
        return {"select": [_sql(element, item) for item in operator.expressions], "of": operator.inputs[0]}
    if isinstance(operator, WithColumns):
        columns = {name: _sql(element, expression) for name, expression in operator.columns}
        return {"with_columns": columns, "of": operator.inputs[0]}
    if isinstance(operator, Union):
        return {"union": list(operator.inputs)}
    if isinstance(operator, Join):
        if not isinstance(operator.table, str):
            raise NetworkError(f"{element} joins a DataFrame: give it a name, and the DataFrame in `tables`.")
        join = {"join": operator.table, "on": list(operator.on), "how": operator.how, "of": operator.inputs[0]}
        return join if operator.how != "inner" else {key: value for key, value in join.items() if key != "how"}
    if isinstance(operator, StreamJoin):
        left, right = operator.inputs
        band = {"within": duration_text(operator.within_ms)}
        if operator.delay_ms:
            band["delay"] = duration_text(operator.delay_ms)
        return {"of": left, "join_stream": right, "on": list(operator.on), **band}
    if isinstance(operator, Aggregate | CountAggregate):
        shape = _trim(_window_dict(operator.window))
        calls = {column: call_dict(f"{element}: {column!r}", call) for column, call in operator.aggregates}
        return {"window": shape, "agg": calls, "of": operator.inputs[0]}
    assert isinstance(operator, Apply)
    columns_given = None if operator.columns is None else list(operator.columns)
    return _trim({"apply": import_path(element, operator.function), "of": operator.inputs[0], "columns": columns_given})


def _output_dict(output: Output) -> dict[str, Any]:
    qos: dict[str, Any] = {"loss": [list(point) for point in output.qos.loss]}
    if output.qos.value is not None:
        qos = {"value": _value_dict(output.qos.value)}
    if output.qos.priority != 1.0:
        qos["priority"] = output.qos.priority
    if output.qos.latency:
        qos["latency"] = [list(point) for point in output.qos.latency]
    if output.qos.stale is not None:
        qos["stale"] = output.qos.stale
    if output.qos.gap is not None:
        qos["gap"] = output.qos.gap
    if output.qos.on_loss != "subset":
        qos["on_loss"] = output.qos.on_loss
    if output.qos.gaps is not None:
        qos["gaps"] = {column: dict(gaps) for column, gaps in output.qos.gaps.items()}
    if output.qos.min_accuracy > 0:
        qos["min_accuracy"] = output.qos.min_accuracy
    return _trim({"of": output.inputs[0], "qos": qos, "quality": output.quality or None})


def _value_dict(value: Value) -> dict[str, Any]:
    intervals = [list(row[:3] if row[2] == row[3] else row) for row in value.intervals]
    histogram = None if value.histogram is None else [list(row) for row in value.histogram]
    return _trim(
        {
            "column": value.column,
            "intervals": intervals,
            "chunk": value.chunk,
            "otherwise": value.otherwise or None,
            "histogram": histogram,
        }
    )


def _trim(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value is not None and value != []}


def _sql(element: str, expression: Any) -> str:
    if not isinstance(expression, str):
        raise NetworkError(f"{element} holds a Column, which cannot be written down: give it as a SQL string.")
    return expression
