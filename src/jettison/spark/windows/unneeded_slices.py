"""Slices of which no window is kept, in SQL. Drops before an aggregate leave some: of times that were not in sight."""

from __future__ import annotations

from jettison.network.columns.schema import quoted
from jettison.network.operators import Aggregate
from jettison.plan.drops.window import Fate
from jettison.spark.compile.drops import is_kept
from jettison.spark.windows.slices import SLICE, number

_START = "_jt_window"
"""A name that no column has: inside of a lambda it would hide one."""


def unneeded(aggregate: Aggregate, fate: Fate, first_us: int | None) -> str:
    """The condition that is true for slices in time, from `first_us` on, none of whose windows a fate keeps."""
    window = aggregate.window
    value = None if fate.apart is None else quoted(fate.apart.column)
    latest = f"{SLICE} - pmod({SLICE}, {window.slide_us}L)"
    if window.tumbling:
        kept = is_kept(fate, f"({latest})", value)
    else:
        before = f"({SLICE} - {window.size_us}L)"
        earliest = f"{before} - pmod({before}, {window.slide_us}L) + {window.slide_us}L"
        starts = f"sequence({earliest}, {latest}, {window.slide_us}L)"
        kept = f"exists({starts}, {_START} -> {is_kept(fate, _START, value)})"
    in_time = f"{SLICE} IS NOT NULL" if first_us is None else f"{SLICE} >= {number(first_us)}"
    return f"coalesce({in_time} AND NOT {kept}, false)"
