"""What Spark is asked once per run: names of columns, parsed expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.errors import CheckpointError
from jettison.spark.compile.drops import HIDDEN
from jettison.statistics.sketches.cost_pair import CostPair

T = TypeVar("T")

_MOST_PARSED = 2000
_LONG_TEXT = 4000


@dataclass
class ExpressionCache:
    """What does not change from batch to batch, so that Spark is asked once: names of columns, parsed expressions."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parsed: dict[str, Column] = field(default_factory=dict)
    careful: bool = False
    """Whether expressions are tried first, as one has failed on some row; see `spark.guard.careful`."""
    looked: dict[str, Any] = field(default_factory=dict)
    """What Spark's analysis says of operators' expressions; see `spark.guard.trying`."""
    cost_pair: Callable[[str], CostPair] = field(default=lambda name: _no_pair(name))
    """The published costs that a plan names; see `spark.checkpoint.cost_pairs`."""
    set_aside: dict[str, frozenset[int]] = field(default_factory=dict)
    """Identities of rows of this batch on which an operator's function fails; see `spark.guard.isolate`."""

    def columns(self, key: str, frame: DataFrame) -> tuple[str, ...]:
        if key not in self.names:
            self.names[key] = tuple(frame.columns)
        return self.names[key]

    def asked(self, name: str, find: Callable[[], T]) -> T:
        """What was found under a name, else what is found now."""
        if name not in self.looked:
            self.looked[name] = find()
        found: T = self.looked[name]
        return found

    def hidden(self, key: str, frame: DataFrame) -> list[str]:
        return [column for column in HIDDEN if column in self.columns(key, frame)]

    def expression(self, item: object) -> Column:
        """A SQL string as a Column, parsed once; a Column as it is."""
        if not isinstance(item, str):
            return item  # type: ignore[return-value]  # a Column, as declared
        if len(item) > _LONG_TEXT:
            return F.expr(item)  # shares of groups, which are others in every batch
        if len(self.parsed) > _MOST_PARSED:
            self.parsed.clear()  # conditions of plans come and go for as long as a run lasts
        if item not in self.parsed:
            self.parsed[item] = F.expr(item)
        return self.parsed[item]

    def select(self, frame: DataFrame, items: Iterable[object]) -> DataFrame:
        return frame.select(*map(self.expression, items))


def _no_pair(name: str) -> CostPair:
    raise CheckpointError(f"costs {name!r} are named by a plan, and there is no checkpoint to find them in.")
