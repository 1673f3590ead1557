"""A network run on lists, batch by batch, with and without shedding: a second opinion on joins of streams and windows.

A row is (event time in microseconds, key, value). Filters let values pass that 3 does not divide, a pair's value is
made of both, a result's of the sum and the number of its rows, so that it tells when any is missing. Watermarks, bands
and needs are asked of the code that Spark's side asks; rows, pairs and windows are found here by looking at each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jettison.network import Aggregate, Graph, Output, StreamJoin, Where
from jettison.network.event_time.join_retention import horizon_us
from jettison.network.event_time.progress import further, side_us
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.network.windows.slice_groups import slice_groups
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.refine.window_lookahead import resolve_window_drops, without_idle
from jettison.plan.windows.fates import keep
from jettison.plan.windows.window_arcs import WindowArcs

Row = tuple[int, int, int]


@dataclass
class Waiting:
    """A join's rows so far, left and right, and how far its sides have got."""

    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    newest_us: list[int | None] = field(default_factory=lambda: [None, None])
    seen_us: dict[str, int] = field(default_factory=dict)


def pair(left: Row, right: Row) -> Row:
    return max(left[0], right[0]), left[1], 7 * left[2] + 5 * right[2] + 1


def result(start_us: int, key: int, rows: Sequence[Row]) -> Row:
    return start_us, key, sum(row[2] for row in rows) + 1000 * len(rows)


class Engine:
    """Batches of rows by source go in, rows by output come out. `arrived` and `passed` count rows on dropped arcs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.arcs = WindowArcs(graph)
        self.marks: dict[str, Mark] = {}
        self.kept: dict[str, list[Row]] = defaultdict(list)
        self.joins = {join.name: Waiting() for join in graph.stream_joins}
        self.slices_us = {member.name: group.slice_us for group in slice_groups(graph) for member in group.members}
        self.arrived: dict[str, int] = defaultdict(int)
        self.passed: dict[str, int] = defaultdict(int)
        self.late = 0

    def before(self) -> BatchMarks:
        """How far aggregates have got before the next batch."""
        return BatchMarks(self.graph, self.marks)

    def take(self, batch: Mapping[str, Sequence[Row]], plan: Plan | None = None) -> dict[str, list[Row]]:
        marks = self.before()
        plan = without_idle(resolve_window_drops(self.arcs, plan or Plan(), marks))
        seen_us = {name: max(row[0] for row in rows) for name, rows in batch.items() if rows}
        gives: dict[str, list[Row]] = {}
        came: dict[str, list[Row]] = {}
        for operator in self.graph.operators:
            name = operator.name
            if not operator.inputs:
                gives[name] = self._through(name, list(batch.get(name, ())), plan)
                continue
            into = [
                self._through(arc, gives[tail], plan)
                for arc, tail in zip(self.graph.arcs_into(name), operator.inputs, strict=True)
            ]
            rows = [row for each in into for row in each]
            if isinstance(operator, StreamJoin):
                gives[name] = self._paired(operator, into)
            elif isinstance(operator, Aggregate):
                came[name] = rows
                gives[name] = self._windows(operator, rows, marks)
            elif isinstance(operator, Where):
                gives[name] = [row for row in rows if row[2] % 3]
            else:
                gives[name] = rows
        for join in self.graph.stream_joins:
            self._reached(join, seen_us, marks)
        self.marks = {
            name: marks.after(name, [max((row[0] for row in rows), default=None)], seen_us)
            for name, rows in came.items()
        }
        return {output.name: sorted(gives[output.name]) for output in self.graph.outputs}

    def _through(self, arc: str, rows: list[Row], plan: Plan) -> list[Row]:
        drop = plan.drops.get(arc)
        if not isinstance(drop, Window):
            return rows
        passing, resolved = rows, drop.resolved
        assert resolved is not None
        if drop.of is not None:
            passing = [row for row in rows if resolved.everything or is_kept(drop.fates[drop.of], row)]
        elif resolved.parts:
            told = next(fate for fate in drop.fates.values() if fate.apart is not None)
            passing = [row for row in rows if resolved.parts[cell_of(told, row)].at(row[0])]
        elif resolved.needed is not None:
            passing = [row for row in rows if resolved.needed.at(row[0])]
        self.arrived[arc] += len(rows)
        self.passed[arc] += len(passing)
        return passing

    def _paired(self, join: StreamJoin, new: Sequence[list[Row]]) -> list[Row]:
        state = self.joins[join.name]
        old = []
        for side, rows in enumerate(state.rows):
            first_us = horizon_us(state.newest_us[1 - side], join.within_us, join.delay_us)
            old.append([row for row in rows if first_us is None or row[0] >= first_us])
        state.rows = ([*old[0], *new[0]], [*old[1], *new[1]])
        met = [(left, right) for left in new[0] for right in state.rows[1]]
        met += [(left, right) for left in old[0] for right in new[1]]
        return [
            pair(left, right)
            for left, right in met
            if left[1] == right[1] and abs(left[0] - right[0]) <= join.within_us
        ]

    def _reached(self, join: StreamJoin, seen_us: Mapping[str, int], marks: BatchMarks) -> None:
        state = self.joins[join.name]
        state.seen_us = further(state.seen_us, seen_us)
        for side in (0, 1):
            times = (state.newest_us[side], side_us(self.graph, join, side, state.seen_us, marks.open_us))
            state.newest_us[side] = max((each for each in times if each is not None), default=None)

    def _windows(self, aggregate: Aggregate, rows: list[Row], marks: BatchMarks) -> list[Row]:
        name, window, slice_us = aggregate.name, aggregate.window, self.slices_us[aggregate.name]
        first_us = marks.late_before_us(name)
        fresh = [row for row in rows if first_us is None or row[0] // slice_us * slice_us >= first_us]
        self.late += len(rows) - len(fresh)
        before, self.kept[name] = self.kept[name], self.kept[name] + fresh
        counted = self.kept[name] if marks.nested(name) else before
        oldest_us = min((row[0] // slice_us * slice_us for row in counted), default=None)
        closing = marks.closing(name, oldest_us)
        found = []
        if closing is not None:
            by_key: dict[int, list[Row]] = defaultdict(list)
            for row in counted:
                by_key[row[1]].append(row)
            for start_us in range(closing[0], closing[1] + 1, window.slide_us):
                for key, own in by_key.items():
                    inside = [row for row in own if start_us <= row[0] < start_us + window.size_us]
                    found += [result(start_us, key, inside)] if inside else []
        return found


def cell_of(fate: Fate, row: Row) -> int:
    """The cell of a row's key, where groups are told apart by name."""
    assert fate.apart is not None
    names = fate.apart.names
    return names.index(str(row[1])) if str(row[1]) in names else len(names)


def is_kept(fate: Fate, row: Row) -> bool:
    """Whether a result's window is kept."""
    fate = fate.within(cell_of(fate, row)) if fate.apart is not None else fate
    return keep(fate.schedule, row[0] // fate.slide_us)


def outputs_of(graph: Graph, name: str) -> list[str]:
    """The outputs that get an aggregate's results as they are."""
    found, waiting = [], [name]
    while waiting:
        for head in graph.consumers[waiting.pop()]:
            if isinstance(graph.by_name[head], Output):
                found.append(head)
            elif not isinstance(graph.by_name[head], Aggregate):
                waiting.append(head)
    return found
