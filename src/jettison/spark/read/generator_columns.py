"""Rows of a generated source as Arrow batches. Runs in Spark's Python workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.spark.read.generator_options import GeneratorOptions
from jettison.synthetic.draws import Rows, key_of
from jettison.synthetic.fields import Arrival, Choice, Field, Payload
from jettison.synthetic.rates import Constant

CLOSED_LOOP_RATE = Constant(1_000_000)
"""In a closed loop nobody says when rows arrive: their timestamps are one microsecond apart."""

_ROWS_PER_ARROW_BATCH = 8192  # small enough for the processor's cache: 32,768 take about twice as long per row
_SLACK_US = 1e-3  # 0.29 s are 289999.99999999994 us in floats, and mean 290000
_ARROW_TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class _Column:
    field: Field
    key: int
    drawn_from: pa.Array | None

    @classmethod
    def of(cls, name: str, field: Field, seed: int) -> "_Column":
        key = key_of(seed, name)
        if isinstance(field, Choice | Payload):
            return cls(field, key, pa.array(field.drawn_from(key), _ARROW_TYPES[field.type]))
        return cls(field, key, None)

    def values(self, rows: Rows, arrival_us: NDArray[np.int64]) -> pa.Array:
        if isinstance(self.field, Arrival):
            times = arrival_us.view("datetime64[us]")
            return pa.array(times, _ARROW_TYPES["timestamp"], mask=self.field.missing(rows, self.key))
        drawn = pa.array(self.field.draw(rows, self.key))
        return drawn if self.drawn_from is None else self.drawn_from.take(drawn)


@lru_cache(maxsize=16)
def _columns_of(options: GeneratorOptions) -> tuple[pa.Schema, tuple[_Column, ...]]:
    """Cached: a worker renders the texts of a payload once, not for every task."""
    fields = options.fields
    schema = pa.schema([(name, _ARROW_TYPES[field.type]) for name, field in fields.items()])
    return schema, tuple(_Column.of(name, field, options.seed) for name, field in fields.items())


def arrival_us_of(options: GeneratorOptions, rows: Rows, start_us: int) -> NDArray[np.int64]:
    """When rows arrive, in microseconds since 1970."""
    seconds = (options.rate or CLOSED_LOOP_RATE).seconds_of(rows)
    return np.floor(seconds * 1e6 + _SLACK_US).astype(np.int64) + start_us


def record_batches(options: GeneratorOptions, from_row: int, to_row: int, start_us: int) -> Iterator[pa.RecordBatch]:
    """Rows `from_row` to `to_row` - 1."""
    schema, columns = _columns_of(options)
    for first in range(from_row, to_row, _ROWS_PER_ARROW_BATCH):
        rows = np.arange(first, min(first + _ROWS_PER_ARROW_BATCH, to_row), dtype=np.int64)
        arrival_us = arrival_us_of(options, rows, start_us)
        yield pa.RecordBatch.from_arrays([column.values(rows, arrival_us) for column in columns], schema=schema)
