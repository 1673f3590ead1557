"""A network followed tuple by tuple, in plain Python: who loses what, and the SIC that follows from the definition.

A tuple carries, by source and output, how much of source tuples is in it. An operator passes on the sum of what came
in, split evenly over what came out (DISSP eq. 4.1); a tuple that is lost takes its share with it. Windows and joins
here give their results at the end of every batch.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

from jettison.network import Aggregate, Graph, Output, Source, StreamJoin, Where, arc_name
from jettison.network.operators import Operator
from jettison.statistics.samples import BatchSample, OutputSample

Tuple = dict[tuple[str, str], float]
"""One tuple: by (source, output), how much of source tuples it carries."""
RESULTS = 7
"""So many results do windows and joins give in a batch in which anything came."""


@dataclass
class Truth:
    """Source tuples that were brought, and by (source, output) those that were used."""

    read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    used: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    def use(self, carried: Tuple) -> None:
        for key, share in carried.items():
            self.used[key] += share

    def add(self, other: Truth) -> None:
        for source, rows in other.read.items():
            self.read[source] += rows
        self.use(dict(other.used))

    def sic(self, graph: Graph, output: str) -> float:
        """The sum over source tuples of what each is worth, as far as it was used."""
        sources = [each.name for each in graph.sources_above(output) if self.read[each.name]]
        worth = {source: 1 / (len(sources) * self.read[source]) for source in sources}
        return sum(worth[source] * self.used[source, output] for source in sources) if sources else 1.0


@dataclass
class Losses:
    """Rows of a batch that are lost before the network, by source."""

    skipped: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)


@dataclass
class Interpreter:
    """Runs batches of tuples through a network whose arcs drop tuples by chance, and whose filters pass some."""

    graph: Graph
    keeps: dict[str, float]
    passes: dict[str, float]
    chance: random.Random

    def run(
        self, batch: int, rows: dict[str, int], losses: Losses | None = None, interval_ms: float = 1000.0
    ) -> tuple[BatchSample, Truth]:
        """One batch as it is measured, and as it truly was."""
        graph, truth, lost = self.graph, Truth(), losses or Losses()
        arcs: dict[str, tuple[int, int]] = {}
        arrived: dict[str, int] = {}
        rejected: dict[str, int] = {}
        outputs: dict[str, OutputSample] = {}
        given: dict[str, list[Tuple]] = {}
        for operator in graph.operators:
            name = operator.name
            if isinstance(operator, Source):
                truth.read[name] += rows[name] + lost.skipped.get(name, 0) + lost.gone.get(name, 0)
                one = {(name, output): 1.0 for output in graph.outputs_below(name)}
                came = self._passed(name, [one] * rows[name], arcs)
                rejected[name] = min(len(came), lost.rejected.get(name, 0))
                given[name] = came[rejected[name] :]
                continue
            came = []
            for tail in operator.inputs:
                on_arc = [self._part(each, tail, name) for each in given[tail]]
                came += self._passed(arc_name(tail, name), on_arc, arcs)
            if isinstance(operator, Aggregate):
                arrived[name] = len(came)
            if isinstance(operator, Output):
                outputs[name] = OutputSample(len(came))
            given[name] = self._given(operator, came, truth)
        sample = BatchSample(
            batch,
            0.0,
            interval_ms,
            900.0,
            rows,
            arcs=arcs,
            outputs=outputs,
            arrived=arrived,
            rejected=rejected,
            skipped=lost.skipped,
            gone=lost.gone,
        )
        return sample, truth

    def _part(self, one: Tuple, tail: str, head: str) -> Tuple:
        """What a tuple carries on one of several arcs: for every output an even part of those that lead there."""
        found = {}
        for (source, output), share in one.items():
            leading = [each for each in self.graph.consumers[tail] if self._leads(each, output)]
            if head in leading:
                found[source, output] = share / len(leading)
        return found

    def _leads(self, name: str, output: str) -> bool:
        return name == output or output in self.graph.outputs_below(name)

    def _passed(self, arc: str, tuples: list[Tuple], arcs: dict[str, tuple[int, int]]) -> list[Tuple]:
        if arc not in self.keeps:
            return tuples
        kept = [each for each in tuples if self.chance.random() < self.keeps[arc]]
        arcs[arc] = (len(tuples), len(kept))
        return kept

    def _given(self, operator: Operator, came: list[Tuple], truth: Truth) -> list[Tuple]:
        if isinstance(operator, Output):
            for each in came:
                truth.use(each)
            return []
        if isinstance(operator, Where):
            passing = []
            for each in came:
                if self.chance.random() < self.passes[operator.name]:
                    passing.append(each)
                else:
                    truth.use(each)  # the query has looked at it
            return passing
        if isinstance(operator, Aggregate | StreamJoin) and came:
            whole: Tuple = defaultdict(float)
            for each in came:
                for key, share in each.items():
                    whole[key] += share
            return [{key: share / RESULTS for key, share in whole.items()} for _ in range(RESULTS)]
        return came
