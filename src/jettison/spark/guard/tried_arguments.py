"""Arguments of aggregates that may throw on a row: their tried values, which are null where they throw.

A frame with column TRIED holds, for every such argument of a group of aggregates, a struct with its value; the struct
is null where the argument throws. The field is called after the argument's text, so that every aggregate finds its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jettison.network.columns.expressions import passed_column
from jettison.network.operators import Aggregate, CountAggregate
from jettison.network.windows.aggregates import Call, parse_call
from jettison.spark.guard.trying import CANNOT, TRIED, look_at

VALUE = "v"
_ALL_OF_ROWS = ("count", "min_by", "max_by")
"""Functions whose every argument is computed of a row; of others the first is."""
_NUMERIC = ("sum", "avg", "mean", "stddev", "variance", "var", "percentile_approx", "approx_percentile")


def typed_call(aggregate: Aggregate | CountAggregate, text: str, rows: DataFrame) -> tuple[Call, str]:
    """An aggregate's call, and the type of its first argument; a text that is computed with is cast to double here, as
    Spark would do by itself: so a text that is no number is an argument that throws."""
    call = parse_call(f"aggregate {aggregate.name!r}", text)
    first = call.arguments[0]
    kind = "" if first == "*" else rows.select(F.expr(first).alias("x")).schema["x"].dataType.simpleString()
    if kind == "string" and call.function.startswith(_NUMERIC):
        return replace(call, arguments=(f"double({first})", *call.arguments[1:])), "double"
    return call, kind


def trying(call: Call, risky: Collection[str]) -> Call:
    """The same call of tried values.

    >>> trying(Call("max_by", ("fare", "1 / x")), {"1 / x"}).arguments == ("fare", tried_value("1 / x"))
    True
    """
    return replace(call, arguments=tuple(tried_value(each) if each in risky else each for each in call.arguments))


def risky_arguments(call: Call, rows: DataFrame) -> tuple[str, ...]:
    """Arguments that may throw on a row, as Spark's analysis has them."""
    return tuple(each for each in computed_arguments(call) if _may_throw(each, rows))


def _may_throw(argument: str, rows: DataFrame) -> bool:
    try:
        return look_at(argument, rows).risky
    except CANNOT:
        return True


def computed_arguments(call: Call) -> tuple[str, ...]:
    """Arguments that are computed of a row.

    >>> computed_arguments(Call("percentile_approx", ("1 / x", "array(0.5, 0.9)")))
    ('1 / x',)
    """
    given = call.arguments if call.function in _ALL_OF_ROWS else call.arguments[:1]
    return tuple(each for each in given if each != "*" and not each.isdigit() and passed_column(each) is None)


def tried_field(argument: str) -> str:
    """The field of TRIED that an argument has."""
    return f"a{hashlib.blake2b(argument.encode(), digest_size=6).hexdigest()}"


def tried_value(argument: str) -> str:
    """The value of a tried argument, in SQL."""
    return f"{TRIED}.{tried_field(argument)}.{VALUE}"
