"""From a question to a plan that may be obeyed: plan, refine, certify, and a safe plan where that fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jettison.control.plan_request import PlanRequest
from jettison.errors import PlanError
from jettison.plan.certify import Beside, certify
from jettison.plan.plan import Plan
from jettison.plan.reasons import NO_CERTIFIED_PLAN
from jettison.plan.refine.compensation import lack_of_compensation
from jettison.plan.refine.context import AskAgain, Context
from jettison.plan.refine.refinements import FINISHING, Step, refine
from jettison.plan.safe import ScaledPlan
from jettison.plan.shedders.admission import InputUniformCost
from jettison.plan.shedders.asked import AskedShedder

_log = logging.getLogger("jettison")


@dataclass(frozen=True)
class Certified:
    """A plan that may be obeyed, and how it came about.

    `chosen` is the plan that was to be probed: what it closes. `refused` says why another one was refused, where this
    is a safe plan in its place.
    """

    plan: Plan
    chosen: Plan
    context: Context
    infeasible: str | None
    steps: tuple[Step, ...]
    stays: bool = False
    refused: str | None = None


def certified_plan(request: PlanRequest, last: Plan | None = None, *, refused_before: str | None = None) -> Certified:
    """The plan of a shedder, refined and certified; else the `last` certified plan scaled to this batch, else a random
    drop at the inputs, else none. `refused_before` is why a plan was refused in the batch before: that is known."""
    refused: str | None = None
    for each in _safer(request, last):
        try:
            found = _finished(each)
        except Exception as error:  # drops of a shedder of the user's own may fail anywhere, and must not end the run
            reason = str(error) if isinstance(error, PlanError) else f"{type(error).__name__}: {error}"
            if refused is None:
                level = logging.DEBUG if reason == refused_before else logging.WARNING
                _log.log(level, "network %s: a plan is not certified: %s", request.known.graph.name, reason)
            refused = refused or reason
            continue
        for step in found.steps:
            _log.debug("network %s: %s", request.known.graph.name, step)
        return replace(found, refused=refused)
    raise PlanError(f"network {request.known.graph.name!r}: not even shedding nothing is certified: {refused}")


def _safer(request: PlanRequest, last: Plan | None) -> Iterator[PlanRequest]:
    """The same question, to one who is safer each time."""
    yield request
    anew = replace(request, may_stay=False)
    if last is not None:
        yield replace(anew, shedder=AskedShedder(ScaledPlan(last)))
    yield replace(anew, shedder=AskedShedder(InputUniformCost()))
    yield replace(anew, held=NO_CERTIFIED_PLAN)


def _finished(request: PlanRequest) -> Certified:
    """Plan, refine and certify; raise PlanError where that fails."""
    decided = request.decided()
    context = replace(decided.context, ask_again=_asking_again(request), infeasible=decided.infeasible)
    plan, steps = refine(decided.plan, context, FINISHING)
    chosen = steps[0].after if steps and steps[0].name == "compensation" else decided.plan
    infeasible = decided.infeasible or lack_of_compensation(chosen, context)
    within_budget = infeasible is None and not decided.eased and not any(step.gave_back for step in steps)
    beside = Beside(context.fresh, context.unread, context.rows)
    certify(context.problem, plan, within_budget=within_budget, beside=beside)
    return Certified(plan, chosen, context, infeasible, (*decided.steps, *steps), decided.stays)


def _asking_again(request: PlanRequest) -> AskAgain:
    def ask(more_us: float) -> tuple[Plan, str | None]:
        again = request.decided(more_us)
        return again.plan, again.infeasible

    return ask
