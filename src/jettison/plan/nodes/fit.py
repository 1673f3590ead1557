"""Feasible input tables: which rates a node and all nodes below it can take, and what they give (thesis 5.5).

A table is columns: rates of the node's inputs, the score of what comes to the outputs, and what passes at the drop
locations inside the node (the complementary local plan). A leaf takes rates on a grid. A node above others combines the
rows of its children's tables, maps them from its outputs back to its inputs, and leaves out what it cannot process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError
from jettison.plan.nodes.fragment_structure import NodeView
from jettison.plan.nodes.local_blocks import LocalDrops, local_drops
from jettison.plan.nodes.point_quadtree import PointQuadtree
from jettison.plan.nodes.structure import Matrix, Vector

Rows = npt.NDArray[np.intp]

MOST_ROWS = 4_000_000
_PRUNED = 3_000
_SLACK = 1e-9


@dataclass(frozen=True)
class Fit:
    """One table. `passing` are tuples behind every drop location of the node. `loads` says what a tuple of each input
    takes of the capacity of this node and of every node below it, nothing dropped: a row each. All but `passing`
    travels to the parent.
    """

    inputs: tuple[str, ...]
    rates: Matrix
    score: Vector
    passing: Matrix
    loads: Matrix

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def index(self) -> PointQuadtree:
        """The point quadtree over the rows (thesis 5.5.4)."""
        return PointQuadtree(self.rates, self.score)

    def best(self, rates: Vector) -> int:
        """The row with the highest score among those that ask for no more than these rates."""
        return self.index.find(rates)

    def take(self, rows: Rows) -> Fit:
        """The table of some rows."""
        return Fit(self.inputs, self.rates[rows], self.score[rows], self.passing[rows], self.loads)

    @property
    def bytes_per_entry(self) -> int:
        """What travels per row: the rates and the score."""
        return 8 * (len(self.inputs) + 1)


def rate_limits(view: NodeView, drops: LocalDrops) -> Vector:
    """The rate limit of every input: capacity over the work that no local drop can save.

    Drops behind a split at the entry could save all of it; then more rows than one branch can take are of no use.
    """
    own = view.own
    alone = np.where(drops.joined_by < 0, drops.work_us, 0.0)
    useless = np.where(drops.serving, 0.0, own.work_us[0]) @ own.whole
    hard = own.load_us[0] - useless - alone @ own.whole[drops.locations]
    linked = ~drops.local[own.inputs]
    least = drops.least_us[own.inputs]
    # what links carry is theirs to ask for: outputs of this node need no more than the way to the nearest of them
    work = np.where(linked, least, np.maximum(hard, np.where(np.isfinite(least), least, 0.0)))
    for name, cost, serves in zip(view.inputs, work, drops.serving[own.inputs], strict=True):
        if serves and cost <= _SLACK * own.load_us[0].max(initial=1.0):
            raise NetworkError(
                f"node {view.name!r}: rows of {name!r} come to an output there without any work, so no rate is too "
                f"high and the table would have no end: give profile.cost_us above 0 for all that reads it, or plan "
                f"with mode 'per-tick'."
            )
    return np.asarray(np.divide(own.capacity_us[0], work, out=np.full_like(work, np.inf), where=work > 0))


def spread_of(limit: Vector, epsilon: float) -> Vector:
    """The spread of the thesis: epsilon of each rate limit (5.5.2)."""
    return limit * epsilon


def generate(view: NodeView, spread: Vector | None = None, *, epsilon: float = 0.1) -> Fit:
    """The table of a leaf: all rates on the grid that fit, with a local plan where that makes them fit.

    >>> from jettison.plan.nodes.examples import fan_out
    >>> from jettison.plan.nodes.fragment_structure import node_view
    >>> fit = generate(node_view(fan_out(1.0, [2.0, 5.0]), "A"), np.array([0.1]))
    >>> fit.rates.ravel().round(2).tolist(), fit.score.round(2).tolist()
    ([0.0, 0.1, 0.2, 0.3], [0.0, 0.2, 0.28, 0.32])
    """
    drops = local_drops(view.own, view.worth)
    rates = _local_grid(view, drops, epsilon, spread)
    need = np.zeros((len(view.own.arcs), len(rates)))
    return _table(view, drops, rates, need, np.zeros(len(rates)), view.loads({}))


def merge(view: NodeView, tables: Mapping[str, Fit], *, epsilon: float = 0.1, spread: Vector | None = None) -> Fit:
    """The table of a node above others: rows of all children, combined, mapped to its inputs, checked against its load.

    Where streams of one input go to several places, the input brings as much as the most demanding of them wants; the
    others get less by drops on their branches, which is the node's own affair.
    """
    own, drops = view.own, local_drops(view.own, view.worth)
    local = _local_grid(view, drops, epsilon, spread)
    sizes = [*(len(tables[child]) for child in view.links), len(local)]
    if np.prod(sizes, dtype=float) > MOST_ROWS:
        raise NetworkError(
            f"node {view.name!r}: the tables of {', '.join(view.links)} have {' x '.join(map(str, sizes))} "
            f"combinations, more than {MOST_ROWS:,}: use a larger epsilon, or plan with mode 'per-tick'."
        )
    chosen = np.indices(sizes).reshape(len(sizes), -1)
    score, need = np.zeros(chosen.shape[1]), np.zeros((len(own.arcs), chosen.shape[1]))
    for at, (child, outputs) in enumerate(view.links.items()):
        table = tables[child]
        score = score + table.score[chosen[at]]
        for number, output in enumerate(outputs):
            _ask(view, need, output, table.rates[chosen[at], number])
    for at in reversed(np.flatnonzero(~own.is_input)):
        if need[at].any():
            parent = _only_parent(view, at)
            need[parent] = np.maximum(need[parent], need[at] / own.reaches[at, parent])
    loads = view.loads({child: tables[child].loads for child in view.links})
    return pruned(_table(view, drops, local[chosen[-1]], need, score, loads))


def _table(view: NodeView, drops: LocalDrops, given: Matrix, need: Matrix, below: Vector, loads: Matrix) -> Fit:
    """Rows that fit, with local drops where that makes them fit.

    `given` are rates for outputs of this node, rows x inputs; `need` is what links ask for at every location, and
    `below` what that is worth on other nodes.
    """
    own = view.own
    wanted = np.where(drops.serving[:, None], own.whole @ given.T, 0.0)
    over_us = own.work_us[0] @ np.maximum(wanted, need) - own.capacity_us[0]
    dropped = drops.apply(over_us, np.maximum(wanted - need, 0.0))
    flows, least = wanted.copy(), np.minimum(wanted, need)
    for at in np.flatnonzero(~own.is_input & drops.serving):
        flows[at] = np.maximum(own.reaches[at] @ flows - dropped[at], least[at])
    flows = np.maximum(flows, need)
    score = below + view.worth @ (own.gives @ flows)
    fits = np.flatnonzero(own.work_us[0] @ flows <= own.capacity_us[0] * (1 + _SLACK))
    return Fit(view.inputs, flows[own.inputs].T, score, flows.T, loads).take(fits)


def pruned(fit: Fit) -> Fit:
    """Without rows that ask for the same rates as a better one; of small tables also without rows that ask for more
    and give less. Rows are in order of their rates."""
    decimals = np.round(fit.rates, 9)
    order = np.lexsort((-fit.score, *decimals.T[::-1]))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (decimals[order][1:] != decimals[order][:-1]).any(axis=1)
    fit = fit.take(order[first])
    if len(fit) > _PRUNED:
        return fit
    less = (fit.rates[:, None] <= fit.rates[None] + _SLACK).all(axis=2)
    better = fit.score[:, None] >= fit.score[None] - _SLACK * max(1.0, float(np.abs(fit.score).max(initial=0.0)))
    dominated = less & better
    np.fill_diagonal(dominated, False)
    dominated &= ~(dominated.T & (np.arange(len(fit))[:, None] > np.arange(len(fit))[None]))
    return fit.take(np.flatnonzero(~dominated.any(axis=0)))


def _grid(work_us: Vector, spread: Vector, capacity_us: float) -> Matrix:
    """All rates on the grid whose work fits, one input after another; rows in lexicographic order."""
    rates, left = np.zeros((1, 0)), np.array([capacity_us * (1 + _SLACK)])
    for cost, step in zip(work_us, spread, strict=True):
        steps = np.floor(left / (cost * step) + _SLACK).astype(np.intp) + 1
        if steps.sum() > MOST_ROWS:
            raise NetworkError(
                f"a table of more than {MOST_ROWS:,} rows: use a larger epsilon, or fewer inputs per node."
            )
        rows = np.repeat(np.arange(len(rates)), steps)
        value = step * (np.arange(len(rows)) - np.repeat(np.cumsum(steps) - steps, steps))
        rates = np.column_stack([rates[rows], value])
        left = left[rows] - cost * value
    return rates


def _local_grid(view: NodeView, drops: LocalDrops, epsilon: float, spread: Vector | None) -> Matrix:
    """Rates that outputs of the node itself are given: a grid over the inputs that lead to any, 0 for all others."""
    own = view.own
    feeds = drops.serving[own.inputs]
    found = np.zeros((1, len(view.inputs)))
    if not feeds.any():
        return found
    limit = rate_limits(view, drops)
    steps = spread_of(limit, epsilon) if spread is None else spread
    if len(steps) != len(feeds) or not (np.isfinite(steps[feeds]).all() and (steps[feeds] > 0).all()):
        raise NetworkError(
            f"node {view.name!r}: spread is {steps}: give one above 0 per input ({', '.join(view.inputs)})."
        )
    grid = _grid(own.capacity_us[0] / limit[feeds], steps[feeds], own.capacity_us[0])
    found = np.zeros((len(grid), len(view.inputs)))
    found[:, feeds] = grid
    return found


def _ask(view: NodeView, need: Matrix, output: int, rates: Vector) -> None:
    """What a location must let pass so that a link carries these rates."""
    feeding = np.flatnonzero(view.own.gives[output] > 0)
    if len(feeding) != 1:
        name = view.own.graph.outputs[output].name
        raise NetworkError(
            f"node {view.name!r} merges streams on the way to {name!r}: tables cannot say how much of each to ask for. "
            f"Plan with mode 'per-tick'."
        )
    at = int(feeding[0])
    need[at] = np.maximum(need[at], rates / view.own.gives[output, at])


def _only_parent(view: NodeView, at: int) -> int:
    above = np.flatnonzero(view.own.reaches[at] > 0)
    if len(above) != 1:
        raise NetworkError(
            f"node {view.name!r} merges streams above arc {view.own.arcs[at]!r}: tables cannot say how much of each to "
            f"ask for. Plan with mode 'per-tick'."
        )
    return int(above[0])


def fine_spread(view: NodeView, epsilon: float) -> Vector:
    """A spread by which the best row is within epsilon of the optimum, for rates that do not fit.

    Rounding an input down to the grid loses at most worth x spread. All inputs of all nodes together may lose epsilon
    of the least that such rates are worth. A leaf cannot tell that by itself: a node above it may let so little pass
    that a step of the leaf's own limit is more than all of it.
    """
    own, worth = view.own, view.worth @ view.own.throughput
    limit = np.divide(own.capacity_us[0], own.load_us[0], out=np.ones(len(worth)), where=own.load_us[0] > 0)
    spread: Vector = np.divide(epsilon * view.step_worth, worth, out=limit, where=worth > 0)
    return spread


def rows_as_tuples(fit: Fit, digits: int = 6) -> list[tuple[float, ...]]:
    """The rows as plain numbers, rates first, the score last."""
    table: Sequence[Sequence[float]] = np.column_stack([fit.rates, fit.score]).round(digits).tolist()
    return [tuple(row) for row in table]
