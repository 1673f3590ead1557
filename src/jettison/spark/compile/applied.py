"""Operators without state as frames: each computes what it says of the rows that come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from jettison.errors import JettisonError, StartError
from jettison.network.columns.words import an
from jettison.network.import_paths import imported
from jettison.network.operators import Apply, Join, Operator, Select, Union, Where, WithColumns, kind_of
from jettison.spark.compile.drops import HIDDEN, IDENTITY, identity_of
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.error_text import reason_of


@dataclass(frozen=True)
class Applier:
    """Applies operators to frames. Rows of `weighed` operators stand for others, and keep their identity."""

    known: ExpressionCache
    tables: Mapping[str, DataFrame]
    weighed: frozenset[str]

    def apply(self, operator: Operator, frames: list[DataFrame], narrowed: Mapping[str, object]) -> DataFrame:
        """One operator on its input frames, of which some are `narrowed` to the columns that are needed below them.

        Spark's complaint is passed on with the operator's name.
        """
        try:
            return self._applied(operator, frames, narrowed)
        except Exception as error:
            analysed = isinstance(error, AnalysisException)
            if isinstance(error, JettisonError) or not (analysed or isinstance(operator, Apply)):
                raise  # all but a user's function fail in Spark's analysis, or not at all
            columns_here = ", ".join(column for column in frames[0].columns if column not in HIDDEN)
            reason = reason_of(error) if analysed else f"{type(error).__name__}: {reason_of(error)}"
            element = f"{kind_of(operator)} {operator.name!r}"
            raise StartError(f"{element}: {reason} Columns here: {columns_here}.") from error

    def _applied(self, operator: Operator, frames: list[DataFrame], narrowed: Mapping[str, object]) -> DataFrame:
        rows = frames[0]
        if isinstance(operator, Select):
            hidden = self.known.hidden(operator.inputs[0], rows)
            starred = any(isinstance(item, str) and item.lstrip().startswith("*") for item in operator.expressions)
            return self.known.select(rows, [*operator.expressions, *(() if starred else hidden)])
        if isinstance(operator, Union):
            keys = [f"{tail} (narrowed)" if tail in narrowed else tail for tail in operator.inputs]
            return self._merged(operator, frames, keys)
        if isinstance(operator, Where):
            return rows.where(self.known.expression(operator.predicate))
        if isinstance(operator, WithColumns):
            return rows.withColumns({name: self.known.expression(item) for name, item in operator.columns})
        if isinstance(operator, Join):
            self._check_clash(operator, rows)
            return rows.join(self.tables[operator.name], list(operator.on), operator.how)
        return self._by_function(operator, rows) if isinstance(operator, Apply) else rows

    def _merged(self, union: Union, frames: list[DataFrame], keys: Sequence[str]) -> DataFrame:
        if union.name in self.weighed:  # of two sources that count alike each row has a fate of its own
            marked = [f"xxhash64({IDENTITY}, {number}L)" for number in range(len(frames))]
            frames = [
                frame.withColumn(IDENTITY, self.known.expression(sql))
                for frame, sql in zip(frames, marked, strict=True)
            ]
        return _united(frames, [self.known.columns(key, f) for key, f in zip(keys, frames, strict=True)])

    def _by_function(self, operator: Apply, rows: DataFrame) -> DataFrame:
        made = resolve(operator)(rows)
        if not isinstance(made, DataFrame):
            raise TypeError(f"the function gave {an(type(made).__name__)}, not a DataFrame: return the rows.")
        columns = made.columns
        visible = [column for column in columns if column not in HIDDEN]
        if operator.columns is not None and sorted(visible) != sorted(operator.columns):
            raise StartError(
                f"apply {operator.name!r}: the function gives columns {', '.join(visible)}, and columns= declares "
                f"{', '.join(operator.columns)}: declare what it gives, or leave columns= out."
            )
        if IDENTITY not in columns and operator.name in self.weighed:
            raise StartError(
                f"apply {operator.name!r}: its rows have lost what they go or stay by, and what is behind is "
                f"estimated (on_loss='estimate'): let the function keep column {IDENTITY!r}."
            )
        return made if IDENTITY in columns else made.selectExpr("*", identity_of(columns))

    def _check_clash(self, join: Join, frame: DataFrame) -> None:
        """The columns of a table that is named at the start are seen here first."""
        here = self.known.columns(join.inputs[0], frame)
        table = self.known.columns(f"{join.name} (static)", self.tables[join.name])
        clash = sorted((set(here) & set(table)) - set(join.on))
        if clash and join.how not in ("left_semi", "left_anti"):
            raise StartError(f"join {join.name!r}: both sides have column {clash[0]!r}: rename it on one side.")


def _united(frames: list[DataFrame], columns: list[tuple[str, ...]]) -> DataFrame:
    hidden = [column for column in HIDDEN if all(column in each for each in columns)]
    common = (column for column in columns[0] if all(column in each for each in columns[1:]))
    chosen = [*(column for column in common if column not in HIDDEN), *hidden]
    merged = frames[0].select(*chosen)
    for other in frames[1:]:
        merged = merged.unionByName(other.select(*chosen))
    return merged


def resolve(operator: Apply) -> Callable[[DataFrame], DataFrame]:
    """The function of an apply, imported if it is given by path."""
    if not isinstance(operator.function, str):
        return operator.function
    return imported(f"apply {operator.name!r}", operator.function)
