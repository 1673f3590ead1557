"""What one task tells beside its rows: what tuples took, how long they waited, and which rows were rejected.

It travels as one more row of the task's output, in a hidden column. An observation behind the map collects it, and a
filter takes the row away. So it arrives with the rows or not at all, needs no job of its own, and of a task that Spark
repeats only one report counts: reports are told apart by their partition.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.timed import NOTHING_WAITED, Waited

FAULT = "_jt_fault"
"""The column that says why a row is rejected; null where it is not."""
REPORT = "_jt_report"
"""The column of what a task tells, in a row of its own."""
MOST_NAMED = 100
"""So many rejected rows a task names; the others are found by running the function again."""


@dataclass(frozen=True)
class TaskReport:
    """`rejected` has the identities of rejected rows and the reasons, `unfit` is how many there are in all.

    >>> report = TaskReport(3, 2, unfit=1, rejected={7: "KeyError: 'x'"})
    >>> TaskReport.from_bytes(report.to_bytes()) == report
    True
    """

    partition: int
    rows: int
    unfit: int = 0
    rejected: dict[int, str] = field(default_factory=dict)
    waited: Waited = NOTHING_WAITED
    sketch: CostSketch | None = None
    keys: dict[int, str] = field(default_factory=dict)
    """Hashes of keys that came often or were dear, and the keys as text: a sketch does not know them."""

    @property
    def names_all(self) -> bool:
        """Whether every rejected row is named."""
        return len(self.rejected) == self.unfit

    def to_bytes(self) -> bytes:
        """As it travels; matrices are mostly empty, so they pack well."""
        waited = [self.waited.tuples, self.waited.total_us, self.waited.late]
        head = {"partition": self.partition, "rows": self.rows, "unfit": self.unfit, "waited": waited}
        head |= {"rejected": list(self.rejected.items()), "keys": list(self.keys.items())}
        cells = b"" if self.sketch is None else self.sketch.to_bytes()
        return zlib.compress(json.dumps(head).encode() + b"\n" + cells, level=1)

    @classmethod
    def from_bytes(cls, packed: bytes) -> TaskReport:
        text, _, cells = zlib.decompress(packed).partition(b"\n")
        head = json.loads(text)
        rejected, keys = dict(head.pop("rejected")), dict(head.pop("keys"))
        waited = Waited(*head.pop("waited"))
        sketch = CostSketch.from_bytes(cells) if cells else None
        return cls(**head, rejected=rejected, waited=waited, sketch=sketch, keys=keys)


def one_per_partition(packed: Iterable[bytes]) -> list[TaskReport]:
    """Reports by partition: what was computed twice, as an executor was lost, counts once."""
    found = [TaskReport.from_bytes(bytes(each)) for each in packed]
    return list({each.partition: each for each in found}.values())
