"""What one batch did to the information of all outputs, as it is added to a window and written into the ledger."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.layout import Vector, layout_of
from jettison.statistics.sic.passage import Passage, read_rows
from jettison.statistics.sic.stages import Stage, Stages

_DIGITS = 7


@dataclass(frozen=True)
class Passed:
    """Some batches together: how long they took, what sources brought, and the stages of all outputs as a vector."""

    interval_ms: float
    read: Mapping[str, float]
    stages: Vector

    def __add__(self, other: Passed) -> Passed:
        read = {name: rows + other.read.get(name, 0.0) for name, rows in self.read.items()}
        return Passed(self.interval_ms + other.interval_ms, read, self.stages + other.stages)

    @classmethod
    def of(cls, graph: Graph, sample: BatchSample, closed: Collection[str] = ()) -> Passed:
        """Of one batch. An interval that is no length of time, after a clock has jumped, counts as none."""
        layout = layout_of(graph)
        interval_ms = max(0.0, sample.interval_ms) if math.isfinite(sample.interval_ms) else 0.0
        read = {source.name: read_rows(sample, source.name) for source in graph.sources}
        passage, lossy = Passage(graph, sample, closed), _lossy(sample, closed)
        stages: dict[str, Stages] = {}
        for name, ways in layout.ways.items():
            if ways.states or not lossy.isdisjoint(ways.operators):
                stages[name] = passage.stages(ways)
            else:
                stages[name] = {source: Stage(read[source], read[source]) for source in ways.sources}
        return cls(interval_ms, read, layout.vector(stages))

    def to_dict(self, graph: Graph) -> dict[str, Any]:
        """As plain data. Outputs whose sources alone tell that nothing was lost are left out; those that were not there
        yet are `absent`.

        >>> from jettison.network import Network
        >>> net = Network("one"); _ = net.source("s", "x int").output("o")
        >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 25)})
        >>> Passed.of(net.graph, sample).to_dict(net.graph)
        {'interval_ms': 1000, 'read': {'s': 100}, 'stages': {'o': {'s': [100, 25]}}}
        """
        layout, stages, absent = layout_of(graph), {}, []
        for name in layout.ways:
            found = layout.stages(self.stages, name)
            if not all(stage.came == self.read[origin] for origin, stage in found.items() if origin in self.read):
                absent.append(name)
            elif not all(stage.came == stage.used and not any(stage.into.values()) for stage in found.values()):
                stages[name] = {origin: _listed(stage) for origin, stage in found.items() if stage.came}
        read = {name: _short(rows) for name, rows in self.read.items()}
        found_all = {"interval_ms": _short(self.interval_ms), "read": read, "stages": stages}
        return {**found_all, "absent": absent} if absent else found_all

    @classmethod
    def from_dict(cls, graph: Graph, content: Mapping[str, Any], known: Collection[str]) -> Passed:
        """As it was written, for the network as it is now: what is gone from it is forgotten. For outputs that were not
        `known` when it was written, nothing has come; nor for those whose windows or joins are others now."""
        layout = layout_of(graph)
        read = {source.name: float(content["read"].get(source.name, 0.0)) for source in graph.sources}
        stages: dict[str, Stages] = {}
        for name, ways in layout.ways.items():
            if name in content["stages"]:
                written = _written(content, name)
                if layout.has_states(name, written):
                    stages[name] = written
            elif name in known and name not in content.get("absent", ()):
                stages[name] = {source: Stage(read[source], read[source]) for source in ways.sources}
        return cls(float(content["interval_ms"]), read, layout.vector(stages))


def forgotten(graph: Graph, content: Mapping[str, Any]) -> list[str]:
    """The outputs of which what was written is not read again, as their windows or joins are others now."""
    layout = layout_of(graph)
    names = [name for name in layout.ways if name in content["stages"]]
    return [name for name in names if not layout.has_states(name, _written(content, name))]


def _written(content: Mapping[str, Any], output: str) -> Stages:
    return {origin: _stage(each) for origin, each in content["stages"][output].items()}


def _lossy(sample: BatchSample, closed: Collection[str]) -> set[str]:
    """The operators at which, or before which, something was lost."""
    arcs = [arc for arc, (came, kept) in sample.arcs.items() if kept < came]
    found = {arc_head(arc) for arc in (*arcs, *closed)}
    counts = (sample.skipped, sample.gone, sample.rejected, sample.unfit)
    return found | {arc_head(name) for each in counts for name, count in each.items() if count}


def _listed(stage: Stage) -> list[Any]:
    into = {name: _short(rows) for name, rows in stage.into.items() if rows}
    return [_short(stage.came), _short(stage.used), *([into] if into else [])]


def _stage(content: list[Any]) -> Stage:
    came, used, *into = content
    return Stage(came, used, into[0] if into else {})


def _short(number: float) -> float:
    """A number as short as it may be written.

    >>> _short(100.0), _short(1 / 3)
    (100, 0.3333333)
    """
    shorter = float(f"{number:.{_DIGITS}g}")
    return int(shorter) if shorter.is_integer() else shorter
