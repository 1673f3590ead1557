"""Where information may be lost on the way to an output, stage by stage.

A stage begins at a source, or at an operator with state (windows, a join of streams): what comes out of state is other
rows than went in. It ends at the next operators with state, or at the output. What goes into state comes out as
results, which share it evenly (DISSP eq. 4.1). So a row that is worth w, of which a share f(stage) gets on, is worth
w f(stage) in what comes next. A network without windows and joins has one stage per source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Operator, Output, StreamJoin
from jettison.statistics.row_streams import leading_to


def holds_state(operator: Operator) -> bool:
    """Whether other rows come out of an operator than go in, later."""
    return isinstance(operator, Aggregate | CountAggregate | StreamJoin)


@dataclass(frozen=True)
class Ways:
    """What leads to one output: all operators above it, in topological order, and where its stages begin. `last` are
    those from which it is reached with no state between."""

    output: str
    operators: tuple[str, ...]
    sources: tuple[str, ...]
    states: tuple[str, ...]
    last: frozenset[str]

    @property
    def origins(self) -> tuple[str, ...]:
        """Sources, then operators with state: where stages begin."""
        return (*self.sources, *self.states)


def ways_to(graph: Graph, output: Output) -> Ways:
    """What leads to an output.

    >>> from jettison.network import Network
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.where("true", name="all").window("1 minute").agg(n="count(*)", name="busy").output("out")
    >>> ways = ways_to(net.graph, net.graph.outputs[0])
    >>> ways.operators, ways.origins, sorted(ways.last)
    (('trips', 'all', 'busy', 'out'), ('trips', 'busy'), ['busy', 'out'])
    """
    leading = leading_to(graph, output.name)
    sources = tuple(each.name for each in graph.sources if each.name in leading)
    states = tuple(each.name for each in graph.operators if each.name in leading and holds_state(each))
    last: set[str] = set()
    waiting = [output.name]
    while waiting:
        at = graph.by_name[waiting.pop()]
        last.add(at.name)
        waiting += () if holds_state(at) else at.inputs
    operators = tuple(each.name for each in graph.operators if each.name in leading)
    return Ways(output.name, operators, sources, states, frozenset(last))


@dataclass(frozen=True)
class Stage:
    """Of the rows that began a stage: how many `came`, and how many of them are used. Those that went `into` an
    operator with state share its fate; all others (delivered, or removed by a filter) are `used` for good. What is left
    is lost.

    >>> Stage(10.0, used=4.0, into={"busy": 6.0}) + Stage(10.0, used=1.0, into={"busy": 2.0})
    Stage(came=20.0, used=5.0, into={'busy': 8.0})
    >>> Stage(20.0, used=5.0, into={"busy": 8.0}).share({"busy": 0.5})
    0.45
    """

    came: float = 0.0
    used: float = 0.0
    into: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: Stage) -> Stage:
        into = dict(self.into)
        for name, rows in other.into.items():
            into[name] = into.get(name, 0.0) + rows
        return Stage(self.came + other.came, self.used + other.used, into)

    def scaled(self, came: float) -> Stage:
        """The same shares of so many; as it is where nothing came, or `came` is 0.

        >>> Stage(20.0, used=5.0, into={"busy": 10.0}).scaled(2.0)
        Stage(came=2.0, used=0.5, into={'busy': 1.0})
        """
        if self.came <= 0 or came <= 0:
            return self
        factor = came / self.came
        return Stage(came, factor * self.used, {name: factor * rows for name, rows in self.into.items()})

    def share(self, shares: Mapping[str, float]) -> float:
        """The share of what came that is used, `shares` being that of what went into state; 1 where nothing came."""
        if self.came <= 0:
            return 1.0
        behind = sum(rows * shares.get(name, 1.0) for name, rows in self.into.items())
        return min(1.0, max(0.0, (self.used + behind) / self.came))


Stages = Mapping[str, Stage]
"""By where a stage begins."""
