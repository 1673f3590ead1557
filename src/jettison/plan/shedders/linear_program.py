"""The shedding problem of one batch as a linear program: flows behind drops, a budget, concave worth (thesis 5.2.2).

A variable y per location: the tuples that its drop lets pass (the thesis's path prefixes, in tuples). A drop passes no
more than reaches it: at an input what enters, at a branch what the segment above gives, the sum of y * passes over
its entries. Streams that merge simply add up, so nothing is approximate there. An output has a variable z per piece of
its loss graph, together no more than what arrives; the graph is concave, so the piece that is worth most fills first.

    maximise    sum of priority * slope * z
    such that   y <= what reaches it,  sum of an output's z <= what arrives,  sum of cost * y <= capacity

The matrix in tuples is made once per network and profile. The tuples of a batch only scale it: every variable is
solved for as a share of its flow without drops, so that a trickle counts as exactly as a flood. Where values are told
apart every cell is a stream of its own, worth to an output what its values are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import coo_array

from jettison.errors import PlanError
from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.network.operators import StreamJoin
from jettison.network.qos import QoS
from jettison.plan.floors import floor_at
from jettison.plan.placement.join_keys import droppable, moving_together
from jettison.plan.placement.locations import Layout, drop_arcs

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Of equally good plans the one that delivers more, then the one that drops less; too small to change any other choice.
_PREFER_DELIVERY = 1e-8
_PREFER_NO_DROP = 1e-9
_SHARPNESS = 1e4
# The simplex method ends at a corner, where few drops keep a part. On rare numbers it gives up at a fine tolerance.
_TRIES = (("highs-ds", 1e-9, False), ("highs-ds", 1e-7, True), ("highs-ipm", 1e-7, True))
_CONTRADICTS = 2
_LEAST_PASSES = 1e-9


@dataclass(frozen=True)
class Pattern:
    """What is settled before solving: locations that keep everything, that keep nothing, and drops to be paid for.

    `drop_us` is what a drop that is paid for costs per tuple that reaches it.
    """

    opened: Sequence[int] = ()
    closed: Sequence[int] = ()
    paid: Sequence[int] = ()
    drop_us: float = 0.0


FREE = Pattern()


@dataclass(frozen=True)
class LinearProgram:
    """Columns are groups of locations that keep the same share, then the pieces of all outputs; rows bound flows.

    The matrix has `tuples` at (`rows`, `columns`), each to be multiplied by the flow `flows[entry]`: that of a
    location or, behind those, what an output is worth. `bounded[row]` are the flows that a row bounds. `cost_us` is of
    locations, `worth` (per whole flow) and `most` (the largest share) are of columns. At `fixed` ones nothing may go.
    `floors` are the rows that say that at least such a share of some flows must pass.
    """

    layout: Layout
    column_of: Indices
    rows: Indices
    columns: Indices
    tuples: Vector
    flows: Indices
    bounded: tuple[tuple[int, ...], ...]
    cost_us: Vector
    worth: Vector
    most: Vector
    outputs: tuple[str, ...]
    fixed: tuple[int, ...] = ()
    floors: Mapping[int, float] = field(default_factory=dict)

    def undropped(self, rows: Mapping[str, float]) -> Vector:
        """The flow of every location, and what every output is worth, when nothing is dropped."""
        flow = [0.0] * len(self.layout.locations)
        out = [0.0] * len(self.layout.segments)
        worth = dict.fromkeys(self.outputs, 0.0)
        for number, segment in enumerate(self.layout.segments):
            for entry in segment.entries:
                at = self.layout.locations[entry]
                flow[entry] = at.takes * (float(rows.get(at.arc, 0.0)) if at.leaves < 0 else out[at.leaves])
                out[number] += flow[entry] * at.passes
            if segment.output is not None:
                worth[segment.output] += segment.weight * out[number]
        return np.array([*flow, *worth.values()])

    def least_us(self, full: Vector) -> float:
        """What the work takes at least when floors are held."""
        passing = self.solve(full, math.inf, cheapest=True)
        return float((self.cost_us * full[: len(self.cost_us)] * passing).sum()) if passing is not None else math.inf

    def solve(
        self, full: Vector, capacity_us: float, pattern: Pattern = FREE, *, cheapest: bool = False
    ) -> Vector | None:
        """The share of each location's flow that passes in the best plan whose work takes at most `capacity_us`.

        `full` are the undropped flows. None when what the pattern leaves open, or has to pay, is too much. With
        `cheapest` the plan that works least.
        """
        count, width, height = len(self.layout.locations), len(self.worth), len(self.bounded)
        largest = np.array([sum(full[each] for each in bound) for bound in self.bounded])
        scale = np.divide(1.0, largest, out=np.zeros(height), where=largest > 0)
        shares = self.tuples * full[self.flows] * scale[self.rows]
        groups = np.zeros(width)
        np.add.at(groups, self.column_of, full[:count])
        groups[self._first_piece :] = 1.0
        opened, closed = self._all_of([*pattern.opened, *self.fixed], full), self._all_of(pattern.closed, full)
        lowest, highest = np.zeros(width), np.where(groups > 0, self.most, 0.0)
        lowest[self._inputs] = (opened & (groups > 0))[self._inputs]
        highest[closed] = 0.0
        equal = np.append([opened[column] for column in self._bounded_columns], False)
        equal[list(self.floors)] = False
        cost_us, free_us = self._charged(full, capacity_us, pattern)
        work = np.zeros(width)
        np.add.at(work, self.column_of, cost_us * full[:count])
        total_us = float(work.sum()) or 1.0
        at = np.concatenate([self.rows, np.full(width, height)]), np.concatenate([self.columns, np.arange(width)])
        matrix = coo_array((np.concatenate([shares, work / total_us]), at), shape=(height + 1, width)).tocsr()
        limits = np.zeros(height + 1)
        limits[-1] = 1.0 if cheapest else free_us / total_us
        for row, floor in self.floors.items():
            limits[row] = floor * float(shares[self.rows == row].sum())
        for method, tolerance, presolve in _TRIES:
            found = linprog(
                work / total_us if cheapest else -self._objective(shares),
                matrix[~equal],
                limits[~equal],
                *((matrix[equal], limits[equal]) if equal.any() else ()),
                bounds=np.column_stack([lowest, highest]),
                method=method,
                options={
                    "presolve": presolve or pattern is not FREE,
                    "primal_feasibility_tolerance": tolerance,
                    "dual_feasibility_tolerance": tolerance,
                },
            )
            if found.x is not None:
                return np.asarray(found.x)[self.column_of]
            if found.status == _CONTRADICTS:
                return None
        raise PlanError(f"the linear program of {count} locations was not solved: {found.message}")

    @cached_property
    def _first_piece(self) -> int:
        return int(self.column_of.max()) + 1

    @cached_property
    def _inputs(self) -> list[int]:
        at_inputs = {self.column_of[i] for i, location in enumerate(self.layout.locations) if location.leaves < 0}
        return sorted(int(column) for column in at_inputs)

    @cached_property
    def _bounded_columns(self) -> list[int]:
        """The column that each row bounds; of an output's row the first of its pieces."""
        count = len(self.layout.locations)
        first = dict(zip(self.rows[::-1].tolist(), self.columns[::-1].tolist(), strict=True))
        return [
            int(self.column_of[bound[0]]) if bound[0] < count else int(first[row])
            for row, bound in enumerate(self.bounded)
        ]

    def _all_of(self, locations: Sequence[int], full: Vector) -> npt.NDArray[np.bool_]:
        """Columns of which all locations that anything reaches are among these, and some are."""
        inside, outside = np.zeros(len(self.worth), dtype=bool), np.zeros(len(self.worth), dtype=bool)
        chosen = set(locations)
        for index, column in enumerate(self.column_of):
            if index in chosen:
                inside[column] = True
            elif full[index] > 0:
                outside[column] = True
        return inside & ~outside

    def _objective(self, shares: Vector) -> Vector:
        """Worth of each column; a row of a location is what passes less what reaches it: less dropped, more of it."""
        count = len(self.layout.locations)
        rows = enumerate(self.bounded)
        branch = np.array([bound[0] < count and row not in self.floors for row, bound in rows], dtype=bool)[self.rows]
        passes_drops = np.zeros(len(self.worth))
        passes_drops[self._inputs] = 1.0
        np.add.at(passes_drops, self.columns[branch], shares[branch])
        return np.asarray(_SHARPNESS * (self.worth / self.worth.max() + _PREFER_NO_DROP * passes_drops))

    def _charged(self, full: Vector, capacity_us: float, pattern: Pattern) -> tuple[Vector, float]:
        """Judging as work: at an input a fixed charge, at a branch a part of the cost of what gives it its tuples."""
        cost_us = self.cost_us.copy()
        for index in pattern.paid:
            at = self.layout.locations[index]
            if at.leaves < 0:
                capacity_us -= pattern.drop_us * float(full[index])
            else:
                for entry in self.layout.segments[at.leaves].entries:
                    cost_us[entry] += pattern.drop_us * at.takes * self.layout.locations[entry].passes
        return cost_us, capacity_us


