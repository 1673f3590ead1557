"""The time by which records grow old: it goes on only while a run runs, and never jumps.

It begins with the wall clock at the first start, and goes on from the newest record at every other. So a clock that is
set, or wrong after a restart, makes no record older, and neither does the time in which the network is down: after an
outage of a week the records of the week before are still there.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class RunClock:
    """Milliseconds that begin as those of the wall clock. `newest_ms` tells the time of the newest record (None: there
    is none), and is asked once, when the time is wanted first."""

    def __init__(self, newest_ms: Callable[[], float | None]) -> None:
        self._newest_ms = newest_ms
        self._started_s = time.monotonic()
        self._begin_ms: float | None = None

    def now_ms(self) -> float:
        if self._begin_ms is None:
            newest_ms = self._newest_ms()
            self._begin_ms = 1000 * time.time() if newest_ms is None else newest_ms
            self._started_s = time.monotonic()
        return self._begin_ms + 1000 * (time.monotonic() - self._started_s)
