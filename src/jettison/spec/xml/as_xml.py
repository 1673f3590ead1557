"""Networks as DISSP's query files, which `from_xml` reads back to equal ones.

XML has fewer words than YAML: an operator that it has none for is refused by name, with what to write in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.network.columns.schema import as_ddl, parse_schema
from jettison.network.columns.words import an
from jettison.network.graph import Graph
from jettison.network.qos import QoS
from jettison.network.windows.aggregates import parse_call
from jettison.spec.as_yaml import to_dict
from jettison.spec.network_file import Spec
from jettison.spec.whole_file import file_content
from jettison.spec.xml.operator_types import FILE_FORMATS, FUNCTIONS, IN_YAML, INPUT, JOIN, OUTPUT, TYPES, UNION, WINDOW
from jettison.spec.xml.parameters import in_yaml, name_in_sql, split_sql

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COLUMN = re.compile(r"\w+|`(?:[^`]|``)+`")
_TYPE_OF = {function: name for name, function in FUNCTIONS.items()}
_REMEDIES = {
    "with_columns": "write it as a select with all columns, such as select: ['*', fare * 2 AS twice]",
    "apply": "compute it in SQL (where, select), or stay with YAML",
    "map": "compute it in SQL (where, select), or stay with YAML",
}
_SECTIONS = ("network", "sources", "operators", "outputs", "profile", "run")
_OF_SOURCES = ("schema", "kafka", "event_time", "id", "payload")
_OF_OPERATORS = (
    "of",
    "where",
    "select",
    "union",
    "join",
    "join_stream",
    "on",
    "how",
    "within",
    "delay",
    "window",
    "agg",
)
_OF_OUTPUTS = ("of", "qos", "quality")
_USUAL_QOS = {"loss": [list(point) for point in QoS().loss]}


@checked_call("jt.to_xml")
def to_xml(network: Graph | Spec) -> str:
    """A network, or a whole specification with its run and profile, as one of DISSP's query files.

    Raises a NetworkError for what such a file has no words for (`with_columns`, `map`, `apply`, several aggregates in
    one operator, nodes).
    """
    given = getattr(network, "graph", network) if not isinstance(network, Spec) else network  # a Network is around one
    if not isinstance(given, Graph | Spec):
        raise NetworkError(f"{network!r} is no network: give a jt.Network, or what jt.read_spec gives.")
    return _Writer(file_content(given) if isinstance(given, Spec) else to_dict(given)).text()


class _Writer:
    """One content as XML: what each operator says, by name, in the order of the file."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._run: dict[str, Any] = dict(content.get("run", {}))
        self._operators: dict[str, tuple[str, dict[str, Any]]] = {}
        self._reads: dict[str, list[str]] = {}

    def text(self) -> str:
        content = self._content
        if "nodes" in content:
            raise NetworkError(
                "`nodes` cannot be written as XML: a query file is for one node. Remove them, or stay with YAML."
            )
        _check_words("the network", content, _SECTIONS)
        for name, operator in content.get("operators", {}).items():
            if name in content["outputs"]:
                raise NetworkError(
                    f"output {name!r} has the name of an operator, which XML cannot tell apart: rename it."
                )
            self._add_operator(name, operator)
        sources, sinks = self._run.pop("sources", {}), self._run.pop("sinks", {})
        schemas, inputs = self._inputs(sources)
        for name, output in content["outputs"].items():
            _check_words(f"output {name!r}", output, _OF_OUTPUTS)
            qos = output.get("qos", _USUAL_QOS)
            given = {"qos": None if qos == _USUAL_QOS else qos, "quality": output.get("quality")}
            self._operators[name] = (OUTPUT, {**_said(given), **sinks.get(name, {})})
            self._reads[name] = [output["of"]]
        self._operators = {**inputs, **self._operators}
        lines = [f"<query name={_attribute('the network', content['network'])}>", *schemas]
        for name in self._operators:
            lines += ["", *self._operator_lines(name)]
        for tag, section in (("run", self._run), ("profile", content.get("profile", {}))):
            if section:
                values = (_parameter(f"<{tag}>", name, in_yaml(value)) for name, value in section.items())
                lines += ["", f"  <{tag}>", *values, f"  </{tag}>"]
        return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *lines, "</query>", ""])

    # --- inputs -------------------------------------------------------------------------------------------------------

    def _inputs(self, places: Mapping[str, Any]) -> tuple[list[str], dict[str, tuple[str, dict[str, Any]]]]:
        schemas: list[str] = []
        inputs: dict[str, tuple[str, dict[str, Any]]] = {}
        for name, source in self._content["sources"].items():
            _check_words(f"source {name!r}", source, _OF_SOURCES)
            given = {key: source.get(key) for key in ("event_time", "payload", "kafka")}
            columns = ", ".join(map(name_in_sql, source.get("id", ()))) or None
            place = dict(places.get(name, {}))
            if "schema" in source:
                schemas += _schema_lines(name, source["schema"])
                usual = place.get("format") in FILE_FORMATS and source.get("payload") is None
                if usual and place.get("schema") == as_ddl(parse_schema(source["schema"], f"source {name!r}")):
                    del place["schema"]
            tuple_name = {"tuple": name if "schema" in source else None}
            inputs[name] = (INPUT, {**_said({**tuple_name, **given, "id": columns}), **place})
        return schemas, inputs

    # --- operators ----------------------------------------------------------------------------------------------------

    def _add_operator(self, name: str, operator: Mapping[str, Any]) -> None:
        for kind, remedy in _REMEDIES.items():
            if kind in operator:
                raise NetworkError(f"operator {name!r} ({kind}) cannot be written as XML: {remedy}.")
        _check_words(f"operator {name!r}", operator, _OF_OPERATORS)
        if "window" in operator:
            self._add_aggregate(name, operator)
            return
        tails = [operator[key] for key in ("of", "join_stream") if key in operator] + operator.get("union", [])
        self._reads[name] = tails
        if "where" in operator:
            self._operators[name] = ("Filter", {"where": operator["where"]})
        elif "select" in operator:
            self._operators[name] = ("Project", {"select": _listed(f"operator {name!r}", operator["select"])})
        elif "union" in operator:
            self._operators[name] = (UNION, {})
        else:
            given = {key: operator.get(key) for key in ("within", "delay", "how")}
            on = ", ".join(map(name_in_sql, operator["on"]))
            self._operators[name] = (JOIN, _said({"table": operator.get("join"), "on": on, **given}))

    def _add_aggregate(self, name: str, operator: Mapping[str, Any]) -> None:
        """A window and what is computed of it: two operators of a query."""
        calls = operator["agg"]
        if len(calls) != 1:
            raise NetworkError(
                f"operator {name!r} computes {len(calls)} values ({', '.join(calls)}), and in XML an operator computes "
                f"one: write an operator for each."
            )
        ((column, call),) = calls.items()
        kind, field = _function(f"operator {name!r}", call)
        taken = {*self._content["sources"], *self._content["outputs"], *self._content["operators"], *self._operators}
        window = f"{name}-window"
        while window in taken:
            window += "-"
        shape = dict(operator["window"])
        by = ", ".join(map(name_in_sql, shape.pop("by", ()))) or None
        plain = kind.lower() if field is None else field
        self._operators[window] = (WINDOW, shape)
        column = None if column == plain else column
        given = {"field": None if field is None else name_in_sql(field), "groupby": by, "as": column}
        self._operators[name] = (kind, _said(given))
        self._reads[window], self._reads[name] = [operator["of"]], [window]

    def _operator_lines(self, name: str) -> list[str]:
        kind, given = self._operators[name]
        owner = f"operator {name!r}"
        order = [each for each in self._operators if each in self._reads.get(name, ())]
        if kind in (UNION, JOIN) and order != self._reads[name]:
            given = {**given, "inputs": ", ".join(self._reads[name])}
        inside = [f"    <next name={_attribute(owner, head)}/>" for head, tails in self._reads.items() if name in tails]
        for key, value in given.items():
            if key not in TYPES[kind].known:
                known = ", ".join(TYPES[kind].known)
                raise NetworkError(f"{owner}: {key!r} cannot be written as XML: {an(kind)} has {known}.")
            inside.append(_parameter(owner, key, in_yaml(value) if key in IN_YAML else str(value)))
        start = f"  <operator name={_attribute(owner, name)} type={_attribute(owner, kind)}"
        return [f"{start}>", *inside, "  </operator>"] if inside else [f"{start}/>"]


