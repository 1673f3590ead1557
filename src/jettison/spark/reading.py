"""What a batch will read, known before it does: rows by source, and of Kafka what is gone or was made anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.errors import SourceError
from jettison.network.graph import Graph
from jettison.spark.checkpoint import Checkpoint
from jettison.spark.kafka import hint, read_between
from jettison.spark.offsets import Offsets, batch_offsets, is_kafka, kafka_batch, rows_between
from jettison.spark.stream import count_rows
from jettison.spark.watch import Watch
from jettison.statistics.arrival import TopicSample


@dataclass(frozen=True)
class Reading:
    """Rows by source. `begins` says, for a source with a topic that was made anew, where reading really begins."""

    rows: Mapping[str, int]
    gone: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    begins: Mapping[str, Offsets] = field(default_factory=dict)


class Reader:
    """Sizes batches from offsets, and watches the topics of sources that are read from Kafka."""

    def __init__(self, spark: SparkSession, graph: Graph, checkpoint: Checkpoint, countable: bool) -> None:
        self._spark = spark
        self._graph = graph
        self._checkpoint = checkpoint
        self._countable = countable
        self._topics = {source.name: source.kafka for source in graph.sources if source.kafka is not None}
        self._watches = {name: Watch(spark, topic) for name, topic in self._topics.items()}

    def close(self) -> None:
        for watch in self._watches.values():
            watch.close()

    def size(self, frame: DataFrame, batch: int) -> Reading:
        """What a batch will read: from offsets where they count rows, else by a job."""
        names = [source.name for source in self._graph.sources]
        offsets = self._offsets(batch) if self._countable or self._topics else None
        if offsets is None:
            return Reading(count_rows(self._graph, frame))
        rows: dict[str, int | None] = {name: rows_between(*offsets[name]) for name in names}
        gone: dict[str, int] = {}
        ids: dict[str, Mapping[str, str]] = {}
        begins: dict[str, Offsets] = {}
        before = self._checkpoint.plans.read(batch - 1) if self._topics else None
        for name, topic in self._topics.items():
            start, end = offsets[name]
            seen = self._watches[name].look(learn=True)
            known = {} if before is None else before.ids.get(name, {})
            ids[name] = known if seen is None else seen.ids
            if not (is_kafka(start) and is_kafka(end)):
                continue
            other = {each for each, identity in ids[name].items() if known.get(each, identity) != identity}
            found = kafka_batch(start, end, None if seen is None else seen.earliest, frozenset(other))
            rows[name] = found.rows
            if found.gone:
                gone[name] = found.gone
            if found.anew:
                begins[name] = found.begins
            if topic.fail_on_data_loss and (found.gone or found.anew):
                what = f"{found.gone:,} records are gone" if found.gone else f"topic {min(found.anew)!r} was made anew"
                raise SourceError(f"source {name!r}: {what}. {hint('failOnDataLoss')} Batch {batch} is not committed.")
        if any(count is None for name, count in rows.items()) or (
            not self._countable and set(names) - set(self._topics)
        ):
            counted = count_rows(self._graph, frame)
            rows = {
                name: rows[name] if name in self._topics and rows[name] is not None else counted[name] for name in names
            }
        return Reading({name: count or 0 for name, count in rows.items()}, gone, ids, begins)

    def frames(self, raw: Mapping[str, DataFrame], batch: int, begins: Mapping[str, Offsets]) -> dict[str, DataFrame]:
        """The batch's frames; those of a topic that was made anew are read from its first record."""
        frames = dict(raw)
        offsets = self._offsets(batch) if begins else None
        for name, begin in begins.items():
            assert offsets is not None
            end = {topic: offsets[name][1][topic] for topic in begin}
            frames[name] = read_between(self._spark, self._topics[name], begin, end)
        return frames

    def lag(self, batch: int) -> dict[str, TopicSample]:
        """Per topic, how far behind its reader is once this batch is done."""
        samples: dict[str, TopicSample] = {}
        offsets = self._offsets(batch) if self._topics else None
        for name, watch in self._watches.items():
            seen = watch.look()
            if seen is not None and offsets is not None and is_kafka(offsets[name][1]):
                samples |= watch.lag(offsets[name][1], seen)
        return samples

    def _offsets(self, batch: int) -> dict[str, tuple[Any, Any]] | None:
        names = [source.name for source in self._graph.sources]
        found = batch_offsets(self._checkpoint.spark_folder, batch, len(names))
        return None if found is None else dict(zip(names, found, strict=True))
