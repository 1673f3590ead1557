"""ARE we overloaded: the load of this batch and of the recent past, against the budget (thesis 3.3).

Two loads are compared with what one trigger interval can take (headroom x interval): that of the batch at hand,
known before it runs, and that of the arrival rate, smoothed. A batch that is too large while the rate is not is a
leftover of a delay, not an overload: it passes as long as it stays within `tolerance` budgets. What was measured has
the last word: when batches that were predicted to fit ran over all the same, twice in a row, that is an overload too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Judgement:
    """`overloaded`, why, and by how many microseconds the batch exceeds its budget."""

    overloaded: bool
    reason: str
    excess_us: float


class Detector:
    """Keeps what a judgement needs from batch to batch.

    >>> detector = Detector(tolerance=1.25)
    >>> detector.judge(batch_us=1.1e6, arriving_us=0.6e6, budget_us=0.9e6).reason
    'a single large batch'
    >>> detector.judge(batch_us=1.1e6, arriving_us=1.0e6, budget_us=0.9e6)
    Judgement(overloaded=True, reason='overload', excess_us=200000.0)
    """

    def __init__(self, *, tolerance: float = 1.25, confirmations: int = 2) -> None:
        self._tolerance = tolerance
        self._confirmations = confirmations
        self._late = 0
        self._overrun_us = 0.0

    def judge(self, *, batch_us: float, arriving_us: float, budget_us: float) -> Judgement:
        """`batch_us`: the work of the batch, nothing shed; `arriving_us`: that of one interval at the smoothed rate,
        queue load included."""
        excess_us = batch_us - budget_us
        if excess_us > 0 and (arriving_us > budget_us or batch_us > self._tolerance * budget_us):
            return Judgement(True, "overload", excess_us)
        if self._late >= self._confirmations and max(batch_us, arriving_us) > 0.9 * budget_us:
            return Judgement(True, "measured late", max(excess_us, self._overrun_us))
        return Judgement(
            False, "a single large batch" if excess_us > 0 else "predicted within budget", max(excess_us, 0.0)
        )

    def confirm(self, *, measured_us: float, budget_us: float) -> None:
        """Tell how long the batch took in the end."""
        self._late = self._late + 1 if measured_us > budget_us else 0
        self._overrun_us = measured_us - budget_us
