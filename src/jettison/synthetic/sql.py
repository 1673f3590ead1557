"""Generated columns as SQL: Spark draws the same numbers as `Field.draw`, inside its own engine.

Comes in: fields and a seed.
Goes out: the text of two SELECTs over rows with a number (`ROW`) and a time of arrival (`ARRIVAL_US`): first the
uniform shares that values are drawn with, then the values. What cannot be drawn to the last bit in SQL has no text
(`Normal`: logarithms differ; values rarer than one in 16,384; pools that are too large for a plan). Texts are written
as bytes: what stands in quotes depends on the settings of a session.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jettison.network.columns.schema import quoted
from jettison.synthetic.distributions import Quantiles, Uniform, Zipf, quantile_table, zipf_table
from jettison.synthetic.draws import Table, key_of
from jettison.synthetic.fields import Arrival, Choice, Field, Normal, Payload, RowNumber, Shift, choice_table

ROW, ARRIVAL_US = "_jt_row", "_jt_arrival_us"

_MOST_CASES = 16
_MOST_BINS = 1 << 14
_MOST_POOL_TEXTS, _MOST_POOL_CHARS = 20_000, 500_000
"""A pool of texts travels with every task, and stands in every plan that Spark prints."""
_BETWEEN = "\x1f"


@dataclass(frozen=True)
class GeneratedSql:
    """Two SELECTs, one on the other: `shares` beside all columns, then `values`, the columns themselves."""

    shares: tuple[str, ...]
    values: tuple[str, ...]


def generated_sql(fields: Mapping[str, Field], seed: int) -> GeneratedSql | None:
    """The columns of a generated source; None where one of them is drawn in Python alone.

    >>> generated_sql({"trip": RowNumber(), "at": Arrival()}, seed=0).values
    ('_jt_row AS `trip`', 'timestamp_micros(_jt_arrival_us) AS `at`')
    >>> generated_sql({"x": Normal(0, 1)}, seed=0) is None
    True
    """
    shares = _Shares()
    values = []
    for name, field in fields.items():
        try:
            value = _value(field, key_of(seed, name), shares)
        except OverflowError:
            return None
        if value is None:
            return None
        values.append(f"{value} AS {quoted(name)}")
    return GeneratedSql(tuple(shares.columns), tuple(values))


class _Shares:
    """The uniform shares that values need, each a column of its own: Spark computes it once."""

    def __init__(self) -> None:
        self.columns: list[str] = []

    def of(self, key: int) -> str:
        """The column with the shares of a key."""
        name = f"_jt_share_{len(self.columns)}"
        hashed = f"xxhash64(CAST({key} AS BIGINT), {ROW})"
        self.columns.append(f"shiftrightunsigned({hashed}, 11) * {_double(2.0**-53)} AS {name}")
        return name


def _value(field: Field, key: int, shares: _Shares) -> str | None:
    """One column's value; None where SQL cannot draw it."""
    match field:
        case RowNumber():
            return ROW
        case Arrival():
            time = f"timestamp_micros({ARRIVAL_US})"
            return f"IF({shares.of(key)} < {_double(field.null_share)}, NULL, {time})" if field.null_share else time
        case Choice():
            return _choice(field, shares.of(key))
        case Payload():
            return _payload(field, key, shares)
        case Shift():
            share, moving = shares.of(key), shares.of(key_of(key, "shift"))
            before, after = _number(field.before, share), _number(field.after, share)
            moved = f"{moving} * {_double(field.over_rows)} + {_double(field.from_row)} < {ROW}"
            return None if before is None or after is None else f"IF({moved}, {after}, {before})"
    return None if isinstance(field, Normal) else _number(field, shares.of(key))


