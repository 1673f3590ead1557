"""How tuples are spread over the cells of their values, operator by operator, and what passes cell by cell.

A filter on a column lets some of its values through and not others. From the spread before and after an operator
follows what it passes of each cell:  selectivity x spread after / spread before  (thesis 3.7: tuples that a filter
removes anyway can be dropped for nothing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jettison.network.arc import arc_head
from jettison.network.columns.value_tracks import Track
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Apply, CountAggregate, Join, Operator, Source, StreamJoin, Where
from jettison.statistics.profile import Profile

Vector = npt.NDArray[np.float64]

_NEVER = 1e-12


class Spread:
    """The spreads of a network under a profile, for every track."""

    def __init__(self, graph: Graph, profile: Profile) -> None:
        self._graph = graph
        self._profile = profile
        self._known = {track.outputs: _spreads(graph, profile, track) for track in graph.tracks.all}
        self._tracks = {operator.name: graph.tracks.below(operator.name) for operator in graph.operators}
        self._passes = {operator.name: self._through(operator) for operator in graph.operators}

    def track(self, operator: str) -> Track | None:
        """The track that an operator's tuples are told apart by; None without one, or with several below."""
        return self._tracks[operator]

    def of(self, operator: str, track: Track) -> Vector:
        """How what an operator gives is spread over the cells of a track."""
        return self._known[track.outputs][operator]

    def passes(self, operator: str) -> Vector:
        """Tuples out per tuple in, for every cell of the operator's track; of length 1 without one."""
        return self._passes[operator]

    def _through(self, operator: Operator) -> Vector:
        track, share = self._tracks[operator.name], self._profile.passes(operator.name)
        if track is None:
            return np.array([share])
        if not isinstance(operator, Where | Join | StreamJoin | Apply | Aggregate | CountAggregate):
            return np.full(track.cells, share)
        before: Vector = np.mean([self.of(tail, track) for tail in operator.inputs], axis=0)
        after = self.of(operator.name, track)
        known = before > _NEVER
        ratio = np.ones(track.cells)
        ratio[known] = after[known] / before[known]
        seen = float((before * ratio).sum())  # less than 1 where values come out that were never seen to go in
        passes = share * ratio / seen if seen > _NEVER else np.full(track.cells, share)
        return np.minimum(passes, max(1.0, share)) if isinstance(operator, Where) else passes


def _spreads(graph: Graph, profile: Profile, track: Track) -> dict[str, Vector]:
    """Spreads of all operators: as measured, else as before the operator, else as behind it, else as declared."""
    found: dict[str, Vector] = {}
    for operator in graph.operators:
        shares = profile.values.get(f"{operator.name}.{track.columns.get(operator.name)}")
        if shares is not None and len(shares) == track.cells and sum(shares) > 0:
            found[operator.name] = np.asarray(shares, dtype=float) / sum(shares)
            continue
        known = [found[tail] for tail in operator.inputs if tail in found]
        if known:
            found[operator.name] = np.mean(known, axis=0)
    values = [qos.value for qos in (output.qos for output in graph.outputs if output.name in track.outputs)]
    declared = next((value.histogram for value in values if value is not None and value.histogram is not None), None)
    for operator in reversed(graph.operators):
        if operator.name not in found:
            heads = [head for head in graph.consumers[operator.name] if head in found]
            heads.sort(key=lambda head: head not in track.columns)
            found[operator.name] = found[heads[0]] if heads else track.spread(declared)
    return found


def flows_by_value(
    graph: Graph,
    profile: Profile,
    rows: Mapping[str, float],
    keeps: Mapping[str, float | Sequence[float]] | None = None,
    spread: Spread | None = None,
) -> dict[str, Vector]:
    """Tuples that pass every arc, cell by cell of the track below it; see `load.flows`.

    >>> from jettison.network import Network, QoS, Value
    >>> net = Network("n")
    >>> high = net.source("s", "x int").where("x >= 50", name="high")
    >>> _ = high.output("o", qos=QoS(value=Value("x", [(0, 50, 0.2), (50, 100, 1.0)])))
    >>> spread = {"s.x": [0.5 / 20] * 40 + [0.0], "high.x": [0.0] * 20 + [1 / 20] * 20 + [0.0]}
    >>> profile, upper_half = Profile({}, {"high": 0.5}, values=spread), (0.0,) * 20 + (1.0,) * 21
    >>> on = flows_by_value(net.graph, profile, {"s": 100}, {"s": upper_half})
    >>> {arc: round(float(flow.sum()), 6) for arc, flow in on.items()}
    {'s': 50.0, 's>high': 50.0, 'high>o': 50.0}
    """
    spread = spread or Spread(graph, profile)
    kept = keeps or {}
    full = flows_by_value(graph, profile, rows, None, spread) if kept and graph.stream_joins else {}
    on: dict[str, Vector] = {}
    for operator in graph.operators:
        name, track = operator.name, spread.track(operator.name)
        if isinstance(operator, Source):
            arriving = (
                np.array([rows.get(name, 0.0)]) if track is None else rows.get(name, 0.0) * spread.of(name, track)
            )
            entering = on[name] = arriving * np.asarray(kept.get(name, 1.0))
        elif full and isinstance(operator, StreamJoin):
            entering = _joined([on[arc] for arc in graph.arcs_into(name)], [full[arc] for arc in graph.arcs_into(name)])
        else:
            entering = sum((on[arc] for arc in graph.arcs_into(name)), np.zeros(1))
        out = entering * spread.passes(name)
        for arc in graph.arcs_out_of(name):
            on[arc] = _turned(out, track, spread.track(arc_head(arc)), name, spread) * np.asarray(kept.get(arc, 1.0))
    return on


def _joined(kept: Sequence[Vector], full: Sequence[Vector]) -> Vector:
    """As `load.joined`, cell by cell."""
    shares = [
        np.where(there > 0, here / np.maximum(there, _NEVER), 1.0) for here, there in zip(kept, full, strict=True)
    ]
    least: Vector = np.minimum.reduce(np.broadcast_arrays(*shares))
    whole: Vector = sum(full, np.zeros(1)) * least
    return whole


def _turned(flow: Vector, track: Track | None, wanted: Track | None, operator: str, spread: Spread) -> Vector:
    """A flow in the cells of the operator that it enters."""
    if wanted is None:
        return np.array([flow.sum()])
    return flow if track is not None else flow.sum() * spread.of(operator, wanted)
