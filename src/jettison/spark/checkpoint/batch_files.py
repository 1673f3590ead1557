"""A record per batch, in one folder whose number of files is bounded: old records are put together, then deleted.

plans/10234.json             the record of one batch, with its checksum (`sealed`)
plans/10100-10199.jsonl.gz   a segment: one line for each of a hundred batches
plans/0-9999.jsonl.gz        a hundred segments as one

A segment is complete before the files that it replaces are deleted, and a reader looks at single files first. So a
crash in between leaves a record in two places, with the same content, and readers give it once. A segment has the
checksum of gzip, and its header says when the segment was written, so its age is known from the first 8 bytes. Where a
batch is found follows from its number: nothing is listed to read a record.

Tidying must not take longer, or hold more, the older a run gets. A large segment is made of small ones as they are
(gzip files joined are a gzip file), and only while it stays below MOST_JOINED_BYTES. Segments are deleted oldest first,
and the first that is young enough ends the search.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jettison.errors import CheckpointError
from jettison.options.retention import Retention
from jettison.spark.checkpoint.sealed import damaged, load, read_sealed, write_sealed
from jettison.spark.checkpoint.segments import (
    DAMAGE,
    HEADER_BYTES,
    bounds,
    content_of,
    is_segment,
    is_whole,
    joined_segments,
    line_of,
    numbered,
    packed_lines,
    parts_of,
    segment_name,
    written_s,
)
from jettison.spark.checkpoint.small_files import Folder

SEGMENT = 100
LARGE_SEGMENT = 10_000
MARGIN = 20
"""So many of the newest batches stay single files: only the last one is ever repeated."""
MOST_JOINED_BYTES = 16_000_000
"""Small segments that are larger than this together stay as they are: joining them would take memory and time."""

_SINGLE = re.compile(r"(\d+)\.json")
_log = logging.getLogger(__name__)


class BatchFiles:
    """Records by batch below `below`. `what` and `remedy` are the words for a damaged one ({batch} is filled in)."""

    def __init__(self, folder: Folder, below: str, what: str, remedy: str) -> None:
        self._folder = folder
        self._below = below
        self._what = what
        self._remedy = remedy
        self._written_ms: dict[str, float | None] = {}  # of segments, by name: read once
        self._left_alone: set[str] = set()  # large segments of which no more is made

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
            found = None
            for number, line in self._numbered(segment_name(batch, size)):  # to the end: the checksum is there
                found = line if number == batch else found
            if found is not None:
                return content_of(found)
        return None

    def before(self, batch: int) -> Iterator[Any]:
        """The records of batches before this one, the newest first, up to the first that has none. A segment is read
        once, however many of its records are asked for."""
        segments: dict[str, dict[int, str]] = {}
        for number in range(batch - 1, -1, -1):
            content = self._alone(number)
            if content is None:
                names = [segment_name(number, size) for size in (SEGMENT, LARGE_SEGMENT)]
                segments = {name: segments[name] if name in segments else self._lines(name) for name in names}
                line = next((lines[number] for lines in segments.values() if number in lines), None)
                if line is None:
                    return
                content = content_of(line)
            yield content

    def batches(self) -> list[int]:
        """All batches that have a record."""
        singles, segments = self._found()
        return sorted({*singles, *(batch for name in segments for batch, _ in self._numbered(name))})

    def newest(self) -> int | None:
        """The newest batch whose record has a file of its own, as those of the last batches have."""
        return max(self._found()[0], default=None)

    def contents(self) -> Iterator[tuple[int, Any]]:
        """All records, by batch. Single files are read first: one that vanishes meanwhile is in a segment by then."""
        singles, segments = self._found()
        starts = {batch // LARGE_SEGMENT * LARGE_SEGMENT for batch in singles}
        starts |= {bounds(name)[0] // LARGE_SEGMENT * LARGE_SEGMENT for name in segments}
        for start in sorted(starts):
            inside = range(start, start + LARGE_SEGMENT)
            alone = {batch: self._alone(batch) for batch in singles if batch in inside}
            here = {name for name in segments if bounds(name)[0] in inside}
            here |= {segment_name(batch, SEGMENT) for batch, content in alone.items() if content is None}
            lines: dict[int, str] = {}
            for name in (*sorted(here), segment_name(start, LARGE_SEGMENT)):
                lines |= self._lines(name)
            for batch in sorted({*lines, *(each for each, content in alone.items() if content is not None)}):
                content = alone.get(batch)
                yield batch, content_of(lines[batch]) if content is None else content

    def newest_ms(self) -> float | None:
        """When the newest record was written, by what it says itself (`at_ms`), or by the last segment."""
        singles, segments = self._found()
        try:
            content = self._alone(singles[-1]) if singles else None
        except CheckpointError:  # named when it is needed
            content = None
        if isinstance(content, dict) and isinstance(content.get("at_ms"), int):
            return float(content["at_ms"])
        return self._last_ms(segments[-1]) if segments else None

    def tidy(self, newest: int, retention: Retention, now_ms: float) -> None:
        """Put old records together, and delete those that are older than the retention."""
        for _ in self.steps(newest, retention, now_ms):
            pass

    def steps(self, newest: int, retention: Retention, now_ms: float) -> Iterator[int | None]:
        """Do the same step by step: whoever stops in between leaves what a crash would. A step takes one file, or a
        few small ones, and gives the last batch of the segment that it deleted, or None."""
        singles, segments = self._found()
        for name in sorted({segment_name(batch, SEGMENT) for batch in singles}):
            first, last = bounds(name)
            if last <= newest - MARGIN:
                batches = [batch for batch in singles if first <= batch <= last]
                yield from self._put_together(name, batches, now_ms, segments)
        left: list[str] = []
        for name in self._expired(sorted(set(segments), key=bounds), newest, retention, now_ms, left):
            self._delete(name)
            yield bounds(name)[1]
        for name in sorted({segment_name(bounds(each)[0], LARGE_SEGMENT) for each in left} - self._left_alone):
            first, last = bounds(name)
            small = [each for each in left if each != name and first <= bounds(each)[0] <= last]
            if last <= newest - MARGIN and small:
                yield from self._join(name, small)

    def _put_together(self, name: str, batches: Iterable[int], now_ms: float, segments: list[str]) -> Iterator[None]:
        """Make a segment of single files, and add its name to `segments`."""
        try:
            lines, done = self._lines(name), []
        except CheckpointError as error:  # those that it lacks stay beside it, for whoever restores it
            _log.warning("%s", error)
            return
        for batch in batches:
            try:
                text = read_sealed(self._folder, self._single(batch))
                content = None if text is None else _of_batch(batch, json.loads(text))
            except ValueError as error:  # it stays where it is, for whoever asks for it
                _log.warning("%s", damaged(self._folder, self._single(batch), self._what, error, ""))
                continue
            if content is not None:
                lines[batch] = line_of(batch, now_ms, content)
                done.append(batch)
            yield
        if not done:  # they are damaged, all of them
            return
        self._write_lines(name, lines, now_ms)
        segments.append(name)
        for batch in done:
            yield
            self._folder.delete(self._single(batch))

    def _join(self, name: str, small: Sequence[str]) -> Iterator[None]:
        """Make a large segment of small ones, as they are. Those that a crash has left are in it already."""
        size = 0
        for each in (name, *small):
            size += self._folder.size(f"{self._below}/{each}")
            if size > MOST_JOINED_BYTES:
                self._left_alone.add(name)
                return
            yield
        before = self._folder.read_bytes(f"{self._below}/{name}")
        parts, joined = [] if before is None else [before], []
        for each in small:
            packed = self._folder.read_bytes(f"{self._below}/{each}") or b""
            if not is_whole(packed):  # it would spoil the others
                self._left_alone.add(name)
                continue
            if before is None or packed not in before:
                parts.append(packed)
            joined.append(each)
            yield
        if before is not None and not is_whole(before):
            self._left_alone.add(name)
            return
        self._write_bytes(name, joined_segments(parts))
        for each in joined:
            yield
            self._delete(each)

    def _expired(
        self, segments: Sequence[str], newest: int, retention: Retention, now_ms: float, left: list[str]
    ) -> Iterator[str]:
        """Segments to delete, oldest first; the others are added to `left`."""
        for number, name in enumerate(segments):
            written_ms = now_ms if retention.ms is None else self._last_ms(name)
            unknown = written_ms is None or written_ms > now_ms  # damaged, or the clock was wrong: it tells nothing
            if written_ms is not None and retention.expired(bounds(name)[1], written_ms, newest, now_ms):
                # the header has no checksum, the lines have one: they are asked before anything is deleted
                last_ms = written_ms if retention.ms is None else self._last_line_ms(name)
                if last_ms is not None and retention.expired(bounds(name)[1], last_ms, newest, now_ms):
                    yield name
                else:
                    left.append(name)
            elif unknown:
                left.append(name)
            else:
                left.extend(segments[number:])
                return

    def _last_ms(self, name: str) -> float | None:
        """When a segment was written. None for a damaged one, which is kept for whoever asks for it."""
        if name not in self._written_ms:
            header_ms = 1000.0 * written_s(self._folder.head(f"{self._below}/{name}", HEADER_BYTES) or b"")
            self._written_ms[name] = header_ms or self._last_line_ms(name)
        return self._written_ms[name]

    def _last_line_ms(self, name: str) -> float | None:
        """The same by its lines, where the header does not tell: that of segments from before it did."""
        last = None
        try:
            for _, line in self._numbered(name):
                last = line
        except CheckpointError as error:
            _log.warning("%s", error)
            return None
        return None if last is None else float(parts_of(last)[2])

    def _delete(self, name: str) -> None:
        self._folder.delete(f"{self._below}/{name}")
        self._written_ms.pop(name, None)

    def _found(self) -> tuple[list[int], list[str]]:
        """Batches with a file of their own, and names of segments. Other files are not ours."""
        names = self._folder.names(self._below)
        singles = [int(found[1]) for found in map(_SINGLE.fullmatch, names) if found]
        return sorted(singles), sorted(filter(is_segment, names), key=bounds)

    def _alone(self, batch: int) -> Any:
        remedy, what = self._remedy.format(batch=batch), f"{self._what} of batch {batch}"
        content = load(self._folder, self._single(batch), what, remedy)
        try:
            return None if content is None else _of_batch(batch, content)
        except ValueError as error:
            raise damaged(self._folder, self._single(batch), what, error, remedy) from error

    def _lines(self, name: str) -> dict[int, str]:
        """The lines of a segment, by batch; nothing where there is no such segment."""
        return dict(self._numbered(name))

    def _numbered(self, name: str) -> Iterator[tuple[int, str]]:
        """The same one by one, as they stand there. What a crash has left twice comes twice."""
        path, (first, last) = f"{self._below}/{name}", bounds(name)
        packed = self._folder.read_bytes(path)
        if packed is None:
            return
        try:
            for batch, line in numbered(packed):
                if not first <= batch <= last:
                    raise ValueError(f"it has batch {batch}")
                yield batch, line
        except DAMAGE as error:
            remedy = self._remedy.format(batch=f"{first} to {last}")
            raise damaged(self._folder, path, f"{self._what} of batches {first} to {last}", error, remedy) from error

    def _write_lines(self, name: str, lines: dict[int, str], now_ms: float) -> None:
        self._write_bytes(name, packed_lines((line for _, line in sorted(lines.items())), now_ms))

    def _write_bytes(self, name: str, packed: bytes) -> None:
        self._folder.write_bytes(f"{self._below}/{name}", packed)
        self._written_ms.pop(name, None)

    def _single(self, batch: int) -> str:
        return f"{self._below}/{batch}.json"


def _of_batch(batch: int, content: Any) -> Any:
    """A record that says of which batch it is, if it is of this one; ValueError if not."""
    inside = content.get("batch", content.get("entries", batch)) if isinstance(content, dict) else content
    if isinstance(inside, list):  # the ledger of earlier versions, whose entries say it
        inside = inside[0].get("batch", batch) if inside and isinstance(inside[0], dict) else batch
    if inside != batch:
        raise ValueError(f"it is that of batch {inside}")
    return content
