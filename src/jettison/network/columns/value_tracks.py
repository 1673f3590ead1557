"""Tracks: values that several outputs are valued by and that are one and the same column upstream.

Every track cuts its column's values into cells, fine enough for the utilities of its outputs to be constant in each.
What is planned by value is planned cell by cell. The last cell holds what is in no interval, null or NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError
from jettison.network.arc import Arc
from jettison.network.columns.lineage import origins
from jettison.network.columns.words import an
from jettison.network.graph import Graph
from jettison.network.operators import Source
from jettison.network.value import Value

Vector = npt.NDArray[np.float64]

_FINEST_CELLS = 40
_COARSEST_CELLS = 8
_MOST_CELLS_IN_ALL = 2000
_DUST = 1e-9
_NUMBERS = (
    *("tinyint", "byte", "smallint", "short", "int", "bigint", "long", "float", "real", "double"),
    *("decimal", "dec", "numeric"),
)


@dataclass(frozen=True)
class Track:
    """Outputs valued by one column, what that is called at each operator that has it, and the edges of its cells."""

    outputs: tuple[str, ...]
    columns: Mapping[str, str]
    bounds: tuple[float, ...]

    @property
    def cells(self) -> int:
        """How many cells there are, the last one, for all other values, included."""
        return len(self.bounds)

    def worth(self, value: Value) -> Vector:
        """The utility of a value in each cell.

        >>> Track(("o",), {}, (0.0, 50.0, 100.0)).worth(Value("x", [(0, 50, 0.2), (50, 100, 1)], otherwise=0.1))
        array([0.2, 1. , 0.1])
        """
        return np.array([*(value.of((low + high) / 2) for low, high in pairwise(self.bounds)), value.otherwise])

    def spread(self, histogram: Sequence[tuple[float, float, float]] | None) -> Vector:
        """The share of values in each cell, by a declared histogram; evenly over the cells' width without one.

        >>> Track(("o",), {}, (0.0, 50.0, 75.0, 100.0)).spread([(0, 50, 4), (50, 100, 6)])
        array([0.4, 0.3, 0.3, 0. ])
        """
        if histogram is None:
            histogram = [(self.bounds[0], self.bounds[-1], 1.0)]
        masses = np.zeros(self.cells)
        for low, high, share in histogram:
            inside = 0.0
            for cell, (left, right) in enumerate(pairwise(self.bounds)):
                part = max(0.0, min(high, right) - max(low, left)) / (high - low)
                masses[cell] += share * part
                inside += part
            masses[-1] += share * max(0.0, 1.0 - inside)
        masses[masses < _DUST * masses.sum()] = 0.0
        whole: Vector = masses / masses.sum()
        return whole

    def count(self, values: Sequence[float]) -> Vector:
        """How many of these values are in each cell; NaN counts as another value.

        >>> Track(("o",), {}, (0.0, 50.0, 100.0)).count([1, 50, 100, 101, float("nan")])
        array([1., 2., 2.])
        """
        given = np.asarray(values, dtype=float)
        inside = given[(given >= self.bounds[0]) & (given <= self.bounds[-1])]
        counts, _ = np.histogram(inside, bins=np.array(self.bounds))
        return np.append(counts, len(given) - len(inside)).astype(float)


@dataclass(frozen=True)
class Tracks:
    """All tracks of a network, by output."""

    graph: Graph
    by_output: Mapping[str, Track]

    @property
    def all(self) -> tuple[Track, ...]:
        return tuple({track.outputs: track for track in self.by_output.values()}.values())

    def below(self, operator: str) -> Track | None:
        """The one track that the valued outputs of an operator, or itself, belong to; None without or with several."""
        found = {self.by_output[name].outputs: self.by_output[name] for name in self._valued(operator)}
        return next(iter(found.values())) if len(found) == 1 else None

    def at(self, arc: str) -> tuple[Track, str] | None:
        """The track by whose values an arc's rows can be judged, and the column's name there.

        None unless all valued outputs below are valued by the same column, and that is on the arc already.
        """
        head, tail = Arc(arc).head, Arc(arc).origin
        track = self.below(head)
        return None if track is None or tail not in track.columns else (track, track.columns[tail])

    def _valued(self, operator: str) -> set[str]:
        names = self.graph.outputs_below(operator) | {operator}
        return {name for name in names if name in self.by_output}


def tracks_of(graph: Graph) -> Tracks:
    """Follow every valued output's column upstream; outputs that meet at one column share a track."""
    values = {output.name: output.qos.value for output in graph.outputs if output.qos.value is not None}
    if not values:
        return Tracks(graph, {})
    for name, value in values.items():
        _check(graph, name, value)
    found = {name: origins(graph, name, value.column) for name, value in values.items()}
    reached = {each.name: (graph.outputs_below(each.name) | {each.name}) & values.keys() for each in graph.operators}
    groups: list[set[str]] = [{name} for name in values]
    for operator, below in reached.items():
        if len(below) > 1 and _common(found, operator, below) is not None:
            merged = set().union(*(group for group in groups if group & below))
            groups = [group for group in groups if not group & below] + [merged]
    places = 1 + sum(len(heads) for heads in graph.consumers.values())
    tracks: dict[str, Track] = {}
    for group in groups:
        outputs = tuple(name for name in values if name in group)
        columns = {operator: _common(found, operator, below & group) for operator, below in reached.items()}
        there = {operator: column for operator, column in columns.items() if column is not None}
        track = Track(outputs, there, _bounds([values[name] for name in outputs], places))
        tracks.update(dict.fromkeys(outputs, track))
    return Tracks(graph, {name: tracks[name] for name in values})


def _common(found: Mapping[str, Mapping[str, str]], operator: str, outputs: set[str]) -> str | None:
    """The column of an operator that all these outputs are valued by; None where they differ or it is not there."""
    names = {found[output].get(operator, "").lower(): found[output].get(operator) for output in outputs}
    return next(iter(names.values())) if len(names) == 1 else None


def _bounds(values: Sequence[Value], places: int) -> tuple[float, ...]:
    """Edges of cells: all edges of all pieces, and equal steps between them as long as there are not too many."""
    edges = {edge for value in values for piece in value.pieces for edge in (piece.low, piece.high)}
    edges |= {edge for value in values for low, high, _ in value.histogram or () for edge in (low, high)}
    sorted_edges = sorted(edges)
    wanted = max(_COARSEST_CELLS, min(_FINEST_CELLS, _MOST_CELLS_IN_ALL // places))
    steps = max(1, wanted // (len(sorted_edges) - 1))
    bounds = [low + (high - low) * step / steps for low, high in pairwise(sorted_edges) for step in range(steps)]
    return (*bounds, sorted_edges[-1])


def _check(graph: Graph, name: str, value: Value) -> None:
    columns = graph.columns[name]
    if columns is not None and value.column.lower() not in {column.lower() for column in columns}:
        raise NetworkError(
            f"output {name!r}: its value utility is on column {value.column!r}, which it does not have. "
            f"Columns here: {', '.join(columns)}."
        )
    for operator, theirs in origins(graph, name, value.column).items():
        source = graph.by_name[operator]
        if isinstance(source, Source):
            kind = next(kind for column, kind in source.schema if column.lower() == theirs.lower()).lower()
            if not kind.startswith(_NUMBERS):
                raise NetworkError(
                    f"output {name!r}: its value utility is on {value.column!r}, {an(kind)} of source {operator!r}: "
                    f"intervals are of numbers, so cast it, such as with_columns({{{theirs!r}: 'double({theirs})'}})."
                )
