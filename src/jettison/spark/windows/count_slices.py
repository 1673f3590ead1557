"""Slices of windows that count rows, as frames: rows get numbers, become partials per (group, slice), then results.

A row's number is a running sum over the rows of its group in order, minus 1: the group's count so far comes first and
adds itself, every row adds 1. So one sort gives numbers that go on from batch to batch, whatever the groups are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from jettison.network.columns.expressions import all_used_columns
from jettison.network.columns.schema import quoted
from jettison.network.operators import CountAggregate
from jettison.network.windows.time_windows import END, START
from jettison.spark.compile.drops import HIDDEN, IDENTITY, TIME
from jettison.spark.windows.slices import FAILED, SLICE, columns_of, of_same_types

NUMBER = "_jt_number"
LAST = "_jt_last"
_LAST_ID = "_jt_last_id"
_LAST_TIME = "_jt_last_time"
_NEWEST = (LAST, _LAST_ID, _LAST_TIME)
_START = "_jt_start"
_ADDS = "_jt_adds"
_TIE = "_jt_tie"


@dataclass(frozen=True)
class CountShape:
    """What the slices of an aggregate hold, and what becomes of it; see `slices.Shape`.

    Beside the partials a slice knows its newest row: its number, and, when that row completes the slice, its identity
    and its event time. `timed` says whether rows have one.
    """

    aggregate: CountAggregate
    partials: Mapping[str, tuple[str, str]]
    finals: tuple[str, ...]
    timed: bool
    tie: tuple[str, ...]
    failing: str | None = None
    schema: StructType = field(default_factory=StructType)
    parsed: dict[str, Column] = field(default_factory=dict, compare=False, repr=False)

    @property
    def by(self) -> list[str]:
        return [quoted(name) for name in self.aggregate.window.by]

    def sql(self, text: str) -> Column:
        """A SQL text that is the same in every batch as a Column, parsed once."""
        if text not in self.parsed:
            self.parsed[text] = F.expr(text)
        return self.parsed[text]

    def columns_text(self) -> dict[str, str]:
        """The shape in words: what must be the same for slices from before to be of use."""
        window = self.aggregate.window
        types = {each.name: each.dataType.simpleString() for each in self.schema.fields}
        by = ", ".join(f"{name} {types[name]}" for name in window.by)
        own = [(sql, types[name]) for name, (sql, _) in self.partials.items() if name not in _NEWEST]
        shape = f"windows of {window.size_rows} rows every {window.slide_rows} by ({by})"
        return {self.aggregate.name: f"{shape} with {', '.join(f'{sql} {kind}' for sql, kind in own)}"}


def count_shape(aggregate: CountAggregate, rows: DataFrame) -> CountShape:
    """The shape of an aggregate's slices, as Spark's types have it."""
    made = columns_of((aggregate,), rows.withColumn(NUMBER, F.lit(0).cast("long")), NUMBER)
    name, timed = aggregate.name, TIME in rows.columns
    ends = f"pmod({NUMBER} + 1L, {aggregate.window.slice_rows}L) = 0L"
    newest = {LAST: (f"max({NUMBER})", f"max({LAST})")}
    newest[_LAST_ID] = (f"max(IF({ends}, {IDENTITY}, NULL))", f"max({_LAST_ID})")
    if timed:
        newest[_LAST_TIME] = (f"max(IF({ends}, {TIME}, NULL))", f"max({_LAST_TIME})")
    tie = _tie(aggregate, rows)
    partials = {**made.partials, **newest}
    shape = CountShape(aggregate, partials, made.finals[name], timed, tie, made.failing.get(name), parsed=made.parsed)
    kept = sliced(shape, rows, None)
    return replace(shape, partials=of_same_types(partials, kept.schema), schema=kept.schema)


def _tie(aggregate: CountAggregate, rows: DataFrame) -> tuple[str, ...]:
    """What decides between rows of the same time and identity: all that is looked at, so that those left are alike."""
    used = [all_used_columns(text) for text in aggregate.reads]
    known = None if any(each is None for each in used) else {name for each in used for name in each or ()}
    return tuple(
        quoted(each.name)
        for each in rows.schema.fields
        if each.name not in HIDDEN and (known is None or each.name.lower() in known) and _has_hash(each.dataType)
    )


def _has_hash(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_hash(kind.elementType)
    if isinstance(kind, StructType):
        return all(_has_hash(each.dataType) for each in kind.fields)
    return not isinstance(kind, MapType | VariantType)


def numbered(shape: CountShape, rows: DataFrame, slices: DataFrame | None) -> DataFrame:
    """Rows with their numbers; `slices` are those of earlier batches, which tell how many rows there were."""
    tie = f"xxhash64({', '.join(shape.tie)})" if shape.tie else "0L"
    placed = rows.select("*", shape.sql(f"1L AS {_ADDS}"), shape.sql(f"{tie} AS {_TIE}"))
    if slices is not None:
        before = slices.groupBy(*map(shape.sql, shape.by)).agg(shape.sql(f"max({LAST}) + 1L AS {_ADDS}"))
        placed = placed.unionByName(before.where(shape.sql(f"{_ADDS} IS NOT NULL")), allowMissingColumns=True)
    order = [f"{_TIE} IS NOT NULL", *([TIME] if shape.timed else []), IDENTITY, _TIE]
    grouped = f"PARTITION BY {', '.join(shape.by)} " if shape.by else ""
    frame = f"{grouped}ORDER BY {', '.join(order)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    counted = placed.select("*", shape.sql(f"sum({_ADDS}) OVER ({frame}) - 1L AS {NUMBER}"))
    return counted.where(shape.sql(f"{_TIE} IS NOT NULL"))


def sliced(shape: CountShape, rows: DataFrame, slices: DataFrame | None) -> DataFrame:
    """Rows as slices: one row per (group, slice) with its partials."""
    at = f"{NUMBER} div {shape.aggregate.window.slice_rows}L AS {SLICE}"
    keys = [shape.sql(f"{name} AS {name}") for name in shape.by]
    made = [shape.sql(f"{sql} AS {column}") for column, (sql, _) in shape.partials.items()]
    return numbered(shape, rows, slices).groupBy(*keys, shape.sql(at)).agg(*made)


def closes(shape: CountShape) -> str:
    """The condition, in SQL, under which new rows of a slice complete a window: they have its last row."""
    window = shape.aggregate.window
    end = f"(({SLICE} + 1L) * {window.slice_rows}L)"
    complete = f"{LAST} = {end} - 1L AND {end} >= {window.size_rows}L"
    return f"({complete} AND pmod({end} - {window.size_rows}L, {window.slide_rows}L) = 0L)"


def live(shape: CountShape, slices: DataFrame) -> DataFrame:
    """Slices with one row per (group, slice), without those that no open window needs.

    A group's newest slice stays in any case: it says how many rows there were.
    """
    window = shape.aggregate.window
    grouped = f"PARTITION BY {', '.join(shape.by)}" if shape.by else ""
    count = f"(max({LAST}) OVER ({grouped}) + 1L)"
    over = f"(_jt_count - {window.size_rows}L)"
    first = f"greatest(0L, {over} - pmod({over}, {window.slide_rows}L) + {window.slide_rows}L)"
    needed = f"{SLICE} >= {first} div {window.slice_rows}L OR {SLICE} = (_jt_count - 1L) div {window.slice_rows}L"
    counted = slices.select("*", shape.sql(f"{count} AS _jt_count")).where(shape.sql(needed))
    made = [f"{merge} AS {column}" for column, (_, merge) in shape.partials.items()]
    return counted.groupBy(*map(shape.sql, [*shape.by, SLICE])).agg(*map(shape.sql, made))


def results(shape: CountShape, new: DataFrame, slices: DataFrame) -> DataFrame:
    """The results of the windows that new slices complete, from all slices, the new ones included.

    With aggregates of the user's own they have column FAILED, to be observed and left out.
    """
    window = shape.aggregate.window
    start = f"(({SLICE} + 1L) * {window.slice_rows}L - {window.size_rows}L)"
    names = [f"_jt_by{number}" for number in range(len(shape.by))]
    keys = [f"{name} AS {other}" for name, other in zip(shape.by, names, strict=True)]
    place = [_LAST_ID, *([_LAST_TIME] if shape.timed else [])]
    ended = [f"{column} AS {column}_w" for column in place]
    parts = f"explode(sequence({start} div {window.slice_rows}L, {SLICE})) AS _jt_of"
    wanted = new.where(shape.sql(closes(shape))).select(*map(shape.sql, [*keys, f"{start} AS {_START}", *ended, parts]))
    alike = [f"{name} <=> {other}" for name, other in zip(shape.by, names, strict=True)]
    held = slices.join(wanted, shape.sql(" AND ".join([*alike, f"{SLICE} = _jt_of"])))
    made = [f"{merge} AS {column}" for column, (_, merge) in shape.partials.items() if column not in place]
    made += [f"max({column}_w) AS {column}" for column in place]
    merged = held.groupBy(*map(shape.sql, [*shape.by, _START])).agg(*map(shape.sql, made))
    visible = [*shape.by, f"{_START} AS {START}", f"{_START} + {window.size_rows}L AS {END}", *shape.finals]
    hidden = [f"{_LAST_ID} AS {IDENTITY}", *([f"{_LAST_TIME} AS {TIME}"] if shape.timed else [])]
    failing = [] if shape.failing is None else [shape.failing]
    return merged.select(*map(shape.sql, [*visible, *hidden, *failing]))


def direct(shape: CountShape, rows: DataFrame) -> DataFrame:
    """The results of these rows alone: for calibration and checks."""
    slices = sliced(shape, rows, None)
    return results(shape, slices, slices).drop(FAILED)
