"""The load shedding road map: every plan worth having, computed in advance, from shedding nothing to shedding all.

Each row sheds a little more than the one before. The greedy rule (thesis 3.4): of all locations, move the one whose
next step loses the least utility per microsecond gained (equation 3.5). A step at a location takes along the
branches below that drop no more than it does (they are subsumed); branches that drop more keep their total, so
their own drop shrinks (3.5). On networks whose streams never merge each row is optimal: utility is concave and
separable over cursors with nested bounds, and the best set to move is always one location with its subsumed
branches. Where streams merge into one output it is a good heuristic; decision record 3 says how good.

At run time a plan is found by searching rows from the one in force (the cursor), up or down.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jettison.network.graph import Graph
from jettison.plan.claims import OVERLOAD, WITHIN_BUDGET, not_enough
from jettison.plan.ladder import Ladder, ladder_for
from jettison.plan.locations import Layout, layout
from jettison.plan.plan import Infeasible, Plan, Random
from jettison.plan.problem import Problem
from jettison.plan.steps import Steps
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile

Matrix = npt.NDArray[np.float64]

_DROP_PAYS = 2.0
_IDLE_SHARE = 0.01
_EQUAL = 1e-12


@dataclass(frozen=True)
class RoadMap:
    """Rows of (cycle savings coefficients, drop insertion plan, percent delivery cursors), thesis 3.5.

    `levels[row, location]` is the ladder level of each location counted from its source on, `saves_us[row, source]`
    the microseconds saved per tuple that enters at a source, `delivered[row, output]` the share that is delivered.
    """

    graph: Graph
    layout: Layout
    ladder: Ladder
    levels: npt.NDArray[np.int16]
    keeps: Matrix
    saves_us: Matrix
    delivered: Matrix
    utility: Matrix

    def __len__(self) -> int:
        return len(self.levels)

    def savings_us(self, rows: Mapping[str, float]) -> Matrix:
        """Work that each row saves when so many tuples enter."""
        saved: Matrix = self.saves_us @ np.array([rows.get(source.name, 0.0) for source in self.graph.sources])
        return saved

    def find(self, rows: Mapping[str, float], excess_us: float, cursor: int = 0) -> int | None:
        """The first row that saves at least `excess_us`, searched from the cursor on; None when no row does."""
        if excess_us <= 0:
            return 0
        counts = np.array([rows.get(source.name, 0.0) for source in self.graph.sources])
        cursor = min(max(cursor, 0), len(self) - 1)
        if float(self.saves_us[cursor] @ counts) < excess_us:
            enough = np.flatnonzero(self.saves_us[cursor + 1 :] @ counts >= excess_us)
            return cursor + 1 + int(enough[0]) if enough.size else None
        short = np.flatnonzero(self.saves_us[:cursor] @ counts < excess_us)
        return int(short[-1]) + 1 if short.size else 0

    def plan(self, row: int, rows: Mapping[str, float], reason: str) -> Plan:
        """A row as a plan: a drop wherever a location keeps less than comes in."""
        drops = {
            location.arc: Random(float(keep))
            for location, keep in zip(self.layout.locations, self.keeps[row], strict=True)
            if keep < 1.0
        }
        counts = [float(rows.get(source.name, 0.0)) for source in self.graph.sources]
        shares, utility = self.delivered[row], float(self.utility[row])
        if any(counts) and (self._merges or not all(counts)):
            # what is delivered where streams merge, or a source is silent, depends on how much each source sends now
            now = _delivered(self.graph, self.layout, self.keeps[[0, row]], counts)
            shares, utility = now[1], float(_utility(self.graph, now)[1])
        delivered = {output.name: float(share) for output, share in zip(self.graph.outputs, shares, strict=True)}
        return Plan(drops, reason, row, delivered, utility, float(self.saves_us[row] @ np.array(counts)))

    @cached_property
    def _merges(self) -> bool:
        return any(len(segment.entries) > 1 for segment in self.layout.segments)


class RoadMapShedder:
    """Plans by looking up the road map."""

    def __init__(self, road_map: RoadMap) -> None:
        self.road_map = road_map

    def plan(self, problem: Problem, cursor: int = 0) -> Plan | Infeasible:
        excess_us = problem.load_us - problem.budget_us
        row = self.road_map.find(problem.rows, excess_us, cursor)
        if row == 0:
            return self.road_map.plan(0, problem.rows, WITHIN_BUDGET)
        if row is not None:
            return self.road_map.plan(row, problem.rows, OVERLOAD)
        last = self.road_map.plan(len(self.road_map) - 1, problem.rows, OVERLOAD)
        return not_enough(problem, last)


def build_road_map(graph: Graph, profile: Profile, rows: Mapping[str, float], ladder: Ladder | None = None) -> RoadMap:
    """Compute the road map for the given proportion of rows per source."""
    profile.check(graph)
    places = layout(graph, profile)
    counts = _proportions(graph, rows)
    loads = load_coefficients(graph, profile)
    paying = frozenset(arc for arc in places.arcs if loads[arc] > _DROP_PAYS * profile.drop_us)
    if ladder is None:
        ladder = ladder_for(profile.drop_us, min((loads[arc] for arc in paying), default=1.0))
    steps = Steps(graph, places, ladder, dict(zip((s.name for s in graph.sources), counts, strict=True)), paying)
    levels = np.array(_greedy(steps), dtype=np.int16)
    keeps = _local_keeps(places, ladder, levels)
    saves = _savings(graph, places, keeps, profile.drop_us)
    delivered = _delivered(graph, places, keeps, counts)
    utility = _utility(graph, delivered)
    best = _undominated(saves @ np.array(counts), utility)
    return RoadMap(graph, places, ladder, levels[best], keeps[best], saves[best], delivered[best], utility[best])


def _proportions(graph: Graph, rows: Mapping[str, float]) -> list[float]:
    """Rows per source, where a source that is idle now counts as a trickle: a burst may begin on it."""
    counts = [float(rows.get(source.name, 0.0)) for source in graph.sources]
    least = _IDLE_SHARE * max(counts) if any(counts) else 1.0
    return [count or least for count in counts]


def _undominated(savings: Matrix, utility: Matrix) -> npt.NDArray[np.intp]:
    """Rows that save more than all rows before them, and of which no later row is worth more. The first row stays."""
    later_best = np.append(np.maximum.accumulate(utility[::-1])[::-1][1:], -np.inf)
    earlier_most = np.append(-np.inf, np.maximum.accumulate(savings)[:-1])
    good = (savings > earlier_most) & (utility >= later_best - _EQUAL)
    good[0] = True
    return np.flatnonzero(good)


def _greedy(steps: Steps) -> list[list[int]]:
    """Levels after each step. Keys in the heap are lower bounds of a move's ratio, made exact when they come up."""
    rows = [list(steps.level)]
    heap = [(steps.ratio(move), move) for move in steps.moves()]
    heapq.heapify(heap)
    while heap:
        key, move = heapq.heappop(heap)
        ratio = steps.ratio(move)
        if ratio == float("inf"):
            continue
        if heap and (ratio, move) > heap[0] and ratio > key:
            heapq.heappush(heap, (ratio, move))
            continue
        for changed in steps.take(move):
            heapq.heappush(heap, (steps.ratio(changed), changed))
        rows.append(list(steps.level))
    return rows


