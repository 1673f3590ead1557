"""Spark's own files in a checkpoint, looked at before Spark reads them: its errors name neither file nor remedy.

checkpoint/spark/metadata     the identity of the query
checkpoint/spark/offsets/7    up to where batch 7 reads its sources: "v1", a line of JSON, a line for each source
checkpoint/spark/commits/7    written when batch 7 has ended: "v1", a line of JSON

Only the identity and the newest record of each kind are read, however old the run is.
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
    """Refuse a checkpoint of Spark's whose identity or newest records cannot be read."""
    offsets = _newest(folder, "offsets")
    if offsets is None:  # nothing has run yet
        return
    _check(folder, "metadata", "the identity of the query", _identity_fault(folder))
    _check(folder, f"offsets/{offsets}", f"the offsets of batch {offsets}", _log_fault(folder, f"offsets/{offsets}", 3))
    commits = _newest(folder, "commits")
    if commits is not None:
        _check(folder, f"commits/{commits}", f"the end of batch {commits}", _log_fault(folder, f"commits/{commits}", 2))


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
        lines = (folder.read(name) or "").splitlines()
    except ValueError:  # no text at all
        return "is damaged (it is no text)"
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
