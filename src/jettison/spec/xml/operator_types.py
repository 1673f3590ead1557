"""The types of operators that a query file may name, and the parameters of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.spec.models import ProfileSpec
from jettison.spec.run_options import RunSpec

INPUT, OUTPUT, WINDOW, JOIN, UNION = "Input", "Output", "Window", "Join", "Union"


@dataclass(frozen=True)
class OperatorType:
    """What an operator of a type may say: parameters that it must have, and others."""

    needed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        return (*self.needed, *self.others)


FUNCTIONS: Mapping[str, str] = {"Average": "avg", "Sum": "sum", "Count": "count", "Max": "max", "Min": "min"}
"""Aggregates: the type, and the function in SQL."""

_STORED = ("format", "path", "options")

TYPES: Mapping[str, OperatorType] = {
    INPUT: OperatorType((), ("tuple", "event_time", "id", "payload", "kafka", "generator", *_STORED, "schema")),
    OUTPUT: OperatorType(
        (), ("tuple", "qos", "quality", "parquet", "on_other_run", "console", "memory", "kafka", "format", "options")
    ),
    "Filter": OperatorType(("where",), ("tuple",)),
    "Project": OperatorType(("select",), ("tuple",)),
    UNION: OperatorType((), ("inputs", "tuple")),
    JOIN: OperatorType(("on",), ("within", "delay", "table", "how", "inputs", "tuple")),
    WINDOW: OperatorType(("size",), ("slide", "delay", "tuple")),
    **{name: OperatorType(("field",), ("groupby", "as", "tuple")) for name in FUNCTIONS if name != "Count"},
    "Count": OperatorType((), ("field", "groupby", "as", "tuple")),
}
"""By name, as listing 4.2 writes them; case is ignored when a file is read."""

SOURCE_PLACE = ("generator", *_STORED, "schema")
"""Parameters of an input that say where its rows come from: what a YAML file has in `run.sources`."""
SINK_PLACE = ("parquet", "on_other_run", "console", "memory", "kafka", "format", "options")
"""Parameters of an output that say where its rows go: what a YAML file has in `run.sinks`."""

IN_YAML = frozenset({"kafka", "generator", "options", "qos", "quality", "console", "memory"})
"""Parameters whose values are more than a word, written as in YAML: {preset: taxi, seed: 7}."""

RUN = tuple(name for name in RunSpec.model_fields if name not in ("sources", "sinks"))
"""Parameters of <run>: what a YAML file has there. Sources and sinks are said by inputs and outputs."""
PROFILE = tuple(ProfileSpec.model_fields)
"""Parameters of <profile>."""

FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "xml", "avro"})
"""Formats that are read with the input's tuple as their schema."""
