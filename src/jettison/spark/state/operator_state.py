"""What every operator with state does in a batch, whatever it keeps: one protocol for joins and all kinds of windows.

A run opens its states for a batch, hands each the rows that come to its operators, and gets their results as frames.
When all outputs are written, states are committed. A batch that fails is closed without that, and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.network.operators import Operator
from jettison.plan.plan import Plan
from jettison.spark.compile.arriving import Arriving
from jettison.statistics.samples import Measured


@dataclass(frozen=True)
class OpenedBatch:
    """A batch that begins: its number, the session of its frames, its plan, how many rows it reads, how far windows of
    time have got before it (None where there are none), and the SQL of `_sic` by output that has lost something."""

    number: int
    session: SparkSession
    plan: Plan
    rows: int
    marks: BatchMarks | None = None
    sic: Mapping[str, str] = field(default_factory=dict)


class Progress:
    """How far event times have got with a batch, shed rows included; looked up when the first state asks for it, for
    rows must have been looked at by then."""

    def __init__(self, graph: Graph, newest_us: Callable[[], Mapping[str, int]], marks: BatchMarks | None) -> None:
        self.graph = graph
        self._look = newest_us
        self._marks = marks

    @cached_property
    def newest_us(self) -> Mapping[str, int]:
        """By place above windows and joins of streams, the newest event time of this batch."""
        return self._look()

    def open_us(self, aggregate: str) -> int | None:
        """When the next result of an aggregate begins."""
        return None if self._marks is None else self._marks.open_us(aggregate)


@dataclass(frozen=True)
class StateMeasured:
    """What the state of a batch tells: its part of the sample; rows by aggregate, late ones and those without event
    time included; the most rows without event time that came to one group; the newest event time of all rows."""

    sample: Measured = field(default_factory=Measured)
    came: Mapping[str, int] = field(default_factory=dict)
    timeless: int = 0
    newest_us: int | None = None


class BatchState(Protocol):
    """The state of some operators in one batch."""

    @property
    def quiet(self) -> frozenset[str]:
        """Operators that give nothing in this batch, as far as is known: some know when they have seen their rows."""
        ...

    def outside(self, name: str, of: Collection[str]) -> str:
        """The condition, in SQL, that is true for rows of an operator that are left out and counted as such, whether
        its expressions fail on them or not; `of` are the operators that get the same rows. Empty where there are
        none."""
        ...

    def take(self, operator: Operator, arriving: Arriving) -> None:
        """Begin to keep what comes to an operator, and to operators that share its state."""
        ...

    def frames(self, operator: Operator) -> Mapping[str, DataFrame]:
        """The results of an operator in this batch, once it has taken its rows, and of those that share its state."""
        ...

    def most_rows(self, name: str) -> int | None:
        """How many results an operator has in this batch at most, once it has its frames; None where nobody knows."""
        ...

    def commit(self, progress: Progress) -> None:
        """Wait until everything is kept, and say so in the log."""
        ...

    def measured(self) -> StateMeasured:
        """What was counted, when the batch is committed."""
        ...

    def close(self) -> None:
        """End what still runs: nothing of a failed batch may write on while it is repeated."""
        ...


class OperatorState(Protocol):
    """What some operators of a network keep in the checkpoint."""

    @property
    def operators(self) -> frozenset[str]:
        """The operators whose state this is."""
        ...

    def open(self, batch: OpenedBatch) -> BatchState:
        """The state in one batch, as the batches before have left it."""
        ...

    def close(self) -> None:
        """End its threads."""
        ...
