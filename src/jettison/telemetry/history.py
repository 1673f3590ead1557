"""The last batches of a run, sample and plan, in bounded memory."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, overload

from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample

MOST_BYTES = 32_000_000
MOST_BATCHES = 10_000

Entry = tuple[BatchSample, Plan]


class History(Sequence[Entry]):
    """Pairs of sample and plan, oldest first. The oldest are dropped when all together are larger than `most_bytes`.

    Any thread may read it while batches run: it then sees whole batches, in order.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_batches: int = MOST_BATCHES) -> None:
        self._entries: deque[tuple[Entry, int]] = deque()
        self._most_bytes = most_bytes
        self._most_batches = most_batches
        self._lock = threading.Lock()
        self.bytes = 0

    def append(self, entry: Entry) -> None:
        size = size_of(entry)
        with self._lock:
            self._entries.append((entry, size))
            self.bytes += size
            while len(self._entries) > 1 and (self.bytes > self._most_bytes or len(self._entries) > self._most_batches):
                self.bytes -= self._entries.popleft()[1]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        with self._lock:
            return iter([entry for entry, _ in self._entries])  # a copy: batches go on meanwhile

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return list(self)[index]
        with self._lock:
            return self._entries[index][0]


def size_of(value: Any) -> int:
    """Bytes that a value takes with all that is in it, about: what several values share is counted for each.

    >>> size_of([1.5] * 1000) > size_of([1.5] * 10) > size_of(())
    True
    """
    size = int(sys.getsizeof(value, 64))  # arrays of NumPy say what they hold
    if isinstance(value, str | bytes | int | float | None):
        return size
    if isinstance(value, Mapping):
        return size + sum(size_of(key) + size_of(each) for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return size + sum(map(size_of, value))
    if is_dataclass(value):
        return size + sum(size_of(getattr(value, each.name)) for each in fields(value))
    return size
