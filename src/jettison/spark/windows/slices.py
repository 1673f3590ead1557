"""Slices of windows as frames: rows become partials per (group, slice), partials of closing windows become results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from jettison.errors import NetworkError, StartError
from jettison.network.columns.schema import quoted
from jettison.network.operators import Aggregate, CountAggregate
from jettison.network.windows.aggregates import Recipe, recipe
from jettison.network.windows.estimate_context import COLUMN as CONTEXT
from jettison.network.windows.estimate_context import Context, fact, facts_sql
from jettison.network.windows.estimates import HIGH, LOW, MISSED, MORE, WEIGHT, Estimate, estimate
from jettison.network.windows.slice_groups import SliceGroup
from jettison.network.windows.time_windows import END, START
from jettison.network.windows.user_aggregates import Own, encoding_label, with_functions
from jettison.plan.refine.thinning import Thinned, touching
from jettison.spark.compile.drops import HIDDEN, IDENTITY, TIME, changing
from jettison.spark.error_text import reason_of
from jettison.spark.guard.tried_arguments import risky_arguments, trying, typed_call
from jettison.spark.windows.missed_rows import missed_sql
from jettison.spark.windows.user_functions import own_columns
from jettison.spark.windows.user_values import takes_from_python

SLICE = "_jt_slice"
ROWS = "_jt_rows"
NEWEST = "_jt_newest"
FAILED = "_jt_failed"
_START = "_jt_start"
_COUNTED = "count(1)"
_FITTED = re.compile(r"(tinyint|smallint|int|bigint|decimal|timestamp)\b")
_ORDER = f"struct({TIME}, {IDENTITY})"
MORE_ROWS = "_jt_more_rows"
"""Rows that the rows of a slice stand for, beside themselves."""


@dataclass(frozen=True)
class Shape:
    """What the slices of a group hold, and what becomes of it.

    `partials` has, by column, the aggregate over rows and the one over partials; `finals`, by aggregate, the columns
    of a result, and `used` those of partials; `schema` is that of slices as they are kept. A column is called after
    what is in it: slices stay readable when an aggregate joins or leaves the group. Of aggregates of the user's own,
    which SQL cannot say, the texts are names, and `parsed` has their columns; `failing` says by aggregate why a window
    failed. `contexts` has, by column that is estimated, what is observed of new slices. `tried` has, by column of
    partials whose arguments may throw, the same aggregate of tried values.
    """

    group: SliceGroup
    partials: Mapping[str, tuple[str, str]]
    finals: Mapping[str, tuple[str, ...]]
    used: Mapping[str, tuple[str, ...]]
    schema: StructType = field(default_factory=StructType)
    failing: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    parsed: dict[str, Column] = field(default_factory=dict, compare=False, repr=False)
    tried: Mapping[str, str] = field(default_factory=dict)

    def of_tried_rows(self) -> Shape:
        """The same slices, of rows whose arguments were tried first."""
        partials = {name: (self.tried.get(name, sql), merge) for name, (sql, merge) in self.partials.items()}
        return replace(self, partials=partials)

    def sql(self, text: str) -> Column:
        """A SQL text that is the same in every batch as a Column, parsed once."""
        if text not in self.parsed:
            self.parsed[text] = F.expr(text)
        return self.parsed[text]

    def columns_text(self) -> dict[str, str]:
        """The shape in words, by aggregate: what must be the same for slices from before to be of use."""
        types = {each.name: each.dataType.simpleString() for each in self.schema.fields}
        by = ", ".join(f"{name} {types[name]}" for name in self.group.by)
        return {
            member.name: f"windows of {member.window.size_us} us every {member.window.slide_us} us by ({by}) with "
            + ", ".join(f"{self.partials[column][0]} {types[column]}" for column in self.used[member.name])
            for member in self.group.members
        }


def shape_of(group: SliceGroup, rows: DataFrame) -> Shape:
    """The shape of a group's slices, as Spark's types have it."""
    if TIME not in rows.columns:
        raise StartError(
            f"aggregate {group.name!r}: the rows of {group.tail!r} have lost their event time: let functions in "
            f".apply() before it keep column {TIME!r}."
        )
    if WEIGHT not in rows.columns and any(member.estimated for member in group.members):
        raise StartError(
            f"aggregate {group.name!r}: the rows of {group.tail!r} have lost their weight, by which it is estimated: "
            f"let functions in .apply() before it keep column {WEIGHT!r}."
        )
    made = columns_of(group.members, rows, _ORDER)
    shape = Shape(
        group,
        made.partials,
        made.finals,
        made.used,
        failing=made.failing,
        contexts=made.contexts,
        parsed=made.parsed,
        tried=made.tried,
    )
    kept = kept_slices(shape, sliced(shape, rows))
    return replace(shape, partials=of_same_types(made.partials, kept.schema), schema=kept.schema)


@dataclass(frozen=True)
class Made:
    """What aggregates are made of: the columns of `Shape`."""

    partials: dict[str, tuple[str, str]]
    finals: dict[str, tuple[str, ...]]
    used: dict[str, tuple[str, ...]]
    failing: dict[str, str]
    contexts: dict[str, dict[str, str]]
    parsed: dict[str, Column]
    tried: dict[str, str]


def of_same_types(partials: Mapping[str, tuple[str, str]], schema: StructType) -> dict[str, tuple[str, str]]:
    """Partials whose merge gives the type that is kept: a sum of sums of decimals is wider than the sum."""
    types = {each.name: each.dataType.simpleString() for each in schema.fields}
    return {
        column: (sql, f"CAST({merge} AS {types[column]})" if types[column].startswith("decimal") else merge)
        for column, (sql, merge) in partials.items()
    }


def columns_of(members: Sequence[Aggregate | CountAggregate], rows: DataFrame, order: str) -> Made:
    """What the aggregates of these rows are made of. `order` is, in SQL, what rows are first and last by."""
    partials: dict[str, tuple[str, str]] = {ROWS: (_COUNTED, f"sum({ROWS})")}
    finals: dict[str, tuple[str, ...]] = {}
    used: dict[str, tuple[str, ...]] = {}
    failing: dict[str, str] = {}
    contexts: dict[str, dict[str, str]] = {}
    parsed: dict[str, Column] = {}
    tried: dict[str, str] = {}
    for member in members:
        results = _analysed(member, rows)
        made, columns, intervals, reasons = [], [ROWS], list[str](), list[Column]()
        estimated = isinstance(member, Aggregate) and member.estimated
        if estimated:  # so that the sizes of groups are known, whatever is estimated
            partials.setdefault(MORE_ROWS, (MORE, f"sum({MORE_ROWS})"))
            columns.append(MORE_ROWS)
        for name, text in member.aggregates:
            if isinstance(text, Own):
                own = _own(member, name, text, order, parsed)
                columns.append(own.column)
                partials[own.column] = (own.label, f"{own.label} merged")
                made.append(own.label)
                reasons.append(parsed[f"{own.label} failed"])
                continue
            kind = results.schema[name].dataType.simpleString()
            how, safe = _ways(member, text, rows, order, kind if estimated else None)
            tried |= {
                _column(partial.sql): same.sql
                for partial, same in zip(how.partials, safe.partials, strict=True)
                if partial.sql != same.sql
            }
            names = [_column(partial.sql) for partial in how.partials]
            columns += names
            for partial, column in zip(how.partials, names, strict=True):
                partials.setdefault(column, (partial.sql, _filled(partial.merge, names)))
            made.append(f"{_as_kind(_filled(how.final, names), kind)} AS {quoted(name)}")
            if how.failed is not None:
                reasons.append(F.expr(_filled(how.failed, names)))
            if isinstance(how, Estimate):
                if how.about:
                    contexts.setdefault(how.about, {each: _filled(sql, names) for each, sql in how.sums.items()})
                place = list(contexts).index(how.about) if how.about else 0
                intervals += [
                    f"{_with_facts(_filled(end, names), place)} AS {quoted(name + called)}"
                    for called, end in ((LOW, how.low), (HIGH, how.high))
                ]
        finals[member.name], used[member.name] = (*made, *intervals), tuple(dict.fromkeys(columns))
        if reasons:
            failing[member.name] = f"{member.name} failed"
            parsed[failing[member.name]] = F.coalesce(*reasons).alias(FAILED)
    return Made(partials, finals, used, failing, contexts, parsed, tried)


def sliced(shape: Shape, rows: DataFrame) -> DataFrame:
    """Rows as slices: one row per (group, slice) with its partials, its rows and its newest event time."""
    at = f"unix_micros(CAST({TIME} AS timestamp))"
    begins = f"{at} - pmod({at}, {shape.group.slice_us}L)"
    keys = [shape.sql(f"{quoted(name)} AS {quoted(name)}") for name in shape.group.by]
    made = [shape.sql(f"{sql} AS {column}") for column, (sql, _) in shape.partials.items()]
    return rows.groupBy(*keys, shape.sql(f"{begins} AS {SLICE}")).agg(*made, shape.sql(f"max({at}) AS {NEWEST}"))


def kept_slices(shape: Shape, slices: DataFrame, first_us: int | None = None) -> DataFrame:
    """What is kept of new slices: those from the first that an open window needs on; none without event time."""
    needed = f"{SLICE} IS NOT NULL" if first_us is None else f"{SLICE} >= {number(first_us)}"
    names = [*map(quoted, shape.group.by), SLICE, *shape.partials]
    return slices.where(shape.sql(needed) if first_us is None else F.expr(needed)).select(*map(shape.sql, names))


def merged(shape: Shape, slices: DataFrame) -> DataFrame:
    """Slices with one row per (group, slice)."""
    return _grouped(shape, slices, SLICE)


def results(
    shape: Shape,
    aggregate: Aggregate,
    slices: DataFrame,
    closing: tuple[int, int] | None = None,
    context: Mapping[str, Context] | None = None,
    thinned: Sequence[Thinned] = (),
    watched: Callable[[str, DataFrame], DataFrame] | None = None,
) -> DataFrame:
    """The results of windows, from slices: of those that begin between two times, or of all.

    With aggregates of the user's own they have column FAILED, to be observed and left out. `context` says what is known
    of estimated columns, `thinned` when rows of this aggregate may have been dropped; then `watched` looks at its
    windows by group.
    """
    window = aggregate.window
    first, last = (None, None) if closing is None else map(number, closing)
    if window.tumbling:
        started = slices.withColumn(_START, shape.sql(f"{SLICE} - pmod({SLICE}, {window.slide_us}L)"))
        if closing is not None:
            started = started.where(f"{_START} >= {first} AND {_START} <= {last}")
    else:
        low = (
            f"{SLICE} - {window.size_us}L - pmod({SLICE} - {window.size_us}L, {window.slide_us}L) + {window.slide_us}L"
        )
        high = f"{SLICE} - pmod({SLICE}, {window.slide_us}L)"
        low = low if first is None else f"greatest({low}, {first})"
        high = high if last is None else f"least({high}, {last})"
        starts = f"explode(IF({low} <= {high}, sequence({low}, {high}, {window.slide_us}L), array()))"
        started = slices.withColumn(_START, F.expr(starts))
    by = [quoted(name) for name in window.by]
    ends = f"timestamp_micros({_START} + {window.size_us}L)"
    visible = [*by, f"timestamp_micros({_START}) AS {START}", f"{ends} AS {END}", *shape.finals[aggregate.name]]
    missing = [f"{column} IS NULL" for column in by]  # a hash passes nulls over, and (7, null) is not (null, 7)
    hidden = [f"xxhash64({', '.join([*by, *missing, _START])}) AS {IDENTITY}", f"timestamp_micros({_START}) AS {TIME}"]
    failing = [shape.failing[aggregate.name]] if aggregate.name in shape.failing else []
    grouped = _grouped(shape, started, _START)
    if shape.contexts:
        grouped = grouped.withColumn(CONTEXT, F.expr(facts_sql(list(shape.contexts), context or {}, ROWS)))
    if aggregate.estimated:
        entries = touching(thinned, closing, window.size_us)
        grouped = grouped.withColumn(MISSED, F.expr(missed_sql(entries, _START, window.size_us, MORE_ROWS)))
        if entries and watched is not None:
            grouped = watched(aggregate.name, grouped)
    return grouped.select(*map(shape.sql, [*visible, *hidden, *failing]))


def number(value_us: int) -> str:
    """A number that changes from batch to batch, in SQL, so that the code around it is not compiled anew."""
    return changing(f"{value_us}L", SLICE)


def _grouped(shape: Shape, slices: DataFrame, moment: str) -> DataFrame:
    keys = [quoted(name) for name in shape.group.by]
    made = [f"{merge} AS {column}" for column, (_, merge) in shape.partials.items()]
    return slices.groupBy(*map(shape.sql, [*keys, moment])).agg(*map(shape.sql, made))


@dataclass(frozen=True)
class _Named:
    """An aggregate of the user's own: the column of its partials, and what it is called."""

    column: str
    label: str


