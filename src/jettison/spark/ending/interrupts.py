"""Ctrl-C while a program waits for a run: noticed between two looks, not in the middle of a call to the JVM.

PySpark's own handler cancels all jobs at once, and Python's breaks off the call that waits: both end in the traces of a
batch that failed. Handlers of the program itself are left alone.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noticed_interrupts() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one interrupts at once.

    >>> with noticed_interrupts() as interrupted:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupted.is_set()
    True
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread() or not _is_default(signal.getsignal(signal.SIGINT)):
        yield interrupted
        return

    def notice(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, notice)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _is_default(handler: object) -> bool:
    """Whether a handler is that of Python or of PySpark."""
    module = str(getattr(handler, "__module__", ""))
    return handler is signal.default_int_handler or module.startswith("pyspark.")
