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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.batch import Passed
from jettison.statistics.sic.layout import Layout, Vector, layout_of
from jettison.statistics.sic.stages import Stages

PANES = 20
"""The window slides in steps of at most so many parts of it: what it remembers does not grow with its length."""


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
    panes: tuple[Passed, ...] = field(default=(), repr=False)
    latest: Passed | None = field(default=None, repr=False)
    """The newest batch alone: what is written down of it."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.stw_ms) and self.stw_ms > 0):
            raise StartError(f"stw is {self.stw_ms} ms: give the length of the source time window, above 0.")

    @property
    def _layout(self) -> Layout:
        return layout_of(self.graph)

    def after(self, sample: BatchSample, closed: Collection[str] = ()) -> SicWindow:
        """The window after one more batch. `closed` are arcs that let nothing pass, of which nothing is counted."""
        return self.plus(Passed.of(self.graph, sample, closed))

    def plus(self, batch: Passed) -> SicWindow:
        """The window after one more batch: those that ended a whole window ago, or more, have left it."""
        panes = [batch, *self._staying(batch.interval_ms)]
        if len(panes) > 1 and panes[0].interval_ms + panes[1].interval_ms <= self.stw_ms / PANES:
            panes[:2] = [panes[1] + panes[0]]
        return SicWindow(self.graph, self.stw_ms, tuple(reversed(panes)), batch)

    def left_after(self, interval_ms: float) -> SicWindow:
        """What is left of the window when one more batch, of this interval, is in it; that batch left out."""
        return SicWindow(self.graph, self.stw_ms, tuple(reversed(self._staying(interval_ms))), self.latest)

    def _staying(self, interval_ms: float) -> list[Passed]:
        """The panes that a batch of this interval leaves in the window, the newest first."""
        panes, ago_ms = list[Passed](), interval_ms
        for pane in reversed(self.panes):
            if ago_ms >= self.stw_ms:
                break
            panes.append(pane)
            ago_ms += pane.interval_ms
        return panes

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
        """The window as plain data."""
        panes = [pane.to_dict(self.graph) for pane in self.panes]
        return {"stw_ms": self.stw_ms, "outputs": list(self._layout.ways), "panes": panes}

    @classmethod
    def from_dict(cls, graph: Graph, stw_ms: float, content: Mapping[str, Any]) -> SicWindow:
        """A window as it was written down, for the network as it is now (see `restored`).

        >>> from jettison.network import Network
        >>> net = Network("one"); _ = net.source("s", "x int").output("o")
        >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 25)})
        >>> written = SicWindow(net.graph, 10_000.0).after(sample).to_dict()
        >>> SicWindow.from_dict(net.graph, 10_000.0, written).sic("o")
        0.25
        """
        known = content["outputs"]
        return cls.restored(graph, stw_ms, ((each, known) for each in reversed(content["panes"])))

    @classmethod
    def restored(
        cls, graph: Graph, stw_ms: float, batches: Iterable[tuple[Mapping[str, Any], Collection[str]]]
    ) -> SicWindow:
        """The window of batches as they were written down, the newest first, each with the outputs that there were.

        What is gone from the network since is forgotten, and for an output that is new nothing has come. No more is
        read than the window needs.
        """
        found: list[Passed] = []
        ago_ms = 0.0
        for content, known in batches:
            found.append(Passed.from_dict(graph, content, known))
            ago_ms += found[-1].interval_ms
            if ago_ms >= stw_ms:
                break
        window = cls(graph, stw_ms)
        for each in reversed(found):
            window = window.plus(each)
        return window

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
