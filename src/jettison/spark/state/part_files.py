"""The files of a part of state, as they were written: names, sizes and checksums, which stand in the sealed record.

Spark reads a folder for what is in it: a file that is missing is no row, a foreign one is more rows, and a flipped bit
in a page without a checksum is another value. So a part is compared with its record before the first time that a run
reads it. Only parts that are live are read, and their number follows from windows and bands, not from the run's age.
"""

from __future__ import annotations

from collections.abc import Iterable

from jettison.errors import CheckpointError
from jettison.network.event_time.join_retention import Part
from jettison.spark.checkpoint.small_files import Folder

PartFile = tuple[str, int, str]
"""The name of a file, its bytes, and its checksum ("" where its file system gives none)."""


def files_of(folder: Folder, below: str) -> tuple[PartFile, ...]:
    """The files of a part, in a folder below this one."""
    names = [name for name in folder.names(below) if not name.startswith("_")]
    return tuple((name, folder.size(f"{below}/{name}"), folder.checksum(f"{below}/{name}")) for name in names)


def fault_in(written: Iterable[PartFile], found: Iterable[PartFile]) -> str | None:
    """What is wrong with files, compared with those that were written; None where nothing is.

    >>> fault_in([("a", 5, "01")], []), fault_in([("a", 5, "01")], [("a", 5, "01"), ("b", 1, "02")])
    ("file 'a' is gone", "file 'b' is not of it")
    >>> fault_in([("a", 5, "01")], [("a", 4, "01")]), fault_in([("a", 5, "01")], [("a", 5, "02")])
    ("file 'a' has 4 bytes of 5", "the checksum of file 'a' does not match")
    """
    before, now = ({name: (size, checksum) for name, size, checksum in files} for files in (written, found))
    for name in sorted(set(before) | set(now)):
        if name not in now:
            return f"file {name!r} is gone"
        if name not in before:
            return f"file {name!r} is not of it"
        (size, checksum), (size_now, checksum_now) = before[name], now[name]
        if size != size_now:
            return f"file {name!r} has {size_now:,} bytes of {size:,}"
        if checksum and checksum_now and checksum != checksum_now:
            return f"the checksum of file {name!r} does not match"
    return None


def check_files(folder: Folder, element: str, below: str, part: Part) -> None:
    """Refuse to go on with a part that is not as it was written; `element` is whose it is."""
    fault = fault_in(part.files, files_of(folder, below))
    if fault is not None:
        raise damaged_part(element, f"{folder.path}/{below}", fault)


def damaged_part(element: str, path: str, fault: str) -> CheckpointError:
    """What to raise about a part that is not as it was written."""
    return CheckpointError(
        f"{element}: {path}, a part of what it keeps, is damaged ({fault}). Restore it from a copy, or start with a "
        f"new checkpoint: results would be wrong without it."
    )
