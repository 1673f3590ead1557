"""What the columns of a generated source hold: each value is a pure function of (seed, column name, row number).

A field is drawn in one of three ways. `Arrival` is the time at which the row arrives, which a `Rate` decides. `Choice`
and `Payload` draw indices into a fixed list of values. All others draw their values themselves.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.network.columns.words import an
from jettison.synthetic.distributions import Normal, Numbers, Quantiles, Uniform, Zipf
from jettison.synthetic.draws import Rows, Table, draw_below, draw_share, key_of
from jettison.synthetic.tagged import by_kind, from_kind_dict, require_number, to_kind_dict

__all__ = [
    "TAXI",
    "TAXI_PAYLOAD",
    "Arrival",
    "Choice",
    "Field",
    "Normal",
    "Payload",
    "Quantiles",
    "RowNumber",
    "Shift",
    "Uniform",
    "Zipf",
    "field_from_dict",
    "fields_from_dict",
    "fields_to_dict",
]

Value: TypeAlias = str | int | float

_PAYLOAD_DECIMALS = 6


@checked_init("RowNumber")
@dataclass(frozen=True)
class RowNumber:
    """The number of the row, from 0: an identity that survives a replay."""

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return "long"

    def draw(self, rows: Rows, key: int) -> Rows:
        """The rows themselves."""
        return rows


@checked_init("Arrival")
@dataclass(frozen=True)
class Arrival:
    """When the row arrives, as a timestamp; null for `null_share` of the rows, to test bad input."""

    null_share: float = 0.0

    def __post_init__(self) -> None:
        require_number(self, "null_share", self.null_share, least=0, most=1)

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return "timestamp"

    def missing(self, rows: Rows, key: int) -> NDArray[np.bool_] | None:
        """Which rows have no timestamp; None means that all have one."""
        return draw_share(rows, key) < self.null_share if self.null_share else None


@checked_init("Choice")
@dataclass(frozen=True)
class Choice:
    """One of the values, all strings or all numbers; equally likely without weights.

    >>> field = Choice(("card", "cash"), weights=(3, 1))
    >>> [field.drawn_from(key=1)[k] for k in field.draw(np.arange(4), key=1)]
    ['cash', 'card', 'card', 'card']
    """

    values: tuple[Value, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        object.__setattr__(self, "weights", None if self.weights is None else tuple(self.weights))
        kinds = {"string" if isinstance(value, str) else "number" for value in self.values}
        if len(kinds) != 1:
            raise NetworkError(f"Choice: values are {self.values}, give at least one, all strings or all numbers")
        if kinds == {"number"}:
            for value in self.values:
                require_number(self, "a value", value)
        if self.weights is None:
            return
        if len(self.weights) != len(self.values):
            sizes = f"{len(self.weights)} weights for {len(self.values)} values"
            raise NetworkError(f"Choice: got {sizes}, give one weight for each value")
        for weight in self.weights:
            require_number(self, "a weight", weight, least=0)
        require_number(self, "the sum of weights", sum(self.weights), above=0)

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        if isinstance(self.values[0], str):
            return "string"
        return "long" if all(isinstance(value, int) for value in self.values) else "double"

    def drawn_from(self, key: int) -> tuple[Value, ...]:
        """The values that `draw` points at."""
        return self.values

    def draw(self, rows: Rows, key: int) -> NDArray[np.int32]:
        """An index into `drawn_from` for each row."""
        return choice_table(self).pick(draw_share(rows, key))


@lru_cache(maxsize=64)
def choice_table(choice: Choice) -> Table:
    """The intervals of a choice's values."""
    return Table.of_weights(choice.weights if choice.weights is not None else np.ones(len(choice.values)))