def _own(aggregate: Aggregate | CountAggregate, name: str, own: Own, order: str, parsed: dict[str, Column]) -> _Named:
    """Put the columns of an aggregate of the user's own under their names."""
    label = f"{aggregate.name}.{name} of ({', '.join(own.columns)}){encoding_label(own)}"
    column = _column(label)
    try:
        kind = DataType.fromDDL(own.type)
    except ParseException as error:
        raise StartError(
            f"aggregate {aggregate.name!r}: {name!r} is of type {own.type!r}, which Spark does not know: say one such "
            f"as 'double', 'bigint', 'string' or 'array<int>'."
        ) from error
    if not takes_from_python(kind):
        raise StartError(
            f"aggregate {aggregate.name!r}: {name!r} is of type {own.type!r}, which Spark does not take from Python: "
            f"say another one, such as 'bigint' or 'string'."
        )
    own = with_functions(f"aggregate {aggregate.name!r}: {name!r}", own)
    made = own_columns(own, kind, column) if order == _ORDER else own_columns(own, kind, column, order)
    parsed[f"{label} AS {column}"] = made.partial.alias(column)
    parsed[f"{label} merged AS {column}"] = made.merge.alias(column)
    parsed[label] = made.value.alias(name)
    parsed[f"{label} failed"] = made.failed
    return _Named(column, label)


