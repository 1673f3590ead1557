"""Whether drops by value are trusted: only while as much passes them as their plans say.

A drop by value rests on how values were spread in earlier batches. Where that says nothing of the next one, because
values jump to and fro, or nothing has been seen of them yet, the same shares are dropped by chance: a share that is
dropped by chance is delivered, whatever the values are. After a batch that got next to nothing, and after two in a row
that missed their plan, the next batch goes by chance; each time that happens again within a short while, twice as many.
What counts is what passes the drop, and what comes to the outputs: a filter below may remove just the values that are
kept. While no output gets anything, batches go by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jettison.network.graph import Graph
from jettison.network.windows.slice_groups import waits_above
from jettison.plan.plan import Plan
from jettison.statistics.passing import contradicts
from jettison.statistics.samples import BatchSample

_MISSED_SHARE = 0.1
_NOTHING_SHARE = 0.1
_TELLING_ROWS = 10
_TELLING_NOTHING = 3.0
"""Of so many rows that are expected none comes by chance one time in twenty."""
_MANY_ROWS = 100
_FEW_SHARE = 0.5
_MOST_BATCHES = 64
_FORGIVEN_AFTER = 8


class Trust:
    """Counts how plans by value fared: `record` after every batch, `batches_by_chance` before the next."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.batches_by_chance = 0
        """How many of the next batches are to go by chance."""
        self._next = 1
        self._missed = False
        self._good = 0
        self._empty = 0
        self._hungry = False

    def record(self, plan: Plan, sample: BatchSample, expected: Mapping[str, float] | None = None) -> None:
        """Compare what passed drops by value, and what came to the outputs below them, with what the plan said.

        `expected` are the rows that outputs were to get, by what filters passed of every value before.
        """
        by_value = [arc for arc, drop in plan.drops.items() if drop.judges == "value" and arc not in plan.stale]
        if by_value:
            self._judge(plan, sample, by_value, expected or {})
        elif self.batches_by_chance > 0 and plan.drops:
            self.batches_by_chance -= 1
            if self._hungry and not any(seen.rows for seen in sample.outputs.values()):
                self.batches_by_chance = max(1, self.batches_by_chance)  # where nothing comes no value is any better
            else:
                self._hungry = False

    def _judge(self, plan: Plan, sample: BatchSample, arcs: Collection[str], expected: Mapping[str, float]) -> None:
        shares = [(plan.keep(arc), *sample.arcs[arc]) for arc in arcs if sample.arcs.get(arc, (0, 0))[0] > 0]
        telling = [(planned, kept / rows) for planned, rows, kept in shares if planned * rows >= _TELLING_ROWS]
        missed = any(abs(planned - counted) > _MISSED_SHARE for planned, counted in telling)
        nothing = any(counted < _NOTHING_SHARE * planned for planned, counted in telling)
        counted = {name: seen.rows for name, seen in sample.outputs.items() if not waits_above(self._graph, name)}
        wanted = {name: rows for name, rows in expected.items() if name in counted}
        missed |= any(self._missed_at(plan, sample, name) for name, rows in wanted.items() if rows >= _MANY_ROWS)
        nothing |= any(_too_few(counted[name], rows) for name, rows in wanted.items())
        below = [name for name in counted if plan.delivered.get(name, 0.0) > 0]
        empty = bool(below) and any(sample.rows_in.values()) and not any(counted[name] for name in below)
        self._empty = self._empty + 1 if empty else 0
        self._hungry = empty and (nothing or self._empty > 1)
        if nothing or self._hungry or (missed and self._missed):
            self.batches_by_chance, self._next = self._next, min(2 * self._next, _MOST_BATCHES)
            self._missed, self._good = False, 0
            return
        self._missed = missed
        self._good = 0 if missed else self._good + 1
        if self._good >= _FORGIVEN_AFTER:
            self._next = 1

    def _missed_at(self, plan: Plan, sample: BatchSample, output: str) -> bool:
        """Whether another share came to an output than was planned, as counted."""
        planned, counted = plan.delivered.get(output), sample.delivered.get(output)
        return planned is not None and counted is not None and abs(planned - counted) > _MISSED_SHARE


def _too_few(counted: int, expected: float) -> bool:
    """Whether so much less came than was expected that other values must pass now.

    >>> _too_few(0, 2.5), _too_few(0, 3.5), _too_few(27, 80.0), _too_few(50, 80.0), _too_few(2, 9.0)
    (False, True, True, False, False)
    """
    if counted == 0:
        return expected >= _TELLING_NOTHING
    return counted < _FEW_SHARE * expected and contradicts(counted, expected)
