"""How many rows a batch has, known before it runs: Spark has written the offsets of the batch to its checkpoint.

Offsets count rows for the generator ({"rows": n}) and for Kafka ({"topic": {"partition": n}}). For any other source
the answer is None, and the rows are counted.
"""

from __future__ import annotations

import json
from typing import Any

from jettison.spark.files import Folder


def batch_rows(folder: Folder, batch: int, sources: int) -> list[int] | None:
    """Rows per source of a batch, in the order of the stream's sources; None where the offsets do not tell."""
    end = _offsets(folder, batch)
    start = _offsets(folder, batch - 1) if batch > 0 else [None] * sources
    if end is None or start is None or len(end) != sources or len(start) != sources:
        return None
    counts = [_between(before, after) for before, after in zip(start, end, strict=True)]
    return None if any(count is None for count in counts) else [count for count in counts if count is not None]


def end_offsets(folder: Folder, batch: int) -> tuple[str, ...]:
    """Up to where a batch reads each source, as Spark writes it; Spark itself forgets it after a hundred batches."""
    text = folder.read(f"offsets/{batch}")
    return () if text is None else tuple(text.splitlines()[2:])


def _offsets(folder: Folder, batch: int) -> list[Any] | None:
    text = folder.read(f"offsets/{batch}")
    if text is None or not text.startswith("v1"):
        return None
    lines = text.splitlines()[2:]
    try:
        return [None if line == "-" else json.loads(line) for line in lines]
    except json.JSONDecodeError:
        return None


def _between(start: Any, end: Any) -> int | None:
    """Rows between two offsets of one source.

    >>> _between({"rows": 5, "start_us": 1}, {"rows": 12, "start_us": 1}), _between(None, {"rows": 12, "start_us": 1})
    (7, 12)
    >>> _between({"trips": {"0": 10, "1": 4}}, {"trips": {"0": 15, "1": 4}}), _between(None, {"trips": {"0": 15}})
    (5, None)
    """
    if end is None:
        return 0
    if not isinstance(end, dict):
        return None
    if set(end) == {"rows", "start_us"}:
        return int(end["rows"]) - (int(start["rows"]) if start else 0)
    if start is None or not all(isinstance(partitions, dict) for partitions in (*end.values(), *start.values())):
        return None
    count = 0
    for topic, partitions in end.items():
        for partition, offset in partitions.items():
            before = start.get(topic, {}).get(partition)
            if before is None or not isinstance(offset, int):
                return None
            count += offset - before
    return count
