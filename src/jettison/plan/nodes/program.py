"""The linear program of a placed network, solved by HiGHS from the solution of the last one (thesis 5.2).

    maximise    sum of worth * z                        z: pieces of what comes to an output
    such that   work @ y <= capacity - reading @ rate   on every node
                y <= reaches @ y  at branches,  y <= rate  at inputs
                sum of an output's z <= gives @ y
                gives @ y >= min_accuracy * what would come to the output, nothing dropped

The objective is throughput, as in the thesis (one piece per output, one tuple worth as much as another), or utility:
the pieces of an output's loss graph, times its priority.

A variable is a share: of the most tuples that can pass a location (the least of what comes and of what its node can
do), or of what would come to an output. A row is in units of the node's capacity, or of what its location or output can
get. So the tolerances of HiGHS mean the same on every node, for a trickle and a flood. Rates change the numbers of the
program, never its shape: the next solution is mostly a few pivots away from the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from jettison.errors import NetworkError, PlanError
from jettison.network.qos import QoS
from jettison.plan.nodes.plans import NodesPlan, plan_of
from jettison.plan.nodes.program_shape import ProgramShape, inverse
from jettison.plan.nodes.structure import Structure, Vector

Objective = Literal["throughput", "utility"]
OBJECTIVES: tuple[Objective, ...] = ("throughput", "utility")

_PREFER_DELIVERY = 1e-7
"""What a tuple more is worth where the loss graph is flat, of the steepest piece of all."""
_TOLERANCE = 1e-9
_FITS, _HOLDS = 1.0 + 1e-9, 1.0 - 1e-9


@dataclass(frozen=True)
class Solved:
    """Tuples per second behind every location's drop, and what they are worth; `reason` where nodes stay overloaded."""

    passing: Vector
    score: float
    reason: str | None = None


