"""What a plan delivered, by what was counted on its arcs: the counterpart of what it claimed (`claims`).

The share of an output that is delivered is what comes to it over what would have come without any drop. Tuples follow
the same arithmetic as in a plan (`statistics.load.flows`), with the share that was counted on each arc in place of the
share that was planned. Selectivities matter only where streams merge. Below drops by value shares are those of
`plan.counted`.

Windows count as windows: of those that closed in a batch, the share that was kept. A tuple that goes early because no
kept window needs it is not counted a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.network.windows.slice_groups import waits_above
from jettison.plan.counted import counted_shares
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import kept
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

_LEAST_ROWS = 1e-9
"""A source without rows in a batch weighs next to nothing, but not nothing: windows may close all the same."""
_MOST_WINDOWS = 100_000


@dataclass(frozen=True)
class Delivered:
    """Of one output in one batch: the share of its tuples, the share of their worth, and how much this batch weighs:
    the rows that would have come to the output; where it gets windows that may be dropped whole, windows that closed;
    of other results, and of pairs, the source tuples that arrived."""

    share: float
    worth: float
    weight: float


def delivered(graph: Graph, plan: Plan, sample: BatchSample, profile: Profile | None = None) -> dict[str, Delivered]:
    """What every output got in one batch.

    The plan meant to keep 50 %, and 48 of 100 tuples passed:

    >>> from jettison.network import Network
    >>> from jettison.plan.drops.random import Random
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 48)})
    >>> delivered(net.graph, Plan({"s": Random(0.5)}, delivered={"o": 0.5}), sample)
    {'o': Delivered(share=0.48, worth=0.48, weight=100.0)}
    """
    known = profile or Profile({}, {})
    arrived = {
        each.name: float(sample.rows_in.get(each.name, 0) + sample.skipped.get(each.name, 0)) for each in graph.sources
    }
    rows = {name: max(count, _LEAST_ROWS) for name, count in arrived.items()}
    whole = flows(graph, known, rows)
    all_kept = flows(graph, known, rows, _keeps(plan, sample, arrived))
    worth_kept = flows(graph, known, rows, _keeps(plan, sample, arrived, wanted_only=True))
    by_value = counted_shares(graph, known, plan, sample) if _by_value(plan) and not sample.delivered else ({}, {})
    counted, counted_worth = {**by_value[0], **sample.delivered}, {**by_value[1], **sample.worth}
    windows = _windows_closed(graph, sample)
    below = {source.name: graph.outputs_below(source.name) for source in graph.sources}
    found = {}
    for output in graph.outputs:
        (arc,) = graph.arcs_into(output.name)
        share, worth = (_ratio(each[arc], whole[arc]) for each in (all_kept, worth_kept))
        if output.name in plan.worth and output.qos.value is not None:
            planned = plan.delivered.get(output.name, 1.0)
            worth = min(1.0, plan.worth[output.name] * _ratio(share, planned, otherwise=1.0))
        if output.name not in windows:
            share, worth = counted.get(output.name, share), counted_worth.get(output.name, worth)
        tuples = sum(count for name, count in arrived.items() if output.name in below[name])
        if output.name not in windows and not waits_above(graph, output.name):
            tuples = _possible(sample, output.name, share, whole[arc] if tuples else 0.0)
        found[output.name] = Delivered(share, worth, windows.get(output.name, tuples))
    return found


def _possible(sample: BatchSample, output: str, share: float, expected: float) -> float:
    """The rows that would have come to an output: those that came over the share that was let through.

    >>> from jettison.statistics.samples import OutputSample
    >>> seen = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, outputs={"o": OutputSample(12)})
    >>> _possible(seen, "o", 0.25, 30.0), _possible(seen, "o", 0.0, 30.0)
    (48.0, 30.0)
    """
    seen = sample.outputs.get(output)
    return seen.rows / share if seen is not None and share > 0 else expected


def _ratio(part: float, whole: float, otherwise: float = 1.0) -> float:
    return part / whole if whole > 0 else otherwise


def _by_value(plan: Plan) -> bool:
    return any(drop.judges == "value" for drop in plan.drops.values())


def _keeps(
    plan: Plan, sample: BatchSample, arrived: Mapping[str, float], *, wanted_only: bool = False
) -> dict[str, float]:
    """The share that was counted to pass each arc; with `wanted_only`, of tuples that were not stale."""
    keeps: dict[str, float] = {}
    for arc in dict.fromkeys((*plan.arcs, *sample.arcs)):
        drop = plan.drops.get(arc)
        if isinstance(drop, Window):
            if drop.of is not None:
                keeps[arc] = _kept_windows(sample.windows.get(drop.of), sample.arcs.get(arc))
            continue
        counted, kept = sample.arcs.get(arc, (0, 0))
        if wanted_only and arc in plan.stale:
            keeps[arc] = plan.keep(arc)
        elif counted:
            keeps[arc] = min(1.0, kept / counted)
        elif plan.closes(arc) if arc in plan.drops else False:
            keeps[arc] = 0.0
    for name, count in arrived.items():
        unread, stale = sample.skipped.get(name, 0), sample.stale.get(name, 0) if wanted_only else 0
        if unread and count > stale:
            keeps[name] = keeps.get(name, 1.0) * (count - unread) / (count - stale)
    return keeps


def _kept_windows(windows: tuple[float, float] | None, results: tuple[int, int] | None) -> float:
    """The share of windows that was kept; where windows are not numbered by time, of results."""
    for found in (windows, results):
        if found is not None and found[0]:
            return min(1.0, found[1] / found[0])
    return 1.0


def _windows_closed(graph: Graph, sample: BatchSample) -> dict[str, float]:
    """By output that gets windows of time of which some may go: how many closed in this batch."""
    decisions = decisions_of(graph)
    found: dict[str, float] = {}
    for aggregate in graph.aggregates:
        for output in decisions.outputs(aggregate.name) if aggregate.name in decisions.guarded else ():
            found[output] = found.get(output, 0.0) + sample.windows.get(aggregate.name, (0.0, 0.0))[0]
    return found


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
    >>> from jettison.plan.drops.window import Fate
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
