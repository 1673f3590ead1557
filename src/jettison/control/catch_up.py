"""What becomes of a backlog: rows that waited while the run was down, and how large a batch may be.

Three answers, `jt.start(..., catch_up=...)`:

    shed     the backlog is an overload like any other (the default)
    newest   skip to fresh data: old records are passed over once, then the run goes on as usual
    all      nothing is shed until the run has caught up; batches are bounded meanwhile

A run catches up from its start, or from a pause between two batches, until a batch fits into its budget again.

Every batch has a bound, also where its source sets none: Spark would otherwise read all that came while a slow batch
ran, and the next batch would be slower still.

    catching up by "all", or a dry run   as many rows as take two budgets, nothing shed
    otherwise                            as many rows as take two budgets to read: drops save the work behind reading
    before costs are measured            `UNMEASURED_ROWS`, then four times the largest batch so far
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.errors import StartError
from jettison.network.columns.words import meant
from jettison.network.graph import Graph
from jettison.plan.problem import Problem
from jettison.statistics.profile import Profile

SHED, NEWEST, ALL = "shed", "newest", "all"
CATCH_UP = (SHED, NEWEST, ALL)

UNMEASURED_ROWS = 500_000
"""The bound of a first batch, before anything was measured."""
UNBOUNDED = 2**53
"""A bound that bounds nothing."""
_BUDGETS = 2.0
"""How many budgets a bounded batch may take: with more rows at once, less of the time is the batch's fixed part."""
_GROWTH = 4
_LEAST_ROWS = 1_000
_PAUSE_TRIGGERS = 10.0
"""A run that did nothing for so many triggers comes back to a backlog."""


def check_catch_up(word: str) -> str:
    """Raise unless this is one of the three words."""
    if word not in CATCH_UP:
        raise StartError(f"catch_up is {word!r}{meant(word, CATCH_UP)}: use one of {', '.join(map(repr, CATCH_UP))}.")
    return word


@dataclass
class Backlog:
    """Whether a run is catching up, told batch by batch.

    >>> backlog = Backlog(ALL, trigger_ms=1000.0)
    >>> backlog.begins(waited_ms=1000.0, load_us=5e6, budget_us=9e5)  # the first batch after a start: 5 s of work
    True
    >>> backlog.begins(waited_ms=1800.0, load_us=1.8e6, budget_us=9e5)  # a bounded batch
    True
    >>> backlog.begins(waited_ms=1800.0, load_us=4e5, budget_us=9e5)  # all that there was: caught up
    False
    >>> backlog.begins(waited_ms=1000.0, load_us=3e6, budget_us=9e5)  # an overload, not a backlog
    False
    >>> backlog.begins(waited_ms=60_000.0, load_us=3e6, budget_us=9e5)  # after a pause of a minute
    True
    """

    policy: str
    trigger_ms: float
    active: bool = True

    def begins(self, *, waited_ms: float, load_us: float, budget_us: float) -> bool:
        """Whether this batch is part of a backlog. `waited_ms`: how long the run did nothing before it, `load_us`: its
        work when nothing is shed."""
        paused = waited_ms > _PAUSE_TRIGGERS * self.trigger_ms
        self.active = (self.active or paused) and load_us > budget_us
        return self.active

    def end(self) -> None:
        """Take the backlog for gone: what was old has been skipped."""
        self.active = False

    @property
    def keeps_all(self) -> bool:
        """Whether nothing may be shed for now."""
        return self.active and self.policy == ALL

    @property
    def skips(self) -> bool:
        """Whether old records are passed over for now."""
        return self.active and self.policy == NEWEST


def most_rows(
    graph: Graph, profile: Profile | None, mix: Mapping[str, float], budget_us: float, *, unshed: bool, largest: int
) -> dict[str, int]:
    """The bound of the next batch, by source. `mix`: how many rows each source brings, in whatever unit; `unshed`:
    nothing will be shed; `largest`: the rows of the largest batch so far, where costs are not known (`profile` None).

    >>> from jettison.network import Source, Where, Output
    >>> graph = Graph("flat", (Source("s", (("a", "int"),)), Where("w", ("s",), "a > 0"), Output("o", ("w",))))
    >>> profile = Profile({"w": 5.0}, {}, fixed_ms=300.0, read_us={"s": 1.0})
    >>> most_rows(graph, profile, {"s": 1}, 9e5, unshed=True, largest=0)  # (2 x 900 - 300) ms at 6 us
    {'s': 250000}
    >>> most_rows(graph, profile, {"s": 1}, 9e5, unshed=False, largest=0)  # at 1 us
    {'s': 1500000}
    >>> most_rows(graph, None, {"s": 1}, 9e5, unshed=False, largest=200_000)
    {'s': 800000}
    """
    names = [source.name for source in graph.sources]
    total = sum(mix.get(name, 0.0) for name in names)
    even = 1.0 / len(names)
    # half of it evenly: what a source brought in bounded batches says little of what waits there
    shares = {name: (mix.get(name, 0.0) / total + even) / 2 if total > 0 else even for name in names}
    if profile is None:
        rows = float(max(UNMEASURED_ROWS, _GROWTH * largest))
    else:
        left_us = max(0.0, _BUDGETS * budget_us - 1000 * profile.fixed_ms)
        empty_us = Problem(graph, profile, dict.fromkeys(names, 0), budget_us).load_us
        per_row_us = sum(share * profile.read_us.get(name, 0.0) for name, share in shares.items())
        if unshed:
            per_row_us = Problem(graph, profile, {n: 1e6 * s for n, s in shares.items()}, budget_us).load_us - empty_us
            per_row_us /= 1e6
        rows = left_us / per_row_us if per_row_us > 0 else float("inf")
    if rows >= UNBOUNDED:
        return dict.fromkeys(names, UNBOUNDED)
    return {name: max(_LEAST_ROWS, round(rows * share)) for name, share in shares.items()}
