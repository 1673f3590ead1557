"""Histograms of the values that outputs are valued by, followed while running, in bounded memory.

The model holds, for every track, the spread of values where they enter and what each filter passes of every cell.
Samples of a batch tell both. Those taken before a drop, or behind one that judges by chance, say how tuples are spread
where they enter; those of an output say what the last filter before it lets through. Behind a drop by value closed
cells cannot be seen. Where no sample was taken before it, counted rows say how much is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jettison.network.arc import Arc
from jettison.network.columns.value_tracks import Track
from jettison.network.graph import Graph
from jettison.network.operators import Apply, Join, Source, Where
from jettison.network.windows.slice_groups import results_above
from jettison.statistics.follow import followed
from jettison.statistics.passing import Passing
from jettison.statistics.profile import Profile
from jettison.statistics.samples import ValueSample
from jettison.statistics.spread import Spread, flows_by_value

Vector = npt.NDArray[np.float64]
Keep = float | Sequence[float]

_LEAST_SAMPLE = 30
_SAMPLE_TELLS_ROWS = 800.0
_TELLING_ROWS = 400.0
"""So many rows must have come to a filter before a plan by value relies on what it passes of every cell."""
_PRIOR_ROWS = 200.0
_MOST_WEIGHT = 0.5
_COUNTED_WEIGHT = 0.7
_LEAST_HIDDEN = 1e-9
_MOST_PASSES = 1e4


class ValueModel:
    """Spreads that follow what is measured; `get()` gives them for a profile."""

    def __init__(self, graph: Graph, profile: Profile) -> None:
        self._graph = graph
        self._entering: dict[tuple[tuple[str, ...], str], Vector] = {}
        self._passing: dict[str, Passing] = {}
        self._passes: dict[str, Vector] = {}
        self._unseen: set[tuple[tuple[str, ...], str]] = set()
        spread = Spread(graph, profile) if graph.tracks.all else None
        for track in graph.tracks.all:
            assert spread is not None
            for name in track.columns:
                operator = graph.by_name[name]
                if not any(tail in track.columns for tail in operator.inputs):
                    self._entering[track.outputs, name] = spread.of(name, track)
                    if not _has_values(graph, profile, track):
                        self._unseen.add((track.outputs, name))
                elif isinstance(operator, Where | Join | Apply) and spread.track(name) is track:
                    measured = bool(profile.values.get(f"{name}.{track.columns[name]}"))
                    self._passes[name] = np.array(spread.passes(name))
                    self._passing[name] = Passing.believed(self._passes[name], _TELLING_ROWS if measured else 0.0)

    def get(self, now: Mapping[tuple[tuple[str, ...], str], Vector] | None = None) -> dict[str, tuple[float, ...]]:
        """Spreads by "operator.column", as `Profile.values` holds them; those of one batch where it says how values
        came in."""
        found: dict[str, tuple[float, ...]] = {}
        for track in self._graph.tracks.all:
            at: dict[str, Vector] = {}
            for operator in self._graph.operators:
                if operator.name not in track.columns:
                    continue
                at_entry = (track.outputs, operator.name)
                entering = (now or {}).get(at_entry, self._entering.get(at_entry))
                if entering is None:
                    before = [at[tail] for tail in operator.inputs if tail in at]
                    entering = np.mean(before, axis=0) * self._passes.get(operator.name, np.ones(track.cells))
                at[operator.name] = entering / max(float(entering.sum()), 1e-12)
                found[f"{operator.name}.{track.columns[operator.name]}"] = tuple(map(float, at[operator.name]))
        return found

    @property
    def passes(self) -> Mapping[str, Vector]:
        """What each filter passes of every cell."""
        return self._passes

    def knows(self, arc: str) -> bool:
        """Whether anything was ever said or seen of the values that a drop on an arc judges by, and of what filters
        below pass of them: a value that a filter removes is worth nothing."""
        at = self._graph.tracks.at(arc)
        if at is None:
            return False
        tail, head = Arc(arc).origin, Arc(arc).head
        if any(outputs == at[0].outputs and _leads(self._graph, name, tail) for outputs, name in self._unseen):
            return False
        below = self._graph.outputs_below(head) | {head}
        return not any(self._filters_before(at[0], output, head) & self._doubted for output in below & {*at[0].outputs})

    def update(
        self,
        profile: Profile,
        rows: Mapping[str, float],
        keeps: Mapping[str, Keep],
        arcs: Mapping[str, tuple[int, int]],
        samples: Mapping[str, ValueSample],
        before: Mapping[str, ValueSample] | None = None,
        delivered: Mapping[str, int] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch that ran with these drops; `arcs` counts rows before and behind drops.

        `samples` were taken behind drops, by "operator.column", those in `before` before the drop on an arc.
        `delivered` counts the rows of outputs. Returns what each filter passes of the values that come to it now.
        """
        before, delivered = before or {}, delivered or {}
        now = self._learn_sources(keeps, arcs, samples, before)
        for arc, sample in before.items():
            at = self._graph.tracks.at(arc)
            seen = _seen(at[0], sample) if not Arc(arc).is_input and at is not None else None
            if at is not None and seen is not None:
                above = {other: keep for other, keep in keeps.items() if other != arc}
                coming = flows_by_value(self._graph, self._as_of(profile, now), rows, above)[arc]
                count = arcs.get(arc, (None, 0))[0]
                now |= self._learn_below(
                    at[0], Arc(arc).origin, seen, coming, count, direct=_by_chance(above), inclusive=True
                )
        expected: dict[str, Vector] | None = None
        for track in self._graph.tracks.all:
            for place in track.outputs:
                looked_at, count = samples.get(f"{place}.{track.columns.get(place)}"), delivered.get(place)
                if looked_at is None and count is None:
                    continue
                if expected is None:
                    expected = flows_by_value(self._graph, self._as_of(profile, now), rows, keeps)
                flow = expected[self._graph.arcs_into(place)[0]]
                seen = _seen(track, looked_at)
                if seen is not None:
                    self._learn_below(track, place, seen, flow, count, direct=_by_chance(keeps))
                else:  # too few rows to tell how they are spread, but that they are few is counted
                    self._learn_from_few(track, place, _few(track, looked_at, flow, count), flow, count)
        return self._shares()

    def _as_of(self, profile: Profile, now: Mapping[tuple[tuple[str, ...], str], Vector]) -> Profile:
        """A profile with the values of one batch as they came in: what is seen further down is told beside these, for
        other values at the source are no other filter."""
        values = self.get(now)
        return replace(profile, values=values, selectivity={**profile.selectivity, **self._shares(values)})

    def _learn_sources(
        self,
        keeps: Mapping[str, Keep],
        arcs: Mapping[str, tuple[int, int]],
        samples: Mapping[str, ValueSample],
        before: Mapping[str, ValueSample],
    ) -> dict[tuple[tuple[str, ...], str], Vector]:
        """Learn what enters; returns how it was spread in this batch, where that was seen."""
        now = {}
        for track in self._graph.tracks.all:
            for place, column in track.columns.items():
                if (track.outputs, place) in self._entering:
                    whole, seen = _seen(track, before.get(place)), _seen(track, samples.get(f"{place}.{column}"))
                    keep = keeps.get(place, 1.0)
                    if whole is None and isinstance(keep, float | int) and keep > 0:
                        whole = seen  # a drop by chance changes no shares
                    if whole is None:
                        self._learn_entering(track, place, seen, keep, arcs.get(place))
                    else:
                        self._follow(track, place, whole)
                        now[track.outputs, place] = _whole(whole)
        return now

    def _shares(self, values: Mapping[str, Sequence[float]] | None = None) -> dict[str, float]:
        """What each filter passes of all that comes to it."""
        known = self.get() if values is None else values
        found = {}
        for track in self._graph.tracks.all:
            for name, passed in self._passes.items():
                tails = [tail for tail in self._graph.by_name[name].inputs if tail in track.columns]
                if name in track.columns and len(passed) == track.cells and tails:
                    spreads = [known[f"{tail}.{track.columns[tail]}"] for tail in tails]
                    found[name] = float((np.mean(spreads, axis=0) * passed).sum())
        return found

    def _follow(self, track: Track, place: str, seen: Vector) -> None:
        """Learn from a sample of all that comes in."""
        at = (track.outputs, place)
        self._entering[at] = _whole(followed(self._entering[at], _whole(seen), float(seen.sum())))
        self._unseen.discard(at)

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

    def _learn_below(
        self,
        track: Track,
        place: str,
        seen: Vector,
        expected: Vector,
        counted: int | None,
        *,
        direct: bool,
        inclusive: bool = False,
    ) -> dict[tuple[tuple[str, ...], str], Vector]:
        """What was seen further down beside what was expected there tells of the filter above, or of what comes in;
        that is returned."""
        self._unseen -= {at for at in self._unseen if at[0] == track.outputs and _leads(self._graph, at[1], place)}
        if expected.sum() <= 0 or results_above(self._graph, place)[0]:
            return {}  # how results of windows are spread says nothing of the rows that they were made of
        name = place if inclusive and place in self._passes else self._filter_before(track, place)
        if name is not None:
            self._learn_passes(name, seen, expected, counted)
            return {}
        entering = self._entering_above(track, place)
        if not direct or entering is None or isinstance(self._graph.by_name[entering], Source):
            return {}  # sources have samples of their own
        self._follow(track, entering, seen)
        return {(track.outputs, entering): _whole(seen)}

    def _learn_from_few(self, track: Track, place: str, seen: Vector, expected: Vector, counted: int | None) -> None:
        name = self._filter_before(track, place)
        if name is not None and expected.sum() > 0 and not results_above(self._graph, place)[0]:
            self._learn_passes(name, seen, expected, counted)

    def _learn_passes(self, name: str, seen: Vector, expected: Vector, counted: int | None) -> None:
        """What was seen of a cell beside what came to the filter tells what it passes of it.

        Rows that were counted say what all cells together pass; without a count only how they differ is learned.
        """
        rows = float(seen.sum())
        sampled = rows / (counted or float(expected.sum())) if rows > 0 else 1.0
        came = sampled * expected / np.maximum(self._passes[name], 1e-12)
        most = 1.0 if isinstance(self._graph.by_name[name], Where) else _MOST_PASSES
        # a sample is 200 quantiles: of a large one cells are known as well as of so many rows, not better
        counts = min(1.0, _SAMPLE_TELLS_ROWS / max(rows, float(came.sum()), 1.0))
        self._passing[name] = self._passing[name].seen(counts * came, counts * seen, most=most)
        self._passes[name] = self._passing[name].get(most=most)

    def _entering_above(self, track: Track, place: str) -> str | None:
        """Where the values of a place enter; None behind a union."""
        while (track.outputs, place) not in self._entering:
            inputs = self._graph.by_name[place].inputs
            if len(inputs) != 1 or inputs[0] not in track.columns:
                return None
            place = inputs[0]
        return place

    @property
    def _doubted(self) -> set[str]:
        """Filters of which nobody said what they pass, and too few rows have shown it since it was last different."""
        return {name for name, passing in self._passing.items() if passing.agreed < _TELLING_ROWS}

    def _filters_before(self, track: Track, output: str, head: str) -> set[str]:
        """The filters on the way from an operator to an output, both included."""
        found: set[str] = set()
        waiting = [output]
        while waiting:
            at = waiting.pop()
            if at in track.columns and _leads(self._graph, head, at):
                found |= {at} & self._passing.keys()
                waiting.extend(self._graph.by_name[at].inputs)
        return found

    def _filter_before(self, track: Track, output: str) -> str | None:
        """The nearest filter upstream within the track; None behind a union or without one."""
        operator = self._graph.by_name[output]
        while len(operator.inputs) == 1 and operator.inputs[0] in track.columns:
            operator = self._graph.by_name[operator.inputs[0]]
            if operator.name in self._passes:
                return operator.name
        return None


