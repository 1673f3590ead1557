"""Windows that close in a batch, and how many of them are kept: of windows, a plan delivers whole ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import kept

_MOST_WINDOWS = 100_000


def windows_of_batch(
    graph: Graph, plan: Plan, marks: BatchMarks, oldest_us: Mapping[str, int]
) -> dict[str, tuple[float, float]]:
    """By aggregate whose results an output gets: the windows that close in a batch, and how many of them are kept.

    Windows are counted by event time, whether or not there are rows in them. `oldest_us` is where the oldest slice of
    an aggregate begins: before its first window has closed, windows count from there. Where groups are told apart and
    nobody knows how large they are, the planned share counts.

    Ten windows of a minute close; the fate keeps every other one:

    >>> from jettison.network import Network
    >>> from jettison.network.event_time.watermarks import Mark
    >>> from jettison.plan.windows.fates import Schedule, Segment
    >>> from jettison.plan.drops.window import Window
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("1 minute").agg(n="count(*)", name="busy").output("out")
    >>> marks = BatchMarks(net.graph, {"busy": Mark(1_200_000_000, 600_000_000)})
    >>> fate = Fate(60_000_000, Schedule((Segment(0, drop_share=0.5, gap=1, seed="busy"),)), 0.5)
    >>> plan = Plan({"busy>out": Window({"busy": fate}, 0.5, of="busy")})
    >>> windows_of_batch(net.graph, plan, marks, {})
    {'busy': (10.0, 5.0)}
    """
    found = {}
    fates = plan.fates
    for aggregate in graph.aggregates:
        name, slide_us = aggregate.name, aggregate.window.slide_us
        first, until = marks.closing_from_us(name), marks.open_us(name)
        if first is None and name in oldest_us:
            closing = marks.closing(name, oldest_us[name])
            first = None if closing is None else closing[0]
        if first is None or until is None or until <= first:
            continue
        count = (until - first) // slide_us
        starts = until - slide_us * np.arange(min(count, _MOST_WINDOWS), 0, -1)
        found[name] = (float(count), count * _share_kept(fates.get(name), starts))
    return found


def without_withheld(
    windows: Mapping[str, tuple[float, float]], withheld: Mapping[str, int]
) -> dict[str, tuple[float, float]]:
    """Windows that closed, and those kept, without the ones that their aggregate has not seen whole.

    >>> without_withheld({"busy": (10.0, 5.0)}, {"busy": 4})
    {'busy': (6.0, 3.0)}
    """
    left = {name: max(0.0, closed - withheld.get(name, 0)) for name, (closed, _) in windows.items()}
    return {name: (left[name], kept * left[name] / closed) for name, (closed, kept) in windows.items() if left[name]}


def _share_kept(fate: Fate | None, starts_us: npt.NDArray[np.int64]) -> float:
    if fate is None or not len(starts_us):
        return 1.0
    steps = starts_us // fate.slide_us
    if fate.apart is None:
        return float(kept(fate.schedule, steps).mean())
    if len(fate.apart.masses) != len(fate.apart.shares) or not sum(fate.apart.masses):
        return 1.0 - fate.drop_share
    cells = [float(kept(fate.within(cell).schedule, steps).mean()) for cell in range(len(fate.apart.shares))]
    return float(np.average(cells, weights=fate.apart.masses))
