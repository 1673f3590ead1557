"""Time as the loop sees it: by the clock, or, for plans that depend on rows alone, by counting batches.

With `learn=False` the same rows must get the same plans. So there a batch stands for one trigger interval, however long
it took; `plan.shedders.rest` does the same for building road maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jettison.statistics.estimators import Smoothed

_RATE_WEIGHT = 0.5


class ArrivalRates:
    """Smoothed arrival rate of each source; the first batch teaches nothing, for nobody knows since when it waited.

    >>> by_clock = ArrivalRates(["trips"], trigger_ms=1000.0, by_clock=True)
    >>> by_rows = ArrivalRates(["trips"], trigger_ms=1000.0, by_clock=False)
    >>> for rates in (by_clock, by_rows):
    ...     rates.update({"trips": 900}, now_ms=0.0)
    ...     rates.update({"trips": 900}, now_ms=3000.0)
    >>> by_clock.get(), by_rows.get()
    ({'trips': 300.0}, {'trips': 900.0})
    """

    def __init__(self, sources: Iterable[str], trigger_ms: float, *, by_clock: bool) -> None:
        self._rates = {name: Smoothed(_RATE_WEIGHT) for name in sources}
        self._trigger_ms = trigger_ms
        self._by_clock = by_clock
        self._previous_ms: float | None = None

    def update(self, rows: Mapping[str, float], now_ms: float) -> None:
        """Learn from a batch of `rows` that is planned now."""
        if self._previous_ms is not None:
            interval_ms = now_ms - self._previous_ms if self._by_clock else self._trigger_ms
            for name, rate in self._rates.items() if interval_ms > 0 else ():
                rate.update(1000 * rows.get(name, 0) / interval_ms)
        self._previous_ms = now_ms

    def known(self) -> dict[str, float]:
        """Rows per second of the sources of which something is known."""
        return {name: known for name, rate in self._rates.items() if (known := rate.get()) is not None}

    def restore(self, rows_per_s: Mapping[str, float]) -> None:
        """Go on from what was known before a restart; how long ago that was is not known."""
        self._rates = {name: Smoothed(_RATE_WEIGHT, rows_per_s.get(name)) for name in self._rates}
        self._previous_ms = None if self._by_clock else 0.0

    def get(self) -> dict[str, float]:
        """Rows per second, by source; 0 where nothing is known yet."""
        return {name: rate.get() or 0.0 for name, rate in self._rates.items()}
