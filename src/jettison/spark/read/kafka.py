"""Kafka through Spark's own connector: a topic as a stream, as a table of one batch, as a sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.errors import SinkError, StartError
from jettison.network.columns.schema import quoted
from jettison.network.kafka import Kafka
from jettison.spark.compile.drops import KEY, RECORD
from jettison.spark.read.jars import coordinates
from jettison.statistics.records import Offsets


def read_stream(spark: SparkSession, topic: Kafka) -> DataFrame:
    """The topic as a stream: the value as it is, the record's identity, and key and time where they are named."""
    reader = spark.readStream.format("kafka").options(**_reading(topic))
    reader = reader.option("subscribe", ",".join(topic.topics)).option("startingOffsets", topic.starting_offsets)
    return _loaded(topic, reader.option("failOnDataLoss", str(topic.fail_on_data_loss).lower()))


def read_between(spark: SparkSession, topic: Kafka, start: Offsets, end: Offsets) -> DataFrame:
    """The records from `start` to `end`, once."""
    reader = spark.read.format("kafka").options(**_reading(topic)).option("failOnDataLoss", "false")
    begin = {name: {number: start[name][number] for number in partitions} for name, partitions in end.items()}
    assigned = {name: [int(number) for number in partitions] for name, partitions in end.items()}
    reader = reader.option("assign", json.dumps(assigned)).option("startingOffsets", json.dumps(begin))
    return _loaded(topic, reader.option("endingOffsets", json.dumps(end)))


def _options(topic: Kafka) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topic.servers, **topic.options}


def _reading(topic: Kafka) -> dict[str, str]:
    """Settings for reading: larger portions than Kafka's defaults, which are meant for one record at a time."""
    return {"kafka.max.poll.records": "10000", "kafka.max.partition.fetch.bytes": str(8 * 2**20), **_options(topic)}


def _loaded(topic: Kafka, reader: Any) -> DataFrame:
    try:
        raw: DataFrame = reader.load()
    except Exception as error:
        raise _without_connector(error) or error from error
    chosen = ["value AS _jt_value", f"key AS {KEY}"]
    chosen += [f"{name} AS {ours}" for name, ours in zip(("topic", "partition", "offset"), RECORD, strict=True)]
    if topic.key:
        chosen.append(f"string(key) AS {quoted(topic.key)}")
    if topic.timestamp:
        chosen.append(f"timestamp AS {quoted(topic.timestamp)}")
    return raw.selectExpr(*chosen)


def _without_connector(error: Exception) -> StartError | None:
    text = str(error)
    if "kafka" not in text or not ("DATA_SOURCE_NOT_FOUND" in text or "Failed to find data source" in text):
        return None
    return StartError(
        f"this Spark session has no Kafka connector: make it with jt.local_session(kafka=True), or start it with "
        f"--packages {coordinates()}."
    )


@dataclass(frozen=True)
class KafkaSink:
    """One record per row: a JSON object of its columns, or its one string column (value='text'). At least once.

    The column named as `key` becomes the record's key, the header `batch` holds the batch's number.
    """

    topic: Kafka

    def write(self, rows: DataFrame, batch: int) -> None:
        columns = [name for name in rows.columns if name != self.topic.key]
        if self.topic.key is not None and self.topic.key not in rows.columns:
            raise SinkError(f"there is no column {self.topic.key!r} for the key: it has {', '.join(columns)}")
        if self.topic.value == "text":
            if len(columns) != 1:
                raise SinkError(f"value='text' takes one column: it has {', '.join(columns)}")
            value = f"string({quoted(columns[0])})"
        elif self.topic.value == "json":
            value = f"to_json(struct({', '.join(map(quoted, columns))}))"
        else:
            raise SinkError(f"value={self.topic.value!r} can be read, not written: use 'json' or 'text'")
        chosen = [f"{value} AS value", f"{_headers({'batch': str(batch)})} AS headers"]
        if self.topic.key is not None:
            chosen.append(f"string({quoted(self.topic.key)}) AS key")
        self._send(rows.selectExpr(*chosen))

    def put_aside(self, rows: DataFrame, batch: int) -> None:
        """Rows that were shed or rejected (see `dead_letters`): key and value as they were, the rest in headers."""
        headers = {name.lstrip("_"): quoted(name) for name in rows.columns if name not in ("key", "value")}
        self._send(rows.selectExpr("key", "value", f"{_headers({**headers, 'batch': str(batch)})} AS headers"))

    def _send(self, records: DataFrame) -> None:
        writer = records.write.format("kafka").options(**_options(self.topic))
        try:
            writer.option("topic", self.topic.topic).option("includeHeaders", "true").save()
        except Exception as error:
            raise _without_connector(error) or error from error


def _headers(values: Mapping[str, str]) -> str:
    """Kafka's headers, in SQL: names, and SQL expressions as text; those that are null are left out."""
    pairs = (f"named_struct('key', '{name}', 'value', encode(string({sql}), 'UTF-8'))" for name, sql in values.items())
    return f"filter(array({', '.join(pairs)}), header -> header.value IS NOT NULL)"


def hint(reason: str) -> str:
    """What to do about an error of the connector; nothing when it is none."""
    if "failOnDataLoss" in reason or "DATA_LOSS" in reason or "data may have been lost" in reason:
        return (
            "Kafka has records no more that were not read yet (retention, or a topic made anew): start again with "
            "fail_on_data_loss=False to go on with what it still has; what is gone is counted."
        )
    if "UnknownTopicOrPartition" in reason or "does not host this topic" in reason:
        return "The topic does not exist: make it, and start again."
    if "TimeoutException" in reason or "Timed out" in reason or "No resolvable bootstrap" in reason:
        return "The broker does not answer: see that it runs and that the servers are right, and start again."
    return ""
