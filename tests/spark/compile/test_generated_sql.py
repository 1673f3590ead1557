"""All SQL that Jettison generates, on rows that hold the worst of every type, in Spark's ANSI mode: nothing throws.

What a condition or an aggregate must give is worked out anew: in Python, or by Spark's own functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.network.operators import Source
from jettison.network.windows.aggregates import KNOWN
from jettison.network.windows.slice_groups import slice_groups
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.drops.stratified import Stratified
from jettison.plan.drops.window import Fate, Resolved, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import Schedule, Segment, kept
from jettison.plan.windows.need_bits import needed_bits
from jettison.spark.batch.measure import output_metrics
from jettison.spark.compile import drops, group_sizes, pairs, raw_rows
from jettison.spark.compile.drops import IDENTITY, TIME, keeps
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.value_samples import value_metrics
from jettison.spark.windows import count_slices, slices

pytestmark = pytest.mark.spark

S = 1_000_000
HUGE = "repeat('x', 100000)"
WORST = {
    "boolean": ["true", "false"],
    "tinyint": ["-128Y", "127Y", "0Y"],
    "smallint": ["-32768S", "32767S", "0S"],
    "int": ["-2147483648", "2147483647", "0"],
    "bigint": ["-9223372036854775808L", "9223372036854775807L", "0L", "9223372036854775807L"],
    "float": ["float('NaN')", "float('Infinity')", "float('-Infinity')", "-0.0F", "3.4e38F"],
    "double": ["double('NaN')", "double('Infinity')", "double('-Infinity')", "-0.0D", "1.7e308D", "25D"],
    "decimal(10,2)": ["-99999999.99BD", "99999999.99BD", "0BD"],
    "decimal(38,0)": [f"-{'9' * 38}BD", f"{'9' * 38}BD", "0BD", f"{'9' * 38}BD"],
    "string": ["''", HUGE, "'NaN'", "'1e999'", "'12'", "'\\'`\"\\\\'", "'{'", "'[1]'", '\'{"x": 1e999, "t": 5}\''],
    "date": ["date '0001-01-01'", "date '9999-12-31'", "date '1970-01-01'"],
    "timestamp": [
        "timestamp_micros(-9223372036854775808L)",
        "timestamp_micros(9223372036854775807L)",
        "timestamp '0001-01-01 00:00:00'",
        "timestamp '9999-12-31 23:59:59.999999'",
        "timestamp_micros(0L)",
        "timestamp_micros(25000000L)",
        "timestamp_micros(-1L)",
    ],
}
ROWS = 20


def worst_rows(spark: SparkSession) -> DataFrame:
    """A column of every type, `c0`, `c1`, ..., with its worst values and null; identities, and plain times `at`."""
    columns = []
    for number, (kind, values) in enumerate(WORST.items()):
        every = ", ".join(f"CAST({value} AS {kind})" for value in ["NULL", *values])
        columns.append(f"get(array({every}), int(id % {len(values) + 1})) AS c{number}")
    at = "timestamp_micros(1000000L * id) AS at"
    rows = spark.range(ROWS).selectExpr("*", *columns, at, f"xxhash64(id) AS {IDENTITY}")
    return rows.coalesce(1).persist()


def column_of(kind: str) -> str:
    return f"c{list(WORST).index(kind)}"


DOUBLE, BIG, TEXT, MOMENT = map(column_of, ("double", "bigint", "string", "timestamp"))
BOUNDS = (0.0, 25.0, 1e300)


def fate() -> Fate:
    segments = (Segment(0, 0.5, 3, "seed"), Segment(10, 0.75, 3, "seed"))
    return Fate(10 * S, Schedule(segments), 0.75)


def test_trust_12_conditions_of_drops_judge_every_row(spark: SparkSession) -> None:
    rows = worst_rows(spark).withColumn(TIME, F.expr(f"IF({drops.placeable(MOMENT)}, {MOMENT}, NULL)"))
    needed = needed_bits(((0, 20 * S), (40 * S, 50 * S)), 0, 60 * S, 10 * S, now_us=45 * S)
    asked: dict[str, str] = {
        "random": keeps("a", Random(0.5)),
        "cells": keeps("a", Semantic(DOUBLE, BOUNDS, (0.0, 1.0, 0.0), 0.5)),
        "fresh": drops.is_fresh(25.0, MOMENT),
        "needed": drops.is_needed(Window({}, 0.5, resolved=Resolved(needed=needed)), MOMENT),
        "fate": drops.is_needed(Window({"w": fate()}, 0.5, of="w")),
        "placed": drops.placeable(MOMENT),
        "named": drops.named_cell(("12", "it's"), TEXT),
    }
    for number in range(len(WORST)):
        column = f"c{number}"
        every: list[Drop] = [ByKey((column, "id"), 0.5, "s"), Stratified((column,), 0.5, ((7, 0.2), (8, 0.9)), 0.4)]
        every.append(Semantic(column, BOUNDS, (0.2, 0.9, 0.5), 0.5))
        castable = column not in (column_of("date"), column_of("boolean"))
        for kind, drop in enumerate(every[: 3 if castable else 2]):
            asked[f"{column} {kind}"] = keeps("a", drop)
        asked[f"{column} weight"] = drops.weight(every[1], "2D")
        asked[f"{column} group"] = drops.group_hash([column, TEXT])
    found = rows.selectExpr("*", f"unix_micros({MOMENT}) AS us", *(f"{sql} AS `{name}`" for name, sql in asked.items()))
    for row in found.drop(MOMENT, TIME).collect():
        assert [name for name in asked if row[name] is None] == []
        value, us = row[DOUBLE], row["us"]
        assert row["cells"] == (value is not None and 25 <= value <= 1e300)
        assert row["fresh"] == (us is None or us >= 25 * S)
        assert row["needed"] == (us is None or needed.at(us))
        assert row["placed"] == (us is not None and drops.FIRST_US <= us < drops.END_US)
        judged = row["placed"] and us is not None
        assert row["fate"] == (not judged or bool(kept(fate().schedule, np.array([us // (10 * S)]))[0]))
        assert row["named"] == {"12": 0}.get(row[TEXT], 2)


NUMBERS = ("tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,0)")
NUMERIC = ("sum", "avg", "stddev", "var_pop", "percentile_approx")
ANY = ("count", "min", "max", "approx_count_distinct", "first", "last", "collect_list", "collect_set")
ROUGH = ("percentile_approx", "approx_count_distinct", "stddev", "var_pop")
"""Not compared: sketches, and spreads of values whose squares are infinite."""


def calls() -> dict[str, str]:
    """An aggregate of every kind of function, of columns of all types that it takes."""
    found = {"rows": "count(*)", "bigs": f"count_if({BIG} > 0)", "all": f"bool_and({column_of('boolean')})"}
    found |= {
        "where": f"min_by({TEXT}, id)",
        "last_of": f"max_by({BIG}, id)",
        "some": f"count(DISTINCT {BIG})",
    }
    for function in NUMERIC:
        for kind in NUMBERS:
            rest = ", 0.5" if function == "percentile_approx" else ""
            found[f"{function} {kind}"] = f"{function}({column_of(kind)}{rest})"
    for function in ANY:
        for kind in ("boolean", "double", "string", "timestamp"):
            found[f"{function} {kind}"] = f"{function}({column_of(kind)})"
    return found


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(map(repr, map(plain, value)))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    return value


def source_of(rows: DataFrame) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in rows.dtypes if name not in (IDENTITY, TIME))


def test_trust_12_aggregates_of_the_worst_rows_are_those_of_spark(spark: SparkSession) -> None:
    rows = worst_rows(spark).withColumn(TIME, F.col("at"))
    timed = {name: call for name, call in calls().items() if "timestamp" not in name or "count" in name}
    net = jt.Network("worst")
    stream = net.source("rows", source_of(rows), event_time="at", id=["id"])
    stream.window("20 seconds", slide="10 seconds").agg(name="w", **timed).output("out")
    group = slice_groups(net.graph)[0]
    shape = slices.shape_of(group, rows)
    made = slices.direct(group, shape, {("w",): rows})["w"]
    found = {row.window_start.timestamp(): row for row in made.collect()}

    # Spark's own sum and avg throw where theirs is null
    native = {name: call.replace("sum(", "try_sum(").replace("avg(", "try_avg(") for name, call in timed.items()}
    by_time = {"first(": "min_by(", "last(": "max_by("}
    for name, call in native.items():
        for ours, theirs in by_time.items():
            if call.startswith(ours):
                native[name] = f"{theirs}{call.removeprefix(ours).rstrip(')')}, id)"
    ordered = rows.orderBy("id").selectExpr("*", "window(at, '20 seconds', '10 seconds') AS _w")
    wanted = ordered.groupBy("_w").agg(*(F.expr(call).alias(name) for name, call in native.items())).collect()
    assert len(wanted) == len(found) == 3
    for row in wanted:
        mine = found[row._w.start.timestamp()]
        for name in native:
            if not name.startswith(ROUGH):
                assert plain(mine[name]) == plain(row[name]), (name, row._w)
    assert any(row["sum bigint"] is None for row in wanted)
    assert all(row["sum int"] is not None for row in wanted)
    assert {call.partition("(")[0] for call in timed.values()} <= set(KNOWN)


@pytest.mark.long
def test_trust_12_estimates_counts_and_metrics_of_the_worst_rows(spark: SparkSession) -> None:
    rows = worst_rows(spark).withColumn(TIME, F.expr(f"IF({drops.placeable(MOMENT)}, {MOMENT}, NULL)"))
    net = jt.Network("worst")
    stream = net.source("rows", source_of(rows), event_time=MOMENT, id=["id"])
    named = {f"{f} {kind}": f"{f}({column_of(kind)})" for f in ("sum", "avg", "count") for kind in NUMBERS}
    qos = jt.QoS(on_loss="estimate")
    stream.window("10 seconds", by=[BIG]).agg(name="w", **named).output("out", qos=qos)
    counted = stream.window("4 rows", slide="2 rows", by=[column_of("boolean")])
    counted.agg(n="count(*)", total=f"sum({BIG})", most=f"max({DOUBLE})", name="c").output("of_rows")
    group = slice_groups(net.graph)[0]
    for weight in ("1D", "IF(id % 2 = 0, 1D, 2.5D)"):
        weighed = rows.withColumn(slices.WEIGHT, F.expr(weight))
        shape = slices.shape_of(group, weighed)
        made = slices.direct(group, shape, {("w",): weighed})["w"].collect()
        assert sum(row["count tinyint"] for row in made) >= 5
        if weight == "1D":
            whole = [name for name in named if name.endswith(("int", "decimal(10,2)"))]
            ends = [(row[name], row[f"{name}_low"]) for name in whole for row in made if row[name] is not None]
            assert all(float(value) == low for value, low in ends)
    metrics = group_sizes.group_metrics(shape, 10_000)
    assert slices.sliced(shape, weighed).agg(*map(F.expr, metrics)).first() is not None

    aggregate = net.graph.count_aggregates[0]
    numbers = count_slices.direct(count_slices.count_shape(aggregate, rows), rows).collect()
    assert len(numbers) >= 6

    output = net.graph.outputs[0]
    told = [*output_metrics(net.graph, output, timed=True), raw_rows.newest_metric(MOMENT)]
    seen = rows.selectExpr(told[0], *told[1:]).first()
    assert seen is not None
    assert seen["rows"] == ROWS
    assert seen["newest"] < drops.END_US
    for number, kind in enumerate(NUMBERS):
        assert rows.selectExpr(*value_metrics(number, column_of(kind))).first() is not None


def test_trust_12_payloads_and_pairs_of_the_worst_rows(spark: SparkSession) -> None:
    rows = worst_rows(spark).selectExpr("id", f"{TEXT} AS value")
    fields = tuple({"id": "long", "x": "double", "t": "timestamp", "n": "int"}.items())
    source = Source("rows", fields, "t", ("x",), "json")
    needed = needed_bits(((0, 20 * S),), 0, 60 * S, 10 * S)
    for drop in (
        Window({}, 0.5, resolved=Resolved(needed=needed)),
        Semantic("x", BOUNDS, (0.0, 1.0, 1.0), 0.5),
        ByKey(("n",), 1.0, "s"),
    ):
        plan = Plan({"rows": drop}, "tested", stale={"rows": 5.0})
        frame = raw_rows.dropped_raw(source, rows, rows.columns, plan, ExpressionCache())
        metrics = raw_rows.source_metrics(source, rows.columns)
        seen = frame.selectExpr(*metrics).first()
        assert seen is not None
        assert raw_rows.parsed(source, frame, rows.columns, ExpressionCache()).collect() is not None
        shed = raw_rows.dropped_raw(source, rows, rows.columns, plan, ExpressionCache(), shed=True).count()
        assert seen["kept"] + shed == ROWS

    net = jt.Network("pairs")
    left = net.source("left", "k long, t timestamp", event_time="t", id=["k"])
    right = net.source("right", "k long, u timestamp", event_time="u", id=["k"])
    left.select("k").join(right.select("k", "u"), on="k", within="10 seconds").output("out")
    join = net.graph.stream_joins[0]
    worst = worst_rows(spark).selectExpr(
        f"{BIG} AS k", f"IF({drops.placeable(MOMENT)}, {MOMENT}, NULL) AS {TIME}", IDENTITY
    )
    sides = [pairs.waiting(join, side, worst if side == 0 else worst.withColumn("u", F.col(TIME))) for side in (0, 1)]
    assert pairs.paired(join, *sides).count() > 0
