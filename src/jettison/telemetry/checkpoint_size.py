"""Watch how large a checkpoint is, in a thread of its own: to walk a tree after every batch would take too long."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

EVERY_S = 60.0


class SizeWatch:
    """Looks at once and then every minute, until it is closed; a look that fails is left out."""

    def __init__(self, look: Callable[[], tuple[int, int]], show: Callable[[int, int], None]) -> None:
        self._look = look
        self._show = show
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="jettison-checkpoint-size", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def _watch(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # a size is no reason to end a run, and the next look may succeed
                self._show(*self._look())
            if self._closing.wait(EVERY_S):
                return
