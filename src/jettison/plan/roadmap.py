"""The load shedding road map: every plan worth having, computed in advance, from shedding nothing to shedding all.

Each row sheds a little more than the one before. The greedy rule (thesis 3.4): of all locations, move the one whose
next step loses the least utility per microsecond gained (equation 3.5). A step at a location takes along the
branches below that drop no more than it does (they are subsumed); branches that drop more keep their total, so
their own drop shrinks (3.5). On networks whose streams never merge each row is optimal: utility is concave and
separable over cursors with nested bounds, and the best set to move is always one location with its subsumed
branches. Where streams merge into one output it is a good heuristic; decision record 3 says how good.

Where outputs are valued, a step takes a cell of values from an arc (thesis 3.7). Judging by value may cost more than
by chance, so plans by chance are in the map too: of all rows, those stay that nothing beats.

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
from jettison.plan.keys import droppable
from jettison.plan.ladder import Ladder, ladder_for
from jettison.plan.locations import Layout, layout
from jettison.plan.placed import placed
from jettison.plan.plan import Drop, Infeasible, Plan
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
    worth: Matrix
    utility: Matrix
    counts: tuple[float, ...]

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
        """The plan of a row; `rows` are the tuples that enter now."""
        counts = [float(rows.get(source.name, 0.0)) for source in self.graph.sources]
        shares, worths, utility = self.delivered[row], self.worth[row], float(self.utility[row])
        if any(counts) and (self._merges or not all(counts)):
            # what is delivered where streams merge, or a source is silent, depends on how much each source sends now
            now, worth, _ = _delivered(self.graph, self.layout, self.keeps[[0, row]], counts)
            shares, worths, utility = now[1], worth[1], float(_utility(self.graph, worth)[1])
        delivered = {output.name: float(share) for output, share in zip(self.graph.outputs, shares, strict=True)}
        valued = {
            output.name: float(share)
            for output, share in zip(self.graph.outputs, worths, strict=True)
            if output.qos.value is not None
        }
        saved_us = float(self.saves_us[row] @ np.array(counts))
        return Plan(self._drops(row), reason, row, delivered, utility, saved_us, valued)

    def _drops(self, row: int) -> dict[str, Drop]:
        keeps = self.keeps[row]
        if (keeps >= 1.0).all():
            return {}
        reaching = np.ones(len(keeps))
        if self.layout.judged:
            reaching = _delivered(self.graph, self.layout, self.keeps[[row]], self.counts)[2][0]
        left = {}
        for arc, locations in self.layout.by_arc.items():
            index = min(locations, key=lambda at: self.levels[row, at])
            if 0.0 < keeps[index] < 1.0:
                left[arc] = min(1.0, self.ladder.shares[int(self.levels[row, index])] / float(keeps[index]))
        return placed(self.graph, self.layout, keeps.tolist(), reaching.tolist(), left)

    @cached_property
    def _merges(self) -> bool:
        arcs = self.layout.arcs
        return any(len({arcs[entry] for entry in segment.entries}) > 1 for segment in self.layout.segments)


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


def build_road_map(
    graph: Graph,
    profile: Profile,
    rows: Mapping[str, float],
    ladder: Ladder | None = None,
    *,
    by_value: bool = True,
) -> RoadMap:
    """Compute the road map for the given proportion of rows per source; without `by_value` only by chance."""
    profile.check(graph)
    plain = layout(graph, profile)
    places = layout(graph, profile, by_value=True) if graph.tracks.all else plain
    counts = _proportions(graph, rows)
    inputs = dict(zip((source.name for source in graph.sources), counts, strict=True))
    loads = load_coefficients(graph, profile)
    paying = frozenset(arc for arc in plain.arcs if loads[arc] > _DROP_PAYS * profile.drop_us and droppable(graph, arc))
    if ladder is None:
        ladder = ladder_for(profile.drop_us, min((loads[arc] for arc in paying), default=1.0))
    levels = np.array(_greedy(Steps(graph, plain, ladder, inputs, paying)), dtype=np.int16)
    keeps = _local_keeps(plain, ladder, levels)
    if places is not plain:
        columns = [plain.arcs.index(arc) for arc in places.arcs]
        keeps, levels = keeps[:, columns], levels[:, columns]
    if places is not plain and by_value:
        told_apart = np.array(_greedy(Steps(graph, places, ladder, inputs, paying)), dtype=np.int16)
        keeps = np.concatenate([keeps, _local_keeps(places, ladder, told_apart)[1:]])
        levels = np.concatenate([levels, told_apart[1:]])
    delivered, worth, reaching = _delivered(graph, places, keeps, counts)
    saves = _savings(graph, places, keeps, reaching, profile)
    utility = _utility(graph, worth)
    saved = saves @ np.array(counts)
    order = np.arange(len(levels))
    if places is not plain:
        helping = 1 + np.flatnonzero(saved[1:] > 0)
        order = np.append(0, helping[np.argsort(saved[helping], kind="stable")])
    best = order[_undominated(saved[order], utility[order])]
    return RoadMap(
        graph,
        places,
        ladder,
        levels[best],
        keeps[best],
        saves[best],
        delivered[best],
        worth[best],
        utility[best],
        tuple(counts),
    )


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
        if location.leaves >= 0 and index not in places.apart:
            above[:, index] = levels[:, list(places.segments[location.leaves].entries)].min(axis=1)
    keeps: Matrix = shares[np.clip(levels - above, 0, ladder.last)]
    keeps[levels == ladder.last] = 0.0
    keeps[above == ladder.last] = 1.0
    return keeps


def _savings(graph: Graph, places: Layout, keeps: Matrix, reaching: Matrix, profile: Profile) -> Matrix:
    """Load coefficient of each source without drops minus with them, drops paid for, for all rows at once."""
    judging_us = {arc: _judging_us(list(at), arc, keeps, reaching, profile) for arc, at in places.by_arc.items()}
    takes = np.array([location.takes for location in places.locations])
    loads = np.zeros_like(keeps)
    for index in reversed(range(len(places.locations))):
        location = places.locations[index]
        below = list(places.segments[location.enters].branches)
        after = loads[:, below] @ takes[below]
        loads[:, index] = judging_us[location.arc] + keeps[:, index] * (location.cost_us + location.passes * after)
    by_source = [
        loads[:, list(at)] @ takes[list(at)] for at in (places.by_arc[source.name] for source in graph.sources)
    ]
    coefficients = np.stack(by_source, axis=1)
    return np.asarray(coefficients[0] - coefficients)


def _judging_us(locations: list[int], arc: str, keeps: Matrix, reaching: Matrix, profile: Profile) -> Matrix:
    """What judging one tuple on an arc costs: nothing where all or none are kept, more where it is by value."""
    there = reaching[:, locations] > 0
    least = np.where(there, keeps[:, locations], 1.0).min(axis=1)
    most = np.where(there, keeps[:, locations], 0.0).max(axis=1)
    judged = (most > 0.0) & (least < 1.0)
    return np.asarray(profile.drop_us * judged + profile.look_us.get(arc, 0.0) * (judged & (least < most)))


def _delivered(graph: Graph, places: Layout, keeps: Matrix, counts: Sequence[float]) -> tuple[Matrix, Matrix, Matrix]:
    """Share of each output's tuples that is delivered, of what they are worth, and what reaches each location."""
    inputs = dict(zip((source.name for source in graph.sources), counts, strict=True))
    out, reaching = np.zeros((len(keeps), len(places.segments))), np.zeros_like(keeps)
    tuples = {output.name: np.zeros(len(keeps)) for output in graph.outputs}
    worth = {output.name: np.zeros(len(keeps)) for output in graph.outputs}
    for number, segment in enumerate(places.segments):
        for index in segment.entries:
            location = places.locations[index]
            arriving = location.takes * (inputs[location.arc] if location.leaves < 0 else out[:, location.leaves])
            reaching[:, index] = arriving
            out[:, number] += arriving * keeps[:, index] * location.passes
        if segment.output is not None:
            tuples[segment.output] += out[:, number]
            worth[segment.output] += segment.weight * out[:, number]
    return _shares(tuples), _shares(worth), reaching


def _shares(amounts: Mapping[str, Matrix]) -> Matrix:
    """Each output's amounts over that of the first row; 1 where there is nothing to deliver."""
    return np.stack([each / each[0] if each[0] > 0 else np.ones(len(each)) for each in amounts.values()], axis=1)


def _utility(graph: Graph, shares: Matrix) -> Matrix:
    total = np.zeros(len(shares))
    for index, output in enumerate(graph.outputs):
        percents, utilities = zip(*reversed(output.qos.loss), strict=True)
        total += output.qos.priority * np.interp(100 * shares[:, index], percents, utilities)
    return total
