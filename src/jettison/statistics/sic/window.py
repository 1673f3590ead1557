"""The SIC of every output over the source time window: how much of what sources brought is in its results.

A source tuple is worth 1 / (number of the query's sources x tuples that its source brought in the window), those that
were lost included. The SIC of an output is the sum over what it used:

    SIC = 1 / S  sum over sources s of  used(s) / read(s)

It is 1 when nothing was lost, 0 when everything was. What a filter removes is used: the query has looked at it.
`Passage` says what one batch lost; what is lost behind windows and joins takes the share of the window's results with
it. A source that brought nothing in the window has nothing to lose: it does not count among the S sources. A query
none of whose sources brought anything has lost nothing: its SIC is 1.

Time is that of the batches, the sum of their intervals, which are measured by a clock that does not jump. While nothing
runs no time passes, so that a run goes on where it was when it is started again. The newest batch is always in the
window, however long it took.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jettison.errors import StartError
from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.layout import Layout, Vector, layout_of
from jettison.statistics.sic.passage import Passage, read_rows
from jettison.statistics.sic.stages import Stage, Stages

PANES = 20
"""The window slides in steps of at most so many parts of it: what it remembers does not grow with its length."""
_DIGITS = 7


@dataclass(frozen=True)
class Pane:
    """Some batches one after the other: from when, until when, what sources brought, and the stages of all outputs."""

    from_ms: float
    until_ms: float
    read: Mapping[str, float]
    stages: Vector

    def plus(self, other: Pane) -> Pane:
        read = {name: rows + other.read.get(name, 0.0) for name, rows in self.read.items()}
        return Pane(self.from_ms, other.until_ms, read, self.stages + other.stages)


@dataclass(frozen=True)
class SicWindow:
    """What was lost of late, as a value: `after` a batch it is another one.

    `s` brings 100 tuples in each of two batches, and half of the second are dropped; of the second source none is.

    >>> from jettison.network import Network
    >>> net = Network("two"); s, t = net.source("s", "x int"), net.source("t", "x int")
    >>> _ = s.union(t).output("both"); _ = s.where("x > 0").output("one")
    >>> window = SicWindow(net.graph, 10_000.0)
    >>> window = window.after(BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100, "t": 5}))
    >>> window.all()
    {'both': 1.0, 'one': 1.0}
    >>> window = window.after(BatchSample(1, 0.0, 1000.0, 900.0, {"s": 100, "t": 5}, arcs={"s": (100, 50)}))
    >>> window.all(), window.read("s"), window.processed("s", "both")
    ({'one': 0.75, 'both': 0.875}, 200.0, 150.0)
    """

    graph: Graph
    stw_ms: float
    panes: tuple[Pane, ...] = field(default=(), repr=False)
    now_ms: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.stw_ms) and self.stw_ms > 0):
            raise StartError(f"stw is {self.stw_ms} ms: give the length of the source time window, above 0.")

    @property
    def _layout(self) -> Layout:
        return layout_of(self.graph)

    def after(self, sample: BatchSample, closed: Collection[str] = ()) -> SicWindow:
        """The window after one more batch. `closed` are arcs that let nothing pass, of which nothing is counted."""
        passed = sample.interval_ms if math.isfinite(sample.interval_ms) else 0.0
        now_ms = self.now_ms + max(0.0, passed)
        read = {source.name: read_rows(sample, source.name) for source in self.graph.sources}
        new = Pane(self.now_ms, now_ms, read, self._layout.vector(self._passed(sample, closed)))
        panes = [each for each in self.panes if each.until_ms > now_ms - self.stw_ms]
        if panes and now_ms - panes[-1].from_ms <= self.stw_ms / PANES:
            new = panes.pop().plus(new)
        return SicWindow(self.graph, self.stw_ms, (*panes, new), now_ms)

    def sic(self, output: str) -> float:
        """The SIC of an output now, from 0 to 1."""
        ways, shares = self._layout.ways[output], self._shares(output)
        active = [source for source in ways.sources if self._stages(output)[source].came > 0]
        return sum(shares[source] for source in active) / len(active) if active else 1.0

    def all(self) -> dict[str, float]:
        """The SIC of every output, the lowest first."""
        found = {output.name: self.sic(output.name) for output in self.graph.outputs}
        return dict(sorted(found.items(), key=lambda each: each[1]))

    def read(self, source: str) -> float:
        """How many tuples a source brought in the window, lost ones included."""
        return sum(pane.read.get(source, 0.0) for pane in self.panes)

    def processed(self, source: str, output: str) -> float:
        """How many of a source's tuples in the window an output used, shares of tuples added up; 0 if it reads none."""
        stage = self._stages(output).get(source)
        return 0.0 if stage is None else stage.came * self._shares(output)[source]

    def worth(self, source: str, output: str) -> float:
        """What one tuple of a source is worth to an output: 1 / (its sources that bring tuples x tuples brought).

        Where the source has brought nothing it counts as one that brings its first tuple.
        """
        ways = self._layout.ways[output]
        if source not in ways.sources:
            return 0.0
        active = [each for each in ways.sources if each == source or self.read(each) > 0]
        return 1.0 / (len(active) * max(1.0, self.read(source)))

    def to_dict(self) -> dict[str, Any]:
        """The window as plain data, for a checkpoint; outputs of which nothing was lost are left out of its panes."""
        outputs = list(self._layout.ways)
        panes = []
        for pane in self.panes:
            stages = {name: self._layout.stages(pane.stages, name) for name in outputs}
            lossy = {name: found for name, found in stages.items() if not _plain(found)}
            absent = [name for name, found in stages.items() if not _brought(found, pane.read)]
            panes.append(
                {
                    "from_ms": _short(pane.from_ms, 12),
                    "until_ms": _short(pane.until_ms, 12),
                    "read": {name: _short(rows) for name, rows in pane.read.items()},
                    "stages": {name: _stages_to_dict(each) for name, each in lossy.items() if name not in absent},
                    **({"absent": absent} if absent else {}),
                }
            )
        return {"stw_ms": self.stw_ms, "now_ms": _short(self.now_ms, 12), "outputs": outputs, "panes": panes}

    @classmethod
    def from_dict(cls, graph: Graph, stw_ms: float, content: Mapping[str, Any]) -> SicWindow:
        """A window as it was written down, for the network as it is now: what is gone from it is forgotten, and for an
        output that is new nothing has come so far.

        >>> from jettison.network import Network
        >>> net = Network("one"); _ = net.source("s", "x int").output("o")
        >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 25)})
        >>> written = SicWindow(net.graph, 10_000.0).after(sample).to_dict()
        >>> SicWindow.from_dict(net.graph, 10_000.0, written).sic("o")
        0.25
        """
        layout, known = layout_of(graph), set(content.get("outputs", ()))
        panes = []
        for pane in content.get("panes", ()):
            read = {source.name: float(pane["read"].get(source.name, 0.0)) for source in graph.sources}
            stages = {}
            for name, ways in layout.ways.items():
                if name in pane["stages"]:
                    stages[name] = _stages_from_dict(pane["stages"][name])
                elif name in known and name not in pane.get("absent", ()):
                    stages[name] = {source: Stage(read[source], read[source]) for source in ways.sources}
            panes.append(Pane(pane["from_ms"], pane["until_ms"], read, layout.vector(stages)))
        return cls(graph, stw_ms, tuple(panes), float(content.get("now_ms", 0.0)))

    def _passed(self, sample: BatchSample, closed: Collection[str]) -> dict[str, Stages]:
        """The stages of every output in a batch; the way is followed where something was lost, or is kept in state."""
        passage, lossy = Passage(self.graph, sample, closed), _lossy(sample, closed)
        found: dict[str, Stages] = {}
        for name, ways in self._layout.ways.items():
            if ways.states or not lossy.isdisjoint(ways.operators):
                found[name] = passage.stages(ways)
            else:
                reads = {source: read_rows(sample, source) for source in ways.sources}
                found[name] = {source: Stage(rows, rows) for source, rows in reads.items()}
        return found

    @cached_property
    def _totals(self) -> Vector:
        if not self.panes:
            return np.zeros(self._layout.size)
        total: Vector = np.sum([pane.stages for pane in self.panes], axis=0)
        return total

    @cached_property
    def _by_output(self) -> dict[str, tuple[Stages, dict[str, float]]]:
        return {}

    def _found(self, output: str) -> tuple[Stages, dict[str, float]]:
        if output not in self._by_output:
            stages = self._layout.stages(self._totals, output)
            shares: dict[str, float] = {}
            for origin in reversed(self._layout.ways[output].origins):  # states come behind what they are made of
                shares[origin] = stages[origin].share(shares)
            self._by_output[output] = stages, shares
        return self._by_output[output]

    def _stages(self, output: str) -> Stages:
        return self._found(output)[0]

    def _shares(self, output: str) -> dict[str, float]:
        """By where a stage begins, the share of what came that the output used in the end."""
        return self._found(output)[1]


