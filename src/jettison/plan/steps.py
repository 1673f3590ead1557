"""One step of the greedy rule: what a move at a location loses and gains, and what it changes.

A move takes one or all entries of a segment one ladder level down. Branches below that are at the same level go
along (the new drop subsumes theirs); branches at a deeper level stay where they are.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from jettison.network.graph import Graph
from jettison.network.operators import Output
from jettison.plan.ladder import Ladder
from jettison.plan.locations import Layout

Move = tuple[int, int]
"""(segment, entry), or (segment, -1) for all entries of a segment at once."""

_NOTHING = 1e-12
_PREFER_DELIVERY = 1e-9


@dataclass
class _Effect:
    loss: float = 0.0
    gain: float = 0.0
    level: dict[int, int] = field(default_factory=dict)
    kept: dict[int, float] = field(default_factory=dict)
    inflow: dict[int, float] = field(default_factory=dict)
    outflow: dict[int, float] = field(default_factory=dict)


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
        self._ladder = ladder
        self._segments = places.segments
        self._enters = [location.enters for location in places.locations]
        self._leaves = [location.leaves for location in places.locations]
        self._cost_us = [location.cost_us for location in places.locations]
        self._passes = [location.passes for location in places.locations]
        self._outputs = [None if s.output is None else _Worth(graph.by_name[s.output]) for s in places.segments]
        count = len(places.locations)
        self.level = [0] * count
        self._inflow, self._outflow = [0.0] * count, [0.0] * len(places.segments)
        for number, segment in enumerate(places.segments):
            for entry in segment.entries:
                at = places.locations[entry]
                self._inflow[entry] = rows[at.arc] if at.leaves < 0 else self._outflow[at.leaves]
                self._outflow[number] += self._inflow[entry] * at.passes
        self._moves: list[list[Move]] = []
        for number, segment in enumerate(places.segments):
            single = [(number, entry) for entry in segment.entries if places.locations[entry].arc in paying]
            group = [(number, -1)] if 1 < len(segment.entries) == len(single) else []
            self._moves.append(single + group)
        self._kept = list(self._inflow)
        self._full = list(self._outflow)

    def moves(self) -> list[Move]:
        """Every move that there is: each entry alone, and all entries of a segment where several streams merge."""
        return [move for moves in self._moves for move in moves]

    def ratio(self, move: Move) -> float:
        """Utility lost per microsecond gained by this move now; infinite when it cannot be made or gains nothing."""
        effect = self._effect(move)
        if effect is None or effect.gain <= _NOTHING:
            return float("inf")
        return max(0.0, effect.loss) / effect.gain

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
        return self._moves[move[0]]

    def _above(self, entry: int, changed: Mapping[int, int]) -> int:
        """The level that a location's stream is at before its own drop."""
        leaves = self._leaves[entry]
        if leaves < 0:
            return 0
        return min(changed.get(other, self.level[other]) for other in self._segments[leaves].entries)

    def _effect(self, move: Move) -> _Effect | None:
        start, only = move
        entries = self._segments[start].entries
        if only >= 0:
            moved: tuple[int, ...] = (only,)
        else:
            lowest = min(self.level[entry] for entry in entries)
            moved = tuple(entry for entry in entries if self.level[entry] == lowest)
        if any(self.level[entry] >= self._ladder.last for entry in moved):
            return None
        effect = _Effect()
        for entry in moved:
            effect.level[entry] = self.level[entry] + 1
        waiting, queued = [start], {start}
        while waiting:
            number = heapq.heappop(waiting)
            for following in self._pass(number, effect):
                if following not in queued:
                    queued.add(following)
                    heapq.heappush(waiting, following)
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
        worth = self._outputs[number]
        if worth is not None:
            full = self._full[number]
            if full > 0:
                effect.loss += worth.of(self._outflow[number] / full) - worth.of(out / full)
            return []
        before = min(level[entry] for entry in segment.entries)
        after = min(changed.get(entry, level[entry]) for entry in segment.entries)
        reached = []
        for branch in segment.branches:
            if after > before and level[branch] == before:
                changed[branch] = after
            same = branch not in changed and after == before and abs(out - self._outflow[number]) <= _NOTHING
            if not same:
                effect.inflow[branch] = out
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
