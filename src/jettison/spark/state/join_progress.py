"""How far the sides of a join of streams have got with a batch, and what they need not keep any more.

It is known when all rows of the batch have been looked at, shed ones included: after its rows were paired and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jettison.network.event_time.join_retention import horizon_us, still_needed
from jettison.network.event_time.progress import further, side_us, time_places
from jettison.network.operators import StreamJoin
from jettison.spark.state.join_log import Record, Side
from jettison.spark.state.operator_state import Progress


def next_record(join: StreamJoin, batch: int, base: Record | None, kept: Record, progress: Progress) -> Record:
    """A batch's record with how far its sides have got. Parts that are out of the band are left out."""
    places = time_places(progress.graph, join.name)
    seen_us = further(kept.seen_us, {place: time for place, time in progress.newest_us.items() if place in places})
    grown = []
    for number, side in enumerate(kept.sides):
        times = (side.newest_us, side_us(progress.graph, join, number, seen_us, progress.open_us))
        grown.append(replace(side, newest_us=max((each for each in times if each is not None), default=None)))
    left, right = (replace(own, parts=still_needed(own.parts, horizon(join, n, grown))) for n, own in enumerate(grown))
    live = {part.name for part in (*left.parts, *right.parts)}
    names = {part.name for side in kept.sides for part in side.parts} | set(kept.gone if kept.batch == batch else ())
    gone, before = tuple(sorted(names - live)), None if base is None else base.batch
    return Record(batch, (left, right), gone, before, seen_us)


def horizon(join: StreamJoin, side: int, sides: Sequence[Side]) -> int | None:
    """The first event time of a side whose rows may still find a partner; None while all may."""
    return horizon_us(sides[1 - side].newest_us, join.within_us, join.delay_us)
