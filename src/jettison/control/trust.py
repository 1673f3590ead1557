"""Whether drops by value are trusted: only while as much passes them as their plans say.

A drop by value rests on how values were spread in earlier batches. Where that says nothing of the next one, because
values jump to and fro, or nothing has been seen of them yet, the same shares are dropped by chance: a share that is
dropped by chance is delivered, whatever the values are. After a batch that got next to nothing, and after two in a row
that missed their plan, the next batch goes by chance; each time that happens again within a short while, twice as many.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from jettison.network.graph import Graph
from jettison.network.slices import results_above
from jettison.plan.claims import claimed
from jettison.plan.floors import floor_at
from jettison.plan.keys import by_chance
from jettison.plan.plan import Drop, Plan, Semantic
from jettison.plan.problem import Problem
from jettison.statistics.samples import BatchSample

_MISSED_SHARE = 0.1
_NOTHING_SHARE = 0.1
_TELLING_ROWS = 10
_MOST_BATCHES = 64
_FORGIVEN_AFTER = 8
_TRIES = 6
_STEP = 0.93


class Trust:
    """Counts how plans by value fared: `record` after every batch, `batches_by_chance` before the next."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.batches_by_chance = 0
        """How many of the next batches are to go by chance."""
        self._next = 1
        self._missed = False
        self._good = 0
        self._got: dict[str, int] = {}

    def record(self, plan: Plan, sample: BatchSample) -> None:
        """Compare what passed drops by value with what the plan said."""
        by_value = [arc for arc, drop in plan.drops.items() if isinstance(drop, Semantic) and arc not in plan.stale]
        if by_value:
            self._judge(plan, sample, by_value)
        elif self.batches_by_chance > 0 and plan.drops:
            self.batches_by_chance -= 1
        rows = {name: seen.rows for name, seen in sample.outputs.items()}
        # an output that gets nothing of a batch that did not go by value has nothing to get
        self._got |= {name: count for name, count in rows.items() if count > 0} if by_value else rows

    def _judge(self, plan: Plan, sample: BatchSample, arcs: Collection[str]) -> None:
        shares = [(plan.keep(arc), *sample.arcs[arc]) for arc in arcs if sample.arcs.get(arc, (0, 0))[0] > 0]
        telling = [(planned, kept / rows) for planned, rows, kept in shares if planned * rows >= _TELLING_ROWS]
        missed = any(abs(planned - counted) > _MISSED_SHARE for planned, counted in telling)
        nothing = any(counted < _NOTHING_SHARE * planned for planned, counted in telling)
        if nothing or self._starved(plan, sample) or (missed and self._missed):
            self.batches_by_chance, self._next = self._next, min(2 * self._next, _MOST_BATCHES)
            self._missed, self._good = False, 0
            return
        self._missed = missed
        self._good = 0 if missed else self._good + 1
        if self._good >= _FORGIVEN_AFTER:
            self._next = 1

    def _starved(self, plan: Plan, sample: BatchSample) -> bool:
        """Whether an output that had rows gets none any more, though the plan promises some."""
        return any(
            sample.outputs[name].rows == 0 and plan.delivered.get(name, 0.0) * rows >= _TELLING_ROWS
            for name, rows in self._got.items()
            if name in sample.outputs and not results_above(self._graph, name)[0]
        )


def by_chance_instead(problem: Problem, plan: Plan, arcs: Collection[str]) -> Plan:
    """The plan with drops by chance in place of those by value on these arcs, saving as much as floors allow.

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("one"); net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> problem = Problem(net.graph, Profile({"w": 10.0}, {}), {"s": 100}, 400.0)
    >>> by_value = Plan({"s": Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.4)}, "overload", 7, saves_us=600.0)
    >>> plan = by_chance_instead(problem, by_value, ["s"])
    >>> plan.drops, plan.row, plan.delivered
    ({'s': Random(keep=0.4)}, 7, {'o': 0.4})
    """
    keeps = {arc: drop.keep for arc, drop in plan.drops.items() if arc in arcs and isinstance(drop, Semantic)}
    if not keeps:
        return plan
    found = plan
    for attempt in range(_TRIES):
        steps = {arc: 1.0 if floor_at(problem.graph, arc) > 0 else _STEP**attempt for arc in keeps}
        changed = {arc: by_chance(problem.graph, arc, keep * steps[arc]) for arc, keep in keeps.items()}
        drops: dict[str, Drop] = {**plan.drops, **changed}
        if plan.stale:
            return replace(plan, drops=drops)
        found = replace(claimed(problem, drops, plan.reason), row=plan.row)
        if found.saves_us >= plan.saves_us * (1.0 - 1e-6):
            break
    return found
