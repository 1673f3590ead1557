"""One step of the greedy rule: what a move at a location loses and gains, and what it changes.

A move takes one or all entries of a segment one ladder level down. Branches below that are at the same level go
along (the new drop subsumes theirs); branches at a deeper level stay where they are. Where tuples are judged by value,
a move is about one cell of values, and goes down so many levels that it drops a noticeable part of the stream: a small
cell goes at once. Where they cannot be judged, all cells of an arc move together.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from jettison.network.graph import Graph
from jettison.network.operators import Output
from jettison.plan.floors import TOLERANCE, accuracies, floor_at, floors
from jettison.plan.placement.join_keys import by_key_alone, joins_below, moving_together
from jettison.plan.placement.ladder import Ladder
from jettison.plan.placement.locations import Layout, drop_arcs
from jettison.plan.windows.cuts import cutting_together
from jettison.plan.windows.decisions import decisions_of

Move = tuple[int, ...]
"""Locations that go down together: one, or all entries of a segment, or all cells of an arc."""

_NOTHING = 1e-12
_ROUNDING = 1e-9
_PREFER_DELIVERY = 1e-9
_NOTICEABLE_SHARE = 0.05


@dataclass
class _Effect:
    loss: float = 0.0
    gain: float = 0.0
    level: dict[int, int] = field(default_factory=dict)
    kept: dict[int, float] = field(default_factory=dict)
    inflow: dict[int, float] = field(default_factory=dict)
    outflow: dict[int, float] = field(default_factory=dict)
    got: dict[str, float] = field(default_factory=dict)


class Steps:
    """The state of the greedy rule: a level per location and the flows that follow from it."""

    def __init__(
        self,
        graph: Graph,
        places: Layout,
        ladder: Ladder,
        rows: Mapping[str, float],
        allowed: frozenset[str] | None = None,
    ) -> None:
        """`allowed` are the arcs where a drop pays; all of them unless given."""
        paying = frozenset(places.arcs) if allowed is None else allowed
        self._graph = graph
        self._rows = rows
        self._by_arc = places.by_arc
        self._floors = floors(graph)
        self._floored = [floor_at(graph, location.arc) > 0 for location in places.locations]
        self._ladder = ladder
        self._apart = places.apart
        self._segments = places.segments
        self._enters = [location.enters for location in places.locations]
        self._leaves = [location.leaves for location in places.locations]
        self._takes = [location.takes for location in places.locations]
        self._cost_us = [location.cost_us for location in places.locations]
        self._passes = [location.passes for location in places.locations]
        self._worth = {s.output: _Worth(graph.by_name[s.output]) for s in places.segments if s.output is not None}
        count = len(places.locations)
        self.level = [0] * count
        self._inflow, self._outflow = [0.0] * count, [0.0] * len(places.segments)
        for number, segment in enumerate(places.segments):
            for entry in segment.entries:
                at = places.locations[entry]
                self._inflow[entry] = at.takes * (rows[at.arc] if at.leaves < 0 else self._outflow[at.leaves])
                self._outflow[number] += self._inflow[entry] * at.passes
        self._kept = list(self._inflow)
        self._got = dict.fromkeys(self._worth, 0.0)
        for number, segment in enumerate(places.segments):
            if segment.output is not None:
                self._got[segment.output] += segment.weight * self._outflow[number]
        self._full = dict(self._got)
        self._stride = [1] * count
        self._floor = {
            index: sum(share >= least - _ROUNDING for share in ladder.shares[:-1]) - 1
            for arc, least in places.windows.items()
            for index in places.by_arc[arc]
        }
        open_ = {index for arc in places.never_closed for index in places.by_arc[arc]}
        self._most = [ladder.last - (index in open_) for index in range(count)]
        self._moves = self._all_moves(places, paying)
        self._touching: list[list[Move]] = [[] for _ in places.segments]
        for move in self._moves:
            for number in {self._enters[location] for location in move}:
                self._touching[number].append(move)

    def moves(self) -> list[Move]:
        """Every move that there is: each entry alone, all entries of a segment where several streams merge, and above
        joins of streams all that must stay alike."""
        return self._moves

    def _all_moves(self, places: Layout, paying: frozenset[str]) -> list[Move]:
        found: dict[Move, None] = {}
        alike = by_key_alone(self._graph, drop_arcs(self._graph), places.judged) | places.windows.keys()
        self._by_value = frozenset(places.judged) - alike
        for arc, locations in places.by_arc.items():
            joined = bool(joins_below(self._graph, arc))
            if arc in self._by_value:
                whole = sum(self._inflow[location] for location in locations)
                for location in locations:
                    share = self._inflow[location] / whole if whole > 0 else 0.0
                    # a part of a cell, by chance, would leave k x k of a join's pairs
                    self._stride[location] = self._ladder.last if joined else self._levels(share)
            if arc in paying and not joined and arc not in places.windows:
                found |= dict.fromkeys(self._together(places, frozenset([arc])))
        merging = [frozenset(places.locations[entry].arc for entry in each.entries) for each in places.segments]
        groups = [arcs for arcs in merging if len(arcs) > 1 and not any(joins_below(self._graph, arc) for arc in arcs)]
        groups += moving_together(self._graph, drop_arcs(self._graph))
        groups = [arcs for arcs in groups if not arcs & places.windows.keys()]
        by_window = {cutting_together(decisions_of(self._graph), arc) for arc in places.windows}
        groups += sorted((each for each in by_window if each is not None and each <= places.windows.keys()), key=sorted)
        for arcs in groups:
            if arcs <= paying:
                found |= dict.fromkeys(self._together(places, arcs))
        return list(found)

    def _together(self, places: Layout, arcs: frozenset[str]) -> list[Move]:
        """Moves of all these arcs at once: cell by cell where all can tell cells apart, else in one."""
        locations = sorted(location for arc in arcs for location in places.by_arc[arc])
        if not arcs <= self._by_value:
            return [tuple(locations)]
        cells: dict[int, list[int]] = {}
        for location in locations:
            cells.setdefault(places.locations[location].cell, []).append(location)
        return [tuple(each) for each in cells.values()]

    def _levels(self, share: float) -> int:
        """How many levels a cell with this share of a stream goes down at a time."""
        if share <= _NOTICEABLE_SHARE:
            return self._ladder.last
        return max(1, round(math.log(1 - _NOTICEABLE_SHARE / share) / math.log(self._ladder.shares[1] or 0.05)))

    def ratio(self, move: Move) -> float:
        """Utility lost per microsecond gained by this move now; infinite when it cannot be made or gains nothing."""
        effect = self._effect(move)
        if effect is None or effect.gain <= _NOTHING:
            return float("inf")
        # rounded, so that of equally good moves the first is taken, and ranges of values stay whole
        return float(np.float32(max(0.0, effect.loss) / effect.gain))

    def holds_floors(self, move: Move) -> bool:
        """Whether every output still gets its floor after a move. What breaks one now does so ever after."""
        if not any(self._floored[entry] for entry in move):
            return True
        effect = self._effect(move)
        if effect is None:
            return False
        keeps = {}
        for arc, locations in self._by_arc.items():
            coming = sum([effect.inflow.get(entry, self._inflow[entry]) for entry in locations])
            kept = sum([effect.kept.get(entry, self._kept[entry]) for entry in locations])
            if kept < coming:
                keeps[arc] = kept / coming
        got = accuracies(self._graph, self._rows, keeps)
        return all(got[name] >= floor - TOLERANCE for name, floor in self._floors.items())

    def take(self, move: Move) -> list[Move]:
        """Make a move. Returns the moves whose ratio may have become smaller (those of its segment): look again."""
        effect = self._effect(move)
        assert effect is not None
        for entry, level in effect.level.items():
            self.level[entry] = level
        for entry, flow in effect.inflow.items():
            self._inflow[entry] = flow
        for entry, flow in effect.kept.items():
            self._kept[entry] = flow
        for number, flow in effect.outflow.items():
            self._outflow[number] = flow
        self._got.update(effect.got)
        numbers = {self._enters[location] for location in move}
        return list(dict.fromkeys(again for number in numbers for again in self._touching[number]))

    def _above(self, entry: int, changed: Mapping[int, int]) -> int:
        """The level that a location's stream is at before its own drop."""
        leaves = self._leaves[entry]
        if leaves < 0 or entry in self._apart:
            return 0
        return min(changed.get(other, self.level[other]) for other in self._segments[leaves].entries)

    def _down(self, entry: int, level: int) -> int:
        """The next level of a location; of windows, behind the last that a gap allows, none is left."""
        below = min(self._ladder.last, level + self._stride[entry])
        floor = self._floor.get(entry, self._ladder.last)
        if below <= floor:
            return min(below, self._most[entry])
        return floor if level < floor else self._most[entry]

    def _effect(self, move: Move) -> _Effect | None:
        lowest = min(self.level[entry] for entry in move)
        if any(self.level[entry] == lowest >= self._most[entry] for entry in move):
            return None
        effect = _Effect()
        for entry in move:
            if self.level[entry] == lowest:
                effect.level[entry] = self._down(entry, lowest)
        waiting = sorted({self._enters[entry] for entry in effect.level})
        queued = set(waiting)
        while waiting:
            number = heapq.heappop(waiting)
            for following in self._pass(number, effect):
                if following not in queued:
                    queued.add(following)
                    heapq.heappush(waiting, following)
        for output, got in effect.got.items():
            full = self._full[output]
            if full > 0:
                worth = self._worth[output]
                effect.loss += worth.of(self._got[output] / full) - worth.of(got / full)
        return effect

    def _pass(self, number: int, effect: _Effect) -> list[int]:
        """Carry a change through one segment; returns the segments that it reaches."""
        segment, level, changed = self._segments[number], self.level, effect.level
        out = self._outflow[number]
        for entry in segment.entries:
            if entry in changed or entry in effect.inflow:
                inflow = effect.inflow.get(entry, self._inflow[entry])
                keep = self._ladder.between(self._above(entry, changed), changed.get(entry, level[entry]))
                kept = inflow * keep
                delta = kept - self._kept[entry]
                effect.kept[entry] = kept
                effect.gain -= delta * self._cost_us[entry]
                out += delta * self._passes[entry]
        effect.outflow[number] = out
        if segment.output is not None:
            got = effect.got.get(segment.output, self._got[segment.output])
            effect.got[segment.output] = got + segment.weight * (out - self._outflow[number])
            return []
        before = min(level[entry] for entry in segment.entries)
        after = min(changed.get(entry, level[entry]) for entry in segment.entries)
        reached = []
        for branch in segment.branches:
            if after > before and level[branch] < after and branch not in self._apart:
                changed[branch] = after
            same = branch not in changed and after == before and abs(out - self._outflow[number]) <= _NOTHING
            if not same:
                effect.inflow[branch] = out * self._takes[branch]
                reached.append(self._enters[branch])
        return reached


class _Worth:
    """Priority x utility of an output as a function of its delivered share, fast."""

    def __init__(self, output: object) -> None:
        assert isinstance(output, Output)
        percents, utilities = zip(*reversed(output.qos.loss), strict=True)
        self._shares = np.array(percents) / 100
        # where the graph is flat, losing less of the output is still the better of two equal steps
        self._utilities = output.qos.priority * (np.array(utilities) + _PREFER_DELIVERY * self._shares)
        self._known: dict[float, float] = {}

    def of(self, share: float) -> float:
        found = self._known.get(share)
        if found is None:
            found = self._known[share] = float(np.interp(share, self._shares, self._utilities))
        return found
