"""The `run` section read and checked, without Spark: where rows come from, where results go, where tables are.

    sources:  trips: {generator: {preset: taxi, rate: {kind: constant, rows_per_s: 1000}}}
              rides: {format: delta, path: rides}
    sinks:    fares: {parquet: out/fares}  |  {parquet: out/fares, on_other_run: replace}
              fares: {console: 5}  |  {memory: 1000}  |  {format: noop}
              fares: {kafka: {servers: "localhost:9092", topic: fares}}
    dead_letters: {parquet: out/bad}      |  {kafka: ...}
    on_shed:  trips: {kafka: ...}          |  {parquet: out/shed}
    tables:  zones: {format: csv, path: zones.csv, options: {header: true}}

Its options are in `run_options`. A source that is declared with a Kafka topic needs no place here. Every error names
the place in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jettison.errors import JettisonError, StartError
from jettison.network.columns.words import an, meant
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka
from jettison.network.operators import Join
from jettison.options.checkpoint import Checkpoint
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.options.trigger import Trigger
from jettison.spec.faults import spec_faults
from jettison.spec.models import KafkaSpec
from jettison.spec.network_file import Spec
from jettison.spec.profile_section import read_profile
from jettison.spec.run_options import RunSpec
from jettison.synthetic.fields import TAXI, TAXI_PAYLOAD, fields_from_dict
from jettison.synthetic.fields import Field as GeneratedField
from jettison.synthetic.presets import ENEMY_UNITS, FRIENDLY_UNITS
from jettison.synthetic.rates import Rate, rate_from_dict

PRESETS: Mapping[str, Mapping[str, GeneratedField]] = {
    "taxi": TAXI,
    "taxi_payload": TAXI_PAYLOAD,
    "friendly_units": FRIENDLY_UNITS,
    "enemy_units": ENEMY_UNITS,
}
"""Generated rows by name."""

_OTHER_RUN = "on_other_run"
"""A parquet sink's word for what becomes of rows that another run has written there."""

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Generated:
    """A source of generated rows: what `jettison.spark.read.generator.generate` takes."""

    fields: Mapping[str, GeneratedField]
    rate: Rate | None = None
    seed: int = 0
    rows_per_batch: int | None = None
    limit_rows: int | None = None


@dataclass(frozen=True)
class Stored:
    """What Spark reads or writes with one of its formats."""

    format: str
    options: Mapping[str, str]
    schema: str | None = None


@dataclass(frozen=True)
class OwnSink:
    """A sink of ours: parquet (a path), console (how many rows to show) or memory (how many to keep)."""

    kind: Literal["parquet", "console", "memory"]
    setting: str | int | None
    on_other_run: str = "refuse"


Target = OwnSink | Stored | Kafka
"""Where rows go."""


@dataclass(frozen=True)
class Places:
    """A whole `run` section."""

    sources: Mapping[str, Generated | Stored]
    sinks: Mapping[str, Target]
    tables: Mapping[str, Stored]
    dead_letters: Target | None
    on_shed: Mapping[str, Target]
    trigger: str
    checkpoint: Checkpoint
    shedding: Shedding
    costs: Costs

    @property
    def use_kafka(self) -> bool:
        """Whether rows go to Kafka."""
        return any(
            isinstance(each, Kafka) for each in (*self.sinks.values(), self.dead_letters, *self.on_shed.values())
        )


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class _GeneratorSpec(_Strict):
    preset: str | None = None
    fields_: dict[str, Any] | None = Field(default=None, alias="fields")
    rate: dict[str, Any] | None = None
    seed: int = 0
    rows_per_batch: int | None = Field(default=None, ge=1)
    limit_rows: int | None = Field(default=None, ge=0)


class _StoredSpec(_Strict):
    format: str = Field(min_length=1)
    path: str | None = None
    options: dict[str, str | bool | int | float] = {}
    ddl: str | None = Field(default=None, alias="schema")


class _SinkSpec(_Strict):
    format: str = Field(min_length=1)
    options: dict[str, str | bool | int | float] = {}


def read_places(spec: Spec, graph: Graph) -> Places:
    """The `run` section of a file, every name and shape checked; raises StartError."""
    run = spec.run
    if run is None:
        raise StartError(
            f"network {graph.name!r} has no `run` section: add run.sources (where rows come from) and run.sinks "
            f"(where results go)."
        )
    _at("run.trigger", lambda: Trigger.of(run.trigger))
    profile = None if spec.profile is None else read_profile("the file", graph, spec.profile)
    return Places(
        {name: _source(f"run.sources.{name}", data) for name, data in _sources(run, graph).items()},
        {name: _sink(f"run.sinks.{name}", data) for name, data in _sinks(run, graph).items()},
        {name: _stored(f"run.tables.{name}", _StoredSpec, data) for name, data in _tables(run, graph).items()},
        None if run.dead_letters is None else _sink("run.dead_letters", run.dead_letters),
        {name: _sink(f"run.on_shed.{name}", data) for name, data in run.on_shed.items()},
        run.trigger,
        run.checkpoint.options(),
        run.shedding.options(),
        run.costs.options(profile),
    )


def _sources(run: RunSpec, graph: Graph) -> dict[str, dict[str, Any]]:
    for source in graph.sources:
        if source.kafka is not None and source.name in run.sources:
            raise StartError(f"run.sources.{source.name}: the source is read from Kafka, as declared: remove this.")
    names = [source.name for source in graph.sources if source.kafka is None]
    hint = "{generator: {preset: taxi}} or {format: parquet, path: ...}"
    return _matched("run.sources", "source", names, run.sources, hint)


