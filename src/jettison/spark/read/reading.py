"""What a batch will read, known before it does: rows by source, and of Kafka what is gone or was made anew."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.errors import SourceError
from jettison.network.graph import Graph
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.logs import Logged
from jettison.spark.job_descriptions import part as described_part
from jettison.spark.read.footers import footer_rows
from jettison.spark.read.generated_rows import GeneratedRows
from jettison.spark.read.kafka import hint, read_between
from jettison.spark.read.kafka_admin import Watch
from jettison.spark.read.offsets import KafkaBatch, batch_offsets, is_kafka, kafka_batch, rows_between
from jettison.spark.read.stream import count_rows
from jettison.spark.read.vanished_files import vanished_files
from jettison.statistics.arrival import TopicSample
from jettison.statistics.records import Offsets, Records

_log = logging.getLogger("jettison")


class Reader:
    """Sizes batches from offsets, and watches the topics of sources that are read from Kafka."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Graph,
        checkpoint: Checkpoint,
        countable: bool,
        micro_rates: Collection[str] = (),
        generated: Mapping[str, GeneratedRows] | None = None,
    ) -> None:
        """`countable`: sources are read as they are; `micro_rates` are those that are Spark's `rate-micro-batch`, and
        batches of `generated` ones are made of their offsets."""
        self._spark = spark
        self._graph = graph
        self._checkpoint = checkpoint
        self._countable = countable
        self._micro_rates = micro_rates
        self._generated = generated or {}
        self._topics = {source.name: source.kafka for source in graph.sources if source.kafka is not None}
        self._watches: dict[str, Watch] = {}
        try:
            for name, topic in self._topics.items():
                self._watches[name] = Watch(spark, topic)
        except BaseException:
            self.close()
            raise

    @property
    def skippable(self) -> frozenset[str]:
        """Sources of which a part can be passed over unread."""
        return frozenset(self._topics)

    def close(self) -> None:
        for watch in self._watches.values():
            watch.close()

    def size(self, frame: DataFrame, batch: int) -> Records:
        """What a batch will read: from offsets where they count rows, else by a job."""
        offsets = self._offsets(batch)
        if offsets is None:
            return Records(self._counted(frame))
        found = {name: self._kafka(name, batch, *offsets[name]) for name in self._topics}
        rows = {name: self._rows(index, *each) for index, (name, each) in enumerate(offsets.items()) if self._countable}
        rows |= {name: each.rows[name] for name, each in found.items() if each is not None}
        names = [source.name for source in self._graph.sources]
        if any(rows.get(name) is None for name in names):
            rows = {
                **self._counted(frame),
                **{name: count for name, count in rows.items() if count is not None},
            }
        known = [each for each in found.values() if each is not None]
        return Records({name: rows[name] or 0 for name in names}, **_merged(known))

    def _counted(self, frame: DataFrame) -> dict[str, int]:
        with described_part(self._spark, "counting rows"):
            return count_rows(self._graph, frame)

    def _rows(self, index: int, start: Any, end: Any) -> int | None:
        """Rows of a source's batch without a job: as offsets count them, or as parquet files say."""
        name = self._graph.sources[index].name
        counted = rows_between(start, end, micro_rate=name in self._micro_rates)
        if counted is not None:
            return counted
        return footer_rows(self._spark, self._checkpoint.spark_folder, index, start, end)

    def skipping(self, records: Records, share: float, names: frozenset[str], batch: int) -> Records:
        """The same batch with only the newest `share` of each partition read; the rest is passed over."""
        for name in names:
            whole = self._range(records, name, batch)
            if whole is not None:
                left = {
                    topic: {number: whole.ends[topic][number] - ceil(share * size) for number, size in sizes.items()}
                    for topic, sizes in whole.sizes.items()
                }
                records = self._from(records, name, left, whole)
        return records

    def skipping_stale(self, records: Records, younger_s: Mapping[str, float], batch: int) -> Records:
        """The same batch without the records that came before these moments, by source: they are passed over unread."""
        for name, moment_s in younger_s.items():
            whole = self._range(records, name, batch)
            wanted = None if whole is None else self._watches[name].since(moment_s, whole.ends)
            if whole is None or wanted is None:
                continue
            left = {
                topic: {
                    number: max(wanted[topic][number], end - whole.sizes[topic][number]) for number, end in ends.items()
                }
                for topic, ends in whole.ends.items()
            }
            fewer = self._from(records, name, left, whole)
            if fewer.rows[name] < records.rows[name]:
                stale = records.rows[name] - fewer.rows[name]
                records = replace(fewer, stale={**records.stale, name: stale})
        return records

    def _range(self, records: Records, name: str, batch: int) -> KafkaBatch | None:
        """What a batch reads of one source; None when nothing has come from there yet."""
        first, last = (self._offsets(batch) or {}).get(name, (None, None))
        begin, end = records.begins.get(name, first), records.ends.get(name, last)
        return kafka_batch(begin, end) if is_kafka(begin) and is_kafka(end) else None

    def _from(self, records: Records, name: str, begin: Offsets, whole: KafkaBatch) -> Records:
        """The same with one source read from later offsets on."""
        left = sum(end - begin[topic][number] for topic, ends in whole.ends.items() for number, end in ends.items())
        left = min(left, records.rows[name])
        return replace(
            records,
            rows={**records.rows, name: left},
            begins={**records.begins, name: begin},
            ends={**records.ends, name: whole.ends},
            skipped={**records.skipped, name: records.skipped.get(name, 0) + records.rows[name] - left},
        )

    def again(self, logged: Logged, batch: int, frame: DataFrame) -> Records:
        """What a batch that is repeated reads: what it read before, less the records of topics that are others now, and
        less the rows of files that have vanished."""
        before = logged.records
        rows, gone = dict(before.rows), dict(before.gone)
        begins, ends = dict(before.begins), dict(before.ends)
        offsets = self._offsets(batch) or {}
        for name, topic in self._topics.items():
            seen, known = self._watches[name].look(), before.ids.get(name, {})
            others = {} if seen is None else _others(known, seen.ids)
            if not others or name not in offsets:
                continue
            if topic.fail_on_data_loss:
                raise _lost(name, f"topic {min(others)!r} was made anew", batch)
            begin = begins.get(name, offsets[name][0])
            end = ends.get(name, offsets[name][1])
            missing = {each: partitions for each, partitions in end.items() if each in others}
            gone[name] = gone.get(name, 0) + kafka_batch(begin, missing).rows
            rows[name] = rows.get(name, 0) - kafka_batch(begin, missing).rows
            begins[name], ends[name] = {**begin, **missing}, end  # nothing of them; the next batch finds them anew
        for name, count in self._vanished(logged, batch, frame).items():
            gone[name] = gone.get(name, 0) + count
            rows[name] = rows.get(name, 0) - count
        return Records(rows, gone, before.ids, begins, ends, before.skipped, before.stale)

    def _vanished(self, logged: Logged, batch: int, frame: DataFrame) -> dict[str, int]:
        """By source that reads files, rows of a batch that are gone with their files since it first ran."""
        names = [source.name for source in self._graph.sources]
        folder, found = self._checkpoint.spark_folder, dict[str, list[str]]()
        for index, (start, end) in enumerate(batch_offsets(folder, batch, len(names)) or ()):
            files = vanished_files(self._spark, folder, index, start, end)
            found |= {names[index]: files} if files else {}
        if not found:
            return {}
        left = self._counted(frame)
        gone = {name: max(0, logged.records.rows.get(name, 0) - left[name]) for name in found}
        for name, files in found.items():
            _log.warning(
                "source %r: %d files of batch %d, which is repeated, are gone, and with them %s of its %s rows "
                "(%s ...): results are without them",
                name,
                len(files),
                batch,
                f"{gone[name]:,}",
                f"{logged.records.rows.get(name, 0):,}",
                files[0],
            )
        return gone

    def _kafka(self, name: str, batch: int, spark_start: Any, spark_end: Any) -> Records | None:
        """What a batch reads of one source on Kafka; None where its offsets cannot be read."""
        if not (is_kafka(spark_start) and is_kafka(spark_end)):
            return None
        why = "up to where it has read, and of which topic, is unknown"
        topic, before = self._topics[name], self._checkpoint.plan_before(batch, why)
        seen = self._watches[name].look(learn=True)
        known = {} if before is None else before.records.ids.get(name, {})
        start = spark_start if before is None else before.records.ends.get(name, spark_start)
        ids = known if seen is None else seen.ids
        others = _others(known, ids)
        if seen is None:
            found = kafka_batch(start, spark_end)
            if found.shorter:
                raise SourceError(
                    f"source {name!r}: topic {min(found.shorter)!r} ends before what was read, and the broker does not "
                    f"say whether it was made anew. Batch {batch} is not committed: start again when it answers."
                )
        else:
            strange = {each for each in spark_end if each not in known}  # of an unknown past: judged by offsets
            back = kafka_batch(start, spark_end).shorter & strange if batch > 0 else frozenset()
            found = kafka_batch(start, spark_end, seen.earliest, seen.latest, frozenset(others) | back)
        if topic.fail_on_data_loss and (found.gone or found.anew or found.shorter):
            if found.gone:
                what = f"{found.gone:,} records are gone"
            else:
                what = f"topic {min(found.anew or found.shorter)!r} " + (
                    "was made anew" if found.anew else "is shorter"
                )
            raise _lost(name, what, batch)
        own = found.ends != spark_end or start != spark_start or bool(found.anew)
        ranges = ({name: found.begins}, {name: found.ends}) if own else ({}, {})
        return Records({name: found.rows}, {name: found.gone} if found.gone else {}, {name: ids}, *ranges)

    def frames(self, raw: Mapping[str, DataFrame], records: Records, batch: int) -> dict[str, DataFrame]:
        """The batch's frames; generated rows are made, and where the range is not Spark's own, it is read once more."""
        frames = {**raw, **self._made(raw, batch)}
        for name, begin in records.begins.items():
            frames[name] = read_between(self._spark, self._topics[name], begin, records.ends[name])
        return frames

    def _made(self, raw: Mapping[str, DataFrame], batch: int) -> dict[str, DataFrame]:
        """The batches of generated sources."""
        names = [source.name for source in self._graph.sources]
        found = batch_offsets(self._checkpoint.spark_folder, batch, len(names)) if self._generated else None
        offsets = dict(zip(names, found or (), strict=False))
        made = {
            name: rows.batch(raw[name].sparkSession, *offsets[name])
            for name, rows in self._generated.items()
            if name in offsets
        }
        return {name: frame for name, frame in made.items() if frame is not None}

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
        if not (self._countable or self._topics):
            return None
        names = [source.name for source in self._graph.sources]
        found = batch_offsets(self._checkpoint.spark_folder, batch, len(names))
        return None if found is None else dict(zip(names, found, strict=True))


def _others(known: Mapping[str, str], ids: Mapping[str, str]) -> set[str]:
    """Topics that have another identity than they had."""
    return {name for name, identity in ids.items() if known.get(name, identity) != identity}


def _lost(source: str, what: str, batch: int) -> SourceError:
    return SourceError(f"source {source!r}: {what}. {hint('failOnDataLoss')} Batch {batch} is not committed.")


def _merged(readings: Sequence[Records]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {"gone": {}, "ids": {}, "begins": {}, "ends": {}}
    for each in readings:
        for name, content in merged.items():
            content.update(getattr(each, name))
    return merged
