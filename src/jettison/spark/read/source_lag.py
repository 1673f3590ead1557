"""How far behind sources are, by Spark's own account of a batch: in rows, files or bytes, where a source tells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jettison.spark.read.offsets import rows_between
from jettison.statistics.arrival import SourceLag

_FILES = "numFilesOutstanding"
_BYTES = "numBytesOutstanding"


def source_lags(progress: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, SourceLag]:
    """By source, what waited after a batch; sources that do not tell are left out.

    A source tells how far it could have read (`latestOffset`), where its offsets count rows, or counts its files.

    >>> told = {"endOffset": '{"trips":{"0":70}}', "latestOffset": '{"trips":{"0":100}}', "metrics": {}}
    >>> silent = {"endOffset": "7", "latestOffset": None, "metrics": None}
    >>> source_lags({"sources": [told, silent]}, ["trips", "rides"])
    {'trips': SourceLag(rows=30, files=None, size_bytes=None)}
    """
    sources = (progress or {}).get("sources") or ()
    if len(sources) != len(names):
        return {}
    found = {name: _lag(each) for name, each in zip(names, sources, strict=True)}
    return {name: lag for name, lag in found.items() if lag != SourceLag()}


def _lag(source: Mapping[str, Any]) -> SourceLag:
    end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
    rows = None if end is None or latest is None else rows_between(end, latest)
    metrics = source.get("metrics") or {}
    files, size = (int(metrics[key]) if key in metrics else None for key in (_FILES, _BYTES))
    return SourceLag(None if rows is None else max(0, rows), files, size)


def _offset(text: Any) -> Any:
    """An offset as Spark's progress has it: JSON, as a text or read already."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None
