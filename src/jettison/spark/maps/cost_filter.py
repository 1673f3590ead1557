"""A drop by cost as columns of Spark: what a row is estimated to cost, and whether it passes.

`WorthRule` is plain SQL: the row's class of cost per worth, and the share of it that stays. `LatencyRule` judges rows
one after the other: rows are dealt out to as many lanes as the plan says, by a hash of their identity, put into order
of arrival there, and a function in Python keeps the running estimate. It gets two numbers for each row, and only what
the plan says and the row holds decides: a batch that is repeated loses the same rows, on any cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BooleanType

from jettison.network.columns.schema import quoted
from jettison.plan.drops.cost_bound import CostBound, WorthRule
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.spark.compile.drops import ADMITTED, IDENTITY, TIME, cell, changing, drawn
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.sketches.key_hash import key_hash_sql

COST, RATIO, HASH = "_jt_cost", "_jt_ratio", "_jt_hash"
"""Estimated cost in microseconds, cost per worth, and the key's hash."""
_WHOLE = 1 << 20
_NEVER = 1e300
"""The cost per worth of what is worth nothing."""


def judged(frame: DataFrame, arc: str, drop: CostBound, known: ExpressionCache) -> DataFrame:
    """Rows with what they are estimated to cost (`COST`) and whether they pass (`ADMITTED`)."""
    frame = _with_cost(frame, drop, known)
    if isinstance(drop.rule, WorthRule):
        frame = frame.withColumn(RATIO, F.expr(_ratio(drop.rule)))
        return frame.withColumn(ADMITTED, F.expr(f"{drawn(arc)} < {_share_of_class(drop.rule)}"))
    return _in_order_of_arrival(frame, drop.rule)


def without_judgement(frame: DataFrame) -> DataFrame:
    """The rows as they came."""
    return frame.drop(COST, RATIO, HASH, ADMITTED)


def cost_metrics(drop: CostBound, mask: int) -> list[str]:
    """What is observed of rows before a drop by cost, in SQL: estimated work that passes, and a sample of costs."""
    sampled = f"{IDENTITY} & {mask} = 0"
    ratio = RATIO if isinstance(drop.rule, WorthRule) else COST
    return [
        f"sum(CASE WHEN {ADMITTED} THEN {COST} END) AS estimated_us",
        f"collect_list(CASE WHEN {sampled} THEN {COST} END) AS costs_us",
        f"collect_list(CASE WHEN {sampled} THEN {ratio} END) AS ratios_us",
    ]


def classes_seen(drop: CostBound, seen: Mapping[str, Any]) -> CostClasses | None:
    """Rows by class of their estimated cost, scaled from the sample to all that came."""
    costs_us = np.asarray(seen.get("costs_us") or (), np.float64)
    if not len(costs_us):
        return None
    ratios_us = np.asarray(seen["ratios_us"], np.float64)
    worth = np.where(ratios_us > 0, costs_us / np.maximum(ratios_us, 1e-300), 1.0)
    bounds_us = drop.rule.classes.bounds_us if isinstance(drop.rule, WorthRule) else None
    found = CostClasses.of(costs_us, worth) if bounds_us is None else CostClasses.of(costs_us, worth, bounds_us)
    times = seen.get("rows", len(costs_us)) / len(costs_us)
    rows, totals_us = (tuple(times * each for each in counts) for counts in (found.rows, found.totals_us))
    return CostClasses(rows, totals_us, found.bounds_us)


def _with_cost(frame: DataFrame, drop: CostBound, known: ExpressionCache) -> DataFrame:
    if drop.sketch is None:  # nothing was published yet: every row costs the mean
        return frame.withColumn(COST, F.expr(changing(f"{drop.mean_us!r}D", IDENTITY)))
    place = f"{drop.operator} (costs)"
    if known.looked.get(place, ("",))[0] != drop.sketch:
        known.looked[place] = (drop.sketch, F.expr(known.cost_pair(drop.sketch).table.cost_sql(HASH)))
    hashed = key_hash_sql([quoted(name) for name in drop.columns])
    return frame.withColumn(HASH, known.expression(hashed)).withColumn(COST, known.looked[place][1])


def _ratio(rule: WorthRule) -> str:
    if rule.value is None:
        return COST
    value = f"try_cast({quoted(rule.value)} AS double)"
    worths = ", ".join(f"{worth!r}D" for worth in rule.worths)
    worth = f"get(array({worths}), {cell(rule.value_bounds, value)})"
    return f"IF({worth} > 0D, {COST} / {worth}, {_NEVER!r}D)"


def _share_of_class(rule: WorthRule) -> str:
    """The share of a row's class that stays, in parts of 2^20."""
    shares = ", ".join(str(round(keep * _WHOLE)) for keep in rule.keeps)
    bounds = rule.classes.bounds_us
    return f"get(array({shares}), {_class_of(bounds, 0, len(bounds))})"


def _class_of(bounds_us: Sequence[float], first: int, last: int) -> str:
    """The number of the class that a ratio is in, by halves: class i holds what is at most its bound."""
    if first == last:
        return str(first)
    middle = (first + last) // 2
    lower, upper = _class_of(bounds_us, first, middle), _class_of(bounds_us, middle + 1, last)
    return f"IF({RATIO} <= {bounds_us[middle]!r}D, {lower}, {upper})"


def _in_order_of_arrival(frame: DataFrame, rule: LatencyRule) -> DataFrame:
    timed = TIME in frame.columns
    order = [F.col(TIME), F.col(IDENTITY)] if timed else [F.col(IDENTITY)]
    lanes = frame.repartition(rule.lanes, F.col(IDENTITY)).sortWithinPartitions(*order, _tie(frame))
    start_us = f"{rule.start_us!r}D" if math.isfinite(rule.start_us) else "0D"
    arrived = f"coalesce(double(unix_micros(CAST({TIME} AS timestamp))), {start_us})" if timed else start_us
    if math.isfinite(rule.since_us):
        arrived = f"greatest({arrived}, {rule.since_us!r}D)"
    return lanes.withColumn(ADMITTED, _gate(rule)(F.col(COST), F.expr(arrived)))


def _tie(frame: DataFrame) -> Column:
    """What tells rows of one identity apart, such as matches in a table: those that are still equal are alike."""
    kinds = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    hashed = [name for name, kind in kinds.items() if "map<" not in kind and "variant" not in kind]
    return F.xxhash64(*map(F.col, map(quoted, hashed)))


def _gate(rule: LatencyRule) -> Callable[[Column, Column], Column]:
    import pandas as pd

    def admitted(batches: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        admits = rule.gate().admits
        for costs_us, arrived_us in batches:
            judged = map(admits, arrived_us.tolist(), costs_us.tolist())
            yield pd.Series(np.fromiter(judged, np.bool_, len(costs_us)))

    # the types themselves, by which Spark tells that all batches of a partition go through one call
    admitted.__annotations__ = {"batches": Iterator[tuple[pd.Series, pd.Series]], "return": Iterator[pd.Series]}
    made: Any = pandas_udf(admitted, BooleanType())  # type: ignore[call-overload]
    found: Callable[[Column, Column], Column] = made.asNondeterministic()
    return found
