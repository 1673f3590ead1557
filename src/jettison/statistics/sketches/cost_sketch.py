"""Paired Count-Min matrices: how often keys came (F) and how long they took (W), in memory that does not grow.

Both have the same size and the same hash functions (LAS 3.1). Every tuple adds 1 to one cell of F in every row, and its
duration to the same cell of W. With `columns` = e / epsilon and `rows` = ln(1 / delta), a key's smallest cell of F is
above its true count by no more than epsilon x all tuples, with a probability of 1 - delta; of W likewise.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.columns.xxhash64 import Hashes
from jettison.statistics.sketches.cost_table import CostTable
from jettison.statistics.sketches.sealed_content import name_of, opened, sealed
from jettison.statistics.sketches.universal import HashFunctions

Cells = NDArray[np.int64]

_MAGIC = b"jettison cost sketch 1\n"
_NS = 1000.0
"""Durations are given in microseconds and added up in whole nanoseconds: sums do not depend on their order."""
_MOST_NS = 2**53
"""Sums of one update are exact up to here, 104 days."""


def sketch_size(epsilon: float, delta: float) -> tuple[int, int]:
    """(rows, columns) by which counts are off by at most `epsilon` of all tuples, with a probability of 1 - `delta`.

    The seed's figure 1 has epsilon .70 and delta .25:

    >>> sketch_size(0.70, 0.25), sketch_size(0.05, 0.02), sketch_size(0.01, 0.02)
    ((2, 4), (4, 55), (4, 272))
    """
    for word, share in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise NetworkError(f"sketch: {word} is {share!r}: give a number between 0 and 1, such as 0.01.")
    return max(1, math.ceil(math.log(1 / delta))), math.ceil(math.e / epsilon)


@dataclass(frozen=True, eq=False)
class CostSketch:
    """F (`counts`) and W (`nanoseconds`), a value: `plus` gives a new one.

    >>> keys = np.array([11, 22], np.uint64)  # hashes, as key_hash gives them
    >>> sketch = CostSketch.empty(rows=2, columns=50).updated(keys[[0, 0, 1]], np.array([100.0, 300.0, 40.0]))
    >>> sketch.tuples, sketch.work_us, sketch.mean_us
    (3, 440.0, 146.66666666666666)
    >>> sketch.table.costs_us(np.array([11, 22, 33], np.uint64)).round(1)  # the third key was never seen
    array([200. ,  40. , 146.7])
    """

    functions: HashFunctions
    counts: Cells
    nanoseconds: Cells

    def __post_init__(self) -> None:
        shape = (self.functions.rows, self.functions.columns)
        if self.counts.shape != shape or self.nanoseconds.shape != shape:
            raise NetworkError(
                f"sketch: matrices of {self.counts.shape} and {self.nanoseconds.shape} cells for functions of {shape}."
            )
        for cells in (self.counts, self.nanoseconds):
            cells.setflags(write=False)

    @classmethod
    def empty(cls, rows: int, columns: int, seed: int = 0) -> CostSketch:
        """A sketch of nothing, of this size."""
        functions = HashFunctions(rows, columns, seed)
        return cls(functions, np.zeros((rows, columns), np.int64), np.zeros((rows, columns), np.int64))

    def updated(self, keys: Hashes, durations_us: NDArray[np.float64]) -> CostSketch:
        """With tuples of these keys, given by their hashes, that took so long each."""
        return self._with(keys, None, durations_us)

    def counted(self, keys: Hashes, counts: Cells, totals_us: NDArray[np.float64]) -> CostSketch:
        """With so many tuples of each of these keys, which took so long together: groups that were timed as one."""
        return self._with(keys, None if (counts == 1).all() else counts, totals_us)

    def _with(self, keys: Hashes, counts: Cells | None, totals_us: NDArray[np.float64]) -> CostSketch:
        if not len(keys) == len(totals_us) or (counts is not None and len(counts) != len(keys)):
            raise NetworkError(f"sketch: {len(keys)} keys with other numbers of counts, or {len(totals_us)} durations.")
        f, w = self.counts.copy(), self.nanoseconds.copy()
        columns, whole = self.functions.columns, 0.0
        for block, places in self.functions.blocks(keys):
            nanoseconds = np.rint(_NS * np.asarray(totals_us[block], np.float64))
            whole += float(nanoseconds.sum())
            if not (nanoseconds.min() >= 0 and whole < _MOST_NS):  # NaN is neither
                raise NetworkError("sketch: durations must be finite, not below 0, and of less than 104 days together.")
            for row, at in enumerate(places):
                f[row] += np.bincount(at, None if counts is None else counts[block], columns).astype(np.int64)
                w[row] += np.bincount(at, nanoseconds, columns).astype(np.int64)
        return replace(self, counts=f, nanoseconds=w)

    def plus(self, other: CostSketch) -> CostSketch:
        """Both together: as if one had seen the tuples of both."""
        if other.functions != self.functions:
            raise NetworkError(f"sketches of {self.functions} and of {other.functions} cannot be added.")
        return replace(self, counts=self.counts + other.counts, nanoseconds=self.nanoseconds + other.nanoseconds)

    @property
    def tuples(self) -> int:
        """How many tuples it has seen."""
        return int(self.counts[0].sum())

    @property
    def work_us(self) -> float:
        """How long they took together."""
        return int(self.nanoseconds[0].sum()) / _NS

    @property
    def mean_us(self) -> float:
        """What a tuple took on average; 0 where none came."""
        return self.work_us / self.tuples if self.tuples else 0.0

    @property
    def epsilon(self) -> float:
        """Counts are above the truth by at most this share of all tuples, with a probability of 1 - `delta`."""
        return math.e / self.functions.columns

    @property
    def delta(self) -> float:
        return math.exp(-self.functions.rows)

    @cached_property
    def ratios_us(self) -> NDArray[np.float64]:
        """W / F, cell by cell; 0 where nothing came: the seed's snapshot."""
        seen = np.maximum(self.counts, 1)
        return np.where(self.counts > 0, self.nanoseconds / seen / _NS, 0.0)

    @cached_property
    def table(self) -> CostTable:
        """What keys cost, to be looked up."""
        return CostTable.of(self.functions, self.counts, self.ratios_us, self.mean_us)

    def counts_of(self, keys: Hashes) -> Cells:
        """The smallest cell of F of each key: never below its true count."""
        return self._least(self.counts, keys)

    def totals_us_of(self, keys: Hashes) -> NDArray[np.float64]:
        """The smallest cell of W of each key: never below its true total."""
        return self._least(self.nanoseconds, keys) / _NS

    def _least(self, cells: Cells, keys: Hashes) -> Cells:
        places = self.functions.places(keys)
        least: Cells = np.min([cells[row][at] for row, at in enumerate(places)], axis=0)
        return least

    @cached_property
    def name(self) -> str:
        """What it is called: a hash of all that it holds. Equal sketches have equal names."""
        return name_of(self._content)

    def to_bytes(self) -> bytes:
        """All that it holds, with its name as the checksum."""
        return sealed(_MAGIC, self._content)

    @classmethod
    def from_bytes(cls, written: bytes) -> CostSketch:
        """The sketch that was written so; raises PlanError where a byte is not as it was written."""
        head, _, cells = opened(_MAGIC, written).partition(b"\n")
        functions = HashFunctions(**json.loads(head))
        f, w = np.frombuffer(cells, "<i8").astype(np.int64).reshape(2, functions.rows, functions.columns)
        return cls(functions, f.copy(), w.copy())

    @property
    def _content(self) -> bytes:
        functions: dict[str, Any] = {
            "rows": self.functions.rows,
            "columns": self.functions.columns,
            "seed": self.functions.seed,
        }
        cells = np.stack([self.counts, self.nanoseconds]).astype("<i8")
        return json.dumps(functions).encode() + b"\n" + cells.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostSketch) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        size = f"{self.functions.rows} x {self.functions.columns}"
        return f"<cost sketch {self.name[:8]}, {size}: {self.tuples:,} tuples, {self.mean_us:,.1f} us each>"
