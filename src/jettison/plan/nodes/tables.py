"""C-FIT and D-FIT: tables from the leaves to the roots, in one place or between neighbours (thesis 5.5, 5.6).

Both make the same tables. C-FIT makes all of them and picks a row for every node at once. D-FIT is a `TableNode` per
node: it holds its children's tables, sends its own to its parent as a message, whole or what has changed, and picks its
own row by the rates that come to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jettison.errors import NetworkError
from jettison.network.arc import Arc, arc_head
from jettison.plan.nodes.fit import Fit, fine_spread, generate, merge
from jettison.plan.nodes.fragment_structure import NodeView, node_view
from jettison.plan.nodes.messages import TableDelta, TableMessage, delta_between, with_delta
from jettison.plan.nodes.plans import NodesPlan, plan_of
from jettison.plan.nodes.structure import Structure, Vector

_FULL, _ROUNDED = 1.0 + 1e-9, 1e-9


@dataclass(frozen=True)
class Grain:
    """How fine tables are: `epsilon` of every rate limit, as in the thesis, or `fine`: so fine that the best row is
    within epsilon of the optimum. `spread` by node overrides both.

    >>> Grain(5)
    Traceback (most recent call last):
    jettison.errors.NetworkError: epsilon is 5: give the error that is allowed, above 0 and below 1.
    """

    epsilon: float = 0.1
    fine: bool = False
    spread: Mapping[str, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < 1:
            raise NetworkError(f"epsilon is {self.epsilon}: give the error that is allowed, above 0 and below 1.")

    def of(self, view: NodeView) -> Vector | None:
        """The spread of a node's inputs; None for that of the thesis."""
        if self.spread is not None and view.name in self.spread:
            return np.array(self.spread[view.name])
        return fine_spread(view, self.epsilon) if self.fine else None


class Tables:
    """C-FIT: the tables of all nodes in one place.

    >>> from jettison.plan.nodes.examples import two_chains
    >>> planner = Tables(two_chains((1.0, 2.0), (3.0, 1.0)), Grain(spread={"B": (0.2, 0.2)}))
    >>> plan = planner.plan({"i0": 1.0, "i1": 1.0})
    >>> {arc: round(keep, 6) for arc, keep in plan.keeps.items()}, round(plan.score, 6)
    ({'i0': 0.2, 'i1': 0.4}, 0.6)
    """

    def __init__(self, made: Structure, grain: Grain | None = None, weights: Vector | None = None) -> None:
        made.placement.check_forest()
        self.structure, self.grain = made, grain or Grain()
        self._weights = np.ones(len(made.graph.outputs)) if weights is None else weights
        self.views = {node: node_view(made, node, weights) for node in made.placement.order}
        self.fits: dict[str, Fit] = {}
        for node in reversed(made.placement.order):
            self.fits[node] = table_of(self.views[node], self.fits, self.grain)

    @property
    def entries(self) -> int:
        """Rows of all tables."""
        return sum(len(fit) for fit in self.fits.values())

    def plan(self, rows_per_s: Mapping[str, float]) -> NodesPlan:
        """What all nodes do together, each by its table, from the roots down."""
        made, rates = self.structure, self.structure.rates(rows_per_s)
        shares: dict[tuple[str, str], float] = {}
        coming = {
            name: np.array([rows_per_s.get(each, 0.0) for each in view.inputs]) for name, view in self.views.items()
        }
        for node in made.placement.order:
            view = self.views[node]
            here = follow(view, self.fits[node], {child: self.fits[child] for child in view.links}, coming[node])
            shares |= {(node, arc): keep for arc, keep in here.items()}
            given = view.given(here, coming[node])
            coming |= {child: given[list(outputs)] for child, outputs in view.links.items()}
        found = plan_of(made, whole_keeps(made, self.views, shares), rates, 0.0)
        return replace(found, score=float(self._weights @ np.array(list(found.delivered.values()))))


def table_of(view: NodeView, children: Mapping[str, Fit], grain: Grain) -> Fit:
    """The table of a node whose children have theirs."""
    if view.links:
        return merge(
            view, {child: children[child] for child in view.links}, epsilon=grain.epsilon, spread=grain.of(view)
        )
    return generate(view, grain.of(view), epsilon=grain.epsilon)


def follow(view: NodeView, fit: Fit, below: Mapping[str, Fit], coming: Vector, slack: float = 0.0) -> dict[str, float]:
    """The shares that a node's drops keep for the rates that come to it, by arc of its fragment.

    Nothing is dropped where all of it fits. Where it fits without inputs that no row asks for, those are dropped. Else
    the node follows the best row. With `slack`, rates that are too high by that share are let pass.
    """
    own, asked = view.own, fit.rates.any(axis=0)
    for wanted in (coming, np.where(asked, coming, 0.0)):
        if _fits(view, fit, below, wanted / (1 + slack)):
            return {own.arcs[at]: 0.0 for at in own.inputs[wanted < coming]}
    keeps = own.keeps(fit.passing[fit.best(coming)], coming)
    return {arc: float(keep) for arc, keep in zip(own.arcs, keeps, strict=True) if keep < 1.0}


def _fits(view: NodeView, fit: Fit, below: Mapping[str, Fit], coming: Vector) -> bool:
    """Whether the node and all nodes below it can take what comes, though some of those may drop by local plans."""
    taken = fit.loads @ coming
    if taken[0] > _FULL:
        return False
    if (taken <= _FULL).all():
        return True
    given = view.own.throughput @ coming
    for child, outputs in view.links.items():
        wanted = given[list(outputs)]
        # whether some row asks for at least this much of everything
        if not (below[child].rates >= wanted - 1e-9 * np.maximum(1.0, wanted)).all(axis=1).any():
            return False
    return True


