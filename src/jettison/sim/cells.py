"""Value cells: the values of tuples cut into pieces, within which all tuples are treated alike.

A train of tuples is a vector of counts over the cells. An operator lets a share of each cell through, a drop keeps a
share of each cell, and both come from here. The cells are those of the network's tracks (`value_tracks`), filled as
the true profile says. A tuple that several tracks tell apart lies in a cell of each: then there is a cell for every
combination, and the values of one track are independent of those of another.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError
from jettison.network.columns.value_tracks import Track
from jettison.network.graph import Graph
from jettison.network.operators import Apply, Join, Where
from jettison.plan.drops.kind import Drop
from jettison.statistics.profile import Profile
from jettison.statistics.spread import Spread

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

MOST_CELLS = 5000
_NEVER = 1e-12


class CellGrid:
    """The cells of a network under its true profile; one cell where no output is valued.

    Tracks lie on axes. Those that tell the same tuples apart have axes of their own, the others may share one.

    >>> from jettison.network import Network, QoS, Value
    >>> net = Network("n")
    >>> trips = net.source("trips", "fare double")
    >>> _ = trips.output("fares", qos=QoS(value=Value("fare", [(0, 10, 0.1), (10, 50, 1.0)])))
    >>> cells = CellGrid(net.graph, Profile({}, {}, values={"trips.fare": [0.04] * 20 + [0.01] * 20 + [0.0]}))
    >>> cells.count, round(float(cells.arriving("trips")[0]), 3)
    (41, 0.04)
    >>> float(cells.along(net.graph.tracks.by_output["fares"], np.full(41, 2.0)).sum())
    82.0
    """

    def __init__(self, graph: Graph, truth: Profile) -> None:
        self._graph = graph
        self._truth = truth
        self._spread = Spread(graph, truth)
        below = {source.name: graph.outputs_below(source.name) for source in graph.sources}
        self._axis: dict[tuple[str, ...], int] = {}
        axes: list[list[Track]] = []
        for track in graph.tracks.all:
            met = {other for names in below.values() if names & {*track.outputs} for other in names}
            free = (at for at, axis in enumerate(axes) if not any({*other.outputs} & met for other in axis))
            at = next(free, len(axes))
            axes[at : at + 1] = [[*axes[at], track] if at < len(axes) else [track]]
            self._axis[track.outputs] = at
        self.shape = tuple(max(track.cells for track in axis) for axis in axes)
        self.count = math.prod(self.shape)
        if self.count > MOST_CELLS:
            columns = ", ".join("/".join(dict.fromkeys(track.columns.values())) for track in graph.tracks.all)
            raise NetworkError(
                f"network {graph.name!r} values the same rows by several columns ({columns}), which makes "
                f"{self.count:,} combinations of values to simulate, more than {MOST_CELLS:,}: value its outputs by "
                f"fewer columns, or simulate parts of it."
            )

    def arriving(self, source: str) -> Vector:
        """The share of a source's tuples that lies in each cell; on an axis that means nothing to them, the first."""
        shares = np.ones(self.shape)
        tracks = {self._axis[track.outputs]: track for track in self._below(source)}
        for at, cells in enumerate(self.shape):
            along = np.zeros(cells)
            along[: tracks[at].cells if at in tracks else 1] = (
                self._spread.of(source, tracks[at]) if at in tracks else 1.0
            )
            shares = shares * self._placed(at, along)
        return shares.ravel()

    def passes(self, operator: str) -> Vector:
        """Tuples out per tuple in, for each cell."""
        share, track = self._truth.passes(operator), self._spread.track(operator)
        if track is not None:
            return self._over(track, self._spread.passes(operator), share)
        found = np.full(self.count, share)
        for each in self._below(operator):
            found = found * self._over(each, self._ratio(operator, each), 1.0)
        return found

    def keeps(self, drop: Drop, arc: str) -> Vector:
        """The share of each cell that a drop on an arc keeps: by value that of the value's cell, else the same of all.

        A drop by key keeps whole keys; keys are not followed, so it is a share of every cell.
        """
        if drop.judges != "value" or not isinstance(drop.passes, tuple):
            return np.full(self.count, drop.keep)
        at = self._graph.tracks.at(arc)
        if at is None or at[0].cells != len(drop.passes):
            raise NetworkError(
                f"a drop{drop.named} stands on arc {arc!r}, where rows are not told apart by that value."
            )
        return self._over(at[0], np.asarray(drop.passes), 1.0)

    def along(self, track: Track, counts: Vector) -> Vector:
        """Counts by cell of one track."""
        at = self._axis[track.outputs]
        others = tuple(axis for axis in range(len(self.shape)) if axis != at)
        found: Vector = counts.reshape(self.shape).sum(axis=others)[: track.cells]
        return found

    def _below(self, operator: str) -> list[Track]:
        """Tracks of the outputs below an operator, or of itself."""
        names = self._graph.outputs_below(operator) | {operator}
        return [track for track in self._graph.tracks.all if names & {*track.outputs}]

    def _ratio(self, operator: str, track: Track) -> Vector:
        """What an operator above several tracks does to the spread along one of them, 1 on average."""
        kind = self._graph.by_name[operator]
        if not isinstance(kind, Where | Join | Apply):
            return np.ones(track.cells)
        before, after = self._spread.of(kind.inputs[0], track), self._spread.of(operator, track)
        ratio = np.where(before > _NEVER, after / np.maximum(before, _NEVER), 1.0)
        return ratio / max(float((before * ratio).sum()), _NEVER)

    def _placed(self, at: int, along: Vector) -> Matrix:
        """A vector along one axis, to be broadcast over the others."""
        return along.reshape([-1 if axis == at else 1 for axis in range(len(self.shape))])

    def _over(self, track: Track, shares: Vector, rest: float) -> Vector:
        """Shares by cell of a track, for all cells; `rest` where its axis is longer than it."""
        at = self._axis[track.outputs]
        along = np.full(self.shape[at], rest)
        along[: track.cells] = shares
        return np.broadcast_to(self._placed(at, along), self.shape).ravel()
