"""How the loop behaves: what one batch may take, who plans, and what is learned."""

from __future__ import annotations

from dataclasses import dataclass

from jettison.errors import StartError
from jettison.plan.problem import Shedder
from jettison.plan.shedders.registry import SEMANTIC, check_shedder


@dataclass(frozen=True)
class Settings:
    """How the loop behaves. `waste_share`: how much more than needed a plan in force may shed before it is changed.

    `shedder` is who plans: a name of `plan.shedders.registry`, or an object of the user's own. Without `learn` costs
    stay as they are given, and plans depend on rows and the order of batches alone, not on the clock (`control.pace`).
    Plans that are not `obeyed` are those of a dry run: batches are measured with nothing dropped. `stw_ms` is the
    length of the source time window, over which the SIC of outputs is followed; None leaves it to the network.
    """

    trigger_ms: float
    headroom: float = 0.9
    shedding: bool = True
    melt_rate: float = 0.1
    waste_share: float = 0.04
    shedder: str | Shedder = SEMANTIC
    learn: bool = True
    obeyed: bool = True
    stw_ms: float | None = None

    def __post_init__(self) -> None:
        if not self.trigger_ms > 0:
            raise StartError(f"trigger is {self.trigger_ms} ms: give an interval above 0, such as '1 second'.")
        if not 0 < self.headroom <= 1:
            raise StartError(f"headroom is {self.headroom}: give the share of capacity to use, above 0 and at most 1.")
        check_shedder(self.shedder)

    @property
    def budget_us(self) -> float:
        """What one batch may take."""
        return 1000.0 * self.trigger_ms * self.headroom