@checked_init("Payload")
@dataclass(frozen=True)
class Payload:
    """A JSON object as a string, one of `pool` texts rendered in advance; `bad_share` of the rows hold half of one.

    >>> payload = Payload({"vendor": Choice(("CMT", "VTS")), "passengers": Uniform(1, 6)}, pool=2)
    >>> payload.drawn_from(key=1)  # first the good texts, then the bad ones
    ('{"vendor":"CMT","passengers":5}', '{"vendor":"VTS","passengers":6}', '{"vendor":"CMT"', '{"vendor":"VTS"')
    """

    fields: "Mapping[str, Field]" = field(hash=False)
    pool: int = 8192
    bad_share: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _as_fields(self.fields, "Payload"))
        for name, inner in self.fields.items():
            if isinstance(inner, RowNumber | Arrival | Payload):
                kind = type(inner).__name__
                raise NetworkError(
                    f"Payload: field {name!r} is {an(kind)}, give it a column of its own beside the payload"
                )
        require_number(self, "pool", self.pool, least=1, most=1_000_000)
        require_number(self, "bad_share", self.bad_share, least=0, most=1)

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return "string"

    def drawn_from(self, key: int) -> tuple[str, ...]:
        """The texts that `draw` points at: `pool` good ones, then the first half of each."""
        places = np.arange(self.pool)
        columns = {name: _plain(inner, places, key_of(key, name)) for name, inner in self.fields.items()}
        objects = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        texts = tuple(json.dumps(each, separators=(",", ":")) for each in objects)
        return texts + tuple(text[: len(text) // 2] for text in texts)

    def draw(self, rows: Rows, key: int) -> NDArray[np.int32]:
        """An index into `drawn_from` for each row."""
        picked = draw_below(rows, key, self.pool).astype(np.int32)
        if self.bad_share:
            picked[draw_share(rows, key_of(key, "bad")) < self.bad_share] += self.pool
        return picked


Number: TypeAlias = Uniform | Normal | Zipf | Quantiles


@checked_init("Shift")
@dataclass(frozen=True)
class Shift:
    """Numbers whose distribution changes: as `before` up to a row, then more and more as `after`, in the end only so.

    >>> field = Shift(Uniform(0, 9), Uniform(100, 109), from_row=1000, over_rows=1000)
    >>> [int((field.draw(np.arange(start, start + 1000), key=1) >= 100).sum()) for start in (0, 1000, 2000)]
    [0, 519, 1000]
    """

    before: Number
    after: Number
    from_row: int
    over_rows: int = 1

    def __post_init__(self) -> None:
        for name, held in (("before", self.before), ("after", self.after)):
            if not isinstance(held, Number):
                raise NetworkError(f"Shift: {name} is {held!r}, give one of uniform, normal, zipf, quantiles")
        if _type_of(self.before) != _type_of(self.after):
            kinds = f"{_type_of(self.before)} and {_type_of(self.after)}"
            raise NetworkError(f"Shift: before and after draw {kinds}, give two of the same type")
        require_number(self, "from_row", self.from_row, least=0)
        require_number(self, "over_rows", self.over_rows, least=1)

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return _type_of(self.before)

    def draw(self, rows: Rows, key: int) -> Numbers:
        """One number for each row."""
        moved = draw_share(rows, key_of(key, "shift")) * self.over_rows + self.from_row < rows
        drawn: Numbers = np.where(moved, self.after.draw(rows, key), self.before.draw(rows, key))
        return drawn


def _type_of(held: Number) -> str:
    return str(held.type)


Field: TypeAlias = RowNumber | Arrival | Uniform | Normal | Zipf | Quantiles | Choice | Payload | Shift

_KINDS: dict[str, type[Field]] = by_kind(RowNumber, Arrival, Uniform, Normal, Zipf, Quantiles, Choice, Payload, Shift)


def _plain(inner: "Field", rows: Rows, key: int) -> list[Value]:
    if isinstance(inner, Choice):
        return [inner.values[place] for place in inner.draw(rows, key)]
    assert not isinstance(inner, Arrival)  # a Payload refuses it
    drawn = inner.draw(rows, key)
    values: list[Value] = (np.round(drawn, _PAYLOAD_DECIMALS) if drawn.dtype.kind == "f" else drawn).tolist()
    return values


def _as_fields(declared: Mapping[str, Any], what: str) -> "dict[str, Field]":
    if not isinstance(declared, Mapping) or not declared:
        raise NetworkError(f"{what}: fields are {declared!r}, give a mapping of at least one name to a field")
    for name, held in declared.items():
        if not isinstance(held, Field):
            raise NetworkError(f"{what}: field {name!r} is {held!r}, give one of {', '.join(_KINDS)}")
    return dict(declared)


def fields_to_dict(fields: Mapping[str, Field]) -> dict[str, dict[str, Any]]:
    """Plain data for `fields_from_dict`.

    >>> fields_to_dict({"trip": RowNumber(), "zone": Zipf(265)})
    {'trip': {'kind': 'row_number'}, 'zone': {'kind': 'zipf', 'n': 265, 's': 1.0}}
    """
    plain = {}
    for name, held in _as_fields(fields, "generated source").items():
        inner: dict[str, Any] = {"fields": fields_to_dict(held.fields)} if isinstance(held, Payload) else {}
        if isinstance(held, Shift):
            inner = {"before": to_kind_dict(held.before), "after": to_kind_dict(held.after)}
        plain[name] = to_kind_dict(held) | inner
    return plain


def field_from_dict(data: Mapping[str, Any], what: str = "field") -> Field:
    """The field that a mapping declares; `what` names it in errors.

    >>> field_from_dict({"kind": "uniform", "low": 1, "high": 6})
    Uniform(low=1, high=6, type='int')
    """
    if isinstance(data, Mapping) and data.get("kind") == "payload" and "fields" in data:
        data = {**data, "fields": fields_from_dict(data["fields"], f"payload of {what}")}
    if isinstance(data, Mapping) and data.get("kind") == "shift":
        parts = {name: field_from_dict(data[name], f"{name} of {what}") for name in ("before", "after") if name in data}
        data = {**data, **parts}
    return from_kind_dict(data, _KINDS, what)


def fields_from_dict(data: Mapping[str, Any], what: str = "generated source") -> dict[str, Field]:
    """The inverse of `fields_to_dict`: the columns of a generated source, in order."""
    if not isinstance(data, Mapping) or not data:
        raise NetworkError(f"{what}: fields are {data!r}, give a mapping of at least one name to a field")
    return {name: field_from_dict(each, f"field {name!r}") for name, each in data.items()}


_FARE = Quantiles(
    (
        (0.0, -20.0),  # 2 % are refunds and errors
        (0.02, 0.0),
        (0.0201, 3.0),
        (0.5, 13.0),
        (0.8, 25.0),
        (0.9899, 60.0),
        (0.99, 200.0),  # 1 % are too good to be true
        (1.0, 500.0),
    )
)
_NOTES = (
    "no remarks",
    "passenger asked for a receipt by mail",
    "paid in cash, no change given",
    "two stops on the way, waited four minutes at the second one",
    'left behind: one umbrella, "black"; handed in at the office',
    "traffic jam on the bridge, took the tunnel instead",
)

TAXI: dict[str, Field] = {"trip": RowNumber(), "pickup": Arrival(), "zone": Zipf(265), "fare": _FARE}
"""Taxi trips in four typed columns. Zone 0 has 16 % of the trips; 2 % of the fares are at most 0, 1 % above 200."""

TAXI_PAYLOAD: dict[str, Field] = {
    "trip": RowNumber(),
    "pickup": Arrival(),
    "value": Payload(
        {
            "vendor": Choice(("CMT", "VTS", "DDS"), weights=(5, 4, 1)),
            "zone": Zipf(265),
            "fare": _FARE,
            "distance_km": Quantiles(((0, 0.2), (0.5, 2.7), (0.9, 11.0), (1, 60.0))),
            "tip": Quantiles(((0, 0.0), (0.4, 0.0), (0.9, 4.5), (1, 40.0))),
            "passengers": Choice((1, 2, 3, 4, 5, 6), weights=(70, 14, 4, 2, 6, 4)),
            "pickup_lat": Normal(40.75, 0.03),
            "pickup_lon": Normal(-73.98, 0.03),
            "dropoff_lat": Normal(40.75, 0.04),
            "dropoff_lon": Normal(-73.97, 0.04),
            "note": Choice(_NOTES),
        },
        pool=1024,  # so small that Spark can hold it in a plan, and make rows without Python
    ),
}
"""The same trips as a message queue delivers them: all but the identity and the time inside a JSON text."""
