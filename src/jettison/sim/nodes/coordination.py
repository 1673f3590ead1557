"""Who tells nodes what to drop: nobody, a coordinator, or their neighbours (thesis 5.3).

The four phases, as messages that are values (`plan.nodes.messages`):

    phase                coordinator                         neighbours
    advance planning     none, or a Solver's cells           tables, from the leaves up
    load monitoring      RatesMessage from the roots         each node its own rates
    plan selection       the program of this tick            each node its own row
    plan implementation  PlanMessage to every node           each node its own drops

A node follows the last plan that it got for `patience_ms`, and then plans for itself alone. It is never without a plan:
its own loop runs in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from jettison.plan.nodes.fragment_structure import node_view
from jettison.plan.nodes.messages import PlanMessage, RatesMessage, TableDelta, TableMessage
from jettison.plan.nodes.plans import NodesPlan, fragment_keeps
from jettison.plan.nodes.structure import Structure
from jettison.plan.nodes.tables import Grain, TableNode
from jettison.sim.nodes.trouble import Post, Trouble

COORDINATOR = "(coordinator)"
_SCATTER = 0.05

Planner = Callable[[Mapping[str, float]], NodesPlan]


class Coordination(Protocol):
    """What a simulation asks before every batch of a node."""

    def keeps(self, node: str, rows_per_s: Mapping[str, float], now_ms: float) -> Mapping[str, float]:
        """The shares that the node's drops are to keep beside its own plan, by arc of its fragment.

        `rows_per_s` is what came to the node's inputs in the last interval.
        """

    def restarted(self, node: str, now_ms: float) -> None:
        """The node comes back, and knows nothing but what was declared; what was sent to it meanwhile is lost."""


class ByThemselves:
    """No node knows of any other."""

    def keeps(self, node: str, rows_per_s: Mapping[str, float], now_ms: float) -> Mapping[str, float]:
        return {}

    def restarted(self, node: str, now_ms: float) -> None:
        return None


class Coordinator:
    """One place knows the rates of all sources, plans for all nodes and sends each its plan."""

    def __init__(
        self, made: Structure, planner: Planner, post: Post, trouble: Trouble, trigger_ms: float, patience_ms: float
    ) -> None:
        self._trigger_ms, self._planned_ms = trigger_ms, -np.inf
        self._made, self._planner, self._post, self._trouble = made, planner, post, trouble
        self._patience_ms = patience_ms
        self._rates: dict[str, RatesMessage] = {}
        self._plans: dict[str, tuple[float, PlanMessage]] = {}
        self._version = 0
        names = {source.name for source in made.graph.sources}
        self._sources = {node.name: names & {*node.operators} for node in made.placement.nodes}

    def keeps(self, node: str, rows_per_s: Mapping[str, float], now_ms: float) -> Mapping[str, float]:
        seen = {name: rate for name, rate in rows_per_s.items() if name in self._sources[node]}
        if seen:
            self._version += 1
            self._post.send(COORDINATOR, RatesMessage(node, self._version, seen), now_ms)
        self._plan(now_ms)
        for message in self._post.received(node, now_ms):
            known = self._plans.get(node)
            if known is None or message.version > known[1].version:
                self._plans[node] = (now_ms, message)
        came_ms, plan = self._plans.get(node, (-np.inf, PlanMessage(node, 0, {})))
        return plan.keeps_at(rows_per_s) if now_ms - came_ms <= self._patience_ms else {}

    def restarted(self, node: str, now_ms: float) -> None:
        self._post.received(node, now_ms)
        self._plans.pop(node, None)

    def _plan(self, now_ms: float) -> None:
        """Plan anew as soon as rates have come, else every interval, and send every node its part."""
        came = self._post.received(COORDINATOR, now_ms)
        if self._trouble.coordinator_is_gone(now_ms):
            return  # what comes while it is gone is lost
        if not came and (not self._rates or now_ms - self._planned_ms < self._trigger_ms):
            return
        self._planned_ms = now_ms
        for message in came:
            known = self._rates.get(message.node)
            if known is None or message.version > known.version:
                self._rates[message.node] = message
        rates = {source.name: 0.0 for source in self._made.graph.sources}
        for message in self._rates.values():
            rates |= message.rows_per_s
        keeps = self._planner(rates).keeps if any(rates.values()) else {}
        parts = fragment_keeps(self._made.graph, keeps)
        self._version += 1
        for node, keeps in parts.items():
            self._post.send(node, PlanMessage(node, self._version, keeps, rates), now_ms)


class Neighbours:
    """Every node has a table of what it and those below it can take, and drops by itself what is more.

    A table is sent again until the parent says that it has come. A node that was restarted asks its children for
    theirs, and numbers its own from the time of the restart on.
    """

    def __init__(self, made: Structure, post: Post, grain: Grain) -> None:
        self._post, self._placement, self._grain = post, made.placement, grain
        weights = np.array([output.qos.priority for output in made.graph.outputs])
        self.nodes = {node: TableNode(node_view(made, node, weights), grain) for node in made.placement.order}
        self._unconfirmed: dict[str, TableMessage | TableDelta] = {}
        self._restarted: set[str] = set()

    def restarted(self, node: str, now_ms: float) -> None:
        self._post.received(node, now_ms)
        self._unconfirmed.pop(node, None)
        self._restarted.add(node)
        self.nodes[node] = TableNode(self.nodes[node].view, self._grain, version=int(now_ms))

    def keeps(self, node: str, rows_per_s: Mapping[str, float], now_ms: float) -> Mapping[str, float]:
        here = self.nodes[node]
        for message in self._post.received(node, now_ms):
            if isinstance(message, TableMessage | TableDelta):
                word = "came" if here.receive(message) else "again"
                self._post.send(message.node, (word, message.version), now_ms)
            elif message[0] == "again":
                here.ask_whole()
                self._unconfirmed.pop(node, None)
            elif node in self._unconfirmed and message[1] >= self._unconfirmed[node].version:
                del self._unconfirmed[node]
        if node in self._restarted:
            for child in here.missing:
                self._post.send(child, ("again", 0), now_ms)
        sent = here.send() if node not in self._unconfirmed else None
        if sent is not None:
            self._unconfirmed[node] = sent
        for parent in self._placement.parents(node):
            if node in self._unconfirmed:
                self._post.send(parent, self._unconfirmed[node], now_ms)
        coming = np.array([rows_per_s.get(name, 0.0) for name in here.view.inputs])
        return here.plan(coming, _SCATTER)
