"""Whether a batch is underway, and on which thread: what is closed after it must wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Underway:
    """Batches of one run, one after another.

    >>> underway = Underway()
    >>> with underway.batch():
    ...     print(underway.on_this_thread, underway.wait_until_idle(0.0))
    True False
    >>> underway.on_this_thread, underway.wait_until_idle(0.0)
    (False, True)
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: int | None = None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """While a batch is underway."""
        with self._changed:
            self._thread = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    @property
    def on_this_thread(self) -> bool:
        """Whether whoever asks is called by a batch, such as a listener or a sink."""
        return self._thread == threading.get_ident()

    def wait_until_idle(self, timeout_s: float | None) -> bool:
        """Wait until no batch is underway; False when that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout=timeout_s)

    def when_idle(self, act: Callable[[], object]) -> None:
        """Do something on a thread of its own as soon as no batch is underway, however long that takes."""

        def wait_and_act() -> None:
            self.wait_until_idle(None)
            act()

        threading.Thread(target=wait_and_act, name="jettison-hangs", daemon=True).start()