def whole_keeps(made: Structure, views: Mapping[str, NodeView], shares: Mapping[tuple[str, str], float]) -> Vector:
    """Shares on the arcs of the whole network, of shares on the arcs of fragments.

    What a node drops at its input is not sent in the first place: it is dropped at the last location above it.
    """
    graph, where = made.graph, made.placement.node_of
    consumers, ends, keeps = graph.consumers, graph.segment_ends, np.ones(len(made.arcs))

    def read(tail: str, head: str) -> float:
        """The share that the node of `head` keeps at the input where it reads `tail`; 1 where both are on one node."""
        reads = views[where[head]].part.reads
        return next((shares.get((where[head], at), 1.0) for at, link in reads.items() if link.operator == tail), 1.0)

    for at, arc in enumerate(made.arcs):
        tail, head = Arc(arc).tail, Arc(arc).head
        for node in dict.fromkeys((where[Arc(arc).origin], where[head])):
            for here in views[node].part.arcs_here(arc):
                keeps[at] *= shares.get((node, here), 1.0)
        if tail is not None:
            keeps[at] *= read(tail, head)
        while head != ends[arc_head(arc)]:
            keeps[at] *= read(head, consumers[head][0])
            head = consumers[head][0]
    return keeps


class TableNode:
    """D-FIT: one node with its own table, its children's, and what it has sent to its parent.

    `receive` takes in a child's message, `send` gives the next message for the parent, or None where nothing changed by
    more than `tolerance` of a score. A delta that comes before the table it builds on is not applied: `receive` is
    False, and the child is to send all of it (`ask_whole`). Versions count up from `version`: a node that has
    lost everything begins at the time of its restart in ms, so that its parent takes what it sends for new.
    """

    def __init__(self, view: NodeView, grain: Grain, tolerance: float = 0.0, version: int = 0) -> None:
        self.view, self.grain, self.tolerance = view, grain, tolerance
        self._children: dict[str, TableMessage] = {}
        self._sent: TableMessage | None = None
        self._version = version
        self._fit: Fit | None = None
        self._spread = grain.of(view)
        self._ask_whole = False

    @property
    def missing(self) -> tuple[str, ...]:
        """Children that have not sent a table yet."""
        return tuple(child for child in self.view.links if child not in self._children)

    @property
    def complete(self) -> bool:
        """Whether all children have sent a table."""
        return not self.missing

    @property
    def _below(self) -> dict[str, Fit]:
        """What is known of the tables of children: all but what they drop themselves."""
        return {
            name: Fit(each.inputs, each.rates, each.score, each.rates, each.loads)
            for name, each in self._children.items()
        }

    @property
    def fit(self) -> Fit:
        """The node's table, of what is known of its children."""
        if self._fit is None:
            grain = replace(self.grain, spread=None if self._spread is None else {self.view.name: tuple(self._spread)})
            self._fit = table_of(self.view, self._below, grain)
        return self._fit

    def receive(self, message: TableMessage | TableDelta) -> bool:
        """Take in what a child says; False where it builds on something that never came."""
        known = self._children.get(message.node)
        if known is not None and message.version <= known.version:
            return True  # it is late: something newer is known
        if isinstance(message, TableDelta):
            if known is None or known.version != message.base:
                return False
            message = with_delta(known, message)
        self._children[message.node] = message
        self._fit = None
        return True

    def changed(self, view: NodeView) -> None:
        """Costs, selectivities or operators have changed. The grid stays, so that deltas are small.

        Where the error is bounded (`Grain.fine`) and needs smaller steps by now, steps are divided: old rows stay rows.
        """
        if self._spread is None and not self.view.links and self._fit is not None:
            steps = [np.unique(np.round(column, 12)) for column in self._fit.rates.T]
            self._spread = np.array([each[1] if len(each) > 1 else 1.0 for each in steps])
        elif self._spread is not None and (wanted := self.grain.of(view)) is not None:
            same = view.inputs == self.view.inputs
            self._spread = self._spread / np.ceil(self._spread / wanted - _ROUNDED) if same else wanted
        self.view, self._fit = view, None

    def ask_whole(self) -> None:
        """The parent has lost track: send all of it next time."""
        self._ask_whole = True

    def send(self) -> TableMessage | TableDelta | None:
        """What to tell the parent now."""
        if not self.complete:
            return None
        fit, before = self.fit, self._sent
        whole = TableMessage(self.view.name, self._version + 1, self.view.inputs, fit.rates, fit.score, fit.loads)
        if before is None or self._ask_whole or before.inputs != whole.inputs:
            self._sent, self._version, self._ask_whole = whole, whole.version, False
            return whole
        delta = delta_between(before, whole, self.tolerance)
        if not delta.entries and np.array_equal(before.loads, whole.loads):
            return None
        self._version = whole.version
        if delta.entries >= whole.entries:
            self._sent = whole
            return whole
        self._sent = with_delta(before, delta)
        return delta

    def plan(self, coming: Vector, slack: float = 0.0) -> dict[str, float]:
        """The shares that this node's drops keep for the rates that come to it.

        Nothing where the table of a child has not come yet: then the node can only look after itself. `slack`: the
        parent meant what comes to fit, and counted rows scatter.
        """
        return follow(self.view, self.fit, self._below, coming, slack) if self.complete else {}
