"""A record per batch, in one folder whose number of files is bounded: old records are put together, then deleted.

plans/10234.json             the record of one batch, with its checksum (`sealed`)
plans/10100-10199.jsonl.gz   a segment: one line for each of a hundred batches
plans/0-9999.jsonl.gz        a hundred segments as one

A segment is complete before the files that it replaces are deleted, and a reader looks at single files first. So a
crash in between leaves a record in two places, with the same content, and readers give it once. A segment has the
checksum of gzip. Where a batch is found follows from its number: nothing is listed to read a record.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from jettison.errors import CheckpointError
from jettison.spark.files import Folder
from jettison.spark.retention import Retention
from jettison.spark.sealed import damaged, load, read_sealed, write_sealed

SEGMENT = 100
LARGE_SEGMENT = 10_000
MARGIN = 20
"""So many of the newest batches stay single files: only the last one is ever repeated."""

_SINGLE = re.compile(r"(\d+)\.json")
_SEGMENT = re.compile(r"(\d+)-(\d+)\.jsonl\.gz")
_LINE = re.compile(r'\{"batch": (\d+), "at_ms": (\d+), "content": (.*)\}')
_log = logging.getLogger(__name__)


class BatchFiles:
    """Records by batch below `below`. `what` and `remedy` are the words for a damaged one ({batch} is filled in)."""

    def __init__(self, folder: Folder, below: str, what: str, remedy: str) -> None:
        self._folder = folder
        self._below = below
        self._what = what
        self._remedy = remedy
        self._written_ms: dict[str, float] = {}  # of segments, by name: read once

    def where(self, batch: int) -> str:
        """The path of a batch's own file."""
        return f"{self._folder.path}/{self._single(batch)}"

    def write(self, batch: int, content: Any) -> None:
        write_sealed(self._folder, self._single(batch), json.dumps(content))

    def read(self, batch: int) -> Any:
        """The record of a batch; None where there is none."""
        alone = self._alone(batch)
        if alone is not None:
            return alone
        for size in (SEGMENT, LARGE_SEGMENT):
            line = self._lines(_segment(batch, size)).get(batch)
            if line is not None:
                return _content(line)
        return None

    def batches(self) -> list[int]:
        """All batches that have a record."""
        singles, segments = self._found()
        return sorted({*singles, *(batch for name in segments for batch in self._lines(name))})

    def contents(self) -> Iterator[tuple[int, Any]]:
        """All records, by batch. Single files are read first: one that vanishes meanwhile is in a segment by then."""
        singles, segments = self._found()
        starts = {batch // LARGE_SEGMENT * LARGE_SEGMENT for batch in singles}
        starts |= {_bounds(name)[0] // LARGE_SEGMENT * LARGE_SEGMENT for name in segments}
        for start in sorted(starts):
            inside = range(start, start + LARGE_SEGMENT)
            alone = {batch: self._alone(batch) for batch in singles if batch in inside}
            here = {name for name in segments if _bounds(name)[0] in inside}
            here |= {_segment(batch, SEGMENT) for batch, content in alone.items() if content is None}
            lines: dict[int, str] = {}
            for name in (*sorted(here), _segment(start, LARGE_SEGMENT)):
                lines |= self._lines(name)
            records = {batch: _content(line) for batch, line in lines.items()}
            records |= {batch: content for batch, content in alone.items() if content is not None}
            yield from sorted(records.items())

    def tidy(self, newest: int, retention: Retention, now_ms: float) -> None:
        """Put old records together, and delete those that are older than the retention."""
        singles, segments = self._found()
        for name in sorted({_segment(batch, SEGMENT) for batch in singles}):
            first, last = _bounds(name)
            if last <= newest - MARGIN:
                self._put_together(name, [batch for batch in singles if first <= batch <= last], now_ms)
                segments.append(name)
        segments = self._prune(sorted(set(segments), key=_bounds), newest, retention, now_ms)
        for name in sorted({_segment(_bounds(each)[0], LARGE_SEGMENT) for each in segments}):
            first, last = _bounds(name)
            small = [each for each in segments if each != name and first <= _bounds(each)[0] <= last]
            if last <= newest - MARGIN and small:
                self._merge(name, small)

    def _put_together(self, name: str, batches: Iterable[int], now_ms: float) -> None:
        lines, done = self._lines(name), []
        for batch in batches:
            try:
                text = read_sealed(self._folder, self._single(batch))
                content = None if text is None else json.loads(text)
            except ValueError as error:  # it stays where it is, for whoever asks for it
                _log.warning("%s", damaged(self._folder, self._single(batch), self._what, error, ""))
                continue
            if content is not None:
                lines[batch] = json.dumps({"batch": batch, "at_ms": round(now_ms), "content": content})
                done.append(batch)
        self._write_lines(name, lines)
        for batch in done:
            self._folder.delete(self._single(batch))

    def _merge(self, name: str, small: Iterable[str]) -> None:
        lines = self._lines(name)
        for each in small:
            lines |= self._lines(each)
        self._write_lines(name, lines)
        for each in small:
            self._delete(each)

    def _prune(self, segments: list[str], newest: int, retention: Retention, now_ms: float) -> list[str]:
        """The segments that are left, oldest first."""
        left = []
        for name in segments:
            if retention.expired(_bounds(name)[1], self._last_ms(name, now_ms), newest, now_ms):
                self._delete(name)
            else:
                left.append(name)
        return left

    def _last_ms(self, name: str, now_ms: float) -> float:
        """When the last record of a segment was put there; a damaged one is kept for whoever asks for it."""
        if name not in self._written_ms:
            try:
                times = [int(_parts(line)[2]) for line in self._lines(name).values()]
            except CheckpointError as error:
                _log.warning("%s", error)
                times = []
            self._written_ms[name] = max(times, default=now_ms)
        return self._written_ms[name]

    def _delete(self, name: str) -> None:
        self._folder.delete(f"{self._below}/{name}")
        self._written_ms.pop(name, None)

    def _found(self) -> tuple[list[int], list[str]]:
        """Batches with a file of their own, and names of segments. Other files are not ours."""
        names = self._folder.names(self._below)
        singles = [int(found[1]) for found in map(_SINGLE.fullmatch, names) if found]
        return sorted(singles), sorted(filter(_SEGMENT.fullmatch, names), key=_bounds)

    def _alone(self, batch: int) -> Any:
        remedy = self._remedy.format(batch=batch)
        return load(self._folder, self._single(batch), f"{self._what} of batch {batch}", remedy)

    def _lines(self, name: str) -> dict[int, str]:
        """The lines of a segment, by batch; nothing where there is no such segment."""
        path = f"{self._below}/{name}"
        packed = self._folder.read_bytes(path)
        if packed is None:
            return {}
        try:
            if not packed:
                raise ValueError("it is empty")
            text = gzip.decompress(packed).decode()
            return {int(_parts(line)[1]): line for line in text.splitlines()}
        except (ValueError, OSError, EOFError, zlib.error) as error:
            first, last = _bounds(name)
            remedy = self._remedy.format(batch=f"{first} to {last}")
            raise damaged(self._folder, path, f"{self._what} of batches {first} to {last}", error, remedy) from error

    def _write_lines(self, name: str, lines: dict[int, str]) -> None:
        text = "".join(f"{line}\n" for _, line in sorted(lines.items()))
        self._folder.write_bytes(f"{self._below}/{name}", gzip.compress(text.encode(), mtime=0))
        self._written_ms.pop(name, None)

    def _single(self, batch: int) -> str:
        return f"{self._below}/{batch}.json"


def _segment(batch: int, size: int) -> str:
    """The segment that a batch belongs to.

    >>> _segment(10_234, SEGMENT), _segment(10_234, LARGE_SEGMENT)
    ('10200-10299.jsonl.gz', '10000-19999.jsonl.gz')
    """
    first = batch // size * size
    return f"{first}-{first + size - 1}.jsonl.gz"


def _parts(line: str) -> re.Match[str]:
    """A line of a segment: batch, when it was put there, content."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"a line is no record: {line[:60]!r}")
    return found


def _content(line: str) -> Any:
    return json.loads(_parts(line)[3])


def _bounds(name: str) -> tuple[int, int]:
    """First and last batch of a segment."""
    found = _SEGMENT.fullmatch(name)
    assert found is not None
    return int(found[1]), int(found[2])
