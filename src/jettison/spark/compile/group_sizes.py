"""How large the groups of an aggregate are, told by its slices while they are written: those that it estimates, and
those that `QoS(gaps=...)` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.plan.drops.stratified import MOST_GROUPS
from jettison.plan.drops.window import GroupCells
from jettison.plan.plan import Plan
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import TIME, changing, group_hash, named_cell
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.windows.slices import MORE_ROWS, ROWS, SLICE, Shape
from jettison.statistics.samples import GroupSample

MOST_SLICES = 8
"""So many slices of a batch are told apart, for what comes to the driver is to be little."""
_TAIL = 0.05
"""A few slices may be far away from all others."""


def group_metrics(shape: Shape, slice_rows: float) -> list[str]:
    """What is observed of new slices: all rows they stand for, and the groups that have more than a small share.

    No more than twice MOST_GROUPS can have that in one slice, so that what comes to the driver is bounded. `slice_rows`
    is how many rows a slice has, as far as is known: of a batch that covers several slices, or of which a filter takes
    many rows, fewer than it has.
    """
    size = f"({ROWS} + coalesce({MORE_ROWS}, 0D))"
    if not shape.group.by:
        return [f"sum({size}) AS group_rows"]
    return _metrics(size, group_hash([quoted(name) for name in shape.group.by]), SLICE, slice_rows)


def named_metrics(number: int, cells: GroupCells) -> list[str]:
    """What is observed of new slices: all rows in them, and those of every group that has a name."""
    at = named_cell(cells.names, quoted(cells.column))
    counts = [f"sum(IF({at} = {cell}, {ROWS}, 0L)) AS named{number}_{cell}" for cell in range(len(cells.names))]
    return [f"sum({ROWS}) AS named{number}_rows", *counts]


def named_sample(number: int, cells: GroupCells, seen: Mapping[str, Any]) -> GroupSample | None:
    """What was seen, by the number of the name; None where nobody looked at the rows, or there were none."""
    if not seen.get(f"named{number}_rows"):
        return None
    sizes = {cell: float(seen[f"named{number}_{cell}"] or 0) for cell in range(len(cells.names))}
    return GroupSample(float(seen[f"named{number}_rows"]), sizes)


def count_groups(
    graph: Graph,
    raw: Mapping[str, DataFrame],
    rows: Mapping[str, int],
    tables: Mapping[str, DataFrame],
    known: ExpressionCache,
    names: Collection[str],
) -> dict[str, GroupSample]:
    """The same of the rows of a batch before it runs, by a job for each aggregate: for the first one after a start."""
    compiler = Compiler(graph, raw, Plan(), tables, known)
    found: dict[str, GroupSample] = {}
    for aggregate in graph.aggregates:
        if aggregate.name in names:
            group = group_hash([quoted(name) for name in aggregate.window.by])
            size_us = aggregate.window.size_us
            at = f"unix_micros(CAST({TIME} AS timestamp))"
            keys = (f"{group} AS _jt_group", f"{at} - pmod({at}, {size_us}L) AS {SLICE}")
            counted = compiler.operator(aggregate.inputs[0]).groupBy(*map(F.expr, keys))
            sizes = counted.agg(F.expr(f"count(1) AS {ROWS}"))
            metrics = _metrics(f"double({ROWS})", "_jt_group", SLICE, sum(rows.values()) / MOST_SLICES)
            row = sizes.agg(*map(F.expr, metrics)).first()
            sample = None if row is None else group_sample(row.asDict(), size_us)
            found |= {} if sample is None else {aggregate.name: sample}
    return found


def _metrics(size: str, group: str, slice_: str, slice_rows: float) -> list[str]:
    least = max(1.0, slice_rows / (2 * MOST_GROUPS))
    # in an array, so that a number that changes is no reason to compile anew; as a text, which an observation can hold
    large = f"{size} >= {changing(f'{least}D', ROWS)}"
    sizes_text = f"collect_list(IF({large}, concat({group}, ':', round({size}, 1)), NULL))"
    span = f"percentile_approx({slice_}, array({_TAIL}, {1 - _TAIL}), 100) AS group_span"
    return [f"sum({size}) AS group_rows", f"array_join({sizes_text}, ',') AS group_sizes", span]


def group_sample(seen: Mapping[str, Any], slice_us: int) -> GroupSample | None:
    """What was seen; None where nobody looked at the rows. A group may be in several slices.

    >>> group_sample({"group_rows": 90, "group_sizes": "7:30,7:20", "group_span": [0, 36]}, 10)
    GroupSample(rows=90.0, sizes={7: 50.0}, span_us=50.0)
    """
    if seen.get("group_rows") is None:
        return None
    sizes: dict[int, float] = {}
    for sizes_text in (seen.get("group_sizes") or "").split(","):
        if sizes_text:
            group, _, size = sizes_text.partition(":")
            sizes[int(group)] = sizes.get(int(group), 0.0) + float(size)
    first, last = seen.get("group_span") or (None, None)
    span_us = None if first is None or last is None else (last - first) / (1 - 2 * _TAIL) + slice_us
    return GroupSample(float(seen["group_rows"]), sizes, span_us)
