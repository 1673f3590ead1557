"""Expressions of users that throw on some rows: those rows are rejected, and the batch goes on.

In Spark's ANSI mode `1 / x` ends the batch when x is 0, and every repeat of the batch, for ever. So a batch that fails
by what its rows hold (SQLSTATE 22, a data exception) is repeated with care, and so are later ones (`care_period`): each
operator's expressions are tried on every row first. Rows on which one throws are counted and rejected at that operator,
the others are computed as before. While no row is bad this costs nothing. Aggregates of event time share their rows:
there an argument that throws is null, so that the row is lost to nobody else.

What cannot throw (`harmless`) is not tried. What cannot be tried, a function, is looked into by `isolating`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from jettison.errors import JettisonError
from jettison.network.columns.expressions import is_whole_star, multiplies
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Operator,
    Select,
    Where,
    WithColumns,
    computed,
    kind_of,
)
from jettison.spark.compile.drops import TIME
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.observations import observed_if_at_all
from jettison.spark.error_text import reason_of
from jettison.spark.guard.row_generators import taken_apart
from jettison.spark.guard.tried_arguments import VALUE, risky_arguments, tried_field, typed_call
from jettison.spark.guard.trying import CANNOT, TRIED, Found, as_column, look_at_all, try_column, with_tried

_DATA = re.compile(r"SQLSTATE: (22|23505|54000|39000|42K0B)|\[INVALID_FORMAT|PatternSyntaxException")
"""Data exceptions; keys that are twice in a map, collections that are too large, functions in Scala, ancient dates;
patterns of LIKE and RLIKE that are none, where a column holds them."""

T = TypeVar("T")


@dataclass(frozen=True)
class Rejecting:
    """Rows on which an operator's expression threw: how many, once the batch has run, and the rows themselves.

    `place` is the operator, or the arc into one that merges streams."""

    place: str
    observation: Observation
    rows: DataFrame
    reason: str | Column
    metric: str = "rows"


def is_of_data(error: BaseException) -> bool:
    """Whether an error comes from what a row holds: a division by zero, a text that is no number, an overflow.

    >>> is_of_data(ValueError("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")), is_of_data(OSError("disk full"))
    (True, False)
    """
    seen: BaseException | None = error
    while seen is not None:
        if _DATA.search(str(seen)):
            return True
        seen = seen.__cause__
    return False


def with_care(known: ExpressionCache, work: Callable[[], T], say: Callable[[str], None]) -> T:
    """Do some work of a batch; where it fails by its rows, do it again with care, and say so once."""
    try:
        return work()
    except Exception as error:
        if known.careful or not is_of_data(error):
            raise
        known.careful = True
        inner = error.__cause__ if isinstance(error, JettisonError) and error.__cause__ is not None else error
        say(f"an expression fails on some rows ({reason_of(inner)}): such rows are rejected now")
        return work()


def unfit_rows(rejecting: Mapping[str, Rejecting]) -> dict[str, int]:
    """How many rows each operator has rejected, where it has; a job counts them where no observation tells."""
    counts: dict[str, int] = {}
    for each in rejecting.values():
        seen = observed_if_at_all(each.observation)
        count = int(seen[each.metric]) if seen else each.rows.count()
        counts[each.place] = counts.get(each.place, 0) + count
    return {name: count for name, count in counts.items() if count}


def guarded(
    operator: Operator, rows: DataFrame, known: ExpressionCache
) -> tuple[Operator, DataFrame, Rejecting | None]:
    """An operator and its rows, such that it throws on none of them; the same as before where nothing can throw."""
    if not isinstance(operator, Where | Select | WithColumns):
        return operator, rows, None
    items, looked = items_of(operator), _looked_at(operator, rows, known)
    found = {
        number: (item, each)
        for number, ((_, item), each) in enumerate(zip(items, looked, strict=True))
        if each is not None and not each.python
    }
    last = max((each.stage for _, each in found.values() if each.risky), default=-1)
    found = {number: each for number, each in found.items() if each[1].stage <= last}
    if not found:
        return operator, rows, None
    try:
        tried, values = with_tried(rows, found)
    except CANNOT:
        return operator, rows, None
    safe = {items[number][0]: value for number, value in values.items()}
    kept, rejecting = _split(operator, tried, f"{TRIED} IS NULL")
    return _with_values(operator, safe, {items[n][0]: each.name for n, (_, each) in found.items()}), kept, rejecting


def holds_function(operator: Operator, rows: DataFrame, known: ExpressionCache) -> bool:
    """Whether an operator runs what cannot be tried row by row: a function of a DataFrame, or one in Python."""
    if not isinstance(operator, Where | Select | WithColumns):
        return isinstance(operator, Apply)
    return any(each is None or each.python for each in _looked_at(operator, rows, known))


def _looked_at(operator: Operator, rows: DataFrame, known: ExpressionCache) -> tuple[Found | None, ...]:
    items = [item for _, item in items_of(operator)]
    return known.asked(f"{operator.name} (items)", lambda: look_at_all(items, rows))


Place = tuple[int, int | None]
"""The number of an operator's item, and that of an argument inside of it."""


