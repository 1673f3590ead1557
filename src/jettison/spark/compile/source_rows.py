"""The rows of sources in one batch, behind the drop at their input, with what is counted of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation

from jettison.errors import StartError
from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.network.operators import Source
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.observed_places import Counted
from jettison.spark.compile.raw_rows import (
    BODY,
    dropped_raw,
    identified,
    newest_metric,
    parsed,
    passing,
    source_metrics,
    typed,
)
from jettison.spark.compile.value_samples import VALUES_MASK, value_metrics, valued_columns
from jettison.spark.error_text import reason_of


class SourceRows:
    """Builds the frames of a network's sources in one batch. `mask` says which rows are looked at before drops by
    value, `timed` are the places whose event times windows and joins follow."""

    def __init__(
        self,
        graph: Graph,
        raw: Mapping[str, DataFrame],
        plan: Plan,
        known: ExpressionCache,
        counted: Counted,
        mask: int,
        timed: Collection[str],
    ) -> None:
        self._graph = graph
        self._raw = raw
        self._plan = plan
        self._known = known
        self._counted = counted
        self._mask = mask
        self._timed = timed
        self._typed_rows: dict[str, DataFrame] = {}  # by source, before its drop

    def rows(self, source: Source, count: bool) -> DataFrame:
        """A source's rows; with `count`, what passes is counted the first time."""
        raw = self._raw[source.name]
        columns = self._known.columns(f"{source.name} (raw)", raw)
        self._check_identity(source, raw, columns)
        drop = self._plan.drops.get(source.name)
        by_value = drop is not None and drop.judges == "value"
        if source.payload is None and not by_value and not (isinstance(drop, Window) and source.name in self._timed):
            frame = self._typed(source, raw, columns, count)
        else:
            frame = self._looked_at(source, raw, columns, count, by_value=by_value)
        return frame

    def _check_identity(self, source: Source, raw: DataFrame, columns: Sequence[str]) -> None:
        """Raise where rows cannot be told apart by the columns that are declared for it; Spark is asked once."""

        def check() -> bool:
            try:
                identified(source, raw, columns, self._known)
            except AnalysisException as error:
                raise StartError(
                    f"source {source.name!r}: {reason_of(error)} Name the columns that identify a row, such as "
                    f"id=['trip']."
                ) from error
            return True

        self._known.asked(f"{source.name} (identity)", check)

    def _typed(self, source: Source, raw: DataFrame, columns: Sequence[str], count: bool) -> DataFrame:
        """Rows without a payload that pass the input's drop: what they are is chosen in one step."""
        if source.name not in self._typed_rows:
            self._typed_rows[source.name] = typed(source, raw, columns, self._known)
        frame = passing(source, self._typed_rows[source.name], columns, self._plan, self._known)
        return self._source_counted(source, frame, columns) if count else frame

    def _source_counted(self, source: Source, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Count what passes the input's drop, once."""
        if source.name in self._counted.sources:
            return frame
        observation = self._counted.sources[source.name] = Observation()
        metrics = [*source_metrics(source, columns), *self._value_metrics(source, columns)]
        if source.event_time is not None:  # also where nothing needs it yet: an aggregate may come later
            inside = "" if source.event_time in columns else f"{BODY}."
            metrics.append(newest_metric(f"{inside}{quoted(source.event_time)}"))
        return frame.observe(observation, *map(self._known.expression, metrics))

    def _looked_at(
        self, source: Source, raw: DataFrame, columns: Sequence[str], count: bool, *, by_value: bool
    ) -> DataFrame:
        """Rows that pass the input's drop, with a payload, or where more is looked at than what passes."""
        try:
            newest = None
            by_window = source.name in self._timed and isinstance(self._plan.drops.get(source.name), Window)
            at_once = by_window and source.payload is None and not self._value_metrics(source, columns)
            if count and by_window and source.name not in (self._counted.sources if at_once else self._counted.newest):
                newest = Observation()
                (self._counted.sources if at_once else self._counted.newest)[source.name] = newest
            before = None
            if count and by_value and source.name not in self._counted.before:
                before = self._counted.before[source.name] = Observation()
            frame = dropped_raw(
                source,
                raw,
                columns,
                self._plan,
                self._known,
                newest=newest,
                at_once=at_once,
                before=before,
                mask=self._mask,
            )
        except AnalysisException as error:
            remedy = " Avro needs jt.local_session(kafka=True, avro=True)." if source.payload == "avro" else ""
            raise StartError(f"source {source.name!r}: {reason_of(error)}{remedy}") from error
        if count:
            frame = self._source_counted(source, frame, columns)
        return parsed(source, frame, columns, self._known)

    def _value_metrics(self, source: Source, columns: Sequence[str]) -> list[str]:
        """A sample of the values that outputs are valued by, where they are in the source already."""
        found = []
        for number, column in enumerate(valued_columns(self._graph, source.name)):
            name = next(name for name, _ in source.schema if name.lower() == column.lower())
            value = quoted(name) if name in columns else f"{BODY}.{quoted(name)}"
            found += value_metrics(number, value, min(self._mask, VALUES_MASK))
        return found
