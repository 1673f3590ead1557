"""How far the windows of one step reach, through aggregates and joins on the way to them."""

from __future__ import annotations

import math
from collections.abc import Collection

from jettison.network.operators import Aggregate, StreamJoin
from jettison.plan.windows.window_arcs import WindowArcs


def extent_us(arcs: WindowArcs, name: str, names: Collection[str], step_us: int) -> tuple[int, int] | None:
    """By how much the windows of one step need more ticks than the step has, before it and behind it.

    None where none of these aggregates is below. An aggregate on the way needs all windows that begin there, each at a
    multiple of its slide.
    """
    found: list[tuple[int, int]] = []
    for member in arcs.sharing(name):
        below = [extent_us(arcs, head, names, step_us) for head in arcs.graph.consumers[member]]
        longest = _hull([each for each in below if each is not None])
        operator = arcs.graph.by_name[member]
        if isinstance(operator, StreamJoin) and longest is not None:
            longest = (longest[0] + operator.within_us, longest[1])
        if isinstance(operator, Aggregate):
            size, slide = operator.window.size_us, operator.window.slide_us
            if member in names:
                found.append((0, size - slide))
            if longest is not None:
                common, last = math.gcd(slide, step_us), step_us + longest[1] - 1
                longest = (longest[0] // common * common, last // common * common + size - step_us)
        found += [] if longest is None else [longest]
    return _hull(found)


def _hull(extents: Collection[tuple[int, int]]) -> tuple[int, int] | None:
    """What reaches as far as the furthest of these, both ways."""
    if not extents:
        return None
    return max(before for before, _ in extents), max(after for _, after in extents)