def _ways(
    aggregate: Aggregate | CountAggregate, text: str, rows: DataFrame, order: str, estimated: str | None
) -> tuple[Recipe | Estimate, Recipe | Estimate]:
    """How an aggregate is computed, of rows and of tried rows; `estimated` is the type of an estimated result."""
    call, kind = typed_call(aggregate, text, rows)
    risky = risky_arguments(call, rows)
    if estimated is not None:
        return estimate(call, kind, estimated), estimate(trying(call, risky), kind, estimated)
    try:
        return recipe(call, kind, order), recipe(trying(call, risky), kind, order)
    except NetworkError as error:
        raise StartError(f"aggregate {aggregate.name!r}: {text!r}: {error}") from error


def _analysed(aggregate: Aggregate | CountAggregate, rows: DataFrame) -> DataFrame:
    """The aggregates as Spark itself would compute them, to know the types and to let it complain."""
    try:
        keys = [F.expr(quoted(name)) for name in aggregate.window.by]
        own = [name for _, call in aggregate.aggregates if isinstance(call, Own) for name in call.columns]
        calls = [(name, call) for name, call in aggregate.aggregates if isinstance(call, str)]
        read = rows.select("*", *(F.expr(f"{quoted(name)} AS _jt_own{n}") for n, name in enumerate(own)))
        made = [F.expr(f"{text} AS {quoted(name)}") for name, text in calls]
        return read.groupBy(*keys).agg(*made or [F.expr(_COUNTED)])
    except AnalysisException as error:
        here = ", ".join(name for name in rows.columns if name not in HIDDEN)
        raise StartError(f"aggregate {aggregate.name!r}: {reason_of(error)} Columns here: {here}.") from error


