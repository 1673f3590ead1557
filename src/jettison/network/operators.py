"""The operators of a network: short frozen values, each validated where it is made. None of them runs anything."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jettison.errors import NetworkError
from jettison.network.columns.expressions import Expression
from jettison.network.columns.schema import Column, check_names, quoted
from jettison.network.columns.words import an
from jettison.network.kafka import VALUES, Kafka
from jettison.network.qos import QoS
from jettison.network.windows.aggregates import parse_call
from jettison.network.windows.count_windows import CountSpec
from jettison.network.windows.estimates import interval_names
from jettison.network.windows.time_windows import END, START, WindowSpec
from jettison.network.windows.user_aggregates import Own

PAYLOAD_COLUMN = "value"
JOIN_TYPES = ("inner", "left", "left_semi", "left_anti")


@dataclass(frozen=True)
class Source:
    """Where rows come in.

    `id` names the columns that identify a row, so that a drop judges it alike every time it is read. With
    `payload="json"` the stream carries text in a column `value`, and `schema` is what is inside it. A source with a
    `kafka` topic is read from there; its payload is the record's value.
    """

    name: str
    schema: tuple[Column, ...]
    event_time: str | None = None
    id: tuple[str, ...] = ()
    payload: str | None = None
    kafka: Kafka | None = None
    inputs: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        names = tuple(name for name, _ in self.schema)
        if self.event_time is not None and self.event_time not in names:
            raise NetworkError(
                f"source {self.name!r}: event_time {self.event_time!r} is not in the schema: {', '.join(names)}."
            )
        if self.event_time is not None:
            kind = dict(self.schema)[self.event_time].lower()
            if not kind.startswith("timestamp"):
                raise NetworkError(
                    f"source {self.name!r}: event_time {self.event_time!r} is {an(kind)}, not a timestamp."
                )
        for column in self.id:
            if column not in names:
                raise NetworkError(f"source {self.name!r}: id {column!r} is not in the schema: {', '.join(names)}.")
        known = (None, "json") if self.kafka is None else VALUES
        if self.payload not in known:
            raise NetworkError(f"source {self.name!r}: payload {self.payload!r} is not known: use 'json' or leave it.")

    @property
    def payload_column(self) -> str:
        """The stream's column with the payload. What comes from Kafka may have a field of its own called `value`."""
        return PAYLOAD_COLUMN if self.kafka is None else "_jt_value"


def from_kafka(
    name: str, topic: Kafka, event_time: str | None = None, id: tuple[str, ...] = (), payload: str | None = None
) -> Source:
    """A source that is read from a topic; its columns are the topic's."""
    if payload not in (None, topic.value):
        raise NetworkError(
            f"source {name!r}: payload {payload!r} is not the topic's value {topic.value!r}: leave it out."
        )
    return Source(name, topic.columns(f"source {name!r}"), event_time, id, topic.value, topic)


@dataclass(frozen=True)
class Where:
    """Keep the rows for which `predicate` is true."""

    name: str
    inputs: tuple[str, ...]
    predicate: Expression


@dataclass(frozen=True)
class Select:
    """Compute exactly these columns."""

    name: str
    inputs: tuple[str, ...]
    expressions: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if not self.expressions:
            raise NetworkError(f"select {self.name!r}: name at least one column.")


@dataclass(frozen=True)
class WithColumns:
    """Add or replace columns: (name, expression) pairs."""

    name: str
    inputs: tuple[str, ...]
    columns: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise NetworkError(f"with_columns {self.name!r}: give at least one column.")
        check_names(f"with_columns {self.name!r}", [column for column, _ in self.columns])


@dataclass(frozen=True)
class Union:
    """Merge streams that have the same columns (matched by name)."""

    name: str
    inputs: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise NetworkError(f"union {self.name!r}: give at least one other stream.")
        if len(set(self.inputs)) < len(self.inputs):
            raise NetworkError(
                f"union {self.name!r} takes the same stream twice ({', '.join(self.inputs)}): "
                f"put an operator on one of the two, such as .where('true')."
            )


@dataclass(frozen=True)
class Join:
    """Join with a table that does not stream: a DataFrame, or a name given at the start in `tables`."""

    name: str
    inputs: tuple[str, ...]
    table: Any
    on: tuple[str, ...]
    how: str = "inner"

    def __post_init__(self) -> None:
        if not self.on:
            raise NetworkError(f"join {self.name!r}: name at least one column in `on`.")
        if self.how not in JOIN_TYPES:
            raise NetworkError(f"join {self.name!r}: how={self.how!r} is not one of {', '.join(JOIN_TYPES)}.")


