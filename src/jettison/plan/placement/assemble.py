"""What locations keep, as the drops of a plan: by value where cells of an arc differ, else by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jettison.network.graph import Graph
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.placement.join_keys import by_chance
from jettison.plan.placement.locations import Layout
from jettison.plan.placement.strata import estimates_below

Vector = npt.NDArray[np.float64]


def placed(
    graph: Graph, places: Layout, keeps: Sequence[float], reaching: Sequence[float], left: Mapping[str, float]
) -> dict[str, Drop]:
    """Drops by arc. `reaching` are the tuples that come to each location; `left` is, by arc, the share that drops by
    key above leave.
    """
    drops: dict[str, Drop] = {}
    for arc, locations in places.by_arc.items():
        shares = np.array([keeps[index] for index in locations])
        if (shares >= 1.0).all():
            continue
        weights = np.array([reaching[index] for index in locations])
        if not weights.any():
            continue  # nothing comes here now, and what may come is not closed in advance
        there = shares[weights > 0]
        if arc not in places.judged or (there == there[0]).all():
            if there[0] == 0.0 and not estimates_below(graph, arc):
                drops[arc] = Random(0.0)
            elif there[0] < 1.0:
                drops[arc] = by_chance(graph, arc, float(there[0]), left.get(arc, 1.0))
            continue
        track, column = places.judged[arc]
        expected = float(np.average(shares, weights=weights))
        drops[arc] = Semantic(column, track.bounds, tuple(map(float, shares)), min(1.0, expected))
    return drops


def drops_by_value(graph: Graph, places: Layout, keeps: Sequence[float], full: Vector) -> dict[str, Drop]:
    """The same from undropped flows: what reaches each location, and what of a key is left, follow from the drops."""
    out = [0.0] * len(places.segments)
    reaching = [0.0] * len(places.locations)
    for number, segment in enumerate(places.segments):
        for entry in segment.entries:
            at = places.locations[entry]
            reaching[entry] = float(full[entry]) if at.leaves < 0 else at.takes * out[at.leaves]
            out[number] += reaching[entry] * keeps[entry] * at.passes
    left = {}
    for arc, locations in places.by_arc.items():
        whole = sum(float(full[index]) for index in locations)
        left[arc] = min(1.0, sum(reaching[index] for index in locations) / whole) if whole > 0 else 1.0
    return placed(graph, places, keeps, reaching, {arc: share or 1.0 for arc, share in left.items()})
