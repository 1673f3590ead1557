"""The plan in force: what is obeyed now, what this node alone would do, and what has been decided about windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.control.deciding import Certified
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.predictions import WITHIN_BUDGET
from jettison.plan.shedders.renewed_road_map import values_jumped
from jettison.statistics.profile import Profile


@dataclass
class PlanInForce:
    """`own` is the plan itself, unless drops are agreed with other nodes. `planned_for` are the costs that it rests on.

    `infeasible` says why the plan does not hold the budget, `refused` why another plan was refused and a safe one took
    its place; `uncertified` counts those. `certified` is the last plan that shed something. `sending` are the sources
    that sent when the plan was made.
    """

    planned_for: Profile
    plan: Plan = field(default_factory=lambda: Plan(reason=WITHIN_BUDGET))
    own: Plan = field(default_factory=lambda: Plan(reason=WITHIN_BUDGET))
    fates: Mapping[str, Fate] = field(default_factory=dict)
    infeasible: str | None = None
    refused: str | None = None
    uncertified: int = 0
    certified: Plan | None = None
    sending: frozenset[str] | None = None
    doubted: bool = False

    def may_stay(self, profile: Profile, sending: frozenset[str]) -> bool:
        """Whether the plan may be kept as it is at these costs, for a batch of these sources."""
        known = not self.doubted and self.refused is None and not values_jumped(self.planned_for, profile)
        return bool(self.own.drops) and known and self.sending in (None, sending)

    def take(self, found: Certified, own: Plan, profile: Profile, *, windows: bool) -> None:
        """Put a plan in force that was made at these costs; with `windows` it decides about them."""
        if not found.stays:
            self.planned_for = profile
        self.refused = found.refused
        self.uncertified += found.refused is not None
        self.plan, self.own, self.infeasible = found.plan, own, found.infeasible
        if found.plan.sheds:
            self.certified = found.plan
        self.doubted = any(step.name == "doubt" for step in found.steps)
        if windows:
            self.fates = found.plan.fates

    def resume(self, plan: Plan) -> None:
        """Go on from a plan that was logged and is obeyed again."""
        self.plan, self.own, self.fates, self.refused = plan, plan, plan.fates, None
