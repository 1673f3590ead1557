"""Solver and Solver-W: plans for all rates in advance, by a region quadtree (thesis 5.4).

The space of input rates is cut into cells. All rates of a cell are mapped to its lowest corner by drops at the inputs,
and then follow that corner's plan. More rates never make throughput smaller, so no rates of a cell can do better than
its highest corner: a cell's error is

    (score of the highest corner - score of the lowest) / score of the highest corner

Cells are halved along every input, the one with the largest error first, until no error exceeds epsilon; a cell whose
highest corner is feasible needs no plan. Solver-W ranks cells by probability x error, and stops when the sum of these
is at most epsilon. All this holds for throughput alone: of utility more rates may leave less, and a cell at rates of 0
has no bound. Utility, `min_accuracy` and reading (`read_us`) are planned tick by tick (`PerTick`).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError
from jettison.plan.nodes.plans import NodesPlan, plan_of
from jettison.plan.nodes.program import Program
from jettison.plan.nodes.structure import Matrix, Structure, Vector
from jettison.plan.nodes.workload import Workload

MOST_CELLS = 200_000


@dataclass(frozen=True)
class Cells:
    """The region quadtree as columns: bounds, error, the first of its children (-1 where there are none), and the
    tuples per second that pass at every location when rates are those of its lowest corner."""

    low: Matrix
    high: Matrix
    error: Vector
    child: npt.NDArray[np.intp]
    passing: Matrix
    expected_error: float

    def __len__(self) -> int:
        return int((self.child < 0).sum())

    @property
    def worst_error(self) -> float:
        """The largest error of any cell."""
        return float(self.error[self.child < 0].max())

    @property
    def bytes(self) -> int:
        """The memory of all columns."""
        return sum(each.nbytes for each in (self.low, self.high, self.error, self.child, self.passing))

    def find(self, rates: Vector) -> int:
        """The cell that rates lie in; rates beyond the space lie in the cell at its edge."""
        at, powers = 0, 1 << np.arange(self.low.shape[1])
        while self.child[at] >= 0:
            middle = (self.low[at] + self.high[at]) / 2
            at = int(self.child[at] + powers @ (rates >= middle))
        return at


@dataclass
class _Growing:
    """Cells while they are made."""

    low: list[Vector] = field(default_factory=list)
    high: list[Vector] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    child: list[int] = field(default_factory=list)
    passing: list[Vector] = field(default_factory=list)

    def frozen(self, expected_error: float) -> Cells:
        columns = (self.low, self.high, self.error, self.child, self.passing)
        low, high, error, child, passing = (np.array(each) for each in columns)
        return Cells(low, high, error, child.astype(np.intp), passing, expected_error)


class Solver:
    """Advance planning by a coordinator: build once, then look plans up.

    `highest` are the largest rates that are planned for, `epsilon` the error that is allowed: of every cell or, with
    a `workload`, the expected one. `most_s` ends the division early; `cells.worst_error` says how far it got. Rates
    above `highest` are dropped down to it, so the error is bounded up to there only.

    >>> from jettison.plan.nodes.examples import two_chains
    >>> made = two_chains((1.0, 2.0), (3.0, 1.0))
    >>> solver = Solver(made, {"i0": 4.0, "i1": 4.0}, epsilon=0.05)
    >>> solver.cells.worst_error <= 0.05
    True
    >>> plan = solver.plan({"i0": 1.0, "i1": 1.0})
    >>> round(plan.score, 3), max(plan.load.values()) <= 1
    (0.6, True)
    """

    def __init__(
        self,
        made: Structure,
        highest: Mapping[str, float],
        epsilon: float = 0.05,
        *,
        workload: Workload | None = None,
        program: Program | None = None,
        most_s: float = np.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not 0 < epsilon < 1:
            raise NetworkError(f"epsilon is {epsilon}: give the error that is allowed, above 0 and below 1.")
        made.check_nothing_is_read("Solver")
        for output in made.graph.outputs:
            if output.qos.min_accuracy > 0:
                raise NetworkError(
                    f"output {output.name!r}: min_accuracy is {output.qos.min_accuracy:g}: Solver bounds the error of "
                    f"throughput alone, and more rows may leave less where floors are held: plan with PerTick."
                )
        top = made.rates(highest)
        if not (top > 0).all():
            raise NetworkError(f"highest rates are {dict(highest)}: give rates above 0 for all sources.")
        self.structure = made
        self.program = program or Program(made)
        if self.program.objective != "throughput":
            raise NetworkError("Solver bounds the error of throughput alone: plan utility with PerTick.")
        self._scores: dict[tuple[float, ...], tuple[float, Vector]] = {}
        self.history: list[tuple[float, int, float]] = []
        """Seconds, programs solved and (expected) error, after every division."""
        self.cells = self._divided(top, epsilon, workload, clock, most_s)

    def plan(self, rows_per_s: Mapping[str, float]) -> NodesPlan:
        """The plan for these rates: nothing is dropped where all nodes can process them, else that of their cell."""
        made, rates = self.structure, self.structure.rates(rows_per_s)
        useful = made.useful(rates)
        for wanted in (rates, useful):
            if made.feasible(wanted):
                keeps = np.ones(len(made.arcs))
                keeps[made.inputs[wanted < rates]] = 0.0
                return plan_of(made, keeps, rates, self._score(keeps, rates))
        at = self.cells.find(rates)
        low = self.cells.low[at]
        keeps = made.keeps(self.cells.passing[at], low)
        # the point is mapped to the corner of its cell: rates are scaled down at the inputs
        scale = np.divide(low, rates, out=np.ones_like(low), where=rates > 0)
        keeps[made.inputs] *= np.minimum(scale, 1.0)
        return plan_of(made, keeps, rates, self._score(keeps, rates))

    def _score(self, keeps: Vector, rates: Vector) -> float:
        return self.program.score(self.structure.passing(keeps, rates), self.structure.throughput @ rates)

    def _divided(
        self, top: Vector, epsilon: float, workload: Workload | None, clock: Callable[[], float], most_s: float
    ) -> Cells:
        growing, began = _Growing(), clock()
        queue: list[tuple[float, int]] = []
        inputs = len(top)
        corners = (np.arange(2**inputs)[:, None] >> np.arange(inputs)) & 1
        expected = 0.0

        def add(low: Matrix, high: Matrix) -> None:
            nonlocal expected
            chances = np.ones(len(low)) if workload is None else workload.probability(low, high)
            for bottom, above, chance in zip(low, high, chances, strict=True):
                error, passing = self._error(bottom, above)
                rank = error * float(chance)
                heapq.heappush(queue, (-rank, len(growing.low)))
                expected += rank
                growing.low.append(bottom)
                growing.high.append(above)
                growing.error.append(error)
                growing.child.append(-1)
                growing.passing.append(passing)

        add(np.zeros((1, inputs)), top[None])
        while queue:
            rank, at = queue[0]
            reached = expected if workload is not None else -rank
            self.history.append((clock() - began, self.program.solved, reached))
            if reached <= epsilon or clock() - began > most_s:
                break
            if len(growing.low) > MOST_CELLS:
                raise NetworkError(
                    f"an error of {epsilon:g} takes more than {MOST_CELLS:,} cells, which leave {reached:.3g}: use a "
                    f"larger epsilon, lower highest rates, or plan with PerTick."
                )
            heapq.heappop(queue)
            expected += rank
            growing.child[at] = len(growing.low)
            half = (growing.high[at] - growing.low[at]) / 2
            low = growing.low[at] + corners * half
            add(low, low + half)
        return growing.frozen(expected if workload is not None else float("nan"))

    def _error(self, low: Vector, high: Vector) -> tuple[float, Vector]:
        """The error of a cell, and what passes at its lowest corner; sources that lead to no output are dropped."""
        made = self.structure
        low, high = made.useful(low), made.useful(high)
        if made.feasible(high):
            return 0.0, made.whole @ low
        bottom, passing = self._corner(low)
        best, _ = self._corner(high)
        return (best - bottom) / best if best > 0 else 0.0, passing

    def _corner(self, rates: Vector) -> tuple[float, Vector]:
        """Score and flows of one corner; cells share corners, so each is solved once."""
        key = tuple(rates.tolist())
        if key not in self._scores:
            if self.structure.feasible(rates):
                passing = self.structure.whole @ rates
                self._scores[key] = self.program.score(passing, self.structure.throughput @ rates), passing
            else:
                solved = self.program.solve(rates)
                self._scores[key] = solved.score, solved.passing
        return self._scores[key]


class PerTick:
    """No plans in advance: the program of this very second, from the solution of the last one. Its error is 0.

    >>> from jettison.plan.nodes.examples import two_chains
    >>> planner = PerTick(two_chains((1.0, 2.0), (3.0, 1.0)))
    >>> plan = planner.plan({"i0": 1.0, "i1": 1.0})
    >>> {arc: round(keep, 6) for arc, keep in plan.keeps.items()}
    {'i0': 0.2, 'i1': 0.4}
    """

    def __init__(self, made: Structure, program: Program | None = None) -> None:
        self.structure = made
        self.program = program or Program(made)

    def plan(self, rows_per_s: Mapping[str, float]) -> NodesPlan:
        """The best plan for these rates."""
        made, rates = self.structure, self.structure.rates(rows_per_s)
        if made.feasible(rates):
            found = plan_of(made, np.ones(len(made.arcs)), rates, 0.0)
            return replace(found, score=self.program.score(made.whole @ rates, made.throughput @ rates))
        return self.program.plan(rates)
