"""What is computed of a row, tried: null where it throws.

Spark has such a try inside (`TryEval`, which makes `try_to_binary` of `to_binary`); SQL has no name for it. What is
tried is a struct of the values, so that null means "threw" and nothing else. What Spark's analysis says of an
expression (what it is called, whether it can throw) is asked once a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from jettison.network.columns.schema import quoted
from jettison.spark.compile.drops import IDENTITY
from jettison.spark.guard.harmless import has_python, is_harmless

TRIED = "_jt_tried"
"""A struct of what was tried, null where it threw."""
CANNOT = (AnalysisException, Py4JError, TypeError)
"""What is thrown where something cannot be tried: it is left to Spark, as it is."""


@dataclass(frozen=True)
class Found:
    """What Spark says of an expression: the column that it makes, and whether it may throw.

    `stage` is above 0 for a select item that uses names given by items before it. A function in `python` is run
    before any guard looks.
    """

    name: str
    risky: bool
    stage: int = 0
    python: bool = False


def look_at(item: Any, rows: DataFrame, stage: int = 0) -> Found:
    """What Spark says of an expression of one row."""
    made = rows.select(as_column(item))
    jdf: Any = made._jdf
    expressions = jdf.queryExecution().analyzed().expressions()
    tree = expressions.apply(0).toJSON()
    if expressions.size() != 1:
        return Found(made.columns[0], True, stage)
    return Found(made.columns[0], not is_harmless(tree), stage, has_python(tree))


def look_at_all(items: Sequence[Any], rows: DataFrame) -> tuple[Found | None, ...]:
    """The same of the items of one select, of which one may use a name that an earlier one gives; None of those that
    cannot be looked at alone."""
    found: list[Found | None] = [None] * len(items)
    frame, waiting, stage = rows, list(range(len(items))), 0
    while waiting:
        here = []
        for number in waiting:
            try:
                found[number] = look_at(items[number], frame, stage)
                here.append(number)
            except CANNOT:
                continue
        waiting = [number for number in waiting if number not in here]
        taken = {name.lower() for name in frame.columns}
        made = [(n, each.name) for n in here if (each := found[n]) is not None]
        given = {name: items[n] for n, name in made if name.lower() not in taken}
        if not given:
            break
        frame = frame.select("*", *(as_column(item).alias(name) for name, item in given.items()))
        stage += 1
    return tuple(found)


def with_tried(rows: DataFrame, items: Mapping[int, tuple[Any, Found]]) -> tuple[DataFrame, dict[int, Column]]:
    """Rows with column TRIED, which is null where a risky item throws; by number of those, what it gives.

    Items of a later stage use those before under their names: there these stand beside the rows for a while.
    """
    columns, frame, values = rows.columns, rows, dict[int, Column]()
    stages = sorted({found.stage for _, found in items.values()})
    for stage in stages:
        here = {number: each for number, each in items.items() if each[1].stage == stage}
        risky = [number for number, (_, found) in here.items() if found.risky]
        if risky:
            fields = [value.alias(f"v{number}") for number, value in values.items()]
            fields += [as_column(here[number][0]).alias(f"v{number}") for number in risky]
            tried = try_column(F.struct(*fields), rows)
            frame = frame.withColumn(TRIED, F.when(F.col(TRIED).isNotNull(), tried) if values else tried)
            values |= {number: F.col(f"{TRIED}.v{number}") for number in risky}
        if stage != stages[-1]:
            taken = {name.lower() for name in frame.columns}
            named = {
                found.name: values[number] if found.risky else as_column(item)
                for number, (item, found) in here.items()
                if found.name.lower() not in taken
            }
            frame = frame.select("*", *(item.alias(name) for name, item in named.items()))
    return frame if len(stages) == 1 else frame.select(*map(quoted, [*columns, TRIED])), values


def try_column(values: Column, rows: DataFrame) -> Column:
    """What cannot be computed is null. It stands in an IF, as Spark works out beforehand, outside of the try, what
    occurs twice, but not what stands in one branch alone."""
    jvm: Any = rows.sparkSession._jvm
    tools, made = jvm.org.apache.spark.sql.classic.ExpressionUtils, jvm.org.apache.spark.sql.catalyst.expressions
    inner: Any = values
    tried = ClassicColumn(tools.column(made.TryEval(tools.expression(inner._jc))))
    always = F.expr(f"coalesce({IDENTITY} & 0L, 0L) = 0L") if IDENTITY in rows.columns else F.expr("rand() >= 0")
    return F.when(always, tried)


def as_column(item: Any) -> Column:
    """A SQL string as a Column, a Column as it is."""
    return F.expr(item) if isinstance(item, str) else item