def _number(field: Field, share: str) -> str | None:
    match field:
        case Uniform(type="double"):
            return f"{share} * {_double(field.high - field.low)} + {_double(field.low)}"
        case Uniform():
            count = int(field.high) - int(field.low) + 1
            drawn = f"CAST({share} * {_double(count)} AS BIGINT) + {int(field.low)}L"
            return f"CAST({drawn} AS INT)" if field.type == "int" else drawn
        case Zipf():
            return _picked(zipf_table(field), share)
        case Quantiles():
            return _quantile(field, share)
    return None


def _quantile(field: Quantiles, share: str) -> str | None:
    table, at_zero, slopes = quantile_table(field)
    if len(slopes) <= _MOST_CASES:
        pieces = [f"{_double(slope)} * {share} + {_double(at)}" for slope, at in zip(slopes, at_zero, strict=True)]
        return _cases(table, share, pieces)
    place = _picked(table, share)
    if place is None:
        return None
    if not np.isfinite([slopes, at_zero]).all():
        return None
    slope, at = (f"{_array(each.tolist(), 'double')}[{place}]" for each in (slopes, at_zero))
    return f"{slope} * {share} + {at}"


def _choice(field: Choice, share: str) -> str | None:
    place = _picked(choice_table(field), share)
    if place is None:
        return None
    if any(_BETWEEN in str(each) for each in field.values):
        return None
    if field.type == "string":
        return _one_of([str(each) for each in field.values], place)
    return f"{_array(field.values, field.type)}[{place}]"


def _payload(field: Payload, key: int, shares: _Shares) -> str | None:
    if field.pool > _MOST_POOL_TEXTS:
        return None
    texts = field.drawn_from(key)
    texts = texts if field.bad_share else texts[: field.pool]
    if sum(map(len, texts)) > _MOST_POOL_CHARS or any(_BETWEEN in each for each in texts):
        return None
    place = f"CAST({shares.of(key)} * {_double(field.pool)} AS INT)"
    if field.bad_share:
        bad = f"{shares.of(key_of(key, 'bad'))} < {_double(field.bad_share)}"
        place += f" + IF({bad}, {field.pool}, 0)"
    # not constant, so that Spark reads a row's text once, and not in every expression on the column
    never = "spark_partition_id() < 0"
    return f"IF({never}, NULL, {_one_of(texts, place)})"


def _one_of(texts: Iterable[str], place: str) -> str:
    """The text at a place of a list."""
    joined = base64.b64encode(_BETWEEN.join(texts).encode()).decode()
    return f"split(CAST(unbase64('{joined}') AS STRING), CAST(X'{_BETWEEN.encode().hex()}' AS STRING))[{place}]"


def _cases(table: Table, share: str, values: list[str]) -> str:
    """The value of the interval that holds a share."""
    whens = " ".join(
        f"WHEN {share} < {_double(end)} THEN {value}" for end, value in zip(table.ends, values, strict=True)
    )
    return f"CASE {whens} ELSE {values[-1]} END"


def _picked(table: Table, share: str) -> str | None:
    """The index of the interval that holds a share: by a guide with at most one border in a bin, where there is one."""
    if len(table.ends) <= _MOST_CASES:
        return _cases(table, share, [str(index) for index in range(len(table.ends))])
    bins = 64
    while bins <= _MOST_BINS:
        edges = np.searchsorted(table.ends, np.arange(bins + 1) / bins, side="right")
        if np.diff(edges).max() <= 1:
            first = f"{_array(edges[:-1].tolist(), 'int')}[CAST({share} * {_double(bins)} AS INT)]"
            return f"{first} + IF({share} >= {_array(table.ends.tolist(), 'double')}[{first}], 1, 0)"
        bins *= 2
    return None


def _array(values: Iterable[object], kind: str) -> str:
    """Numbers as an array: one text, taken apart once; Spark would look at many numbers in every step of analysis."""
    return f"CAST(split('{','.join(map(repr, values))}', ',') AS array<{kind}>)"


def _double(value: float | str) -> str:
    """A number as a SQL literal, which SQL has for finite ones alone."""
    if not math.isfinite(float(value)):
        raise OverflowError(f"{value} is no finite number")
    return f"{float(value)!r}D"