def _as_kind(value: str, kind: str) -> str:
    """A value as Spark's own function gives it; null where it does not fit, as a double may not into a decimal."""
    return f"{'try_cast' if _FITTED.match(kind) else 'CAST'}({value} AS {kind})"


def _column(sql: str) -> str:
    """The column of a partial.

    >>> _column("count(1)"), _column("sum(fare)")
    ('_jt_rows', '_jt_bbef7e3d')
    """
    if sql == MORE:
        return MORE_ROWS
    return ROWS if sql == _COUNTED else f"_jt_{hashlib.blake2b(sql.encode(), digest_size=4).hexdigest()}"


def _filled(template: str, columns: list[str]) -> str:
    """A template with the columns of its partials.

    >>> _filled("try_divide(#0, #1)", ["_jt_p1", "_jt_p2"])
    'try_divide(_jt_p1, _jt_p2)'
    """
    return re.sub(r"#(\d+)", lambda found: columns[int(found[1])], template)


def _with_facts(template: str, place: int) -> str:
    """A template with what is known of the column at a place.

    >>> _with_facts("least(@share, 1D)", 0)
    'least(get(_jt_context, 1), 1D)'
    """
    return re.sub(r"@(\w+)", lambda found: fact(place, found[1]), template)


def direct(group: SliceGroup, shape: Shape, rows: Mapping[tuple[str, ...], DataFrame]) -> dict[str, DataFrame]:
    """The results of all windows of these rows, whether they are complete or not: for calibration and checks."""
    found = {}
    for names, frame in rows.items():
        slices = kept_slices(shape, sliced(shape, frame))
        for member in group.members:
            if member.name in names:
                found[member.name] = results(shape, member, slices).drop(FAILED)
    return found
