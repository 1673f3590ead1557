"""The simulated machine: the network at its true costs, what arrives at it, chance, and an account of every tuple."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jettison.network.graph import Graph
from jettison.network.operators import Output, Source
from jettison.plan.plan import Plan
from jettison.sim.account import Account
from jettison.sim.arrivals import Arrivals
from jettison.sim.cells import CellGrid, Vector
from jettison.sim.chance import Chance
from jettison.statistics.profile import Profile


@dataclass(frozen=True)
class Stage:
    """An operator as it truly is: what it reads, its work per tuple, and what it lets through of each cell.

    `tails` are the operators that it reads, arc by arc; `passes` is None where all tuples pass.
    """

    name: str
    arcs: tuple[str, ...]
    tails: tuple[str, ...]
    cost_us: float
    read_us: float
    passes: Vector | None
    is_output: bool


@dataclass(frozen=True)
class Gate:
    """A drop as it truly is: what it keeps of each cell and is expected to keep of all, its work per tuple judged."""

    keeps: Vector
    keep: float
    judging_us: float


@dataclass(frozen=True)
class Machine:
    """What a scheduler works with. `truth` may differ from the profile that the controller believes in.

    A join of streams works as a union with a selectivity, as in the loop's own sums (`statistics.load.flows`): the
    tuples of both sides each give so many pairs on average. Drops by key on both sides, which keep the same keys, come
    out right by that; random drops on both would leave fewer pairs in truth.
    """

    graph: Graph
    truth: Profile
    cells: CellGrid
    arrivals: Arrivals
    chance: Chance
    account: Account

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All operators in topological order."""
        stages = []
        for operator in self.graph.operators:
            name = operator.name
            passes = self.cells.passes(name)
            gives_all = isinstance(operator, Output) or bool(np.all(passes == 1.0))
            read_us = self.truth.read_us.get(name, 0.0) if isinstance(operator, Source) else 0.0
            stages.append(
                Stage(
                    name,
                    self.graph.arcs_into(name),
                    operator.inputs,
                    self.truth.cost(name),
                    read_us,
                    None if gives_all else passes,
                    isinstance(operator, Output),
                )
            )
        return tuple(stages)

    def gates(self, plan: Plan) -> dict[str, Gate]:
        """The drops of a plan. One that keeps nothing does not judge: its branch is not run at all."""
        gates = {}
        for arc, drop in plan.drops.items():
            keeps = self.cells.keeps(drop, arc)
            judging_us = self.truth.drop_us
            if drop.judges == "value":
                judging_us += self.truth.look_us.get(arc, 0.0)
            gates[arc] = Gate(keeps, drop.keep, judging_us if keeps.any() else 0.0)
        return gates