@dataclass(frozen=True)
class StreamJoin:
    """Join two streams: rows pair when `on` is equal and their event times are at most `within_ms` apart.

    A row waits for partners until the other stream's watermark (its largest event time so far, seen at its sources,
    less `delay_ms`) has passed the band. A pair has the later of two times.
    """

    name: str
    inputs: tuple[str, ...]
    on: tuple[str, ...]
    within_ms: float
    how: str = "inner"
    delay_ms: float = 0.0

    def __post_init__(self) -> None:
        element = f"join {self.name!r}"
        if len(self.inputs) != 2:
            raise NetworkError(f"{element} reads {len(self.inputs)} streams: a band joins two, left and right.")
        if self.inputs[0] == self.inputs[1]:
            raise NetworkError(
                f"{element} takes the same stream twice ({self.inputs[0]}): "
                f"put an operator on one of the two, such as .where('true')."
            )
        if not self.on:
            raise NetworkError(f"{element}: name at least one column in `on`.")
        if self.how != "inner":
            raise NetworkError(f"{element}: how={self.how!r} is not known for two streams: only 'inner' is.")
        if not 0 < self.within_ms < math.inf:
            raise NetworkError(f"{element}: the band is {self.within_ms} ms wide: say more than 0, such as '1 minute'.")
        if not 0 <= self.delay_ms < math.inf:
            raise NetworkError(f"{element}: the delay is {self.delay_ms} ms: say 0 or more, such as '10 seconds'.")

    @property
    def within_us(self) -> int:
        return round(1000 * self.within_ms)

    @property
    def delay_us(self) -> int:
        return round(1000 * self.delay_ms)


@dataclass(frozen=True)
class Aggregate:
    """Aggregates of windows of event time, by name: SQL, one call of a function that `aggregates` knows, or one of the
    user's own.

    A result has the `by` columns, `window_start`, `window_end`, then the aggregates. Its event time is `window_start`.
    It is given when the watermark passes its end: once, and only when there was a row. What becomes of windows in an
    overload is said by the output's `QoS.on_loss`. Where that is "estimate" the graph marks the aggregate `estimated`,
    and every aggregate has two more columns, the ends of its interval.
    """

    name: str
    inputs: tuple[str, ...]
    window: WindowSpec
    aggregates: tuple[tuple[str, str | Own], ...]
    estimated: bool = False

    def __post_init__(self) -> None:
        _check_aggregates(f"aggregate {self.name!r}", self.aggregates, self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a result."""
        names = (*self.window.by, START, END, *(name for name, _ in self.aggregates))
        return (*names, *interval_names(self.aggregates)) if self.estimated else names

    @property
    def reads(self) -> tuple[str, ...]:
        """What is computed of rows, in SQL: `by` columns, arguments of functions."""
        return _reads(self.window.by, self.aggregates)


@dataclass(frozen=True)
class CountAggregate:
    """Aggregates of windows that count rows: the same functions, over the rows of a group one after the other.

    A result has the `by` columns, `window_start` and `window_end`, then the aggregates. Those two are numbers of rows:
    that of the window's first row in its group, and that of the row behind its last. A result takes the place of the
    window's last row: its event time, if rows have one, and its identity are that row's. It is given once, in the batch
    in which that row comes. In an overload whole results go, unless the output has `on_loss="ignore"`.
    """

    name: str
    inputs: tuple[str, ...]
    window: CountSpec
    aggregates: tuple[tuple[str, str | Own], ...]

    def __post_init__(self) -> None:
        _check_aggregates(f"aggregate {self.name!r}", self.aggregates, self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a result."""
        return (*self.window.by, START, END, *(name for name, _ in self.aggregates))

    @property
    def reads(self) -> tuple[str, ...]:
        """What is computed of rows, in SQL: `by` columns, arguments of functions."""
        return _reads(self.window.by, self.aggregates)


@dataclass(frozen=True)
class Apply:
    """A function from DataFrame to DataFrame, or its import path "module:function", for what SQL cannot say.

    `columns` declares what comes out, so that later operators can be checked; None leaves that to Spark.
    """

    name: str
    inputs: tuple[str, ...]
    function: Callable[..., Any] | str
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.function, str) and not all(self.function.partition(":")):
            raise NetworkError(f"apply {self.name!r}: {self.function!r} is not of the form 'module:function'.")
        if not isinstance(self.function, str) and not callable(self.function):
            raise NetworkError(f"apply {self.name!r}: {self.function!r} cannot be called.")
        if self.columns == ():
            raise NetworkError(f"apply {self.name!r}: name at least one column in `columns`, or leave it out.")


