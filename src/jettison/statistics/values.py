"""Histograms of the values that outputs are valued by, followed while running, in bounded memory.

Kept are, for every track, the spread of values where they enter and what each filter passes of every cell. Samples of a
batch tell both: those of a source behind its drop how its tuples are spread, those of an output what the last filter
before it lets through. What a drop closes cannot be seen behind it; how much it is in all is known from counted rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jettison.network.graph import Graph
from jettison.network.operators import Apply, Join, Where
from jettison.network.slices import results_above
from jettison.network.tracks import Track
from jettison.statistics.profile import Profile
from jettison.statistics.samples import ValueSample
from jettison.statistics.spread import Spread, flows_by_value

Vector = npt.NDArray[np.float64]
Keep = float | Sequence[float]

_LEAST_SAMPLE = 30
_DOUBT_ROWS = 1.0
_PRIOR_ROWS = 200.0
_MOST_WEIGHT = 0.5
_COUNTED_WEIGHT = 0.7
_LEAST_HIDDEN = 1e-9
_LEAST_RATIO, _MOST_RATIO = 1e-3, 1e3


class ValueModel:
    """Spreads that follow what is measured; `get()` gives them for a profile."""

    def __init__(self, graph: Graph, profile: Profile) -> None:
        self._graph = graph
        self._entering: dict[tuple[tuple[str, ...], str], Vector] = {}
        self._ratios: dict[str, Vector] = {}
        spread = Spread(graph, profile) if graph.tracks.all else None
        for track in graph.tracks.all:
            assert spread is not None
            for name in track.columns:
                operator = graph.by_name[name]
                if not any(tail in track.columns for tail in operator.inputs):
                    self._entering[track.outputs, name] = spread.of(name, track)
                elif isinstance(operator, Where | Join | Apply) and spread.track(name) is track:
                    share = profile.passes(name)
                    self._ratios[name] = spread.passes(name) / share if share > 0 else np.ones(track.cells)

    def get(self) -> dict[str, tuple[float, ...]]:
        """Spreads by "operator.column", as `Profile.values` holds them."""
        found: dict[str, tuple[float, ...]] = {}
        for track in self._graph.tracks.all:
            at: dict[str, Vector] = {}
            for operator in self._graph.operators:
                if operator.name not in track.columns:
                    continue
                entering = self._entering.get((track.outputs, operator.name))
                if entering is None:
                    before = [at[tail] for tail in operator.inputs if tail in at]
                    entering = np.mean(before, axis=0) * self._ratios.get(operator.name, np.ones(track.cells))
                at[operator.name] = entering / max(float(entering.sum()), 1e-12)
                found[f"{operator.name}.{track.columns[operator.name]}"] = tuple(map(float, at[operator.name]))
        return found

    def update(
        self,
        profile: Profile,
        rows: Mapping[str, float],
        keeps: Mapping[str, Keep],
        arcs: Mapping[str, tuple[int, int]],
        samples: Mapping[str, ValueSample],
    ) -> None:
        """Learn from the samples of a batch that ran with these drops; `arcs` counts rows before and behind drops."""
        expected: dict[str, Vector] | None = None
        for track in self._graph.tracks.all:
            for place, column in track.columns.items():
                seen = _seen(track, samples.get(f"{place}.{column}"))
                if (track.outputs, place) in self._entering:
                    self._learn_entering(track, place, seen, keeps.get(place, 1.0), arcs.get(place))
                elif seen is not None and place in track.outputs:
                    if expected is None:
                        expected = flows_by_value(self._graph, profile, rows, keeps)
                    self._learn_ratio(track, place, seen, expected[self._graph.arcs_into(place)[0]])

    def _learn_entering(
        self, track: Track, place: str, seen: Vector | None, keep: Keep, counted: tuple[int, int] | None
    ) -> None:
        """Open cells have the shape of the sample; how much lies in the closed ones is known from counted rows."""
        old = self._entering[track.outputs, place]
        shares = np.full(track.cells, keep) if isinstance(keep, float | int) else np.asarray(keep, dtype=float)
        is_open = shares > 0
        shape = _whole(np.where(is_open, old, 0.0))
        if seen is not None:
            weight = _weight(float(seen.sum()))
            found = _whole(np.where(is_open, seen / np.where(is_open, shares, 1.0), 0.0))
            shape = (1 - weight) * shape + weight * found
        visible = float(old[is_open].sum())
        rows, kept = counted or (0, 0)
        if not is_open.all() and rows > 0:
            passing = float((shape * shares).sum())  # of what is in open cells
            now = min(1.0, kept / rows / passing) if passing > 0 else 0.0
            visible += _COUNTED_WEIGHT * (now - visible)
        hidden = _whole(np.where(is_open, 0.0, np.maximum(old, _LEAST_HIDDEN)))
        self._entering[track.outputs, place] = _whole(visible * shape + (1.0 - visible) * hidden)

    def _learn_ratio(self, track: Track, output: str, seen: Vector, expected: Vector) -> None:
        name = self._filter_before(track, output)
        if name is None or expected.sum() <= 0 or results_above(self._graph, output)[0]:
            return  # how results of windows are spread says nothing of the rows that they were made of
        predicted = expected * float(seen.sum()) / float(expected.sum())
        # what is added tells little by few rows, and makes a rare cell no larger in the mean than it is
        factor = (seen + _DOUBT_ROWS) / (predicted + _DOUBT_ROWS)
        weight = _weight(float(seen.sum()))
        ratio = self._ratios[name] * (1 - weight + weight * factor)
        self._ratios[name] = np.clip(ratio, _LEAST_RATIO, _MOST_RATIO)

    def _filter_before(self, track: Track, output: str) -> str | None:
        """The nearest filter upstream within the track; None behind a union or without one."""
        operator = self._graph.by_name[output]
        while len(operator.inputs) == 1 and operator.inputs[0] in track.columns:
            operator = self._graph.by_name[operator.inputs[0]]
            if operator.name in self._ratios:
                return operator.name
        return None


def _seen(track: Track, sample: ValueSample | None) -> Vector | None:
    """A sample by cell; None when it is too small to tell anything."""
    if sample is None or sample.rows < _LEAST_SAMPLE:
        return None
    seen = track.count(sample.points)
    seen *= (sample.rows - sample.others) / max(1.0, float(seen.sum()))
    seen[-1] += sample.others
    return seen


def _whole(masses: Vector) -> Vector:
    """Masses as shares; nothing stays nothing."""
    sum_ = float(masses.sum())
    return masses / sum_ if sum_ > 0 else masses


def _weight(rows: float) -> float:
    """How far an estimate follows a sample of so many rows."""
    return min(_MOST_WEIGHT, rows / (rows + _PRIOR_ROWS))
