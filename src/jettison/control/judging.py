"""What is known when a batch is judged, and what follows from it: budget, overload, whether there is time to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.control.allowance import Allowance, allowance
from jettison.control.settings import Settings
from jettison.detect import Detector, Judgement
from jettison.network.graph import Graph
from jettison.plan.floors import floor_at, least_read_share
from jettison.plan.problem import Problem
from jettison.statistics.load import load_coefficients, queue_load_us, total_load_us
from jettison.statistics.profile import Profile

LEAST_READ_SHARE = 0.01
_MOST_READING_SHARE = 0.4


@dataclass(frozen=True)
class Estimates:
    """Network, settings, costs, arrival rates, and how far the costs are believed (`statistics.belief`)."""

    graph: Graph
    settings: Settings
    profile: Profile
    rows_per_s: Mapping[str, float]
    patience: float = 1.0
    now_ms: float = 0.0
    """When the batch begins."""

    @property
    def arriving(self) -> dict[str, float]:
        """What one trigger interval brings, by source."""
        return {name: rate * self.settings.trigger_ms / 1000 for name, rate in self.rows_per_s.items()}

    def problem(self, rows: Mapping[str, float]) -> Problem:
        """So many rows, to be processed within the budget."""
        return Problem(self.graph, self.profile, rows, self.settings.budget_us, self.now_ms)

    def allowance(self, coefficients: Mapping[str, float] | None = None) -> Allowance:
        """What a batch may take before rows are dropped; `coefficients` are load coefficients, where known."""
        arriving = self.arriving
        loads = load_coefficients(self.graph, self.profile) if coefficients is None else coefficients
        return allowance(
            fixed_us=1000 * self.profile.fixed_ms,
            arriving_us=self._reading_us(arriving) + total_load_us(loads, arriving),
            budget_us=self.settings.budget_us,
            patience=self.patience,
        )

    def judge(self, detector: Detector, problem: Problem, queues: Mapping[str, float] | None = None) -> Judgement:
        """The batch at hand, and what arrives in one interval, against the budget."""
        arriving = self.arriving
        arriving_us = (
            1000 * self.profile.fixed_ms
            + self._reading_us(arriving)
            + total_load_us(problem.coefficients, arriving)
            + queue_load_us(problem.coefficients, queues or {}, self.settings.melt_rate)
        )
        return detector.judge(batch_us=problem.load_us, arriving_us=arriving_us, budget_us=problem.budget_us)

    def _reading_us(self, rows: Mapping[str, float]) -> float:
        return sum(self.profile.read_us.get(name, 0.0) * count for name, count in rows.items())


def overloaded(known: Estimates, detector: Detector, rows: Mapping[str, int]) -> bool:
    """Whether so many rows, coming at the rate of late, are to be shed."""
    judged = known.judge(detector, known.problem(rows))
    beyond_us = known.allowance().budget_us - known.settings.budget_us
    return known.settings.shedding and judged.overloaded and (beyond_us == 0 or judged.excess_us > beyond_us)


def read_share(
    known: Estimates, rows: Mapping[str, int], skippable: frozenset[str], skipped: Mapping[str, int] | None = None
) -> float:
    """How much of these sources to read at all: 1, unless reading alone would take too much of the budget.

    A drop saves the work behind it, not the reading before it. Where records can be passed over unread, reading gets at
    most four tenths of what the fixed part leaves, so that there is time left to process what was read. Not where that
    would bring the batch less than half of the way to its budget; and floors are held.
    """
    graph, profile = known.graph, known.profile
    budget_us = known.allowance().budget_us
    left_us = max(0.0, budget_us - 1000 * profile.fixed_ms)
    reading_us = {name: profile.read_us.get(name, 0.0) * count for name, count in rows.items()}
    passable_us = sum(cost for name, cost in reading_us.items() if name in skippable)
    most_us = max(0.0, _MOST_READING_SHARE * left_us - sum(reading_us.values()) + passable_us)
    if not known.settings.shedding or passable_us <= most_us:
        return 1.0
    problem = Problem(graph, profile, rows, budget_us)
    work_us = sum(problem.coefficients[name] * rows.get(name, 0) for name in skippable)
    if passable_us + work_us < (problem.load_us - budget_us) / 2:
        return 1.0
    before = skipped or {}
    least = [least_read_share(graph, each, rows.get(each, 0), before.get(each, 0)) for each in skippable]
    return max(LEAST_READ_SHARE, most_us / passable_us, *least)


def may_skip(graph: Graph, rows: Mapping[str, int], skipped: Mapping[str, int]) -> bool:
    """Whether floors can still be held when so many records are passed over and these rows are read."""
    left = {name: rows.get(name, 0) for name, count in skipped.items() if count > 0}
    return all(count >= floor_at(graph, name) * (count + skipped[name]) for name, count in left.items())


def can_look(known: Estimates, rows: Mapping[str, int]) -> bool:
    """Whether there is time to look at one value of each of these rows: to read them, look, and read them again.

    A backlog for which there is not is thinned out by chance; that is sooner done, and the next batch is fresh.
    """
    profile = known.profile
    cost_us = {name: 2 * profile.read_us.get(name, 0.0) + profile.look_us.get(name, 0.0) for name in rows}
    left_us = known.settings.budget_us - 1000 * profile.fixed_ms
    return sum(cost_us[name] * count for name, count in rows.items()) <= left_us
