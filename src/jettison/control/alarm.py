"""A budget that is out of reach is said aloud: one warning when that begins, one line when it has ended, a count."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("jettison")
_CALM_BATCHES = 10
"""So many batches in a row must be feasible before it counts as over: plans at the edge take turns."""


class InfeasibleAlarm:
    """Counts the batches whose budget no plan can hold.

    >>> alarm = InfeasibleAlarm("taxi")
    >>> for infeasible in (None, "fixed cost", "fixed cost", None):
    ...     alarm.update(7, infeasible)
    >>> alarm.batches
    2
    """

    def __init__(self, network: str) -> None:
        self.batches = 0
        self._network = network
        self._calm = _CALM_BATCHES

    def update(self, batch: int, infeasible: str | None) -> None:
        """Take a batch into account; `infeasible` says why its budget cannot be held."""
        if infeasible is None:
            self._calm += 1
            if self._calm == _CALM_BATCHES and self.batches:
                _LOG.info("network %s, batch %d: the budget can be held again.", self._network, batch)
            return
        self.batches += 1
        if self._calm >= _CALM_BATCHES:
            _LOG.warning("network %s, batch %d cannot keep up: %s", self._network, batch, infeasible)
        self._calm = 0
