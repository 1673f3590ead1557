"""A limit for one call of a user's function: it runs in a Python worker, and a batch must not wait for it for ever.

A timer asks every now and then how long the call has been running, and raises in its midst when that is too long. So a
call costs nothing more. Code in C that never comes back to Python cannot be raised in: then the worker is ended, Spark
tries the task again, and the run ends with the reason.
"""

from __future__ import annotations

import faulthandler
import signal
import threading
from contextlib import suppress
from time import perf_counter_ns
from types import FrameType, TracebackType

_TICKS = 4
_LONGEST_TICK_S = 1.0
_STUCK_LIMITS = 2.0
_STDERR = 2


class TookTooLong(BaseException):
    """A call was ended. Functions that catch every Exception do not catch this."""


class TimeLimit:
    """Watches the calls of one task; `began_ns` is when the call that is running began, 0 where none is.

    >>> with TimeLimit(0.05) as limit:
    ...     try:
    ...         limit.began_ns = perf_counter_ns()
    ...         while True: pass
    ...     except TookTooLong:
    ...         print("ended")
    ended
    """

    def __init__(self, limit_s: float) -> None:
        self.began_ns = 0
        self._limit_s = limit_s
        self._before: object = None
        self._armed = False

    def __enter__(self) -> TimeLimit:
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
            self._before = signal.signal(signal.SIGALRM, self._tick)
            tick_s = min(_LONGEST_TICK_S, self._limit_s / _TICKS)
            self._alive()
            signal.setitimer(signal.ITIMER_REAL, tick_s, tick_s)
            self._armed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, self._before if callable(self._before) else signal.SIG_DFL)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if self.began_ns and perf_counter_ns() - self.began_ns > 1e9 * self._limit_s:
            raise TookTooLong  # whoever catches even this, again and again, is not alive: the worker's end draws near
        self._alive()

    def _alive(self) -> None:
        """Put the end of the worker off: Python still runs."""
        with suppress(OSError, ValueError, RuntimeError):  # where nothing can be written to
            faulthandler.dump_traceback_later(_STUCK_LIMITS * self._limit_s + _LONGEST_TICK_S, exit=True, file=_STDERR)
