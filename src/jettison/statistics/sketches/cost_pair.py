"""The published pair: what plans look costs up in, with what the newest matrices have not seen.

Matrices start anew when a pair is published (LAS 3.1), and a key whose tuples are dropped is not executed: the next
pair would not know it. So a cell in which nothing was counted is taken over from the pair before, and its age says how
many pairs ago something was counted there. Of a key's cells the oldest is looked at, and the one with the smallest
count of these: a younger cell belongs to other keys, for all cells of a key are as young as its last tuple.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jettison.errors import NetworkError
from jettison.network.columns.xxhash64 import Hashes
from jettison.statistics.sketches.cost_sketch import Cells, CostSketch
from jettison.statistics.sketches.cost_table import CostTable
from jettison.statistics.sketches.sealed_content import name_of, opened, sealed
from jettison.statistics.sketches.universal import HashFunctions

_MAGIC = b"jettison cost pair 1\n"


@dataclass(frozen=True, eq=False)
class CostPair:
    """Cells, newest or taken over, with their `ages` in pairs; `mean_us` is what a key costs that was never seen.

    >>> keys = np.array([11, 22], np.uint64)  # hashes, as key_hash gives them
    >>> empty = CostSketch.empty(rows=2, columns=50)
    >>> first = CostPair.of(empty.updated(keys, np.array([100.0, 900.0])))
    >>> second = CostPair.of(empty.updated(keys[:1], np.array([120.0])), first, mean_us=500.0)
    >>> second.table.costs_us(np.array([11, 22, 33], np.uint64))  # 22 was not executed any more, 33 never
    array([120., 900., 500.])
    """

    cells: CostSketch
    ages: Cells
    mean_us: float

    def __post_init__(self) -> None:
        if self.ages.shape != self.cells.counts.shape:
            raise NetworkError(f"cost pair: ages of {self.ages.shape} cells for counts of {self.cells.counts.shape}.")
        self.ages.setflags(write=False)

    @classmethod
    def of(cls, sketch: CostSketch, before: CostPair | None = None, mean_us: float | None = None) -> CostPair:
        """A sketch, with what the pair before it knew of cells that it has not seen. The mean is the sketch's own,
        unless a better one is given: of tuples that were dropped it knows nothing."""
        mean_us = sketch.mean_us if mean_us is None else mean_us
        ages = np.zeros(sketch.counts.shape, np.int64)
        if before is None:
            return cls(sketch, ages, mean_us)
        if before.functions != sketch.functions:
            raise NetworkError(f"cost pair: {sketch.functions} cannot take over cells of {before.functions}.")
        unseen = sketch.counts == 0
        counts = np.where(unseen, before.cells.counts, sketch.counts)
        nanoseconds = np.where(unseen, before.cells.nanoseconds, sketch.nanoseconds)
        ages = np.where(unseen & (counts > 0), before.ages + 1, 0)
        return cls(CostSketch(sketch.functions, counts, nanoseconds), ages, mean_us)

    @property
    def functions(self) -> HashFunctions:
        return self.cells.functions

    @cached_property
    def table(self) -> CostTable:
        """What keys cost, to be looked up."""
        return CostTable.of(self.functions, self.cells.counts, self.cells.ratios_us, self.mean_us, self.ages)

    def counts_of(self, keys: Hashes) -> Cells:
        """How many tuples are in the cell that a key's cost is looked up in."""
        by_rank: Cells = self.cells.counts.reshape(-1)[np.argsort(self.table.ranks, axis=None)]
        return by_rank[self.table.ranks_of(keys)]

    def error_on(self, sketch: CostSketch) -> float:
        """How far what tuples took is from what this pair expects of as many, cell by cell, as a share of it.

        >>> keys = np.array([11, 22], np.uint64)
        >>> first, second = (CostSketch.empty(1, 50).updated(keys, np.array(us)) for us in ([10.0, 90.0], [90.0, 10.0]))
        >>> CostPair.of(first).error_on(first), CostPair.of(first).error_on(second)
        (0.0, 1.6)
        """
        each_us = np.where(self.cells.counts > 0, self.cells.ratios_us, self.mean_us)
        took_us = np.where(sketch.counts > 0, sketch.counts * sketch.ratios_us, 0.0)
        whole_us = float(took_us.sum())
        return float(np.abs(took_us - sketch.counts * each_us).sum()) / whole_us if whole_us > 0 else 0.0

    @cached_property
    def name(self) -> str:
        """What it is called: a hash of all that it holds. Equal pairs have equal names."""
        return name_of(self._content)

    def to_bytes(self) -> bytes:
        """All that it holds, with its name as the checksum."""
        return sealed(_MAGIC, self._content)

    @classmethod
    def from_bytes(cls, written: bytes) -> CostPair:
        """The pair that was written so; raises PlanError where a byte is not as it was written."""
        head, _, numbers = opened(_MAGIC, written).partition(b"\n")
        given = json.loads(head)
        mean_us, functions = given.pop("mean_us"), HashFunctions(**given)
        counts, nanoseconds, ages = (
            np.frombuffer(numbers, "<i8").astype(np.int64).reshape(3, functions.rows, functions.columns)
        )
        return cls(CostSketch(functions, counts.copy(), nanoseconds.copy()), ages.copy(), mean_us)

    @property
    def _content(self) -> bytes:
        functions = self.functions
        head = {"rows": functions.rows, "columns": functions.columns, "seed": functions.seed, "mean_us": self.mean_us}
        numbers = np.stack([self.cells.counts, self.cells.nanoseconds, self.ages]).astype("<i8")
        return json.dumps(head).encode() + b"\n" + numbers.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostPair) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        size = f"{self.functions.rows} x {self.functions.columns}"
        return f"<cost pair {self.name[:8]}, {size}: {self.cells.tuples:,} tuples, {self.mean_us:,.1f} us each>"