def _sinks(run: RunSpec, graph: Graph) -> dict[str, dict[str, Any]]:
    names = [output.name for output in graph.outputs]
    return _matched("run.sinks", "output", names, run.sinks, "{parquet: out/name} or {console: 5}")


def _tables(run: RunSpec, graph: Graph) -> dict[str, dict[str, Any]]:
    joins = [operator for operator in graph.operators if isinstance(operator, Join)]
    names = list(dict.fromkeys(join.table for join in joins if isinstance(join.table, str)))
    return _matched("run.tables", "table that a join names", names, run.tables, "{format: parquet, path: ...}")


def _matched(place: str, what: str, names: list[str], given: dict[str, dict[str, Any]], hint: str) -> dict[str, Any]:
    """What is given, in the order of `names`: each once, and no other."""
    for name in given:
        if name not in names:
            known = ", ".join(names) or "none"
            raise StartError(
                f"{place}.{name}: {name!r} is no {what} of the network{meant(name, names)}; there are: {known}."
            )
    for name in names:
        if name not in given:
            raise StartError(f"{place} lacks {name!r}: add `{name}: {hint}`.")
    return {name: given[name] for name in names}


def _source(place: str, data: Mapping[str, Any]) -> Generated | Stored:
    if "generator" in data and "format" in data:
        raise StartError(f"{place} says both generator and format: keep one of them.")
    if "generator" not in data:
        return _stored(place, _StoredSpec, data, "say `generator: {...}` or `format: name`")
    others = [key for key in data if key != "generator"]
    if others:
        raise StartError(f"{place}.{others[0]} stands beside generator: move it into generator or remove it.")
    return _generated(f"{place}.generator", data["generator"])


def _generated(place: str, data: Any) -> Generated:
    if isinstance(data, Mapping) and isinstance(data.get("fields"), str):
        raise StartError(f"{place}.fields is {data['fields']!r}: write `preset: {data['fields']}`, or declare fields.")
    spec = _validated(place, _GeneratorSpec, data)
    profile = spec.rate
    return Generated(
        _fields(place, spec.preset, spec.fields_),
        None if profile is None else _at(f"{place}.rate", lambda: rate_from_dict(profile)),
        spec.seed,
        spec.rows_per_batch,
        spec.limit_rows,
    )


def _fields(place: str, preset: str | None, declared: dict[str, Any] | None) -> Mapping[str, GeneratedField]:
    presets = ", ".join(PRESETS)
    if preset is not None and declared is not None:
        raise StartError(f"{place} says both preset and fields: keep one of them.")
    if declared is not None:
        return _at(f"{place}.fields", lambda: fields_from_dict(declared))
    if preset is None:
        raise StartError(f"{place} says neither preset nor fields: give one of them (presets: {presets}).")
    if preset not in PRESETS:
        raise StartError(
            f"{place}.preset is {preset!r}{meant(preset, PRESETS)}: use one of {presets}, or declare fields."
        )
    return PRESETS[preset]


def _sink(place: str, data: Mapping[str, Any]) -> Target:
    kinds = ("parquet", "console", "memory", "kafka", "format")
    given = [kind for kind in kinds if kind in data]
    if len(given) != 1:
        found = ", ".join(given or map(str, data)) or "nothing"
        near = meant(next(iter(data)), kinds) if data and not given else ""
        raise StartError(f"{place} says {found}{near}: say exactly one of {', '.join(kinds)}.")
    kind = given[0]
    if kind == "format":
        return _stored(place, _SinkSpec, data)
    others = [key for key in data if key != kind and (kind, key) != ("parquet", _OTHER_RUN)]
    if others:
        raise StartError(f"{place}.{others[0]} is not a setting of {an(kind)} sink: remove it.")
    setting = data[kind]
    if kind == "kafka":
        return _at(f"{place}.kafka", _validated(f"{place}.kafka", KafkaSpec, setting).kafka)
    if kind == "parquet":
        if not isinstance(setting, str) or not setting:
            raise StartError(f"{place}.parquet is {setting!r}: give the path of a folder, such as out/fares.")
        other_run = data.get(_OTHER_RUN, "refuse")
        if other_run not in ("refuse", "replace"):
            raise StartError(f"{place}.{_OTHER_RUN} is {other_run!r}: use refuse or replace.")
        return OwnSink("parquet", setting, other_run)
    if setting is not None and (not isinstance(setting, int) or isinstance(setting, bool) or setting < 1):
        raise StartError(f"{place}.{kind} is {setting!r}: give a number of rows of at least 1, or null.")
    return OwnSink("console" if kind == "console" else "memory", setting)


def _stored(place: str, model: type[_StoredSpec | _SinkSpec], data: Any, remedy: str = "say `format: name`") -> Stored:
    if isinstance(data, Mapping) and "format" not in data:
        raise StartError(f"{place} has no format: {remedy}.")
    spec = _validated(place, model, data)
    options = {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in spec.options.items()
    }
    if isinstance(spec, _SinkSpec):
        return Stored(spec.format, options)
    if spec.path is not None:
        if "path" in options:
            raise StartError(f"{place} gives path and options.path: keep one of them.")
        options["path"] = spec.path
    return Stored(spec.format, options, spec.ddl)


def _validated(place: str, model: type[Model], data: Any) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise StartError(f"{spec_faults(error, model, place)[0]}.") from error


def _at(place: str, make: Callable[[], T]) -> T:
    """What `make` gives; a fault in it is told with its place in the file."""
    try:
        return make()
    except JettisonError as error:
        raise StartError(f"{place}: {error}") from error
