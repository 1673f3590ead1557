"""Waiting for Spark to get going, so that what is timed after it does not depend on how long that takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from jettison.spark.run.run import Run

_MOST_S = 60.0


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for it, a minute at most: the experiment goes on then, and shows what there is."""
    deadline = time.monotonic() + _MOST_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)


def first_batch(running: Run) -> None:
    """Wait until a batch with rows has been processed; what the run raises is raised here."""
    batches(running, 1)


def batches(running: Run, count: int) -> None:
    """Wait until so many batches with rows have been processed; what the run raises is raised here."""
    wait_until(
        lambda: (
            sum(any(sample.rows_in.values()) for sample, _ in list(running.history)) >= count
            or running.await_termination(timeout=0.01)
        )
    )
