"""Rows that are not delivered are put aside, where users want to keep them: shed ones by arc, rejected ones by source.

Every such row has the same shape, whatever arc it comes from:

    _arc, _reason             where and why
    _event_time               where it can be had without parsing the rest
    topic, partition, offset  of a record that was read from Kafka
    beside                    JSON of the columns beside a payload
    key, value                of the record as they were; else the payload, or the row as JSON, in UTF-8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.errors import StartError
from jettison.network.arc import Arc, arc_head
from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.network.operators import Source
from jettison.spark.compile.drops import HIDDEN, KEY, RECORD, TIME
from jettison.spark.compile.raw_rows import raw_time
from jettison.spark.read.kafka import KafkaSink
from jettison.spark.write.sinks import Sink, as_sink


class ShedSinks:
    """Which sinks get what an arc sheds. Under an output's name: what is shed on any arc that leads to it.

    Names with one and the same sink share it: what is shed is kept there once.
    """

    def __init__(self, graph: Graph, given: Mapping[str, Any]) -> None:
        self.sinks: dict[str, Sink] = {}
        self._arcs: dict[str, frozenset[str]] = {}
        for name, sink in given.items():
            arcs, made = _arcs_of(graph, name), as_sink(f"on_shed {name!r}", sink)
            same = next((other for other, known in self.sinks.items() if known is made or known == made), None)
            self.sinks[same or name] = made
            self._arcs[same or name] = self._arcs.get(same or name, frozenset()) | arcs

    @property
    def tails(self) -> frozenset[str]:
        """Operators whose rows somebody wants as they are, with all their columns."""
        arcs = [arc for own in self._arcs.values() for arc in own]
        return frozenset(tail for arc in arcs if (tail := Arc(arc).tail) is not None)

    def of(self, arcs: Iterable[str]) -> dict[str, list[str]]:
        """For each sink, by its name, those of these arcs that it keeps; sinks that keep none are left out."""
        shedding = sorted(arcs)
        kept = {name: [arc for arc in shedding if arc in own] for name, own in self._arcs.items()}
        return {name: own for name, own in kept.items() if own}


def _arcs_of(graph: Graph, name: str) -> frozenset[str]:
    outputs = [output.name for output in graph.outputs]
    if name in outputs:
        return frozenset(arc for arc in graph.arcs if _leads_to(graph, arc, name))
    if name in graph.arcs:
        return frozenset([name])
    raise StartError(
        f"on_shed: {name!r} is neither an output nor an arc of network {graph.name!r}. "
        f"Outputs: {', '.join(outputs)}. Arcs: {', '.join(graph.arcs)}."
    )


def put_aside(sink: Sink, frames: Sequence[DataFrame], batch: int) -> None:
    """Write rows of the common shape, in one job."""
    rows = frames[0]
    for other in frames[1:]:
        rows = rows.union(other)
    if isinstance(sink, KafkaSink):
        sink.put_aside(rows, batch)
    else:
        sink.write(rows, batch)


def raw_aside(source: Source, raw: DataFrame, columns: Sequence[str], reason: str) -> DataFrame:
    """Raw rows of a source in the common shape."""
    others = [name for name in columns if name not in (*RECORD, KEY, source.payload_column)]
    if source.payload is None:
        beside, value = F.lit(None), _as_json(columns)
    else:
        beside, value = _as_json(others) if others else F.lit(None), F.col(source.payload_column)
    record = RECORD if set(RECORD) <= set(columns) else None
    shaped = _shaped(source.name, reason, raw_time(source, columns), record)
    key = F.col(KEY) if KEY in columns else F.lit(None)
    return raw.select(*shaped, *_content(beside, key, value))


def rows_aside(arc: str, rows: DataFrame, reason: str | Column) -> DataFrame:
    """Rows on an inner arc in the common shape; a reason may differ from row to row."""
    time = TIME if TIME in rows.columns else None
    return rows.select(*_shaped(arc, reason, time, None), *_content(F.lit(None), F.lit(None), _as_json(rows.columns)))


def _content(beside: Column, key: Column, value: Column) -> list[Column]:
    return [
        beside.cast("string").alias("beside"),
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
    ]


def _as_json(columns: Sequence[str]) -> Column:
    return F.to_json(F.struct(*(quoted(name) for name in columns if name not in HIDDEN)))


def _shaped(arc: str, reason: str | Column, time: str | None, record: Sequence[str] | None) -> list[Column]:
    moment = F.lit(None) if time is None else F.expr(time)
    kinds = {"topic": "string", "partition": "int", "offset": "long"}
    return [
        F.lit(arc).alias("_arc"),
        F.lit(reason).alias("_reason"),
        moment.cast("timestamp").alias("_event_time"),
        *(
            (F.lit(None).cast(kind) if record is None else F.col(record[number])).alias(name)
            for number, (name, kind) in enumerate(kinds.items())
        ),
    ]


def _leads_to(graph: Graph, arc: str, output: str) -> bool:
    head = arc_head(arc)
    return head == output or output in graph.outputs_below(head)
