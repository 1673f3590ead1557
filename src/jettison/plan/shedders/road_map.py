"""The load shedding road map: every plan worth having, computed in advance, from shedding nothing to shedding all.

Each row sheds a little more than the one before. The greedy rule (thesis 3.4): of all locations, move the one whose
next step loses the least utility per microsecond gained (equation 3.5). A step at a location takes along the
branches below that drop no more than it does (they are subsumed); branches that drop more keep their total, so
their own drop shrinks (3.5). On networks whose streams never merge each row is optimal: utility is concave and
separable over cursors with nested bounds, and the best set to move is always one location with its subsumed
branches. Where streams merge into one output it is a good heuristic; decision record 3 says how good.

Where outputs are valued, a step takes a cell of values from an arc (thesis 3.7). Judging by value may cost more than
by chance, so plans by chance are in the map too: of all rows, those stay that nothing beats.

At run time a plan is found by searching for the first row that saves enough, and then on the way to it from the row
before, which saves too little.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jettison.network.graph import Graph
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Window
from jettison.plan.floors import floors
from jettison.plan.placement.assemble import placed
from jettison.plan.placement.join_keys import by_key_alone, droppable, joins_below
from jettison.plan.placement.ladder import Ladder, ladder_for
from jettison.plan.placement.locations import Layout, layout
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import OVERLOAD, WITHIN_BUDGET, claimed, not_enough, nothing_shed, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.refine.floor_repair import with_floors
from jettison.plan.shedders.carried import Carried, carry
from jettison.plan.shedders.greedy_steps import Steps
from jettison.plan.shedders.outcome import Matrix, outcome
from jettison.plan.windows.cuts import deciding_arc
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile
from jettison.statistics.worth import utility_of

_DROP_PAYS = 2.0
_IDLE_SHARE = 0.01
_EQUAL = 1e-12
_ROUNDING = 1e-9
_SAME = 1e-6
_MOST_LOOK_UPS = 8
_MORE = 1.05
_TRIED = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7)


@dataclass(frozen=True)
class RoadMap:
    """Rows of (cycle savings coefficients, drop insertion plan, percent delivery cursors), thesis 3.5.

    `levels[row, location]` is the ladder level of each location counted from its source on, `keeps[row, location]` what
    its drop keeps; what that comes to is for `counts`, the proportion of tuples per source, and for `profile`.
    """

    graph: Graph
    profile: Profile
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
        saved: Matrix = self.saves_us @ self._entering(rows)
        return saved

    def find(self, rows: Mapping[str, float], excess_us: float, cursor: float = 0) -> int | None:
        """The first row that saves at least `excess_us`, searched from the cursor on; None when no row does."""
        if excess_us <= 0:
            return 0
        counts = self._entering(rows)
        at = min(max(int(cursor), 0), len(self) - 1)
        if float(self.saves_us[at] @ counts) < excess_us:
            enough = np.flatnonzero(self.saves_us[at + 1 :] @ counts >= excess_us)
            return at + 1 + int(enough[0]) if enough.size else None
        short = np.flatnonzero(self.saves_us[:at] @ counts < excess_us)
        return int(short[-1]) + 1 if short.size else 0

    def plan(self, row: int, rows: Mapping[str, float], reason: str) -> Plan:
        """The plan of a row; `rows` are the tuples that enter now."""
        counts = self._entering(rows)
        drops = self._drops(self.keeps[row].tolist(), np.array(self.ladder.shares)[self.levels[row]])
        if counts.any() and (self._merges or not counts.all()):
            # what is delivered where streams merge, or a source is silent, depends on how much each source sends now
            full, now = (self._carry(self.keeps[at].tolist(), rows) for at in (0, row))
            return self._claim(drops, reason, row, full, now)
        outputs = [output.name for output in self.graph.outputs]
        delivered = dict(zip(outputs, self.delivered[row].tolist(), strict=True))
        worth = dict(zip(outputs, self.worth[row].tolist(), strict=True))
        utility, saved_us = float(self.utility[row]), float(self.saves_us[row] @ counts)
        return Plan(drops, reason, row, delivered, utility, saved_us, self._valued(worth))

    def plan_between(self, row: int, rows: Mapping[str, float], excess_us: float, reason: str) -> Plan:
        """The plan on the way to a row from the one before that saves just `excess_us` (decision record 13).

        Of both rows' flows a mixture is taken. Work is linear in flows, so its savings lie between theirs, but for
        what judging costs where only one of the two drops: a few points a little further on are tried too. Utility is
        concave: a mixture is worth no less than the same mixture of both rows' utilities.
        """
        before_us, after_us = (self.saves_us[[row - 1, row]] @ self._entering(rows)).tolist()
        if not self._mixes(row) or not before_us < excess_us < (1.0 - _SAME) * after_us:
            return self.plan(row, rows, reason)
        straight = (excess_us - before_us) / (after_us - before_us)
        both = [self._carry(self.keeps[at].tolist(), rows).reaching for at in (row - 1, row)]
        full = self._carry(self.keeps[0].tolist(), rows)
        shares = np.array(self.ladder.shares)[self.levels[[row - 1, row]]]
        for further in _TRIED:
            part = straight + (1.0 - straight) * further
            keeps = self._mixed(row, part, np.array(both))
            now = self._carry(keeps, rows)
            if full.work_us - now.work_us >= excess_us - _ROUNDING * full.work_us:
                drops = self._drops(keeps, (1.0 - part) * shares[0] + part * shares[1])
                return self._claim(drops, reason, row - 1 + straight, full, now)
        return self.plan(row, rows, reason)

    def _mixed(self, row: int, part: float, reaching: Matrix) -> list[float]:
        """What locations keep when flows are to this part those of a row and else those of the row before."""
        two = self.keeps[[row - 1, row]]
        weights = np.array([1.0 - part, part])
        coming, kept = weights @ reaching, weights @ (reaching * two)
        for arc, locations in self.layout.by_arc.items():
            at = list(locations)
            alike = arc not in self.layout.judged or bool((two[:, at] == two[:, at[:1]]).all())
            if len(at) > 1 and alike:  # one share for cells that are not told apart
                coming[at], kept[at] = coming[at].sum(), kept[at].sum()
        mixed = np.where(coming > 0, kept / np.where(coming > 0, coming, 1.0), two[1])
        return [float(share) for share in np.clip(mixed, 0.0, 1.0)]

    def _mixes(self, row: int) -> bool:
        """Whether plans between this row and the one before may be: not where cells above a join go whole."""
        changed = np.flatnonzero(self.keeps[row] != self.keeps[row - 1])
        # between the most that gaps allow and none at all there is nothing
        closing = self.layout.windows if bool((self.keeps[row, changed] == 0).any()) else {}
        return not any(self.layout.arcs[index] in {*self._whole, *closing} for index in changed)

    def _claim(self, drops: Mapping[str, Drop], reason: str, row: float, full: Carried, now: Carried) -> Plan:
        """A plan with what it carries, beside all that there is."""
        delivered, worth = _shares(now.tuples, full.tuples), _shares(now.worth, full.worth)
        utility, saved_us = utility_of(self.graph, worth), full.work_us - now.work_us
        return Plan(drops, reason, row, delivered, utility, saved_us, self._valued(worth))

    def _valued(self, worth: Mapping[str, float]) -> dict[str, float]:
        return {output.name: worth[output.name] for output in self.graph.outputs if output.qos.value is not None}

    def _drops(self, keeps: list[float], kept_in_all: Matrix) -> dict[str, Drop]:
        """Drops of these shares; `kept_in_all` is what is left at each location, drops above it included."""
        if min(keeps) >= 1.0:
            return {}
        reaching: Sequence[float] = [1.0] * len(keeps)
        if self.layout.judged:
            built_for = dict(zip((source.name for source in self.graph.sources), self.counts, strict=True))
            reaching = self._carry(keeps, built_for).reaching
        left = {}
        for arc, locations in self.layout.by_arc.items():
            index = max(locations, key=lambda at: float(kept_in_all[at]))
            if 0.0 < keeps[index] < 1.0:
                left[arc] = min(1.0, float(kept_in_all[index]) / keeps[index])
        drops = placed(self.graph, self.layout, keeps, reaching, left)
        if not self.layout.windows:
            return drops
        by_chance = {arc: drop for arc, drop in drops.items() if arc not in self.layout.windows}
        return {**by_chance, **self._window_drops(kept_in_all)}

    def _window_drops(self, kept_in_all: Matrix) -> dict[str, Window]:
        """Drops by window; which windows those are is for a schedule to say."""
        decisions = decisions_of(self.graph)
        shares = {}
        for name in decisions.by_aggregate:
            arc = deciding_arc(decisions, name, self.layout.windows)
            if arc is not None:
                shares[name] = 1.0 - float(kept_in_all[self.layout.by_arc[arc][0]])
        return decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares))

    def _carry(self, keeps: Sequence[float], rows: Mapping[str, float]) -> Carried:
        return carry(self.layout, self.profile, keeps, rows)

    def _entering(self, rows: Mapping[str, float]) -> Matrix:
        return np.array([float(rows.get(source.name, 0.0)) for source in self.graph.sources])

    @cached_property
    def _merges(self) -> bool:
        arcs = self.layout.arcs
        return any(len({arcs[entry] for entry in segment.entries}) > 1 for segment in self.layout.segments)

    @cached_property
    def _whole(self) -> frozenset[str]:
        """Arcs whose cells are kept or dropped whole: a part by chance would leave k x k of a join's pairs."""
        by_value = frozenset(self.layout.judged) - by_key_alone(self.graph, self.layout.arcs, self.layout.judged)
        return frozenset(arc for arc in by_value if joins_below(self.graph, arc))


