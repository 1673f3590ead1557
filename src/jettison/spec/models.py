"""What a file may say of a network, one model per section. Values are checked by what is built from them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jettison.network.columns.schema import parse_schema
from jettison.network.kafka import Kafka
from jettison.network.operators import Source, from_kafka
from jettison.network.value import Value
from jettison.spec.user_aggregate_spec import CallSpec

_KINDS = ("where", "select", "with_columns", "union", "join", "join_stream", "window", "apply", "map")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class KafkaSpec(Strict):
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


class SourceSpec(Strict):
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


class WindowsSpec(Strict):
    """Windows of event time, or of rows; see `jettison.network.windows.time_windows` and `count_windows`."""

    size: str
    slide: str | None = None
    by: tuple[str, ...] = ()
    delay: str | None = None


class OperatorSpec(Strict):
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
    map: str | None = None
    key: tuple[str, ...] = ()
    adds: str | None = Field(default=None, alias="schema")
    rows: bool = False
    limit: str | None = None

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
        if (self.map is None) != (self.adds is None) or (self.map is None) != (not self.key):
            raise ValueError("`map`, `key` and `schema` go together: say all, such as schema: score double")
        if self.map is None and (self.rows or self.limit is not None):
            raise ValueError("`rows` and `limit` go with `map`: leave them out")
        if (self.window is None) != (self.agg is None):
            raise ValueError("`window` and `agg` go together: say both, such as agg: {n: count(*)}")
        return self


class ValueSpec(Strict):
    """Which values of a column matter; see `jettison.network.value.Value`."""

    column: str
    intervals: tuple[tuple[float, ...], ...]
    chunk: float | None = None
    otherwise: float = 0.0
    histogram: tuple[tuple[float, float, float], ...] | None = None

    def value(self) -> Value:
        return Value(self.column, self.intervals, self.chunk, self.otherwise, self.histogram)


class QoSSpec(Strict):
    loss: tuple[tuple[float, float], ...] = ((100.0, 1.0), (0.0, 0.0))
    priority: float = 1.0
    value: ValueSpec | None = None
    latency: tuple[tuple[float | str, float], ...] = ()
    stale: str | None = None
    gap: int | None = None
    on_loss: str = "subset"
    gaps: dict[str, dict[str | int, int]] | None = None
    min_accuracy: float = 0.0
    latency_goal: str | None = None


class OutputSpec(Strict):
    of: str
    qos: QoSSpec = QoSSpec()
    quality: bool = False


class ProfileSpec(Strict):
    """What was measured, for planning without Spark."""

    fixed_ms: float = Field(default=0.0, ge=0)
    cost_us: dict[str, float] = {}
    selectivity: dict[str, float] = {}
    rows_per_s: dict[str, float] = {}
    read_us: dict[str, float] = {}
    drop_us: float = Field(default=0.0, ge=0)
    look_us: dict[str, float] = {}
    values: dict[str, tuple[tuple[float, float, float], ...]] = {}


class NodeSpec(Strict):
    """A node; see `jettison.network.nodes.placement.Node`."""

    operators: tuple[str, ...]
    capacity: float