def linear_program(graph: Graph, places: Layout) -> LinearProgram:
    """The matrix of a layout, in tuples, by one loop over segments, their branches and their pieces.

    >>> from jettison.network import Network
    >>> from jettison.plan.placement.locations import layout
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("one")
    >>> _ = net.source("s", "x int").where("x > 0", name="w").output("o", qos=QoS([(100, 1), (50, 0.8), (0, 0)]))
    >>> made = linear_program(net.graph, layout(net.graph, Profile({"w": 10.0}, {"w": 0.5})))
    >>> list(zip(made.rows.tolist(), made.columns.tolist(), made.tuples.tolist()))  # z1 + z2 - 0.5 y <= 0
    [(0, 1, 1.0), (0, 2, 1.0), (0, 0, -0.5)]
    >>> made.most.tolist(), made.worth.round(3).tolist()  # half of the flow is worth .8, the other half .2
    ([1.0, 0.5, 0.5], [0.0, 1.6, 0.4])
    """
    column_of = _columns(graph, places)
    entries: list[tuple[int, int, float, int]] = []
    bounded: list[tuple[int, ...]] = []

    def give(row: int, number: int, factor: float) -> None:
        """What a segment gives, for a row that bounds others by it."""
        for entry in places.segments[number].entries:
            entries.append((row, column_of[entry], -factor * places.locations[entry].passes, entry))

    for locations in places.by_arc.values():
        branches = [index for index in locations if places.locations[index].leaves >= 0]
        together = [tuple(branches)] if branches and branches[0] in places.apart else [(index,) for index in branches]
        for members in together:
            row = len(bounded)
            bounded.append(members)
            for index in members:
                entries.append((row, column_of[index], 1.0, index))
                give(row, places.locations[index].leaves, places.locations[index].takes)
    width = max(column_of) + 1
    worth, most = [0.0] * width, [1.0] * width
    outputs = tuple(output.name for output in graph.outputs)
    for number, output in enumerate(graph.outputs):
        row, flow = len(bounded), len(places.locations) + number
        bounded.append((flow,))
        for width_share, piece_worth in _pieces(output.qos):
            entries.append((row, len(most), 1.0, flow))
            most.append(width_share)
            worth.append(piece_worth)
        for index, segment in enumerate(places.segments):
            if segment.output == output.name:
                give(row, index, segment.weight)
    floors: dict[int, float] = {}

    def hold(members: Sequence[int], floor: float) -> None:
        """At least this share of what comes through these locations without drops must pass."""
        floors[len(bounded)] = floor
        for index in members:
            entries.append((len(bounded), column_of[index], -max(places.locations[index].passes, _LEAST_PASSES), index))
        bounded.append(tuple(members))

    for output in graph.outputs:
        into = [entry for each in places.segments if each.output == output.name for entry in each.entries]
        if output.qos.min_accuracy > 0:
            hold(into, output.qos.min_accuracy)
    for arc in places.judged:
        if floor_at(graph, arc) > 0:
            hold(places.by_arc[arc], floor_at(graph, arc))
    rows, columns, tuples, flows = (np.array(column) for column in zip(*entries, strict=True))
    cost_us = np.array([location.cost_us for location in places.locations])
    return LinearProgram(
        places,
        np.array(column_of, dtype=np.intp),
        rows,
        columns,
        tuples,
        flows,
        tuple(bounded),
        cost_us,
        np.array(worth),
        np.array(most),
        outputs,
        tuple(index for index, at in enumerate(places.locations) if not droppable(graph, at.arc)),
        floors,
    )


