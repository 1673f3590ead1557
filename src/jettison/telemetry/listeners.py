"""Listeners of a user: functions that are told of every batch, after the run's own views of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from jettison.errors import StartError
from jettison.telemetry.events import BatchEvent

Listener = Callable[[BatchEvent], None]

_log = logging.getLogger("jettison")


class Listeners:
    """Tells every listener of a batch, in the order in which they were added, on the thread of the batch.

    A listener that throws does not end the run: it is counted, the first time is logged, and it goes on being told.

    >>> from jettison.network import Network
    >>> from jettison.plan.plan import Plan
    >>> from jettison.statistics.samples import BatchSample
    >>> from jettison.telemetry.events import batch_event
    >>> net = Network("n"); _ = net.source("s", "x int").output("o")
    >>> event = batch_event(net.graph, BatchSample(3, 0.0, 1000.0, 80.0, {"s": 7}), Plan(), budget_ms=900.0)
    >>> listeners = Listeners()
    >>> listeners.add(lambda event: print(event.sample.batch, event.sample.rows_in))
    >>> listeners.tell(event)
    3 {'s': 7}
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._failed: list[Listener] = []
        self.failures = 0
        """How often a listener threw."""
        self._lock = threading.Lock()

    def add(self, listener: Listener) -> None:
        if not callable(listener):
            raise StartError(f"listener {listener!r} cannot be called: give a function that takes a BatchEvent.")
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def remove(self, listener: Listener) -> None:
        """Tell a listener no more; one that was never added is ignored."""
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each != listener)
            self._failed = [each for each in self._failed if each != listener]

    def tell(self, event: BatchEvent) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # whatever a user's function throws
                self.failures += 1
                if listener not in self._failed:
                    self._failed.append(listener)
                    name = getattr(listener, "__qualname__", type(listener).__qualname__)
                    _log.warning(
                        "network %s, batch %d: listener %s failed (%s: %s); the run goes on, and so does the listener.",
                        event.network,
                        event.sample.batch,
                        name,
                        type(error).__name__,
                        error,
                    )
