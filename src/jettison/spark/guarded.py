"""Expressions of users that throw on some rows: those rows are rejected, and the batch goes on.

In Spark's ANSI mode `1 / x` ends the batch when x is 0, and every repeat of the batch, for ever. So a batch that fails
by what its rows hold (SQLSTATE 22, a data exception) is repeated with care, and so are all later ones of the run: each
operator's expressions are tried on every row first. Rows on which one throws are counted and rejected at that operator,
the others are computed as before. While no row is bad this costs nothing. Aggregates of event time share their rows:
there an argument that throws is null, so that the row is lost to nobody else.

Spark has such a try inside (`TryEval`, which makes `try_to_binary` of `to_binary`); SQL has no name for it. What is
tried is a struct of the values, so that null means "threw" and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from jettison.errors import JettisonError
from jettison.network.expressions import is_whole_star, multiplies, passed_column
from jettison.network.operators import Aggregate, CountAggregate, Operator, Select, Where, WithColumns, kind_of
from jettison.spark.drops import IDENTITY, TIME
from jettison.spark.known import Known
from jettison.spark.observed import observed_if_at_all
from jettison.spark.reasons import reason_of
from jettison.spark.tried import TRIED, VALUE, risky_arguments, tried_field, typed_call

_DATA = re.compile(r"SQLSTATE: 22")

T = TypeVar("T")


@dataclass(frozen=True)
class Rejecting:
    """Rows on which an operator's expression threw: how many, once the batch has run, and the rows themselves."""

    observation: Observation
    rows: DataFrame
    reason: str
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


def with_care(known: Known, work: Callable[[], T], say: Callable[[str], None]) -> T:
    """Do some work of a batch; where it fails by its rows, do it again with care, and say so once."""
    try:
        return work()
    except Exception as error:
        if known.careful or not is_of_data(error):
            raise
        known.careful = True
        inner = error.__cause__ if isinstance(error, JettisonError) and error.__cause__ is not None else error
        say(f"an expression fails on some rows ({reason_of(inner)}): from now on such rows are rejected")
        return work()


def unfit_rows(rejecting: Mapping[str, Rejecting]) -> dict[str, int]:
    """How many rows each operator has rejected, where it has; a job counts them where no observation tells."""
    counts = {}
    for name, each in rejecting.items():
        seen = observed_if_at_all(each.observation)
        counts[name] = int(seen[each.metric]) if seen else each.rows.count()
    return {name: count for name, count in counts.items() if count}


def guarded(operator: Operator, rows: DataFrame) -> tuple[Operator, DataFrame, Rejecting | None]:
    """An operator and its rows, such that it throws on none of them; the same as before where nothing can throw.

    What `explode` and its like make several rows of is not tried.
    """
    if isinstance(operator, Where):
        tried, found = _tried(operator, rows, [operator.predicate])
        return (operator, rows, None) if found is None else (replace(operator, predicate=_value(0)), tried, found)
    if isinstance(operator, Select):
        items = [item for item in operator.expressions if _can_throw(item)]
        tried, found = _tried(operator, rows, items)
        if found is None:
            return operator, rows, None
        names = rows.select(*(_column(item) for item in items)).columns
        values = iter([_value(number).alias(name) for number, name in enumerate(names)])
        chosen = tuple(next(values) if _can_throw(item) else item for item in operator.expressions)
        return replace(operator, expressions=chosen), tried, found
    if isinstance(operator, WithColumns):
        tried, found = _tried(operator, rows, [item for _, item in operator.columns])
        if found is None:
            return operator, rows, None
        named = tuple((name, _value(number)) for number, (name, _) in enumerate(operator.columns))
        return replace(operator, columns=named), tried, found
    return operator, rows, None


def guarded_rows(aggregate: CountAggregate, rows: DataFrame) -> tuple[DataFrame, Rejecting | None]:
    """The rows on which no argument of an aggregate throws."""
    tried, found = _tried(aggregate, rows, sorted(_risky(aggregate, rows)))
    return tried.drop(TRIED), found