class Program:
    """The program of one structure. It is warm: every call of `solve` starts where the last one ended.

    >>> from jettison.plan.nodes.examples import two_chains
    >>> solved = Program(two_chains((1.0, 2.0), (3.0, 1.0))).solve(np.array([1.0, 1.0]))
    >>> solved.passing.round(6).tolist(), round(solved.score, 6)
    ([0.2, 0.4], 0.6)
    """

    def __init__(self, made: Structure, objective: Objective = "throughput") -> None:
        if objective not in OBJECTIVES:
            raise NetworkError(f"objective is {objective!r}: use one of {', '.join(OBJECTIVES)}.")
        self.structure = made
        self.objective = objective
        self._pieces = [_pieces(output.qos, objective) for output in made.graph.outputs]
        self._owner = np.repeat(np.arange(len(self._pieces)), [len(each) for each in self._pieces])
        self._width = np.array([width for each in self._pieces for width, _ in each])
        self._slope = np.array([slope for each in self._pieces for _, slope in each])
        self._floors = np.array([output.qos.min_accuracy for output in made.graph.outputs])
        self._floored = np.flatnonzero(self._floors > 0)
        self._shape = ProgramShape(made, self._owner, self._floored)
        self._highs = _highs()
        self._basis: Any = None
        self.solved = 0

    def solve(self, rates: Vector) -> Solved:
        """The best plan for these rates of the sources."""
        made = self.structure
        reading = made.reading_us @ rates / made.capacity_us
        room = np.maximum(1.0 - reading, 0.0)
        full, most = made.throughput @ rates, self._shape.most(rates, room)
        shares = self._run(full, most, room)
        self.solved += 1
        if shares is None:
            return self._least_overload(made.whole @ rates, full, reading)
        passing = self._kept(shares * most)
        used = np.divide(self._shape.load @ passing, room, out=np.zeros_like(room), where=room > 0)
        if used.max() > _FITS:  # by rounding: what HiGHS takes for feasible may be above by its tolerance
            passing = passing / used.max()
        return Solved(passing, self.score(passing, full), self._unread(reading))

    def score(self, passing: Vector, full: Vector) -> float:
        """What so many tuples behind drops are worth, when `full` would come to outputs without them."""
        came = self.structure.gives @ passing
        if self.objective == "throughput":
            return float(came.sum())
        shares = np.divide(came, full, out=np.ones_like(came), where=full > 0)
        outputs = self.structure.graph.outputs
        return sum(
            each.qos.priority * each.qos.utility(float(np.clip(share, 0, 1)))
            for each, share in zip(outputs, shares, strict=True)
        )

    def plan(self, rates: Vector) -> NodesPlan:
        """The best plan for these rates, as shares that drops keep."""
        solved = self.solve(rates)
        keeps = self.structure.keeps(solved.passing, rates)
        return replace(plan_of(self.structure, keeps, rates, solved.score, solved.passing), infeasible=solved.reason)

    def _unread(self, reading: Vector) -> str | None:
        """Why a node stays overloaded though it drops everything."""
        at = int(np.argmax(reading))
        if reading[at] <= 1:
            return None
        return (
            f"reading alone takes {100 * reading[at]:.0f} % of the capacity of node {self.structure.nodes[at]!r}, and "
            f"no drop saves it: give the node more capacity."
        )

    def _run(self, full: Vector, most: Vector, room: Vector) -> Vector | None:
        """The share of `most` that passes every location; None where floors cannot be held."""
        import highspy

        shape, highs, held = self._shape, self._highs, self._floored
        got = self.structure.gives @ most
        if ((full > 0) & (got <= 0))[held].any():
            return None
        cut = np.divide(full, got, out=np.zeros_like(full), where=got > 0)
        worth = got if self.objective == "throughput" else self._worth(inverse(cut))
        rows, columns = shape.size
        cost = np.concatenate([np.zeros(len(most)), worth / (float(worth.max(initial=0.0)) or 1.0)])
        upper = np.concatenate([(most > 0).astype(float), self._width * cut[self._owner]])
        lower, limit = np.full(rows, -highspy.kHighsInf), np.zeros(rows)
        limit[: len(room)] = room
        lower[rows - len(held) :], limit[rows - len(held) :] = (self._floors * cut)[held] * _HOLDS, highspy.kHighsInf
        value = shape.values(most, got)
        highs.passModel(
            *(columns, rows, len(value), int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMaximize), 0.0),
            *(cost, np.zeros(columns), upper, lower, limit, shape.start, shape.index, value),
            np.zeros(columns, dtype=np.int32),
        )
        if self._basis is not None:
            highs.setBasis(self._basis)
        highs.run()
        status = highs.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise PlanError(f"the program of {len(most)} drop locations was not solved: {status}.")
        self._basis = highs.getBasis()
        found: Vector = np.array(highs.getSolution().col_value)[: len(most)]
        return np.clip(found, 0.0, 1.0)

    def _kept(self, passing: Vector) -> Vector:
        """What passes in truth: no more than comes, and no more than is used."""
        return self._shape.without_waste(self._shape.consistent(passing))

    def _worth(self, share: Vector) -> Vector:
        """What pieces are worth, per share of what can come to their outputs."""
        slope = np.maximum(self._slope, _PREFER_DELIVERY * float(self._slope.max(initial=0.0)))
        worth: Vector = slope * share[self._owner]
        return worth

    def _least_overload(self, most: Vector, full: Vector, reading: Vector) -> Solved:
        """Floors win over capacity: the plan that holds them and has the smallest overload on any node."""
        from scipy.optimize import linprog

        made, count = self.structure, len(most)
        load, branch, output = self._shape.scaled(most, full)
        held = [at for at in self._floored if full[at] > 0]
        load = np.hstack([load, -np.ones((len(load), 1))])
        branch, floor = (np.hstack([each, np.zeros((len(each), 1))]) for each in (branch, -output[held]))
        bound = np.concatenate([-reading, np.zeros(len(branch)), -self._floors[held]])
        bounds = [*((0.0, float(each > 0)) for each in most), (1.0, None)]
        found = linprog(np.append(np.zeros(count), 1.0), np.vstack([load, branch, floor]), bound, bounds=bounds)
        if found.x is None:
            raise PlanError(f"floors cannot be held at any capacity: {found.message}")
        passing = self._kept(np.clip(np.asarray(found.x)[:count], 0.0, 1.0) * most)
        over = self._shape.load @ passing + reading
        node = made.nodes[int(np.argmax(over))]
        wanted = ", ".join(f"{made.graph.outputs[at].name} {self._floors[at]:g}" for at in self._floored)
        reason = (
            f"min_accuracy ({wanted}) takes {100 * over.max():.0f} % of the capacity of node {node!r}: lower it, or "
            f"give the node more capacity."
        )
        return Solved(passing, self.score(passing, full), reason)


def _pieces(qos: QoS, objective: Objective) -> list[tuple[float, float]]:
    """Pieces of what an output gets: (width as a share of all, worth per share), the best first."""
    if objective == "throughput":
        return [(1.0, 1.0)]
    return [
        ((right - left) / 100, qos.priority * 100 * (high - low) / (right - left))
        for (left, low), (right, high) in pairwise(reversed(qos.loss))
    ]


def _highs() -> Any:
    import highspy

    kept: Any = highspy.Highs  # it has no types
    highs = kept()
    options = {"output_flag": False, "presolve": "off", "solver": "simplex", "threads": 1}
    tolerances = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), _TOLERANCE)
    for option, value in {**options, **tolerances}.items():
        highs.setOptionValue(option, value)
    return highs
