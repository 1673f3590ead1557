"""`shedder="auto"`: which shedder the declarations of a network ask for, and why.

| declared | taken | because |
|---|---|---|
| values or loss graphs | the road map ("semantic") | it alone plans with what a lost row is worth |
| minimum accuracies | "qod" | minima first, what is left by priority |
| priorities that differ | the road map | a priority is a factor of utility there |
| nothing, several outputs | "fair" | all are to lose alike |
| nothing, one output | the road map | there is nobody to share with |

With a timed operator (`stream.map`) that shedder plans the rest of the network for "las".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from jettison.network.graph import Graph
from jettison.network.operators import Map
from jettison.network.qos import QoS

_PLAIN_LOSS = QoS().loss


@dataclass(frozen=True)
class Choice:
    """The shedder that was taken: its `name`, `why`, and the timed operators that "las" plans for."""

    name: str
    why: str
    timed: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.timed:
            return f"shedder auto: takes {self.name}, because {self.why}"
        operators = ", ".join(self.timed)
        return f"shedder auto: takes las for {operators}, whose tuples are timed; the rest by {self.name}: {self.why}"


def choose(graph: Graph, registered: Collection[str]) -> Choice:
    """The shedder that a network asks for, among those that are `registered`.

    >>> from jettison.network import Network
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.output("a", qos=QoS(min_accuracy=0.6)); _ = s.where("x > 0", name="w").output("b")
    >>> print(choose(net.graph, ("semantic", "qod")))
    shedder auto: takes qod, because a has a minimum accuracy
    """
    wanted, why = _wanted(graph)
    if wanted not in registered:
        wanted, why = "semantic", f"{why}, which the road map respects too"
    return Choice(wanted, why, timed_operators(graph) if "las" in registered else ())


def timed_operators(graph: Graph) -> tuple[str, ...]:
    """The operators whose tuples are timed."""
    return tuple(each.name for each in graph.operators if isinstance(each, Map))


def _wanted(graph: Graph) -> tuple[str, str]:
    outputs = graph.outputs
    valued = [each.name for each in outputs if each.qos.value is not None]
    graphs = [each.name for each in outputs if each.qos.loss != _PLAIN_LOSS]
    minima = [each.name for each in outputs if each.qos.min_accuracy > 0]
    if valued:
        return "semantic", f"{_names(valued, 'has', 'have')} a value utility"
    if graphs:
        return "semantic", f"{_names(graphs, 'has', 'have')} a loss graph"
    if minima:
        return "qod", f"{_names(minima, 'has', 'have')} a minimum accuracy"
    if len({each.qos.priority for each in outputs}) > 1:
        return "semantic", "outputs differ in priority alone, which is a factor of their utility"
    if len(outputs) > 1:
        return "fair", f"nothing is said about what the {len(outputs)} outputs are worth, so all are to lose alike"
    return "semantic", "there is one output, and nothing is said about what it is worth"


def _names(names: list[str], one: str, many: str) -> str:
    return f"{', '.join(names)} {one if len(names) == 1 else many}"