def _columns(graph: Graph, places: Layout) -> list[int]:
    """The column of each location: its own, or that of all which must keep the same share of their flow.

    All cells of an arc that cannot tell them apart, and both sides of a join of streams.
    """
    parent = list(range(len(places.locations)))

    def root(index: int) -> int:
        while parent[index] != index:
            index = parent[index]
        return index

    def tie(members: Sequence[int]) -> None:
        for other in members[1:]:
            parent[root(other)] = root(members[0])

    for arc, locations in places.by_arc.items():
        if arc not in places.judged:
            tie(locations)
    for arcs in moving_together(graph, drop_arcs(graph)):
        cells: dict[int, list[int]] = {}
        for arc in sorted(arcs):
            for index in places.by_arc[arc]:
                if _enters_join(graph, arc):
                    cells.setdefault(places.locations[index].cell if arc in places.judged else 0, []).append(index)
        for members in cells.values():
            tie(members)
    number: dict[int, int] = {}
    return [number.setdefault(root(index), len(number)) for index in range(len(parent))]


def _enters_join(graph: Graph, arc: str) -> bool:
    """Whether a join of streams is in the segment that an arc enters."""
    name = arc_head(arc)
    while not isinstance(graph.by_name[name], StreamJoin):
        if len(graph.consumers[name]) != 1:
            return False
        name = graph.consumers[name][0]
    return True


def _pieces(qos: QoS) -> list[tuple[float, float]]:
    """(share of the output's tuples, worth per share) of each piece of a loss graph, from nothing delivered upwards."""
    found = []
    for (left, low), (right, high) in pairwise(reversed(qos.loss)):
        width_share = (right - left) / 100
        found.append((width_share, qos.priority * ((high - low) / width_share + _PREFER_DELIVERY)))
    return found