def _local_keeps(places: Layout, ladder: Ladder, levels: npt.NDArray[np.int16]) -> Matrix:
    """What the drop at each location keeps of what reaches it, for all rows at once."""
    shares = np.array(ladder.shares)
    above = np.zeros(levels.shape, dtype=np.int16)
    for index, location in enumerate(places.locations):
        if location.leaves >= 0:
            above[:, index] = levels[:, list(places.segments[location.leaves].entries)].min(axis=1)
    keeps: Matrix = shares[np.clip(levels - above, 0, ladder.last)]
    keeps[levels == ladder.last] = 0.0
    keeps[above == ladder.last] = 1.0
    return keeps


def _savings(graph: Graph, places: Layout, keeps: Matrix, drop_us: float) -> Matrix:
    """Load coefficient of each source without drops minus with them, drops paid for, for all rows at once."""
    loads = np.zeros_like(keeps)
    for index in reversed(range(len(places.locations))):
        location = places.locations[index]
        after = loads[:, list(places.segments[location.enters].branches)].sum(axis=1)
        judging = drop_us * ((keeps[:, index] > 0.0) & (keeps[:, index] < 1.0))
        loads[:, index] = judging + keeps[:, index] * (location.cost_us + location.passes * after)
    columns = [places.arcs.index(source.name) for source in graph.sources]
    return np.asarray(loads[0, columns] - loads[:, columns])


def _delivered(graph: Graph, places: Layout, keeps: Matrix, counts: Sequence[float]) -> Matrix:
    """Share of each output's tuples that is delivered, for all rows at once."""
    inputs = dict(zip((source.name for source in graph.sources), counts, strict=True))
    out = np.zeros((len(keeps), len(places.segments)))
    shares = {}
    for number, segment in enumerate(places.segments):
        for index in segment.entries:
            location = places.locations[index]
            arriving = inputs[location.arc] if location.leaves < 0 else out[:, location.leaves]
            out[:, number] += arriving * keeps[:, index] * location.passes
        if segment.output is not None:
            full = out[0, number]
            shares[segment.output] = out[:, number] / full if full > 0 else np.ones(len(keeps))
    return np.stack([shares[output.name] for output in graph.outputs], axis=1)


def _utility(graph: Graph, delivered: Matrix) -> Matrix:
    total = np.zeros(len(delivered))
    for index, output in enumerate(graph.outputs):
        percents, utilities = zip(*reversed(output.qos.loss), strict=True)
        total += output.qos.priority * np.interp(100 * delivered[:, index], percents, utilities)
    return total