def items_of(operator: Operator) -> list[tuple[Place, Any]]:
    """What an operator computes of a row, by its place. Of `explode` and its like it is their arguments."""
    if isinstance(operator, Where):
        return [((0, None), operator.predicate)]
    found: list[tuple[Place, Any]] = []
    for number, item in enumerate(computed(operator)):
        if multiplies(item):
            made = taken_apart(item)
            found += [((number, place), each) for place, each in enumerate(made.arguments if made else ())]
        elif not _is_starred(item):
            found.append(((number, None), item))
    return found


def _with_values(operator: Operator, values: Mapping[Place, Column], names: Mapping[Place, str]) -> Operator:
    """An operator that takes these values instead of computing them."""
    if isinstance(operator, Where):
        return replace(operator, predicate=values[0, None])
    if isinstance(operator, WithColumns):
        columns = [(name, values.get((number, None), item)) for number, (name, item) in enumerate(operator.columns)]
        return replace(operator, columns=tuple(columns))
    assert isinstance(operator, Select)
    chosen = []
    for number, item in enumerate(operator.expressions):
        generator = taken_apart(item) if any(place[0] == number and place[1] is not None for place in values) else None
        if generator is not None:
            arguments = enumerate(generator.arguments)
            chosen.append(generator.written([values.get((number, n), as_column(each)) for n, each in arguments]))
        elif (number, None) in values:
            chosen.append(values[number, None].alias(names[number, None]))
        else:
            chosen.append(item)
    return replace(operator, expressions=tuple(chosen))


def guarded_rows(
    aggregate: CountAggregate, rows: DataFrame, known: ExpressionCache
) -> tuple[DataFrame, Rejecting | None]:
    """The rows on which no argument of an aggregate throws."""
    risky = sorted(_risky(aggregate, rows, known))
    if not risky:
        return rows, None
    try:
        values = F.struct(*(F.expr(item).alias(f"v{number}") for number, item in enumerate(risky)))
        tried = rows.withColumn(TRIED, try_column(values, rows))
    except CANNOT:
        return rows, None
    kept, rejecting = _split(aggregate, tried, f"{TRIED} IS NULL")
    return kept.drop(TRIED), rejecting


def tried_rows(
    members: Sequence[Aggregate],
    rows: DataFrame,
    counted: Collection[str],
    known: ExpressionCache,
    outside: Mapping[str, str],
) -> tuple[DataFrame, dict[str, Rejecting]] | None:
    """Rows with the tried arguments of aggregates that share slices, all of them: what throws is null, and no row is
    taken out. By aggregate of those `counted`, the rows on which its own arguments throw. Rows without event time are
    left out, as no window has a place for them, and so are those `outside` of all windows that it keeps, by a condition
    in SQL: they are late, or shed. None where nothing can throw, or there is no such try."""
    risky = {member.name: _risky(member, rows, known) for member in members}
    items = sorted(set().union(*risky.values()))
    if not items:
        return None
    try:
        values = [try_column(F.struct(F.expr(item).alias(VALUE)), rows).alias(tried_field(item)) for item in items]
        tried = rows.withColumn(TRIED, F.struct(*values))
    except CANNOT:
        return None
    seen, found, metrics = Observation(), dict[str, Rejecting](), list[Column]()
    for number, member in enumerate(each for each in members if each.name in counted and risky[each.name]):
        threw = " OR ".join(f"{TRIED}.{tried_field(item)} IS NULL" for item in sorted(risky[member.name]))
        threw = f"({threw}) AND {TIME} IS NOT NULL"
        if outside.get(member.name):
            threw = f"{threw} AND NOT ({outside[member.name]})"
        metrics.append(F.expr(f"count_if({threw}) AS rows{number}"))
        reason = f"{kind_of(member)} {member.name!r} fails on it"
        found[member.name] = Rejecting(member.name, seen, tried.where(threw).drop(TRIED), reason, f"rows{number}")
    return (tried.observe(seen, *metrics) if metrics else tried), found


def _risky(aggregate: Aggregate | CountAggregate, rows: DataFrame, known: ExpressionCache) -> frozenset[str]:
    """The arguments of an aggregate that may throw."""

    def find() -> frozenset[str]:
        calls = [typed_call(aggregate, text, rows)[0] for _, text in aggregate.aggregates if isinstance(text, str)]
        return frozenset(argument for call in calls for argument in risky_arguments(call, rows))

    return known.asked(f"{aggregate.name} (arguments)", find)


def _is_starred(item: Any) -> bool:
    return isinstance(item, str) and (is_whole_star(item) or "*" in item.split("(")[0])


def _split(operator: Operator, rows: DataFrame, bad: str, place: str | None = None) -> tuple[DataFrame, Rejecting]:
    """Rows that are not bad, and the bad ones."""
    return split(rows, bad, place or operator.name, f"{kind_of(operator)} {operator.name!r} fails on it")


def split(rows: DataFrame, bad: str | Column, place: str, reason: str) -> tuple[DataFrame, Rejecting]:
    """Rows that are not bad, by a condition that is never null; and the bad ones, counted, without what was tried."""
    seen = Observation()
    condition = F.expr(bad) if isinstance(bad, str) else bad
    kept = rows.observe(seen, F.count_if(condition).alias("rows")).where(~condition)
    return kept, Rejecting(place, seen, rows.where(condition).drop(TRIED), reason)