def _lossy(sample: BatchSample, closed: Collection[str]) -> set[str]:
    """The operators at which, or before which, something was lost."""
    arcs = [arc for arc, (came, kept) in sample.arcs.items() if kept < came]
    found = {arc_head(arc) for arc in (*arcs, *closed)}
    counts = (sample.skipped, sample.gone, sample.rejected, sample.unfit)
    return found | {arc_head(name) for each in counts for name, count in each.items() if count}


def _plain(stages: Stages) -> bool:
    """Whether a network could be told to have lost nothing by what its sources brought alone."""
    return all(stage.came == stage.used and not any(stage.into.values()) for stage in stages.values())


def _brought(stages: Stages, read: Mapping[str, float]) -> bool:
    """Whether an output was there when these rows were read."""
    return all(stage.came == read[name] for name, stage in stages.items() if name in read)


def _stages_to_dict(stages: Stages) -> dict[str, Any]:
    return {
        name: [_short(stage.came), _short(stage.used), {each: _short(rows) for each, rows in stage.into.items()}]
        for name, stage in stages.items()
    }


def _stages_from_dict(content: Mapping[str, Any]) -> dict[str, Stage]:
    return {name: Stage(came, used, into) for name, (came, used, into) in content.items()}


def _short(number: float, digits: int = _DIGITS) -> float:
    """A number as short as it may be written."""
    shorter = float(f"{number:.{digits}g}")
    return int(shorter) if shorter.is_integer() else shorter
