"""Spark's own files in a checkpoint, looked at before Spark reads them: its errors name neither file nor remedy.

checkpoint/spark/metadata     the identity of the query
checkpoint/spark/offsets/7    up to where batch 7 reads its sources: "v1", a line of JSON, a line for each source
checkpoint/spark/commits/7    written when batch 7 has ended: "v1", a line of JSON
checkpoint/spark/sources/0/7  files that source 0 has found: "v1", a line of JSON for each; 9.compact has all up to then

Only what Spark itself reads at a start is read, however old the run is.
"""

from __future__ import annotations

import json
import re

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.small_files import Folder

_VERSION = re.compile(r"v\d+")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHECKSUM = re.compile(r"Checksum error: (?:file:)?(\S+)")
_REMEDY = "Restore it from a copy, or start with a new checkpoint."


def check_spark_files(folder: Folder) -> None:
    """Refuse a checkpoint of Spark's whose identity or newest records cannot be read: of offsets the newest two, from
    and up to which the last batch reads, and of files all that were found since Spark last wrote them into one list."""
    offsets = _newest(folder, "offsets")
    if offsets is None:  # nothing has run yet
        return
    _check(folder, "metadata", "the identity of the query", _identity_fault(folder))
    for batch in range(max(0, offsets - 1), offsets + 1):
        _check(folder, f"offsets/{batch}", f"the offsets of batch {batch}", _log_fault(folder, f"offsets/{batch}", 3))
    commits = _newest(folder, "commits")
    if commits is not None:
        _check(folder, f"commits/{commits}", f"the end of batch {commits}", _log_fault(folder, f"commits/{commits}", 2))
    ends = (folder.read(f"offsets/{offsets}") or "").splitlines()[2:]
    for index, end in enumerate(ends):
        found = _json(end)
        if isinstance(found, dict) and set(found) == {"logOffset"}:
            last = found["logOffset"]
            fault = None if isinstance(last, int) else f"is damaged (its logOffset {last!r} is no number)"
            _check(folder, f"offsets/{offsets}", f"the offsets of batch {offsets}", fault)
            _check_files(folder, index, last)


def _check_files(folder: Folder, index: int, last: int) -> None:
    """Check which files a source has found, up to number `last`."""
    below = f"sources/{index}"
    names = set(folder.names(below))
    lists = [int(name.removesuffix(".compact")) for name in names if name.removesuffix(".compact").isdigit()]
    whole = max((each for each in lists if f"{each}.compact" in names), default=-1)
    needed = [f"{whole}.compact"] if whole >= 0 else []
    needed += [str(each) for each in range(whole + 1, max([last, *lists]) + 1)]
    for name in needed:
        fault = _list_fault(folder, f"{below}/{name}")
        _check(folder, f"{below}/{name}", f"the files that source {index} has found", fault)


def _list_fault(folder: Folder, name: str) -> str | None:
    try:
        text = folder.read(name)
    except ValueError:
        return "is damaged (it is no text)"
    if text is None:
        return "is gone"
    lines = text.lstrip("\0").splitlines()
    if not lines or not _VERSION.fullmatch(lines[0].strip()):
        return "is damaged (its first line is no version)"
    entries = lines[-1:] if name.endswith(".compact") else lines[1:]  # the whole list may be long
    return None if all(isinstance(_json(each), dict) for each in entries) else "is damaged (a line is no JSON)"


def _newest(folder: Folder, below: str) -> int | None:
    return max((int(name) for name in folder.names(below) if name.isdigit()), default=None)


def _check(folder: Folder, name: str, what: str, fault: str | None) -> None:
    if fault is not None:
        raise CheckpointError(f"checkpoint: {what}, Spark's file {folder.path}/{name}, {fault}. {_REMEDY}")


def _identity_fault(folder: Folder) -> str | None:
    try:
        return _metadata_fault(folder.read("metadata"))
    except ValueError:
        return "is damaged (it is no text)"


def _metadata_fault(text: str | None) -> str | None:
    """
    >>> _metadata_fault('{"id": "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}'), _metadata_fault(None)
    (None, 'is gone')
    >>> _metadata_fault('{"id": "4f'), _metadata_fault("{}")
    ('is damaged (it is no JSON)', 'is damaged (it has no id)')
    """
    if text is None:
        return "is gone"
    found = _json(text)
    if not isinstance(found, dict):
        return "is damaged (it is no JSON)"
    return None if _ID.fullmatch(str(found.get("id"))) else "is damaged (it has no id)"


def checksum_fault(text: str) -> CheckpointError | None:
    """The error for a file whose checksum Spark found to be wrong; None where its words tell of none.

    >>> print(checksum_fault("Checksum error: file:/cp/spark/offsets/3 at 0 exp: 1 got: 2"))
    checkpoint: Spark's file /cp/spark/offsets/3 is damaged (its checksum differs). Restore it from a copy, or start...
    >>> checksum_fault("no such table")
    """
    found = _CHECKSUM.search(text)
    if found is None:
        return None
    return CheckpointError(f"checkpoint: Spark's file {found[1]} is damaged (its checksum differs). {_REMEDY}")


def _log_fault(folder: Folder, name: str, least_lines: int) -> str | None:
    try:
        text = folder.read(name)
    except ValueError:  # no text at all
        return "is damaged (it is no text)"
    if text is None:
        return "is gone"
    lines = text.splitlines()
    if not lines or not _VERSION.fullmatch(lines[0].strip()):
        return "is damaged (its first line is no version)"
    if len(lines) < least_lines:
        return f"is damaged (it has {len(lines)} lines of {least_lines})"
    return None if isinstance(_json(lines[1]), dict) else "is damaged (its second line is no JSON)"


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