def tried_rows(
    members: Sequence[Aggregate], rows: DataFrame, counted: Collection[str]
) -> tuple[DataFrame, dict[str, Rejecting]] | None:
    """Rows with the tried arguments of aggregates that share slices, all of them: what throws is null, and no row is
    taken out. By aggregate of those `counted`, the rows on which its own arguments throw; those without event time are
    left out, as no window has a place for them. None where nothing can throw, or there is no such try."""
    risky = {member.name: _risky(member, rows) for member in members}
    items = sorted(set().union(*risky.values()))
    if not items:
        return None
    try:
        values = [_try(F.struct(F.expr(item).alias(VALUE)), rows).alias(tried_field(item)) for item in items]
        tried = rows.withColumn(TRIED, F.struct(*values))
    except (AnalysisException, Py4JError, TypeError):
        return None
    seen, found, metrics = Observation(), dict[str, Rejecting](), list[Column]()
    for number, member in enumerate(each for each in members if each.name in counted and risky[each.name]):
        threw = " OR ".join(f"{TRIED}.{tried_field(item)} IS NULL" for item in sorted(risky[member.name]))
        threw = f"({threw}) AND {TIME} IS NOT NULL"
        metrics.append(F.expr(f"count_if({threw}) AS rows{number}"))
        reason = f"{kind_of(member)} {member.name!r} fails on it"
        found[member.name] = Rejecting(seen, tried.where(threw).drop(TRIED), reason, f"rows{number}")
    return (tried.observe(seen, *metrics) if metrics else tried), found


def _risky(aggregate: Aggregate | CountAggregate, rows: DataFrame) -> frozenset[str]:
    """The arguments of an aggregate that may throw."""
    calls = [typed_call(aggregate, text, rows)[0] for _, text in aggregate.aggregates if isinstance(text, str)]
    return frozenset(argument for call in calls for argument in risky_arguments(call))


def _can_throw(item: Any) -> bool:
    """Whether a select item is worth trying: it computes something, of one row."""
    starred = isinstance(item, str) and (is_whole_star(item) or "*" in item.split("(")[0])
    return not starred and not multiplies(item) and passed_column(item) is None


def _tried(operator: Operator, rows: DataFrame, items: Sequence[Any]) -> tuple[DataFrame, Rejecting | None]:
    """Rows with what these items give in column TRIED, without those on which one throws."""
    if not items:
        return rows, None
    try:
        values = F.struct(*(_column(item).alias(f"v{number}") for number, item in enumerate(items)))
        tried = rows.withColumn(TRIED, _try(values, rows))
    except (AnalysisException, Py4JError, TypeError):  # such as an item that uses one before it, or no such try
        return rows, None
    seen = Observation()
    threw, passed = F.expr(f"{TRIED} IS NULL"), F.expr(f"{TRIED} IS NOT NULL")
    kept = tried.observe(seen, F.expr(f"count_if({TRIED} IS NULL) AS rows")).where(passed)
    reason = f"{kind_of(operator)} {operator.name!r} fails on it"
    return kept, Rejecting(seen, tried.where(threw).drop(TRIED), reason)


def _try(values: Column, rows: DataFrame) -> Column:
    """What cannot be computed is null. It stands in an IF, as Spark works out beforehand, outside of the try, what
    occurs twice, but not what stands in one branch alone."""
    jvm: Any = rows.sparkSession._jvm
    tools, made = jvm.org.apache.spark.sql.classic.ExpressionUtils, jvm.org.apache.spark.sql.catalyst.expressions
    inner: Any = values
    tried = ClassicColumn(tools.column(made.TryEval(tools.expression(inner._jc))))
    always = F.expr(f"coalesce({IDENTITY} & 0L, 0L) = 0L") if IDENTITY in rows.columns else F.expr("rand() >= 0")
    return F.when(always, tried)


def _column(item: Any) -> Column:
    return F.expr(item) if isinstance(item, str) else item


def _value(number: int) -> Column:
    return F.col(f"{TRIED}.v{number}")
