"""Samples of values, as a batch on Spark gives them: what the loop learns from how values are spread."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from jettison.network.columns.value_tracks import Track
from jettison.network.graph import Graph
from jettison.sim.cells import CellGrid, Vector
from jettison.statistics.samples import ValueSample

_ROWS_PER_SAMPLED = 16
_POINTS = 200


def value_samples(
    graph: Graph, cells: CellGrid, entered: Mapping[str, Vector], delivered: Mapping[str, Vector]
) -> dict[str, ValueSample]:
    """Samples by "operator.column": of tracked sources behind their drops, and of valued outputs."""
    found = {}
    for track in graph.tracks.all:
        valued = {name: delivered[name] for name in track.outputs}
        for place, counts in {**entered, **valued}.items():
            if place in track.columns:
                sample = sampled(track, cells.along(track, counts))
                if sample is not None:
                    found[f"{place}.{track.columns[place]}"] = sample
    return found


def sampled(track: Track, counts: Vector) -> ValueSample | None:
    """One tuple of 16 as evenly spaced quantiles, each value standing in the middle of its cell; None without any.

    What is in no cell of the track counts as null.

    >>> sampled(Track(("o",), {}, (0.0, 50.0, 100.0)), np.array([48.0, 16.0, 32.0]))
    ValueSample(rows=6, points=(25.0, 25.0, 25.0, 75.0), others=2)
    """
    rows, others = (round(float(part) / _ROWS_PER_SAMPLED) for part in (counts.sum(), counts[-1]))
    if rows == 0:
        return None
    until = np.cumsum(counts[:-1])
    points = min(_POINTS, rows - others)
    places = np.searchsorted(until, (np.arange(points) + 0.5) / max(points, 1) * until[-1], side="right")
    middles = [(low + high) / 2 for low, high in pairwise(track.bounds)]
    return ValueSample(rows, tuple(middles[min(place, len(middles) - 1)] for place in places), others)
