"""What keep shares come to: tuples and worth delivered, work saved; for many plans at once, one per row of a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.network.graph import Graph
from jettison.plan.placement.locations import Layout
from jettison.statistics.profile import Profile

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """A row per plan; the first plan keeps everything.

    `delivered[row, output]` is the share of tuples, `worth[row, output]` of what they are worth, `utility[row]` the sum
    over the outputs, `reaching[row, location]` the tuples that come to a location, `saves_us[row, source]` the
    microseconds saved per tuple that enters at a source, drops paid for.
    """

    delivered: Matrix
    worth: Matrix
    utility: Matrix
    reaching: Matrix
    saves_us: Matrix


def outcome(graph: Graph, places: Layout, keeps: Matrix, counts: Sequence[float], profile: Profile) -> Outcome:
    """What these shares `keeps[row, location]` come to when so many tuples enter at each source."""
    delivered, worth, reaching = _flowing(graph, places, keeps, counts)
    saves_us = _savings(graph, places, keeps, reaching, profile)
    return Outcome(delivered, worth, _utility(graph, worth), reaching, saves_us)


def _savings(graph: Graph, places: Layout, keeps: Matrix, reaching: Matrix, profile: Profile) -> Matrix:
    """Load coefficient of each source without drops minus with them, drops paid for, for all rows at once."""
    judging_us = {arc: _judging_us(list(at), arc, keeps, reaching, profile) for arc, at in places.by_arc.items()}
    takes = np.array([location.takes for location in places.locations])
    loads = np.zeros_like(keeps)
    for index in reversed(range(len(places.locations))):
        location = places.locations[index]
        below = list(places.segments[location.enters].branches)
        after = loads[:, below] @ takes[below]
        loads[:, index] = judging_us[location.arc] + keeps[:, index] * (location.cost_us + location.passes * after)
    by_source = [
        loads[:, list(at)] @ takes[list(at)] for at in (places.by_arc[source.name] for source in graph.sources)
    ]
    coefficients = np.stack(by_source, axis=1)
    return np.asarray(coefficients[0] - coefficients)


def _judging_us(locations: list[int], arc: str, keeps: Matrix, reaching: Matrix, profile: Profile) -> Matrix:
    """What judging one tuple on an arc costs: nothing where all or none are kept, more where it is by value."""
    there = reaching[:, locations] > 0
    least = np.where(there, keeps[:, locations], 1.0).min(axis=1)
    most = np.where(there, keeps[:, locations], 0.0).max(axis=1)
    judged = (most > 0.0) & (least < 1.0)
    return np.asarray(profile.drop_us * judged + profile.look_us.get(arc, 0.0) * (judged & (least < most)))


def _flowing(graph: Graph, places: Layout, keeps: Matrix, counts: Sequence[float]) -> tuple[Matrix, Matrix, Matrix]:
    """Share of each output's tuples that is delivered, of what they are worth, and what reaches each location."""
    inputs = dict(zip((source.name for source in graph.sources), counts, strict=True))
    out, reaching = np.zeros((len(keeps), len(places.segments))), np.zeros_like(keeps)
    tuples = {output.name: np.zeros(len(keeps)) for output in graph.outputs}
    worth = {output.name: np.zeros(len(keeps)) for output in graph.outputs}
    for number, segment in enumerate(places.segments):
        for index in segment.entries:
            location = places.locations[index]
            arriving = location.takes * (inputs[location.arc] if location.leaves < 0 else out[:, location.leaves])
            reaching[:, index] = arriving
            out[:, number] += arriving * keeps[:, index] * location.passes
        if segment.output is not None:
            tuples[segment.output] += out[:, number]
            worth[segment.output] += segment.weight * out[:, number]
    return _shares(tuples), _shares(worth), reaching


def _shares(amounts: Mapping[str, Matrix]) -> Matrix:
    """Each output's amounts over that of the first row; 1 where there is nothing to deliver."""
    return np.stack([each / each[0] if each[0] > 0 else np.ones(len(each)) for each in amounts.values()], axis=1)


def _utility(graph: Graph, shares: Matrix) -> Matrix:
    total = np.zeros(len(shares))
    for index, output in enumerate(graph.outputs):
        percents, utilities = zip(*reversed(output.qos.loss), strict=True)
        total += output.qos.priority * np.interp(100 * shares[:, index], percents, utilities)
    return total