def _check_words(owner: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise for a key that a query file has no word for, so that nothing is left out in silence."""
    for key in given:
        if key not in known:
            raise NetworkError(f"{owner}: `{key}` cannot be written as XML: remove it, or stay with YAML.")


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that have a value."""
    return {name: value for name, value in given.items() if value is not None}


def _schema_lines(name: str, ddl: str) -> list[str]:
    owner = f"source {name!r}"
    fields = (
        f"    <field type={_attribute(owner, kind)} name={_attribute(owner, column)}/>"
        for column, kind in parse_schema(ddl, owner)
    )
    return ["", f"  <schema name={_attribute(owner, name)}>", *fields, "  </schema>"]


def _function(owner: str, call: Any) -> tuple[str, str | None]:
    """The type of an aggregate, and its column; None for all rows."""
    remedy = f"there are {', '.join(FUNCTIONS)} of one column: compute it by a select before, or stay with YAML"
    if not isinstance(call, str):
        raise NetworkError(f"{owner} has a function of its own, which XML has no word for: {remedy}.")
    parsed = parse_call(owner, call)
    function = "avg" if parsed.function == "mean" else parsed.function
    column = parsed.arguments[0]
    whole = function == "count" and column in ("*", "1")
    if function not in _TYPE_OF or parsed.distinct or len(parsed.arguments) != 1:
        raise NetworkError(f"{owner} computes {call!r}, which XML has no word for: {remedy}.")
    if not whole and not _COLUMN.fullmatch(column):
        raise NetworkError(
            f"{owner} computes {call!r}, and {column!r} is no column, which XML has no word for: {remedy}."
        )
    name = column[1:-1].replace("``", "`") if column.startswith("`") else column
    return _TYPE_OF[function], None if whole else name


def _listed(owner: str, parts: list[str]) -> str:
    """SQL in a list with commas, if it can be split again."""
    text = ", ".join(parts)
    if split_sql(text) != [part.strip() for part in parts] or not all(part.strip() for part in parts):
        raise NetworkError(f"{owner}: {text!r} cannot be split at its commas again: close its brackets and quotes.")
    return text


def _parameter(owner: str, name: str, value: str) -> str:
    what = f"{owner}: {name}"
    return f"    <parameter name={_attribute(what, name)} value={_attribute(what, value)}/>"


def _attribute(owner: str, value: str) -> str:
    """A text as an attribute, in quotes."""
    found = _NOT_XML.search(value)
    if found is not None:
        raise NetworkError(f"{owner} has the character {found[0]!r}, which XML cannot have: remove it.")
    if not value.strip():
        raise NetworkError(f"{owner} is empty, which XML cannot have: give a name or a value.")
    return quoteattr(value)
