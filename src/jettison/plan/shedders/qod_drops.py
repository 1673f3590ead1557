"""From the accuracy that every output is to have to drops, as early as possible (Stream Economics 3.15, 3.16).

An operator needs the largest accuracy of the outputs below it. Where a stream comes in or splits, a drop keeps

    d(t, t') = desired(t') / desired(t)

Drops stand only where they may: at inputs and splits, by key above joins, never above windows that must be right. Of
those an accuracy is a share of windows: all others go whole, at most as many in a row as their gap allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from jettison.network.arc import Arc
from jettison.network.graph import Graph
from jettison.plan.drops.kind import Drop
from jettison.plan.floors import plan_accuracies
from jettison.plan.placement.join_keys import by_chance, droppable, joins_below, with_keys_left
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import decisions_of

_WHOLE = 1.0 - 1e-12


@dataclass(frozen=True)
class DropPlaces:
    """Where drops for accuracies may stand in a network."""

    graph: Graph

    @cached_property
    def by_chance(self) -> frozenset[str]:
        """Arcs where tuples may be dropped by chance or by key. Both sides of a join, or none of them."""
        graph, arcs = self.graph, drop_arcs(self.graph)
        open_ = {arc for arc in arcs if droppable(graph, arc)}
        stuck = {join for arc in arcs if arc not in open_ for join in joins_below(graph, arc)}
        return frozenset(arc for arc in open_ if not stuck.intersection(joins_below(graph, arc)))

    @cached_property
    def _below(self) -> dict[str, tuple[str, ...]]:
        """The outputs at and below every operator."""
        graph = self.graph
        names = [output.name for output in graph.outputs]
        return {
            each.name: tuple(name for name in names if name == each.name or name in graph.outputs_below(each.name))
            for each in graph.operators
        }

    def drops(
        self, problem: Problem, desired: Mapping[str, float], closed: frozenset[str] = frozenset()
    ) -> dict[str, Drop]:
        """Drops for these accuracies; windows of outputs that are `closed` go altogether.

        >>> from jettison.network import Network
        >>> from jettison.statistics.profile import Profile
        >>> net = Network("fig-3-3"); one, two = net.source("s1", "x int"), net.source("s2", "x int")
        >>> merged = one.union(two, name="merged")
        >>> _ = merged.output("A"); _ = merged.where("x > 0", name="w").output("B")
        >>> problem = Problem(net.graph, Profile({}, {}), {"s1": 10.0, "s2": 10.0}, 0.0)
        >>> DropPlaces(net.graph).drops(problem, {"A": 0.8, "B": 0.4})
        {'s1': Random(keep=0.8), 's2': Random(keep=0.8), 'merged>w': Random(keep=0.5)}
        """
        graph, found = self.graph, dict[str, Drop]()
        passed: dict[str, float] = {}
        for operator in graph.operators:
            wanted = max((desired[name] for name in self._below[operator.name]), default=1.0)
            coming = 0.0
            for arc in graph.arcs_into(operator.name):
                tail = Arc(arc).tail
                share = 1.0 if tail is None else passed[tail]
                keep = min(1.0, wanted / share) if arc in self.by_chance and share > 0 else 1.0
                if keep < _WHOLE:
                    found[arc] = drop = by_chance(graph, arc, keep)
                    keep = drop.keep
                coming = max(coming, share * keep)
            passed[operator.name] = coming
        found = with_keys_left(graph, problem.profile, problem.rows, found)
        return {**found, **self._windows(desired, closed)}

    def _windows(self, desired: Mapping[str, float], closed: frozenset[str]) -> Mapping[str, Drop]:
        decisions = decisions_of(self.graph)
        shares = {}
        for name, decision in decisions.by_aggregate.items():
            outputs = decisions.outputs(name)
            if outputs and closed.issuperset(outputs):
                shares[name] = 1.0
            else:
                shares[name] = min(
                    1.0 - max((desired[each] for each in outputs), default=1.0), decision.most_drop_share
                )
        shares = {name: share for name, share in shares.items() if share > 1.0 - _WHOLE}
        return decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares)) if shares else {}

    def lowest(self, problem: Problem) -> dict[str, float]:
        """The accuracy that every output has at least, short of being closed: what may not be dropped, and gaps."""
        nothing = dict.fromkeys((output.name for output in self.graph.outputs), 0.0)
        return plan_accuracies(self.graph, problem.rows, Plan(self.drops(problem, nothing)))


def drop_places(graph: Graph) -> DropPlaces:
    """The places of a network, worked out once."""
    known = graph.__dict__.get("_qod_places")
    if known is None:
        known = graph.__dict__["_qod_places"] = DropPlaces(graph)
    assert isinstance(known, DropPlaces)
    return known
