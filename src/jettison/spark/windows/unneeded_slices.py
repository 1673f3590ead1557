"""Slices of which no window is kept, or not all, in SQL. Drops before an aggregate leave some: of times not seen."""

from __future__ import annotations

from jettison.network.columns.schema import quoted
from jettison.network.operators import Aggregate
from jettison.network.windows.time_windows import WindowSpec
from jettison.plan.drops.window import Fate
from jettison.spark.compile.drops import is_kept
from jettison.spark.windows.slices import SLICE, number

_START = "_jt_window"
"""A name that no column has: inside of a lambda it would hide one."""


def cut_share(aggregate: Aggregate, fate: Fate, first_us: int | None) -> str | None:
    """The share of a slice's windows, in SQL, that a fate does not keep, where it keeps some: 0 for slices of which it
    keeps none, which are `unneeded`. None where a slice is in one window alone."""
    window = aggregate.window
    if window.tumbling:
        return None
    value = None if fate.apart is None else quoted(fate.apart.column)
    starts = _starts(window)
    kept = f"size(filter({starts}, {_START} -> {is_kept(fate, _START, value)}))"
    gone = f"1D - {kept} / cast(size({starts}) AS double)"
    return f"IF({_in_time(first_us)} AND {kept} > 0, {gone}, 0D)"


def _starts(window: WindowSpec) -> str:
    """Where the windows of a slice begin, as an array in SQL."""
    latest = f"{SLICE} - pmod({SLICE}, {window.slide_us}L)"
    before = f"({SLICE} - {window.size_us}L)"
    earliest = f"{before} - pmod({before}, {window.slide_us}L) + {window.slide_us}L"
    return f"sequence({earliest}, {latest}, {window.slide_us}L)"


def _in_time(first_us: int | None) -> str:
    return f"{SLICE} IS NOT NULL" if first_us is None else f"{SLICE} >= {number(first_us)}"


def unneeded(aggregate: Aggregate, fate: Fate, first_us: int | None) -> str:
    """The condition that is true for slices in time, from `first_us` on, none of whose windows a fate keeps."""
    window = aggregate.window
    value = None if fate.apart is None else quoted(fate.apart.column)
    if window.tumbling:
        kept = is_kept(fate, f"({SLICE} - pmod({SLICE}, {window.slide_us}L))", value)
    else:
        kept = f"exists({_starts(window)}, {_START} -> {is_kept(fate, _START, value)})"
    return f"coalesce({_in_time(first_us)} AND NOT {kept}, false)"