class RoadMapShedder:
    """Plans by looking up one road map; `renewed_road_map` has the shedder that builds maps of its own."""

    def __init__(self, road_map: RoadMap) -> None:
        self.road_map = road_map

    def plan(self, problem: Problem) -> Plan | Infeasible:
        excess_us = asked_us = problem.load_us - problem.budget_us
        if self.road_map.find(problem.rows, excess_us) == 0:
            return nothing_shed(problem.graph, WITHIN_BUDGET)
        for _ in range(_MOST_LOOK_UPS):
            row = self.road_map.find(problem.rows, asked_us)
            if row is None:
                break
            plan = self._restated(problem, self.road_map.plan_between(row, problem.rows, asked_us, OVERLOAD))
            over_us = over_budget_us(problem, plan)
            if not over_us:
                return with_floors(problem, plan)
            asked_us += _MORE * over_us  # costs have changed since the map was built: it saves less than it says
        last = self._restated(problem, self.road_map.plan(len(self.road_map) - 1, problem.rows, OVERLOAD))
        return with_floors(problem, not_enough(problem, last) if over_budget_us(problem, last) else last)

    def _restated(self, problem: Problem, plan: Plan) -> Plan:
        """The plan with what it saves in truth: at the costs as they are known now; and what is closed needs nothing,
        which the map, row by row, does not see."""
        same = self.road_map.profile is problem.profile or self.road_map.profile == problem.profile
        if same and all(fate.drop_share < 1.0 for fate in plan.fates.values()):
            return plan
        return replace(claimed(problem, plan.drops, plan.reason), row=plan.row)


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
    plain = layout(graph, profile, by_window=True)
    places = layout(graph, profile, by_value=True, by_window=True) if graph.tracks.all else plain
    counts = _proportions(graph, rows)
    inputs = dict(zip((source.name for source in graph.sources), counts, strict=True))
    loads = load_coefficients(graph, profile)
    useful = (arc for arc in plain.arcs if droppable(graph, arc) or arc in plain.windows)
    paying = frozenset(arc for arc in useful if loads[arc] > _DROP_PAYS * profile.drop_us)
    if ladder is None:
        bends = {percent / 100 for output in graph.outputs for percent, _ in output.qos.loss}
        bends |= set(floors(graph).values())
        ladder = ladder_for(profile.drop_us, min((loads[arc] for arc in paying), default=1.0), bends)
    levels = np.array(_greedy(Steps(graph, plain, ladder, inputs, paying)), dtype=np.int16)
    keeps = _local_keeps(plain, ladder, levels)
    if places is not plain:
        columns = [plain.arcs.index(arc) for arc in places.arcs]
        keeps, levels = keeps[:, columns], levels[:, columns]
    if places is not plain and by_value:
        with_groups_apart = np.array(_greedy(Steps(graph, places, ladder, inputs, paying)), dtype=np.int16)
        keeps = np.concatenate([keeps, _local_keeps(places, ladder, with_groups_apart)[1:]])
        levels = np.concatenate([levels, with_groups_apart[1:]])
    found = outcome(graph, places, keeps, counts, profile)
    saved = found.saves_us @ np.array(counts)
    order = np.arange(len(levels))
    if places is not plain:
        helping = 1 + np.flatnonzero(saved[1:] > 0)
        order = np.append(0, helping[np.argsort(saved[helping], kind="stable")])
    best = order[_undominated(saved[order], found.utility[order])]
    return RoadMap(
        graph,
        profile,
        places,
        ladder,
        levels[best],
        keeps[best],
        found.saves_us[best],
        found.delivered[best],
        found.worth[best],
        found.utility[best],
        tuple(counts),
    )


def _shares(got: Mapping[str, float], full: Mapping[str, float]) -> dict[str, float]:
    """Each output's amount over the full one; 1 where there is nothing to deliver."""
    return {name: got[name] / amount if amount > 0 else 1.0 for name, amount in full.items()}


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
        if not steps.holds_floors(move):
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
