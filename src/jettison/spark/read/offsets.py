"""How many rows a batch has, known before it runs: Spark has written the offsets of the batch to its checkpoint.

Offsets count rows for the generator ({"rows": n}), for Spark's `rate-micro-batch` ({"offset": n}) and for Kafka
({"topic": {"partition": n}}). For any other source the answer is None, and the rows are counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from jettison.spark.checkpoint.small_files import Folder
from jettison.statistics.records import Offsets


def end_offsets(folder: Folder, batch: int) -> tuple[str, ...]:
    """Up to where a batch reads each source, as Spark writes it; Spark itself forgets it after a hundred batches."""
    text = folder.read(f"offsets/{batch}")
    return () if text is None else tuple(text.splitlines()[2:])


def batch_offsets(folder: Folder, batch: int, sources: int) -> list[tuple[Any, Any]] | None:
    """From where to where a batch reads each source, in the order of the stream's sources; None where that is unknown.

    Before the first batch nothing is known but what Spark's Kafka source wrote down when it began.
    """
    end = _offsets(folder, batch)
    start = _offsets(folder, batch - 1) if batch > 0 else [_initial(folder, index) for index in range(sources)]
    if end is None or start is None or len(end) != sources or len(start) != sources:
        return None
    started = [before if before is not None else _initial(folder, index) for index, before in enumerate(start)]
    return list(zip(started, end, strict=True))


def batch_rows(folder: Folder, batch: int, sources: int) -> list[int] | None:
    """Rows per source of a batch; None where the offsets do not tell."""
    counts = [rows_between(*each) for each in batch_offsets(folder, batch, sources) or [(None, "unknown")]]
    return None if any(count is None for count in counts) else [count for count in counts if count is not None]


def rows_between(start: Any, end: Any, *, micro_rate: bool = False) -> int | None:
    """Rows between two offsets of one source; `micro_rate`: it is Spark's `rate-micro-batch`.

    >>> made = {"rows": 12, "start_us": 1}
    >>> rows_between({"rows": 5, "start_us": 1}, made), rows_between(None, made)
    (7, 12)
    >>> pages = {"offset": 100, "timestamp": 1000}, {"offset": 200, "timestamp": 2000}
    >>> rows_between(*pages, micro_rate=True), rows_between(*pages)
    (100, None)
    >>> rows_between({"t": {"0": 10, "1": 4}}, {"t": {"0": 15, "1": 4}}), rows_between(None, {"t": {"0": 15}})
    (5, None)
    """
    if end is None:
        return 0
    if not isinstance(end, dict):
        return None
    counts = "rows" if set(end) == {"rows", "start_us"} else "offset" if micro_rate else None
    if counts is not None:
        return int(end[counts]) - (int(start[counts]) if isinstance(start, dict) else 0)
    if start is None or not (is_kafka(start) and is_kafka(end)):
        return None
    return kafka_batch(start, end).rows


def is_kafka(offsets: Any) -> bool:
    """Whether these are Kafka's offsets."""
    return isinstance(offsets, dict) and all(
        isinstance(partitions, dict) and all(isinstance(offset, int) for offset in partitions.values())
        for partitions in offsets.values()
    )


@dataclass(frozen=True)
class KafkaBatch:
    """What a batch reads from Kafka: from where to where, by topic and partition.

    `gone` records were to be read and are in Kafka no more. Topics in `anew` were deleted and made again, those in
    `shorter` have lost their newest records (a leader that lagged took over).
    """

    begins: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    gone: int = 0
    anew: frozenset[str] = frozenset()
    shorter: frozenset[str] = frozenset()

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Rows by topic and partition."""
        return {
            topic: {number: end - self.begins[topic][number] for number, end in partitions.items()}
            for topic, partitions in self.ends.items()
        }

    @property
    def rows(self) -> int:
        return sum(sum(partitions.values()) for partitions in self.sizes.values())


def kafka_batch(
    start: Offsets,
    end: Offsets,
    earliest: Offsets | None = None,
    latest: Offsets | None = None,
    anew: frozenset[str] = frozenset(),
) -> KafkaBatch:
    """What a batch reads, from offsets alone: what Kafka still has of it, and how much it has no more.

    A partition that is new begins at its first record. A topic that was made anew is read from its first record to its
    last, at most to `end`: Spark's offsets may still be those of the old one.

    >>> kafka_batch({"t": {"0": 10}}, {"t": {"0": 15, "1": 4}}).sizes
    {'t': {'0': 5, '1': 4}}
    >>> batch = kafka_batch({"t": {"0": 10}}, {"t": {"0": 50}}, earliest={"t": {"0": 30}})
    >>> batch.rows, batch.gone
    (20, 20)
    >>> batch = kafka_batch({"t": {"0": 10}}, {"t": {"0": 70}}, latest={"t": {"0": 7}}, anew=frozenset({"t"}))
    >>> batch.rows, batch.ends
    (7, {'t': {'0': 7}})
    >>> kafka_batch({"t": {"0": 10}}, {"t": {"0": 7}}).shorter
    frozenset({'t'})
    """
    begins: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    shorter: set[str] = set()
    gone = 0
    for topic, partitions in end.items():
        first, before = (earliest or {}).get(topic, {}), start.get(topic, {})
        last = (latest or {}).get(topic, {}) if topic in anew else {}
        begins[topic], ends[topic] = {}, {}
        for number, asked in partitions.items():
            until = min(asked, last.get(number, asked))
            held = min(first.get(number, 0), until)
            wanted = held if topic in anew or number not in before else before[number]
            if wanted > until:
                shorter.add(topic)
                wanted = until
            gone += max(0, held - wanted)
            begins[topic][number], ends[topic][number] = max(wanted, held), until
    return KafkaBatch(begins, ends, gone, anew & frozenset(end), frozenset(shorter))


def _initial(folder: Folder, index: int) -> Any:
    """Where Spark's Kafka source began, which it writes down before its first batch; None for other sources."""
    text = folder.read(f"sources/{index}/0")
    lines = [] if text is None else text.lstrip("\0").splitlines()
    return _parsed(lines[1]) if len(lines) == 2 and lines[0] == "v1" else None


def _offsets(folder: Folder, batch: int) -> list[Any] | None:
    text = folder.read(f"offsets/{batch}")
    if text is None or not text.startswith("v1"):
        return None
    lines = text.splitlines()[2:]
    parsed = [None if line == "-" else _parsed(line) for line in lines]
    return None if any(each is None and line != "-" for each, line in zip(parsed, lines, strict=True)) else parsed


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
