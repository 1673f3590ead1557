"""One segment of records: a gzip file with one line per batch, whose header says when it was written.

Segments can be joined as bytes: the result is one again. The first member of a joined segment is empty, and its header
has the time of the newest part.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

HEADER_BYTES = 8
"""So many bytes of a segment tell when it was written."""
DAMAGE = (ValueError, OSError, EOFError, zlib.error)
"""What reading a damaged segment raises."""

_SEGMENT = re.compile(r"(\d+)-(\d+)\.jsonl\.gz")
_LINE = re.compile(r'\{"batch": (\d+), "at_ms": (\d+), "content": (.*)\}')
_GZIP = b"\x1f\x8b\x08"


def is_segment(name: str) -> bool:
    """Whether a file has the name of a segment."""
    return _SEGMENT.fullmatch(name) is not None


def segment_name(batch: int, size: int) -> str:
    """The segment that a batch belongs to.

    >>> segment_name(10_234, 100), segment_name(10_234, 10_000)
    ('10200-10299.jsonl.gz', '10000-19999.jsonl.gz')
    """
    first = batch // size * size
    return f"{first}-{first + size - 1}.jsonl.gz"


def header_s(now_ms: float) -> int:
    """A time as the header of gzip has it: whole seconds, never before the time itself; 0 says nothing.

    >>> header_s(1_700_000_000_001.0)
    1700000001
    """
    return min(math.ceil(now_ms / 1000), 2**32 - 1)


def written_s(head: bytes) -> int:
    """When a segment was written, by its header; 0 where that does not tell.

    >>> written_s(gzip.compress(b"", mtime=1_700_000_001)), written_s(b"no gzip")
    (1700000001, 0)
    """
    found: tuple[int] = struct.unpack("<I", head[4:8]) if len(head) >= 8 and head.startswith(_GZIP) else (0,)
    return found[0]


def is_whole(packed: bytes) -> bool:
    """Whether a segment can be read to its end."""
    try:
        with gzip.open(io.BytesIO(packed)) as content:
            while content.read(1_000_000):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return bool(packed)


def parts_of(line: str) -> re.Match[str]:
    """A line of a segment: batch, when it was put there, content."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"a line is no record: {line[:60]!r}")
    return found


def content_of(line: str) -> Any:
    return json.loads(parts_of(line)[3])


def bounds(name: str) -> tuple[int, int]:
    """First and last batch of a segment."""
    found = _SEGMENT.fullmatch(name)
    assert found is not None
    return int(found[1]), int(found[2])


def line_of(batch: int, now_ms: float, content: Any) -> str:
    """A record as a line.

    >>> content_of(line_of(7, 1.5, {"rows": 5}))
    {'rows': 5}
    """
    return json.dumps({"batch": batch, "at_ms": round(now_ms), "content": content})


def packed_lines(lines: Iterable[str], now_ms: float) -> bytes:
    """A segment of lines."""
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=header_s(now_ms))


def joined_segments(parts: Sequence[bytes]) -> bytes:
    """One segment of several, as they are. Its time is that of the newest, or unknown if that of any part is.

    >>> parts = [packed_lines([line_of(batch, 9000.0, "?")], 1000.0 * batch) for batch in (7, 8)]
    >>> [batch for batch, _ in numbered(joined_segments(parts))], written_s(joined_segments(parts))
    ([7, 8], 8)
    """
    times_s = [written_s(part) for part in parts]
    newest_s = max(times_s, default=0) if all(times_s) else 0
    return b"".join([gzip.compress(b"", mtime=newest_s), *parts])


def numbered(packed: bytes) -> Iterator[tuple[int, str]]:
    """Batch and line, one by one. Only who reads to the end knows that the segment is whole."""
    if not packed:
        raise ValueError("it is empty")
    with gzip.open(io.BytesIO(packed), "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            whole = line.rstrip("\n")
            yield int(parts_of(whole)[1]), whole
