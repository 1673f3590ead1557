"""Closing a run: every part is closed, in order, whatever the others throw."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from jettison.spark.error_text import reason_of

_log = logging.getLogger("jettison")

Step = tuple[str, Callable[[], object]]
"""What is closed, in words that finish the sentence "... failed", and how."""


def close_all(steps: Iterable[Step]) -> list[Exception]:
    """Carry out all steps. What fails is logged in one line each and returned: it must hide no earlier cause.

    >>> done = []
    >>> def full():
    ...     raise OSError(28, "No space left on device")
    >>> errors = close_all([("saving the profile", full), ("releasing the lock", lambda: done.append("lock"))])
    >>> done, errors
    (['lock'], [OSError(28, 'No space left on device')])
    """
    errors: list[Exception] = []
    for what, step in steps:
        try:
            step()
        except Exception as error:  # a full disk, a JVM that is gone: nothing may keep the rest from being released
            errors.append(error)
            _log.warning("%s failed while the run was closed: %s", what, reason_of(error))
    return errors
