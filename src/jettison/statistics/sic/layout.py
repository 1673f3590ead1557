"""The stages of all outputs as one vector, so that batches add up in one step however many queries there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.network.graph import Graph
from jettison.statistics.sic.stages import Stage, Stages, Ways, holds_state, ways_to

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Place:
    """Where a stage of an output is in the vector: what came, what is used, then what went into which states."""

    origin: str
    at: int
    into: tuple[str, ...]


class Layout:
    """Which number of a vector is what, for a graph.

    >>> from jettison.network import Network
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("1 minute").agg(n="count(*)", name="busy").output("out")
    >>> layout = Layout(net.graph)
    >>> found = layout.vector({"out": {"trips": Stage(9.0, 1.0, {"busy": 6.0}), "busy": Stage(2.0, 1.0)}})
    >>> found
    array([9., 1., 6., 2., 1.])
    >>> layout.stages(found, "out")["trips"]
    Stage(came=9.0, used=1.0, into={'busy': 6.0})
    """

    def __init__(self, graph: Graph) -> None:
        self.ways = {output.name: ways_to(graph, output) for output in graph.outputs}
        self._places: dict[str, tuple[_Place, ...]] = {}
        at = 0
        for name, ways in self.ways.items():
            found = []
            for origin in ways.origins:
                into = _next_states(graph, ways, origin)
                found.append(_Place(origin, at, into))
                at += 2 + len(into)
            self._places[name] = tuple(found)
        self.size = at

    def vector(self, by_output: Mapping[str, Stages]) -> Vector:
        """The stages of outputs as a vector; of outputs that are left out, nothing came."""
        found = np.zeros(self.size)
        for name, stages in by_output.items():
            for place in self._places[name]:
                stage = stages.get(place.origin)
                if stage is not None:
                    into = [stage.into.get(each, 0.0) for each in place.into]
                    found[place.at : place.at + 2 + len(into)] = (stage.came, stage.used, *into)
        return found

    def has_states(self, output: str, stages: Stages) -> bool:
        """Whether all states that these stages of an output went into are still on its way."""
        into = {place.origin: place.into for place in self._places[output]}
        return all(set(stage.into) <= set(into[origin]) for origin, stage in stages.items() if origin in into)

    def stages(self, vector: Vector, output: str) -> Stages:
        """The stages of one output."""
        found = {}
        for place in self._places[output]:
            came, used, *into = vector[place.at : place.at + 2 + len(place.into)].tolist()
            found[place.origin] = Stage(came, used, dict(zip(place.into, into, strict=True)))
        return found


def _next_states(graph: Graph, ways: Ways, origin: str) -> tuple[str, ...]:
    """The operators with state in which a stage may end."""
    found, waiting, seen = set(), [origin], {origin}
    while waiting:
        for head in graph.consumers[waiting.pop()]:
            if head in ways.operators and head not in seen:
                seen.add(head)
                if holds_state(graph.by_name[head]):
                    found.add(head)
                else:
                    waiting.append(head)
    return tuple(name for name in ways.states if name in found)


def layout_of(graph: Graph) -> Layout:
    """The layout of a graph, worked out once."""
    known = graph.__dict__.get("_sic_layout")
    if known is None:
        known = graph.__dict__["_sic_layout"] = Layout(graph)
    assert isinstance(known, Layout)
    return known
