"""Networks as YAML that `from_yaml` reads back to equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import yaml

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.network.columns.schema import as_ddl
from jettison.network.durations import duration_text
from jettison.network.graph import Graph
from jettison.network.import_paths import import_path
from jettison.network.kafka import Kafka
from jettison.network.names import declared_name
from jettison.network.nodes.placement import Node
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
)
from jettison.network.value import Value
from jettison.network.windows.count_windows import CountSpec, rows_text
from jettison.network.windows.time_windows import WindowSpec
from jettison.spec.user_aggregate_spec import call_dict


def to_dict(graph: Graph) -> dict[str, Any]:
    """A network as plain data; raises where a part cannot be written down (a Column, a lambda, a DataFrame)."""
    sources = {source.name: _source_dict(source) for source in graph.sources}
    operators = {
        declared_name(operator.name): _operator_dict(operator)
        for operator in graph.operators
        if not isinstance(operator, Source | Output)
    }
    outputs = {output.name: _output_dict(output) for output in graph.outputs}
    nodes = {} if graph.placement is None else {each.name: _node_dict(each) for each in graph.placement.nodes}
    parts = {"network": graph.name, "sources": sources, "operators": operators, "outputs": outputs, "nodes": nodes}
    return {key: value for key, value in parts.items() if value != {}}


@checked_call("jt.to_yaml")
def to_yaml(graph: Graph) -> str:
    """A network as YAML that `from_yaml` reads back to an equal network."""
    graph = getattr(graph, "graph", graph)  # a Network is around one
    if not isinstance(graph, Graph):
        raise NetworkError(f"{graph!r} is no network: give a jt.Network.")
    return yaml.safe_dump(to_dict(graph), sort_keys=False, default_flow_style=None, width=110)


def _node_dict(node: Node) -> dict[str, Any]:
    names = list(dict.fromkeys(map(declared_name, node.operators)))
    return {"operators": names, "capacity": node.capacity}


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
        return {"where": _sql(element, operator.predicate), "of": _input(operator)}
    if isinstance(operator, Select):
        return {"select": [_sql(element, item) for item in operator.expressions], "of": _input(operator)}
    if isinstance(operator, WithColumns):
        columns = {name: _sql(element, expression) for name, expression in operator.columns}
        return {"with_columns": columns, "of": _input(operator)}
    if isinstance(operator, Union):
        return {"union": [declared_name(name) for name in operator.inputs]}
    if isinstance(operator, Join):
        if not isinstance(operator.table, str):
            raise NetworkError(f"{element} joins a DataFrame: give it a name, and the DataFrame in `tables`.")
        join = {"join": operator.table, "on": list(operator.on), "how": operator.how, "of": _input(operator)}
        return join if operator.how != "inner" else {key: value for key, value in join.items() if key != "how"}
    if isinstance(operator, StreamJoin):
        left, right = map(declared_name, operator.inputs)
        band = {"within": duration_text(operator.within_ms)}
        if operator.delay_ms:
            band["delay"] = duration_text(operator.delay_ms)
        return {"of": left, "join_stream": right, "on": list(operator.on), **band}
    if isinstance(operator, Aggregate | CountAggregate):
        shape = _trim(_window_dict(operator.window))
        calls = {column: call_dict(f"{element}: {column!r}", call) for column, call in operator.aggregates}
        return {"window": shape, "agg": calls, "of": _input(operator)}
    if isinstance(operator, Map):
        function = import_path(element, operator.function)
        given = {"map": function, "of": _input(operator), "key": list(operator.key), "schema": as_ddl(operator.schema)}
        limit = {} if operator.limit_ms == 60_000.0 else {"limit": duration_text(operator.limit_ms)}
        return given | ({"rows": True} if operator.rows else {}) | limit
    assert isinstance(operator, Apply)
    columns_given = None if operator.columns is None else list(operator.columns)
    return _trim({"apply": import_path(element, operator.function), "of": _input(operator), "columns": columns_given})


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
    if output.qos.latency_goal is not None:
        qos["latency_goal"] = output.qos.latency_goal
    return _trim({"of": _input(output), "qos": qos, "quality": output.quality or None})


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


def _input(operator: Operator) -> str:
    return declared_name(operator.inputs[0])


def _trim(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value is not None and value != []}


def _sql(element: str, expression: Any) -> str:
    if not isinstance(expression, str):
        raise NetworkError(f"{element} holds a Column, which cannot be written down: give it as a SQL string.")
    return expression
