"""How long a road map is used before it is built anew, so that building takes a small share of the time.

Without a clock the same rows must get the same plans: then a batch stands for one trigger interval, however long it
took, and building for a millisecond per operator, whatever it took on this machine.
"""

from __future__ import annotations

from collections.abc import Callable

_REBUILD_TIME_SHARE = 0.005
_NOMINAL_MS_PER_OPERATOR = 1.0


class Rest:
    """How long a road map rests, so that building takes no more than half a percent of the time.

    >>> rest = Rest(operators=5, trigger_ms=1000.0, clock=None)
    >>> rest.end(rest.begin()); rest.over  # 5 ms of building: one second of rest
    False
    >>> rest.pass_batch(took_ms=10.0); rest.over
    True
    """

    def __init__(self, operators: int, trigger_ms: float, clock: Callable[[], float] | None) -> None:
        """`clock` gives seconds; without one batches are counted."""
        self._nominal_ms = _NOMINAL_MS_PER_OPERATOR * operators
        self._trigger_ms = trigger_ms
        self._clock = clock
        self._left_ms = 0.0

    @property
    def over(self) -> bool:
        return self._left_ms <= 0

    def pass_batch(self, took_ms: float) -> None:
        self._left_ms -= took_ms if self._clock is not None else self._trigger_ms

    def begin(self) -> float:
        return 0.0 if self._clock is None else self._clock()

    def end(self, began: float) -> None:
        took_ms = self._nominal_ms if self._clock is None else 1000 * (self._clock() - began)
        self._left_ms = took_ms / _REBUILD_TIME_SHARE
