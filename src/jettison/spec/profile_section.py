"""The `profile` section of a file, checked against its network: costs, selectivities and rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jettison.errors import NetworkError
from jettison.network.graph import Graph
from jettison.spec.models import ProfileSpec
from jettison.statistics.profile import Profile


def read_profile(origin: str, graph: Graph, spec: ProfileSpec) -> Profile:
    """A file's `profile` section, checked against its network."""
    values = {place: _spread(origin, graph, place, rows) for place, rows in spec.values.items()}
    profile = Profile(spec.cost_us, spec.selectivity, spec.fixed_ms, spec.read_us, spec.drop_us, spec.look_us, values)
    profile.check(graph)
    profile = profile.completed(graph)
    for name, rate in spec.rows_per_s.items():
        check_rate(f"{origin}: profile.rows_per_s", graph, name, rate)
    return profile


def _spread(
    origin: str, graph: Graph, place: str, histogram: Sequence[tuple[float, float, float]]
) -> tuple[float, ...]:
    """A histogram of the file, (from, to, share) rows under "operator.column", in the cells of the column's track."""
    places = {f"{name}.{column}": track for track in graph.tracks.all for name, column in track.columns.items()}
    if place not in places:
        known = ", ".join(places) or "none, as no output has a value utility"
        raise NetworkError(f"{origin}: profile.values: {place!r} is no column that outputs are valued by: {known}.")
    if not histogram or sum(share for *_, share in histogram) <= 0 or any(share < 0 for *_, share in histogram):
        raise NetworkError(f"{origin}: profile.values of {place!r} has no mass: give (from, to, share) rows above 0.")
    if any(low >= high for low, high, _ in histogram):
        raise NetworkError(f"{origin}: profile.values of {place!r}: let every interval rise from its start to its end.")
    return tuple(float(share) for share in places[place].spread(histogram))


def check_rate(place: str, graph: Graph, name: str, rate: float) -> None:
    """Raise for a rate that belongs to no source, or is no rate."""
    names = [source.name for source in graph.sources]
    if name not in names:
        raise NetworkError(f"{place}: {name!r} is not a source of network {graph.name!r}; sources: {', '.join(names)}.")
    if not (math.isfinite(rate) and rate >= 0):
        raise NetworkError(f"{place} of {name!r} is {rate}: give rows per second of at least 0.")
