"""Networks in YAML files: `from_yaml` and `read_spec` read one and check it. DISSP's files: `jettison.spec.xml`.

The file has the network (`network`, `sources`, `operators`, `outputs`, and `nodes` where several run it). Where it is
to run by itself it has a `run` section (where data comes from and goes to) and a `profile` (what a calibration
measured, for planning without Spark).
`jettison.spec.as_yaml` writes one.
"""

from __future__ import annotations

import re
from os.path import exists, isdir, isfile
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.network.columns.schema import parse_schema
from jettison.network.durations import duration_ms
from jettison.network.graph import Graph
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
    StreamJoin,
    Union,
    Where,
    WithColumns,
)
from jettison.network.qos import QoS
from jettison.network.windows.count_windows import CountSpec, windows_of
from jettison.spec.faults import spec_faults, syntax_fault
from jettison.spec.models import NodeSpec, OperatorSpec, OutputSpec, ProfileSpec, QoSSpec, SourceSpec, Strict
from jettison.spec.run_options import RunSpec
from jettison.spec.user_aggregate_spec import calls_of


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


class Spec(Strict):
    """A whole YAML file."""

    network: str
    sources: dict[str, SourceSpec]
    operators: dict[str, OperatorSpec] = Field(default_factory=dict)
    outputs: dict[str, OutputSpec]
    nodes: dict[str, NodeSpec] | None = None
    profile: ProfileSpec | None = None
    run: RunSpec | None = None

    def graph(self) -> Graph:
        """The network that the file declares, checked."""
        operators: list[Operator] = [spec.source(name) for name, spec in self.sources.items()]
        operators += [_operator(name, spec) for name, spec in self.operators.items()]
        operators += [
            Output(name, (spec.of,), _qos(name, spec.qos), spec.quality) for name, spec in self.outputs.items()
        ]
        placement = None
        if "nodes" in self.model_fields_set:  # a section without content names no node, and is refused
            nodes = (Node(name, spec.operators, spec.capacity) for name, spec in (self.nodes or {}).items())
            placement = Placement(tuple(nodes))
        graph = Graph(self.network, tuple(operators), placement=placement)
        graph.check_complete()
        return graph


@checked_call("jt.from_yaml")
def from_yaml(text: str, origin: str = "the YAML") -> Spec:
    """Read a specification; `origin` is named in errors."""
    if not isinstance(text, str):
        raise NetworkError(f"{origin} is {text!r}: give the text of a specification; jt.read_spec(path) reads a file.")
    try:
        content = load_yaml(text)
    except yaml.YAMLError as error:
        raise NetworkError(f"{origin} is not valid YAML: {syntax_fault(error)}.") from error
    except RecursionError as error:
        raise NetworkError(f"{origin} is nested too deeply to be read: a specification has five levels.") from error
    if not isinstance(content, dict):
        remedy = " jt.read_spec(path) reads a file." if isinstance(content, str) and "\n" not in text.strip() else ""
        raise NetworkError(f"{origin} holds no mapping: begin with `network: name`.{remedy}")
    return checked_spec(content, origin)


def load_yaml(text: str) -> Any:
    """YAML as people mean it; raises what its reader raises.

    >>> load_yaml("{on: [zone], keep: no}")
    {'on': ['zone'], 'keep': 'no'}
    """
    return yaml.load(text, Loader=_Loader)


def checked_spec(content: dict[str, Any], origin: str) -> Spec:
    """Plain content as a specification, every key and shape checked."""
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        raise NetworkError(f"{origin}: {'; '.join(spec_faults(error, Spec))}.") from error
    except RecursionError as error:
        raise NetworkError(f"{origin} refers to itself: write out what the alias stands for.") from error


@checked_call("jt.read_spec")
def read_spec(path: str | Path) -> Spec:
    """Read a specification file: YAML, one of DISSP's query files (.xml), or a folder of those."""
    from jettison.spec.xml.reader import is_query_folder, read_queries  # they make a Spec

    if not isinstance(path, str | Path):
        raise NetworkError(f"{path!r} is no path: give that of a specification, YAML or XML.")
    file = Path(path)
    is_folder = is_query_folder(file)
    if exists(file) and not isfile(file) and not isdir(file):
        raise NetworkError(f"{str(path)!r} is no regular file: give the path of a file, no pipe or device.")
    if not isfile(file) and not is_folder:
        raise NetworkError(
            f"there is no file {str(path)!r}: give the path of a specification in YAML or XML, or of a folder that has "
            f"only query files (.xml)."
        )
    if is_folder or file.suffix.lower() == ".xml":
        return read_queries(file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkError(f"{path} cannot be read: {error}. Give a YAML file in UTF-8.") from error
    return from_yaml(text, origin=str(path))


def _qos(output: str, spec: QoSSpec) -> QoS:
    try:
        value = None if spec.value is None else spec.value.value()
        windows = (spec.gap, spec.on_loss, spec.gaps)
        return QoS(
            spec.loss, spec.priority, value, spec.latency, spec.stale, *windows, spec.min_accuracy, spec.latency_goal
        )
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
    if spec.map is not None:
        limit_ms = 60_000.0 if spec.limit is None else duration_ms(spec.limit, f"map {name!r}: limit")
        added = parse_schema(spec.adds or "", f"map {name!r}")
        return Map(name, inputs, spec.map, spec.key, added, spec.rows, limit_ms)
    assert spec.apply is not None
    return Apply(name, inputs, spec.apply, spec.columns)
