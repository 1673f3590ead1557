"""What may be decided about windows: for whom, in which steps, how many in a row, and what it saves where.

An aggregate whose results an output gets has a gap: how many of its windows in a row may be missing. With aggregates
side by side below a common arc a tuple may go there only if none of them needs it. So they are decided together, in
steps of the lcm of their slides (thesis 4.5), where their gaps allow for that and tuples would go; else each by itself.

Dropping a share p of windows lets a share p * w of tuples go early on an arc (`window_estimates`): w is 1 behind the
aggregate, where results go, and 1 above it for tumbling windows; less for sliding and nested ones, whose kept windows
reach into dropped ones, and above joins of streams, of which kept windows need the band before them. Both sides of such
a join lose the same times, so the pairs that are left are the share of one side, not the product of both. It is exact
for one way down, and no more than is saved where several windows begin unevenly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from jettison.network.arc import Arc, arc_head
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Output
from jettison.plan.drops.window import Fate
from jettison.plan.windows.extents import extent_us
from jettison.plan.windows.fates import Schedule, extend, most_drop_share
from jettison.plan.windows.window_arcs import WindowArcs

LEAST_GAP = 4
"""The gap of outputs that do not say: so many windows, or twice as many as a tuple is in, whichever is more. Of windows
that do not overlap a minimum accuracy allows less: with 0.5 every other one is there."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Decision:
    """Windows of one aggregate are decided in steps of `step_us`, at most `gap` steps in a row go.

    Aggregates with the same `seed` are decided together.
    """

    step_us: int
    gap: int
    seed: str
    counts_rows: bool = field(default=False, repr=False)
    """Whether steps are rows, not microseconds."""

    @property
    def most_drop_share(self) -> float:
        return most_drop_share(self.gap)


