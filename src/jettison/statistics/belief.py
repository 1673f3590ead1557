"""Whether costs are believed: what calibration measured counts only after real batches have confirmed it.

A machine that is busy or cold when costs are measured makes them look many times dearer than they are (`read_us` of
1,417 us was seen where 1 us is usual). Rows that are dropped for such costs are dropped for nothing. So costs that were
measured just now are on trial, batch by batch:

    no batch yet     nothing is shed
    one batch        a batch may take twice its budget: costs count half
    two batches that took between half and twice the predicted time, or three whatever they took: costs are believed

A batch that took less than half of its predicted time corrects the costs at once (`CostModel.lower`), so that the third
batch is planned with the lowest of what was measured. Batches that ran before costs were known count as well, except
those that ran while costs were measured. Costs that the user gives, and those that an earlier run has kept in the
checkpoint, are believed from the start.
"""

from __future__ import annotations

import math

_FACTOR = 2.0
_CONFIRMATIONS = 2
_MOST_BATCHES = 3


class Belief:
    """Counts the batches of a trial.

    >>> belief = Belief(believed=False)
    >>> belief.patience, belief.believed
    (inf, False)
    >>> belief.update(predicted_ms=40_000.0, measured_ms=400.0)  # measured on a cold machine
    True
    >>> belief.update(predicted_ms=400.0, measured_ms=420.0), belief.patience
    (False, 2.0)
    >>> belief.update(predicted_ms=400.0, measured_ms=390.0), belief.patience, belief.believed
    (False, 1.0, True)
    """

    def __init__(self, *, believed: bool) -> None:
        self.believed = believed
        self._batches = 0
        self._confirmed = 0

    @property
    def patience(self) -> float:
        """How many times its budget a batch may take before rows are dropped."""
        if self.believed:
            return 1.0
        return _FACTOR if self._batches else math.inf

    def update(self, predicted_ms: float, measured_ms: float) -> bool:
        """Take one batch into account. True when its time says that costs are too high."""
        if self.believed:
            return False
        too_high = measured_ms * _FACTOR < predicted_ms
        self._batches += 1
        self._confirmed += not too_high and measured_ms <= _FACTOR * predicted_ms
        self.believed = self._confirmed >= _CONFIRMATIONS or self._batches >= _MOST_BATCHES
        return too_high
