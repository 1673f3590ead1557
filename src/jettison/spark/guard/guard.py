"""Rows of one batch on which expressions and functions throw: they are taken out before their operator, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from jettison.network.operators import Aggregate, CountAggregate, Join, Operator, Union, kind_of
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.guard.careful import Rejecting, guarded, guarded_rows, split, tried_rows
from jettison.spark.guard.conversions import converted_inputs, joined_with_care
from jettison.spark.guard.isolate import is_set_aside
from jettison.spark.guard.trying import TRIED

Apply = Callable[[Operator, list[DataFrame]], DataFrame]


class Guard:
    """Guards the operators of one batch. `rejecting` has the rows that were taken out, by place."""

    def __init__(self, known: ExpressionCache, tables: Mapping[str, DataFrame], apply: Apply) -> None:
        self._known = known
        self._tables = tables
        self._apply = apply
        self.rejecting: dict[str, Rejecting] = {}

    def apply(self, operator: Operator, frames: list[DataFrame]) -> DataFrame:
        """An operator on its input frames; with care, without the rows on which its expressions throw."""
        if not self._known.careful:
            return self._apply(operator, frames)
        if isinstance(operator, Union):
            frames, refused = converted_inputs(operator, frames, self._known, lambda: self._apply(operator, frames))
            self.rejecting |= refused
            return self._apply(operator, frames)
        if isinstance(operator, Join):
            return self._join(operator, frames[0])
        safe, rows, rejecting = guarded(operator, frames[0], self._known)
        if rejecting is None:
            return self._apply(operator, frames)
        self.rejecting[operator.name] = rejecting
        return self._apply(safe, [rows, *frames[1:]]).drop(TRIED)

    def _join(self, join: Join, rows: DataFrame) -> DataFrame:
        plain = self._apply(join, [rows])
        made = joined_with_care(join, rows, self._tables[join.name], self._known)
        if made is None:
            return plain
        frame, rejecting = made
        if rejecting is not None:
            self.rejecting[join.name] = rejecting
        return frame

    def without_set_aside(self, operator: Operator, rows: DataFrame) -> DataFrame:
        """The rows without those on which the operator's function fails."""
        ids = self._known.set_aside.get(operator.name)
        if not ids:
            return rows
        reason = f"{kind_of(operator)} {operator.name!r} fails on it"
        kept, self.rejecting[f"{operator.name} (function)"] = split(rows, is_set_aside(ids), operator.name, reason)
        return kept

    def countable(self, aggregate: CountAggregate, rows: DataFrame) -> DataFrame:
        """The rows that windows of rows may count: with care, those on which no argument of the aggregate throws."""
        if not self._known.careful:
            return rows
        rows, rejecting = guarded_rows(aggregate, rows, self._known)
        if rejecting is not None:
            self.rejecting[aggregate.name] = rejecting
        return rows

    def tried(
        self,
        members: Sequence[Aggregate],
        rows: Mapping[tuple[str, ...], DataFrame],
        outside: Callable[[str, tuple[str, ...]], str],
    ) -> dict[tuple[str, ...], DataFrame] | None:
        """With care, the rows of aggregates that share slices, by those that get the same, with all arguments tried:
        all partials are computed of every frame. None where they are as they were. See `BatchState.outside`."""
        if not self._known.careful:
            return None
        found = {}
        for names, frame in rows.items():
            left_out = {name: outside(name, names) for name in names}
            found[names] = tried_rows(members, frame, names, self._known, left_out)
        tried = {names: each for names, each in found.items() if each is not None}
        if len(tried) < len(rows) or not rows:
            return None
        for _, rejecting in tried.values():
            self.rejecting |= rejecting
        return {names: frame for names, (frame, _) in tried.items()}
