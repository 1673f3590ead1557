"""Windows that count tuples instead of time: thesis 4.10.2, with its limits.

Tuple n of a group is in the windows [i * slide, i * slide + size) that hold n: an index takes the place of a tick, and
`fate` and `needs` apply as they are. Three things differ.

- The results of an aggregate are counted anew, one per slide, so sizes and slides multiply (`count_pipeline`). Side by
  side nothing changes: `needs.fan_out` applies.
- Tuples must be counted where the drop stands, those that go included, in an order that is the same whenever they are
  read again. Nothing that adds or removes tuples may lie between the drop and the aggregate (`crossed`).
- Counts and times do not mix: below a drop all windows are of one kind (thesis 4.8).

On Spark the order of a batch's rows, and with it their numbers, are known where the aggregate sorts them, and nowhere
above. So there the drop stands at the aggregate's results, and saves what comes behind it (`cheap_results`: where that
is little, it is left alone).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jettison.network.graph import Graph
from jettison.plan.windows.needs import Needs, WinDrop, union
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile

KEEP_COUNT = ("select", "with_columns")
"""Operators that give one tuple for each they get, in order. Filters, unions, joins and functions do not."""

_LITTLE_SHARE = 0.1


def count_pipeline(*windows: WinDrop) -> WinDrop:
    """For aggregates that follow each other: each slide counts results of the one before it.

    size = size_k * product of all earlier slides + sum of extent_i * product of the slides before i, where
    extent = size - slide; slide = product of all slides. Not a bound, as with times, but what is needed.

    >>> count_pipeline(WinDrop(3, 2), WinDrop(3, 3))
    WinDrop(size=7, slide=6, gap=None)
    """
    *above, last = windows
    slides = [window.slide for window in windows]
    size = last.size * math.prod(slides[:-1])
    size += sum((window.size - window.slide) * math.prod(slides[:number]) for number, window in enumerate(above))
    return WinDrop(size, math.prod(slides), last.gap)


def count_through(window: WinDrop, needs: Needs) -> Needs:
    """What an aggregate needs so that its results with these numbers are right; result i is window i's.

    >>> count_through(WinDrop(3, 2), ((0, 3), (9, 10)))
    ((0, 7), (18, 21))
    """
    return union((low * window.slide, (high - 1) * window.slide + window.size) for low, high in needs)


def crossed(kinds: Sequence[str]) -> int:
    """How many operators above an aggregate, nearest first, a drop of count windows may be moved across.

    >>> crossed(["select", "with_columns", "where", "select"])
    2
    """
    return next((number for number, kind in enumerate(kinds) if kind not in KEEP_COUNT), len(kinds))


def cheap_results(graph: Graph, profile: Profile) -> frozenset[str]:
    """Aggregates of counted windows whose results cost little beside counting and aggregating: to drop some of them
    would cost windows and save nearly nothing.

    >>> from jettison.network import Network
    >>> net = Network("quotes")
    >>> rows = net.source("quotes", "price double")
    >>> _ = rows.window("100 rows").agg(p="avg(price)", name="means").where("p > 5", name="dear").output("out")
    >>> cheap_results(net.graph, Profile({"means": 1.0, "dear": 5.0}, {"means": 0.01}))
    frozenset({'means'})
    >>> cheap_results(net.graph, Profile({"means": 1.0, "dear": 50.0}, {"means": 0.01}))
    frozenset()
    """
    loads = load_coefficients(graph, profile)
    found = []
    for each in graph.count_aggregates:
        behind_us = profile.passes(each.name) * sum(loads[arc] for arc in graph.arcs_out_of(each.name))
        if behind_us < _LITTLE_SHARE * (profile.cost(each.name) + behind_us):
            found.append(each.name)
    return frozenset(found)
