"""When batches begin: at an interval, or one after the other until all data that is there has been read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from jettison.control.catch_up import ALL, NEWEST
from jettison.errors import NetworkError, StartError
from jettison.network.durations import duration_ms
from jettison.options.shedding import Shedding

AVAILABLE_NOW = "available now"
NOMINAL_MS = 10_000.0
"""Without an interval there is no budget. Batches are bounded as if they had this one."""


@dataclass(frozen=True)
class Trigger:
    """How often a batch begins.

    "1 second" begins a batch every second. "available now" works through all data that is there when the run starts,
    closes the windows that the watermark allows, and ends. Its batches are bounded, of Kafka and `jt.generate`; of
    files only by Spark's own `maxFilesPerTrigger`.
    """

    interval_ms: float
    available_now: bool = False

    @classmethod
    def of(cls, text: str) -> Trigger:
        """From what `jt.start` got as `trigger`.

        >>> Trigger.of("2 seconds"), Trigger.of("available now").available_now
        (Trigger(interval_ms=2000.0, available_now=False), True)
        >>> Trigger.of("soon")
        Traceback (most recent call last):
        jettison.errors.StartError: trigger is 'soon': write a duration, such as '1 second', or 'available now'.
        """
        if re.sub(r"[^a-z]", "", text.lower()) == "availablenow":  # Spark writes availableNow
            return cls(NOMINAL_MS, available_now=True)
        try:
            return cls(duration_ms(text, "trigger"))
        except NetworkError:
            raise StartError(
                f"trigger is {text!r}: write a duration, such as '1 second', or {AVAILABLE_NOW!r}."
            ) from None

    def shedding(self, asked: Shedding) -> Shedding:
        """How the run sheds: not at all when it works through what is there, for nothing has to be in time.

        >>> Trigger.of("available now").shedding(Shedding()).mode
        'off'
        """
        if not self.available_now:
            return asked
        if asked.is_dry_run:
            raise StartError(
                f"trigger={AVAILABLE_NOW!r} sheds nothing, so there is nothing to try: give shedding='dry-run' an "
                f"interval, such as trigger='1 second'."
            )
        if asked.catch_up == NEWEST:
            raise StartError(
                f"trigger={AVAILABLE_NOW!r} reads all data, and catch_up='newest' skips the oldest: leave one of them "
                f"out."
            )
        return replace(asked, mode="off", catch_up=ALL)
