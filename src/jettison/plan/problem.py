"""The question that every shedder answers: this network, these costs, these rows, this much time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from jettison.network.graph import Graph
from jettison.plan.plan import Infeasible, Plan
from jettison.statistics.load import load_coefficients, total_load_us
from jettison.statistics.profile import Profile
from jettison.statistics.spread import Spread, flows_by_value


@dataclass(frozen=True)
class Problem:
    """`rows` enter at each source; processing them may take `budget_us`, fixed parts and reading included.

    `now_ms` is when that begins, in milliseconds since 1970, where it is known. `paused` are outputs that the plan in
    force pauses.
    """

    graph: Graph
    profile: Profile
    rows: Mapping[str, float]
    budget_us: float
    now_ms: float = 0.0
    paused: frozenset[str] = frozenset()

    def with_budget(self, budget_us: float) -> Problem:
        """The same question with another budget."""
        other = replace(self, budget_us=budget_us)
        other.__dict__["coefficients"] = self.coefficients
        other.__dict__["shared"] = self.shared
        for known in ("spread", "_work_us"):
            if known in self.__dict__:
                other.__dict__[known] = self.__dict__[known]
        return other

    @cached_property
    def shared(self) -> dict[str, Any]:
        """Sums that do not depend on the budget, by those who need them again and again (`plan.certify`)."""
        return {}

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """Load coefficient of every arc."""
        return load_coefficients(self.graph, self.profile)

    @cached_property
    def spread(self) -> Spread:
        """How rows are spread over the cells of their values."""
        return Spread(self.graph, self.profile)

    @property
    def unavoidable_us(self) -> float:
        """What no drop can save: the fixed part and reading."""
        reading = math.fsum(self.profile.read_us.get(source, 0.0) * count for source, count in self.rows.items())
        return 1000.0 * self.profile.fixed_ms + reading

    @property
    def load_us(self) -> float:
        """The whole work, nothing shed."""
        return self.unavoidable_us + self._work_us

    @cached_property
    def _work_us(self) -> float:
        """What drops could save. Where values are told apart, what filters pass depends on what comes in."""
        if not self.graph.tracks.all:
            return total_load_us(self.coefficients, self.rows)
        on = flows_by_value(self.graph, self.profile, self.rows, spread=self.spread)
        return sum(
            float(on[arc].sum()) * self.profile.cost(operator.name)
            for operator in self.graph.operators
            for arc in self.graph.arcs_into(operator.name)
        )


class Shedder(Protocol):
    """A policy: problem in, plan out. One is made for every run.

    `plan` answers with drops that bring the work within the problem's budget, or says that none do (`Infeasible`). It
    may be asked several times for one batch. What a plan delivers and saves is filled in where it is left out.

    More methods are called where a shedder has them:

    - `check_network(graph)` once, before anything runs. It raises StartError where settings do not suit the network.
    - `observe(sample)` after every batch, with what was measured.
    - `follow_sic(window)` before that, with the SIC that outputs have had (`statistics.sic.SicWindow`).
    - `prepare(problem)` at the start and after every batch, with what one interval brings at the costs as they are
      known now. It is the time to build tables, so that `plan` is quick.
    """

    def plan(self, problem: Problem) -> Plan | Infeasible: ...