@dataclass(frozen=True)
class Map:
    """A Python function of one row that adds columns, timed row by row: what it takes may depend on the row's `key`.

    `schema` has the columns that it adds, or puts in the place of others of the same name. The function gets a row as a
    mapping and returns a mapping, or a tuple in that order. With `rows` it gets many rows at once, as a pandas
    DataFrame, and returns a DataFrame with as many; where it says that it takes a `pyarrow.Table`, it gets one.
    `function` may be an import path, "module:function". A call that takes longer than `limit_ms` is ended, and its rows
    are rejected.
    """

    name: str
    inputs: tuple[str, ...]
    function: Callable[..., Any] | str
    key: tuple[str, ...]
    schema: tuple[Column, ...]
    rows: bool = False
    limit_ms: float = 60_000.0

    def __post_init__(self) -> None:
        element = f"map {self.name!r}"
        if isinstance(self.function, str) and not all(self.function.partition(":")):
            raise NetworkError(f"{element}: {self.function!r} is not of the form 'module:function'.")
        if not isinstance(self.function, str) and not callable(self.function):
            raise NetworkError(f"{element}: {self.function!r} cannot be called.")
        if not isinstance(self.function, str) and not _takes_one(self.function):
            raise NetworkError(
                f"{element}: the function takes {inspect.signature(self.function)}: it is called with one argument, "
                f"{'rows' if self.rows is True else 'a row'}."
            )
        if not self.key:
            raise NetworkError(f"{element}: name at least one column in `key`: what its cost may depend on.")
        if len({column.lower() for column in self.key}) < len(self.key):
            raise NetworkError(f"{element}: key names a column twice ({', '.join(self.key)}): leave one of them out.")
        if not isinstance(self.rows, bool):
            raise NetworkError(f"{element}: rows is {self.rows!r}: say True for a function of many rows, or False.")
        check_names(element, self.adds)

    @property
    def adds(self) -> tuple[str, ...]:
        """The columns that the function gives."""
        return tuple(name for name, _ in self.schema)


@dataclass(frozen=True)
class Output:
    """Where results leave, with what they are worth. `quality=True` adds `_kept`, `_batch` and `_sic`."""

    name: str
    inputs: tuple[str, ...]
    qos: QoS = field(default_factory=QoS)
    quality: bool = False


Operator = (
    Source
    | Where
    | Select
    | WithColumns
    | Union
    | Join
    | StreamJoin
    | Aggregate
    | CountAggregate
    | Apply
    | Map
    | Output
)


def kind_of(operator: Operator) -> str:
    """The operator's word, as in the API.

    >>> kind_of(WithColumns("x", ("trips",), (("a", "1"),)))
    'with_columns'
    """
    if isinstance(operator, StreamJoin | CountAggregate):
        return "join" if isinstance(operator, StreamJoin) else "aggregate"
    return "with_columns" if isinstance(operator, WithColumns) else type(operator).__name__.lower()


def computed(operator: Operator) -> tuple[Expression, ...]:
    """What an operator computes of each row.

    >>> computed(WithColumns("x", ("trips",), (("a", "1"),)))
    ('1',)
    """
    if isinstance(operator, WithColumns):
        return tuple(expression for _, expression in operator.columns)
    return operator.expressions if isinstance(operator, Select) else ()


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument, as far as that is known.

    >>> _takes_one(len), _takes_one(lambda row, more: row), _takes_one(lambda row, more=1: row)
    (True, False, True)
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of some functions in C nothing is known
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _check_aggregates(element: str, aggregates: tuple[tuple[str, str | Own], ...], columns: tuple[str, ...]) -> None:
    if not aggregates:
        raise NetworkError(f"{element}: name at least one aggregate, such as .agg(n='count(*)').")
    for _, call in aggregates:
        if not isinstance(call, Own):
            parse_call(element, call)
    check_names(element, columns)


def _reads(by: tuple[str, ...], aggregates: tuple[tuple[str, str | Own], ...]) -> tuple[str, ...]:
    own = [quoted(name) for _, call in aggregates if isinstance(call, Own) for name in call.columns]
    return (*map(quoted, by), *(call for _, call in aggregates if isinstance(call, str)), *own)
