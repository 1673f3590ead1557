"""How long a batch may take before rows are dropped: its budget, or more where dropping them would be for nothing.

Costs that are not believed yet (`statistics.belief`) allow more. So does a fixed part that fills the budget by itself:
no drop brings such a batch within its budget, so nothing is shed and the run says so. Batches then take as long as they
take, and that is stable while rows cost less time than they take to arrive. When they cost more, every batch would be
longer than the one before, for ever: then rows are shed until they take as long as the fixed part does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jettison.plan.reasons import NOT_BELIEVED
from jettison.plan.refine.worthwhile import fixed_is_too_much

CANNOT_HELP = "shedding cannot help"


@dataclass(frozen=True)
class Allowance:
    """`budget_us` for a batch, why that is more than the usual one, and whether the usual one is out of reach."""

    budget_us: float
    reason: str | None = None
    infeasible: str | None = None


def allowance(*, fixed_us: float, arriving_us: float, budget_us: float, patience: float = 1.0) -> Allowance:
    """What a batch may take; `arriving_us` is the work of the rows of one interval, the fixed part left out.

    >>> allowance(fixed_us=0.2e6, arriving_us=3e6, budget_us=0.9e6)
    Allowance(budget_us=900000.0, reason=None, infeasible=None)
    >>> allowance(fixed_us=0.2e6, arriving_us=3e6, budget_us=0.9e6, patience=2.0).budget_us
    1800000.0
    >>> allowance(fixed_us=2.2e6, arriving_us=0.2e6, budget_us=0.9e6).budget_us  # takes 2.4 s, and stays so
    inf
    >>> allowance(fixed_us=2.2e6, arriving_us=0.2e6, budget_us=0.9e6).infeasible.partition("shed. ")[2]
    'Use a trigger 3.1 times as long or longer, fewer outputs or more cores.'
    >>> allowance(fixed_us=2.2e6, arriving_us=3e6, budget_us=0.9e6).budget_us  # would grow and grow
    4400000.0
    """
    if patience > 1:
        return Allowance(patience * budget_us, NOT_BELIEVED)
    if not fixed_is_too_much(fixed_us, budget_us):
        return Allowance(budget_us)
    why = f"the fixed cost of a batch is {fixed_us / 1000:.0f} ms of a budget of {budget_us / 1000:.0f} ms"
    if arriving_us <= budget_us:
        times = fixed_us / min(0.8 * budget_us, max(budget_us - arriving_us, 0.1 * budget_us))
        remedy = f"Use a trigger {times:.1f} times as long or longer, fewer outputs or more cores."
        return Allowance(math.inf, CANNOT_HELP, f"{why}: no drop can save that, so nothing is shed. {remedy}")
    remedy = f"Use a trigger {2 * fixed_us / budget_us:.1f} times as long or longer, and fewer outputs or more cores."
    return Allowance(
        2 * fixed_us,
        CANNOT_HELP,
        f"{why}, and rows alone cost more time than they take to arrive: they are shed until they take as long as the "
        f"fixed part. {remedy}",
    )
