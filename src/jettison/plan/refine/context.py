"""What refinements of a plan may look at: everything that is known when a batch is planned, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Fate, GroupCells
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.plan.refine.probing import Probes
from jettison.plan.refine.staleness import Fresh, left_when_fresh, with_stale
from jettison.plan.refine.unread import Unread
from jettison.plan.windows.decisions import WindowDecisions, decisions_of
from jettison.statistics.groups import GroupSizes

AskAgain = Callable[[float], tuple[Plan, str | None]]
"""Plan anew for so many microseconds more than needed: the plan, and why it is not enough if it is not."""


@dataclass(frozen=True)
class Context:
    """One batch that is planned.

    `problem` has the tuples that are planned for and, as its budget, the work that the plan is to leave. `rows` are
    read, `unread` records are not, `fresh` says which tuples are stale, where any is.
    """

    problem: Problem
    rows: Mapping[str, int] = field(default_factory=dict)
    unread: Unread = field(default_factory=Unread)
    fresh: Fresh | None = None
    marks: BatchMarks | None = None
    """How far windows have got; without it nothing is decided about windows."""
    fates: Mapping[str, Fate] = field(default_factory=dict)
    """What was decided about windows so far, by aggregate."""
    named: Mapping[str, GroupCells] = field(default_factory=dict)
    """Groups with gaps of their own, by aggregate."""
    by_value: bool = False
    """Whether windows of groups that are worth least go first."""
    probes: Probes = field(default_factory=Probes)
    by_chance: bool = False
    """Whether drops by value are not trusted for now."""
    unseen: frozenset[str] = frozenset()
    """Arcs of which no values have been seen yet."""
    sizes: GroupSizes = field(default_factory=GroupSizes)
    covered_us: Mapping[str, float] = field(default_factory=dict)
    """Event time that a batch covers, by estimated aggregate."""
    slack_us: float = 0.0
    """What a plan may save too little or too much before it is changed."""
    ask_again: AskAgain | None = None
    infeasible: str | None = None
    ahead_us: int | None = None
    """How far event times may get in this batch; None where nobody knows."""

    @property
    def graph(self) -> Graph:
        return self.problem.graph

    @property
    def decisions(self) -> WindowDecisions:
        return decisions_of(self.graph)

    @cached_property
    def read_shares(self) -> dict[str, float]:
        return self.unread.read_shares(self.rows)

    @property
    def needed_us(self) -> float:
        """The work that the plan is to save."""
        return self.problem.load_us - self.problem.budget_us

    @cached_property
    def left(self) -> Problem:
        """The problem that is left for drops: stale tuples are gone."""
        return self.problem if self.fresh is None else left_when_fresh(self.problem, self.fresh)

    def restated(self, plan: Plan, drops: Mapping[str, Drop], reason: str | None = None) -> Plan:
        """The plan with other drops, and what it delivers, is worth and saves with them."""
        made = claimed(self.left, drops, plan.reason if reason is None else reason)
        made = replace(made, row=plan.row, below_minimum=plan.below_minimum)
        return made if self.fresh is None else with_stale(self.problem, self.fresh, made)
