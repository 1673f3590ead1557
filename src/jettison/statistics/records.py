"""What a batch reads of its sources, and what became of records that it does not: one value, from reading to report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Offsets = Mapping[str, Mapping[str, int]]
"""By topic and partition, the offset of the next record."""


@dataclass(frozen=True)
class Records:
    """By source: `rows` that are read; of Kafka also records that are `gone`, the topics' identities (`ids`), the range
    that is read where that is not Spark's own (`begins`, `ends`: a topic made anew, records passed over), how many
    records are `skipped` unread, and how many of those because they are `stale`.
    """

    rows: Mapping[str, int]
    gone: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    begins: Mapping[str, Offsets] = field(default_factory=dict)
    ends: Mapping[str, Offsets] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    stale: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Rows of all sources."""
        return sum(self.rows.values())
