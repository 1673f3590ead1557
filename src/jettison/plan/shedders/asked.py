"""Ask a shedder, whoever wrote it: its answers are checked and completed before anybody counts on them."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from jettison.errors import PlanError
from jettison.plan.drops.kind import pass_shares
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem, Shedder
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow
from jettison.statistics.spread import flows_by_value

_log = logging.getLogger("jettison")

_MOST_WRONG = 0.25
"""So far may the share that passes by the values of late be from what a drop says: values move on meanwhile."""
_MEMBERS = ("keep", "passes", "judges", "reads", "named", "content")


class AskedShedder:
    """A shedder of a run. `plan` raises PlanError where the shedder fails or answers with something that is no plan."""

    def __init__(self, shedder: Shedder) -> None:
        self.shedder = shedder
        self._warned = False

    @property
    def by_value(self) -> bool:
        """Whether windows of groups that are worth least go first."""
        return bool(getattr(self.shedder, "by_value", False))

    @property
    def every_batch(self) -> bool:
        """Whether it plans every batch anew, also those that fit their budget: it has a goal beside the budget."""
        return bool(getattr(self.shedder, "every_batch", False))

    def plan(self, problem: Problem) -> Plan | Infeasible:
        try:
            answer = self.shedder.plan(problem)
        except Exception as error:
            raise PlanError(f"{self._name} failed: {type(error).__name__}: {error}") from error
        if isinstance(answer, Infeasible):
            return Infeasible(str(answer.reason), self._completed(problem, answer.best))
        return self._completed(problem, answer)

    def observe(self, sample: BatchSample) -> None:
        """Tell a shedder that wants to know what was measured."""
        self._call("observe", sample)

    def prepare(self, problem: Problem) -> None:
        """Let a shedder that wants to build tables for what is to come."""
        self._call("prepare", problem)

    def follow_sic(self, window: SicWindow) -> None:
        """Tell a shedder that wants to know what every output has had in its source time window."""
        self._call("follow_sic", window)

    def _call(self, method: str, argument: BatchSample | Problem | SicWindow) -> None:
        call = getattr(self.shedder, method, None)
        if call is None:
            return
        try:
            call(argument)
        except Exception as error:
            level = logging.DEBUG if self._warned else logging.WARNING
            self._warned = True
            _log.log(level, "%s failed in %s: %s: %s", self._name, method, type(error).__name__, error)

    def _completed(self, problem: Problem, answer: object) -> Plan:
        """The plan with what it delivers and saves, checked to be one for this network."""
        if not isinstance(answer, Plan):
            raise PlanError(f"{self._name} answered with {_short(answer)}: return a Plan or Infeasible.")
        check_arcs(self._name, problem, answer)
        for arc, drop in answer.drops.items():
            if not all(hasattr(drop, member) for member in _MEMBERS):
                raise PlanError(f"{self._name}: the drop on arc {arc!r} is {_short(drop)}: give one of plan.drops.")
            self._check_share(problem, answer, arc)
        if answer.delivered:
            return answer
        return replace(claimed(problem, answer.drops, answer.reason), below_minimum=answer.below_minimum)

    def _check_share(self, problem: Problem, plan: Plan, arc: str) -> None:
        """A drop that passes other shares of other values says about how much passes of what comes to it."""
        drop, at = plan.drops[arc], problem.graph.tracks.at(arc)
        passes = drop.passes
        if not isinstance(passes, tuple) or at is None or drop.judges == "window":
            return
        cells = len(at[0].bounds)
        if len(passes) != cells:
            raise PlanError(f"{self._name}: the drop on arc {arc!r} has {len(passes)} shares for {cells} cells.")
        others = pass_shares({other: each for other, each in plan.drops.items() if other != arc})
        came = flows_by_value(problem.graph, problem.profile, problem.rows, others, problem.spread)[arc]
        share = float((came * np.asarray(passes)).sum() / came.sum()) if came.sum() > 0 else drop.keep
        if abs(share - drop.keep) > _MOST_WRONG:
            raise PlanError(f"{self._name}: the drop on arc {arc!r} says that {drop.keep:.2f} pass, it is {share:.2f}.")

    @property
    def _name(self) -> str:
        return f"shedder {type(self.shedder).__name__}"


def check_arcs(name: str, problem: Problem, plan: Plan) -> None:
    """Raise PlanError where a shedder's plan drops on an arc that the network does not have."""
    for arc in plan.arcs:
        if arc not in problem.coefficients:
            arcs = ", ".join(problem.graph.arcs)
            raise PlanError(f"{name} drops on arc {arc!r}, which is not there. Arcs: {arcs}.")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