def _leads(graph: Graph, name: str, place: str) -> bool:
    """Whether the rows of an operator come to a place."""
    waiting = [place]
    while waiting:
        at = waiting.pop()
        if at == name:
            return True
        waiting.extend(graph.by_name[at].inputs)
    return False


def _by_chance(keeps: Mapping[str, Keep]) -> bool:
    """Whether no drop judges by value, so that what is seen further down is spread as further up."""
    return all(isinstance(keep, float | int) for keep in keeps.values())


def _has_values(graph: Graph, profile: Profile, track: Track) -> bool:
    """Whether a profile or a declared histogram says how the values of a track are spread."""
    given = [name for name, column in track.columns.items() if profile.values.get(f"{name}.{column}")]
    values = [output.qos.value for output in graph.outputs if output.name in track.outputs]
    return bool(given) or any(value is not None and value.histogram is not None for value in values)


def _seen(track: Track, sample: ValueSample | None) -> Vector | None:
    """A sample by cell; None when it is too small to tell anything."""
    return None if sample is None or sample.rows < _LEAST_SAMPLE else _by_cell(track, sample)


def _few(track: Track, sample: ValueSample | None, expected: Vector, counted: int | None) -> Vector:
    """As many rows by cell as were looked at; where none of those that were counted was, spread as they would be."""
    return _by_cell(track, sample) if sample is not None and sample.rows else _whole(expected) * (counted or 0)


def _by_cell(track: Track, sample: ValueSample) -> Vector:
    seen = track.count(sample.points)
    seen *= (sample.rows - sample.others) / max(1.0, float(seen.sum()))
    seen[-1] += sample.others
    return seen


def counted_spread(track: Track, sample: ValueSample | None) -> Vector | None:
    """The share of a sample's values in every cell of a track; None when it is too small to tell anything."""
    seen = _seen(track, sample)
    return None if seen is None else _whole(seen)


def _whole(masses: Vector) -> Vector:
    """Masses as shares; nothing stays nothing."""
    sum_ = float(masses.sum())
    return masses / sum_ if sum_ > 0 else masses


def _weight(rows: float) -> float:
    """How far an estimate follows a sample of so many rows."""
    return min(_MOST_WEIGHT, rows / (rows + _PRIOR_ROWS))
