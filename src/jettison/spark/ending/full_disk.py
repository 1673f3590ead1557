"""A full disk, told by name: Spark writes to the checkpoint and to its temporary folders, and says neither."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from jettison.spark.checkpoint.small_files import local_place
from jettison.spark.error_text import full_disk_words

_LEAST_BYTES = 2**20


def full_disk(text: str, places: Mapping[str, str]) -> str | None:
    """What is full, and the remedy, where an error tells of a full disk; None where it does not. `places` has, by what
    it is, each folder that Spark may have written to. Where none of their disks is full any more, all are named.

    >>> full_disk("java.io.IOException: No space left on device", {"the checkpoint": "/dev/shm/none"})
    "No space left on device: make room on the disk of the checkpoint '/dev/shm/none'."
    >>> full_disk("no such table", {"the checkpoint": "/data/run"})
    """
    words = full_disk_words(text)
    if words is None:
        return None
    full = {what: path for what, path in places.items() if _is_full(path)} or places
    named = " or of ".join(f"{what} {path!r}" for what, path in full.items())
    return f"{words}: make room on the disk of {named}."


def _is_full(path: str) -> bool:
    place = local_place(path)
    try:
        return place is not None and shutil.disk_usage(place).free < _LEAST_BYTES
    except OSError:
        return False