class WindowDecisions:
    """The decisions of a network.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, fare double", event_time="at")
    >>> _ = trips.window("20 seconds").agg(n="count(*)", name="a").output("a_out", qos=QoS(gap=9))
    >>> _ = trips.window("30 seconds").agg(n="count(*)", name="b").output("b_out", qos=QoS(gap=7))
    >>> decisions = WindowDecisions(net.graph)
    >>> decisions.by_aggregate["b"]
    Decision(step_us=60000000, gap=3, seed='a')
    >>> decisions.weight("trips"), decisions.least_keep("trips"), decisions.keeps({"a": 0.5, "b": 0.6})["trips"]
    (1.0, 0.25, 0.5)
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = self.graph = graph
        self.arcs = WindowArcs(graph)
        self._together: dict[str, int] = {}

    @cached_property
    def guarded(self) -> frozenset[str]:
        """Aggregates whose results must be right: no tuple may go above them but by window."""
        return frozenset(
            name for name in self.arcs.deciding if any(o.qos.on_loss == "subset" for o in self._outputs(name))
        )

    @cached_property
    def _every(self) -> frozenset[str]:
        """Aggregates none of whose results may go but by window."""
        return self.guarded | {each.name for each in self._graph.aggregates if each.estimated}

    def _outputs(self, name: str) -> list[Output]:
        """The outputs that get an aggregate's results as they are."""
        found, waiting = [], [name]
        while waiting:
            for head in self._graph.consumers[waiting.pop()]:
                operator = self._graph.by_name[head]
                if isinstance(operator, Output):
                    found.append(operator)
                elif not isinstance(operator, Aggregate | CountAggregate):
                    waiting.append(head)
        return found

    def outputs(self, name: str) -> tuple[str, ...]:
        """The names of the outputs that get an aggregate's results as they are."""
        return tuple(output.name for output in self._outputs(name))

    def by_chance(self, arc: str) -> bool:
        """Whether tuples may go by chance on an arc: they are neither results nor become part of any that must be
        right."""
        if not self._every:
            return True
        tail = Arc(arc).origin
        if self.guarded & self.arcs.names_below(arc):
            return False
        return not any(self._reaches(name, tail) for name in self._every)

    def _reaches(self, name: str, tail: str) -> bool:
        """Whether an operator's rows are, or come from, results of an aggregate."""
        waiting = [name]
        while waiting:
            at = waiting.pop()
            if at == tail:
                return True
            waiting += self._graph.consumers[at]
        return False

    @cached_property
    def by_aggregate(self) -> dict[str, Decision]:
        """Decisions about the aggregates some of whose windows may go."""
        own = {}
        for aggregate in self._graph.aggregates:
            if aggregate.name in self.guarded and aggregate.name in self.arcs.fate_arcs:
                gap = min(self._gap(aggregate, output) for output in self._outputs(aggregate.name))
                if gap > 0:
                    own[aggregate.name] = Decision(aggregate.window.slide_us, gap, aggregate.name)
        wide = [self.arcs.deciders(arc) or frozenset() for arc in self._graph.arcs if self.arcs.is_early(arc, own)]
        for together in sorted({each for each in wide if len(each) > 1}, key=lambda each: (-len(each), sorted(each))):
            seeds = {own[name].seed for name in together}
            names = [name for name, decision in own.items() if decision.seed in seeds]
            joint = self._joint(names, own)
            if joint is not None:
                own |= dict.fromkeys(names, joint)
        return own | self._counted()

    def _counted(self) -> dict[str, Decision]:
        """Decisions about windows that count rows. Nothing goes early there, so that a small gap is as good as any."""
        found = {}
        for each in self._graph.count_aggregates:
            if each.name in self.guarded and each.name in self.arcs.fate_arcs:
                gaps = [output.qos.gap for output in self._outputs(each.name)]
                gap = min(LEAST_GAP if wanted is None else wanted for wanted in gaps)
                if gap > 0:
                    found[each.name] = Decision(each.window.slide_rows, gap, each.name, counts_rows=True)
        return found

    def _gap(self, aggregate: Aggregate, output: Output) -> int:
        if output.qos.gap is not None:
            return output.qos.gap
        overlap = math.ceil(self.reach_us(aggregate.name) / aggregate.window.slide_us)
        if overlap <= 1 and output.qos.min_accuracy > 0:  # those that stay are spread evenly
            return min(LEAST_GAP, math.ceil(1.0 / output.qos.min_accuracy - 1.0 - _ROUNDING))
        return max(LEAST_GAP, 2 * overlap)

    def gap_of(self, name: str, group: str) -> int:
        """How many steps in a row may go of a group that `QoS(gaps=...)` names."""
        aggregate, decision = self._graph.by_name[name], self.by_aggregate[name]
        assert isinstance(aggregate, Aggregate)
        gaps = []
        for output in self._outputs(name):
            own = next(iter((output.qos.gaps or {}).values()), {})
            gaps.append(own.get(group, self._gap(aggregate, output)))
        return min(gaps) * aggregate.window.slide_us // decision.step_us

    def reach_us(self, name: str) -> int:
        """From the first to the last tuple that one window of an aggregate is made of, aggregates above included."""
        aggregate = self._graph.by_name[name]
        assert isinstance(aggregate, Aggregate)
        above = [arc for arc in self._graph.arcs if name in (self.arcs.deciders(arc) or ())]
        places = [*self._graph.arcs_into(name), *above]
        return max(self._size_us(arc, {name}, aggregate.window.slide_us) for arc in places)

    def together(self, name: str) -> int:
        """How many windows of an aggregate go at once: as many as its gap allows where windows overlap, and tuples go
        early only if neighbours go; else one, so that those that stay are spread evenly.

        >>> from jettison.network import Network, QoS
        >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
        >>> _ = trips.window("20 seconds").agg(n="count(*)", name="a").output("a_out", qos=QoS(gap=9))
        >>> WindowDecisions(net.graph).together("a")
        1
        >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
        >>> _ = trips.window("1 minute", slide="5 seconds").agg(n="count(*)", name="b").output("b_out", qos=QoS(gap=30))
        >>> WindowDecisions(net.graph).together("b")
        30
        """
        if name not in self._together:  # asked for in every batch
            self._together[name] = self._find_together(self.by_aggregate[name])
        return self._together[name]

    def _find_together(self, decision: Decision) -> int:
        if decision.counts_rows:
            return 1
        alike = {each for each, other in self.by_aggregate.items() if other.seed == decision.seed}
        above = [arc for arc in self._graph.arcs if alike & (self.arcs.deciders(arc) or frozenset())]
        places = [*above, *(arc for each in alike for arc in self._graph.arcs_into(each))]
        size_us = max(self._size_us(arc, alike, decision.step_us) for arc in places)
        return 1 if size_us <= decision.step_us else decision.gap

    def _joint(self, names: Collection[str], own: Mapping[str, Decision]) -> Decision | None:
        """One decision for all of these, unless some of them allow no gap of its steps, or no tuple would go early."""
        step = math.lcm(*(own[name].step_us for name in names))
        gap = min(own[name].gap * own[name].step_us // step for name in names)
        shared = [arc for arc in self._graph.arcs if set(names) <= (self.arcs.deciders(arc) or frozenset())]
        if gap < 1 or not any(_saved(self._size_us(arc, names, step), step, gap) > 0 for arc in shared):
            return None
        return Decision(step, gap, own[next(iter(names))].seed)

    def weight(self, arc: str) -> float:
        """Tuples that go on an arc, and on those below it, per share of windows that goes; 0 where none can."""
        return self._weights[arc]

    @cached_property
    def _weights(self) -> dict[str, float]:
        found: dict[str, float] = {}
        results = {arc: name for name in self.by_aggregate for arc in self.arcs.fate_arcs[name]}
        for _, into, _ in self._graph.wiring:
            for arc in into:
                tail = arc.tail
                if arc in results:
                    found[arc] = 1.0
                elif self.arcs.is_early(arc, self.by_aggregate):
                    found[arc] = self._early(arc)
                else:
                    found[arc] = 0.0 if not tail else min(found[each] for each in self._graph.arcs_into(tail))
        return found

    def _early(self, arc: str) -> float:
        names = self.arcs.deciders(arc) or frozenset()
        decisions = {self.by_aggregate[name] for name in names}
        if len(decisions) != 1:
            return 0.0  # decided apart, a tuple goes only when all happen to agree
        (decision,) = decisions
        return _saved(self._size_us(arc, names, decision.step_us), decision.step_us, decision.gap)

    def _size_us(self, arc: str, names: Collection[str], step_us: int) -> int:
        """The ticks that the windows of one step need on an arc, from the first to the last, in whole granules."""
        before, after = extent_us(self.arcs, arc_head(arc), names, step_us) or (0, 0)
        granule_us = self.arcs.granule_us(arc) if before else 1
        return -(-before // granule_us) * granule_us + step_us + after

    def band_us(self, name: str) -> int:
        """How long before a window the first tuple may be that it, or one that is decided with it, needs: a new segment
        must not begin sooner than that after any tuple that was judged."""
        decision = self.by_aggregate.get(name)
        alike = [each for each, other in self.by_aggregate.items() if decision and other.seed == decision.seed]
        return max(self.arcs.band_us(each) for each in [name, *alike])

    def droppable(self, arc: str) -> bool:
        """Whether tuples go early on an arc when windows do."""
        return bool(self.by_aggregate) and self.arcs.is_early(arc, self.by_aggregate) and self.weight(arc) > 0

    def least_keep(self, arc: str) -> float:
        """The share of windows that must stay when tuples go on an arc: one after every gap."""
        return max(1.0 - self.by_aggregate[name].most_drop_share for name in self.arcs.deciders(arc) or ())

    def keeps(self, drop_shares: Mapping[str, float], on: Mapping[str, float] | None = None) -> dict[str, float]:
        """The shares of tuples that pass each window drop when such shares of windows go, in the long run."""
        found = self.left(drop_shares, on)
        return {arc: after / before if before > 0 else 1.0 for arc, (before, after) in found.items()}

    def left(
        self, drop_shares: Mapping[str, float], on: Mapping[str, float] | None = None
    ) -> dict[str, tuple[float, float]]:
        """The shares of all tuples that are left on each arc before and behind its window drop; `on` has the share of
        windows that the drop on an arc lets go, where that does not follow from `drop_shares`."""
        known = on or {}
        left: dict[str, float] = {}
        found: dict[str, tuple[float, float]] = {}
        for _, into, _ in self._graph.wiring:
            for arc in into:
                tail = arc.tail
                above = min((left[each] for each in self._graph.arcs_into(tail)), default=1.0) if tail else 1.0
                share = known[arc] if arc in known else self._drop_share(arc, drop_shares)
                weight = 1.0 if share == 1.0 else self.weight(arc)  # what is closed has no kept windows to reach over
                left[arc] = above if share is None else min(above, 1.0 - share * weight)
                found[arc] = above, left[arc]
        return found

    def _drop_share(self, arc: str, drop_shares: Mapping[str, float]) -> float | None:
        """The share of windows that an arc's drop lets go: what all that it serves can do without."""
        for name in self.by_aggregate:
            if arc in self.arcs.fate_arcs[name]:
                return drop_shares.get(name, 0.0)
        if not self.arcs.is_early(arc, self.by_aggregate):
            return None
        return min(drop_shares.get(name, 0.0) for name in self.arcs.deciders(arc) or ())

    def fates(self, drop_shares: Mapping[str, float]) -> dict[str, Fate]:
        """What is asked for, as fates whose schedules are still to be filled in."""
        return {
            name: _fate(decision, min(share, decision.most_drop_share) if share < 1.0 else 1.0)
            for name, decision in self.by_aggregate.items()
            if (share := drop_shares.get(name, 0.0)) > 0
        }


def decisions_of(graph: Graph) -> WindowDecisions:
    """The decisions of a network, worked out once: planners ask again and again."""
    known = graph.__dict__.get("_window_decisions")
    if known is None:
        known = graph.__dict__["_window_decisions"] = WindowDecisions(graph)
    assert isinstance(known, WindowDecisions)
    return known


def _fate(decision: Decision, drop_share: float) -> Fate:
    """A fate, its schedule to be filled in, unless windows count rows: of those all groups begin anew where they are,
    and no tuple has gone for the sake of a fate. So what goes may change with every plan; heads of blocks stay where
    they are, and so the gap is held."""
    if not decision.counts_rows:
        return Fate(decision.step_us, drop_share=drop_share)
    schedule = extend(Schedule(), -1, drop_share=drop_share, gap=decision.gap, seed=decision.seed, together=1)
    return Fate(decision.step_us, schedule, drop_share, counts_rows=True)


def _saved(size_us: int, step_us: int, gap: int) -> float:
    """`window_estimates.saved_share` per share of windows dropped: it is linear in that."""
    return max(0, (gap + 1) * step_us - size_us) / (gap * step_us)
