"""What is judged harmless throws on no value of any type; what is not is tried, and stops nothing either."""

from __future__ import annotations

import itertools
import random

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.compile.test_generated_sql import ROWS, WORST, column_of, worst_rows

from jettison.spark.guard.trying import look_at, try_column

pytestmark = pytest.mark.spark

OF_ONE = (
    *("-{a}", "abs({a})", "{a} / 3", "{a} % 7", "{a} div 5", "{a} / 0.5", "pmod({a}, 3)", "NOT {a}", "{a} IS NULL"),
    *("upper({a})", "length({a})", "trim({a})", "substring({a}, 2, 3)", "{a} LIKE '%1%'", "md5({a})", "initcap({a})"),
    *("year({a})", "hour({a})", "dayofweek({a})", "unix_micros({a})", "sqrt({a})", "exp({a})", "ln({a})", "sign({a})"),
    *("shiftleft({a}, 3)", "~{a}", "xxhash64({a})", "size(array({a}))", "named_struct('x', {a}).x", "array({a})[0]"),
    *("instr({a}, '1')", "contains({a}, '1')", "isnan({a})", "nvl2({a}, 1, 2)", "exists(array({a}), x -> x = {a})"),
)
OF_TWO = (
    *("{a} = {b}", "{a} < {b}", "{a} <=> {b}", "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} % {b}"),
    *("coalesce({a}, {b})", "IF({a} IS NULL, {b}, {a})", "greatest({a}, {b})", "{a} IN ({b})", "nullif({a}, {b})"),
    *("concat({a}, {b})", "{a} BETWEEN {b} AND {b}", "CASE WHEN {a} = {b} THEN {a} ELSE {b} END", "{a} & {b}"),
    *("{a} LIKE {b}", "{a} RLIKE {b}"),
)
PLAIN = ("{a} IS NULL", "{a} = {a}", "coalesce({a}, {a})", "{a} < {a}")
"""Of these every type has to be known as harmless: nobody pays for a comparison."""


@pytest.mark.long
def test_trust_12_what_has_no_guard_throws_on_no_value_of_any_type(spark: SparkSession) -> None:
    rows = worst_rows(spark)
    columns = {kind: column_of(kind) for kind in WORST}
    asked = [sql.format(a=column) for sql in (*OF_ONE, *PLAIN) for column in columns.values()]
    asked += [f"CAST({column} AS {kind})" for column, kind in itertools.product(columns.values(), columns)]
    pairs = [sql.format(a=a, b=b) for sql in OF_TWO for a, b in itertools.product(columns.values(), repeat=2)]
    asked += random.Random(12).sample(pairs, 200)
    harmless, risky = [], []
    for sql in dict.fromkeys(asked):
        try:
            (risky if look_at(sql, rows).risky else harmless).append(sql)
        except AnalysisException:
            continue  # of these types there is no such expression
    assert {sql.format(a=column) for sql in PLAIN for column in columns.values()} <= set(harmless)
    double, whole, text = columns["double"], columns["int"], columns["string"]
    assert {f"abs({double})", f"{double} / 3", f"{whole} % 7", f"CAST({whole} AS bigint)"} <= set(harmless)
    assert look_at(f"{text} LIKE {text}", rows).risky
    assert look_at(f"{text} RLIKE {text}", rows).risky
    assert not look_at(f"{text} LIKE 'a%'", rows).risky
    assert {f"abs({whole})", f"CAST({text} AS int)", f"CAST({double} AS int)", f"array({whole})[0]"} <= set(risky)
    assert len(harmless) > 200
    assert len(risky) > 150

    hashed = [F.xxhash64(F.expr(sql)) for sql in harmless]
    counted = rows.select(*(each.alias(f"h{number}") for number, each in enumerate(hashed))).collect()
    assert len(counted) == ROWS
    threw = [try_column(F.struct(F.expr(sql).alias("v")), rows).isNull().cast("int") for sql in risky]
    total = rows.select(*(F.sum(each).alias(f"t{number}") for number, each in enumerate(threw))).first()
    assert total is not None
    assert sum(1 for count in total if count) > 50  # the guard had something to do
