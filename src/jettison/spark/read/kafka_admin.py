"""A look at the broker, through the driver's JVM: which topic is this, from where to where does it hold records."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from jettison.errors import StartError
from jettison.network.kafka import Kafka
from jettison.spark.error_text import reason_of
from jettison.statistics.arrival import TopicRate, TopicSample
from jettison.statistics.records import Offsets

_log = logging.getLogger("jettison")


@dataclass(frozen=True)
class TopicOffsets:
    """What a look found, and when (by a clock that never jumps). `ids` tells a topic from another of its name."""

    at_s: float
    ids: Mapping[str, str] = field(default_factory=dict)
    earliest: Offsets = field(default_factory=dict)
    latest: Offsets = field(default_factory=dict)


class Watch:
    """Looks at the topics of one source: None when the broker does not answer; it is left alone for a while then.

    The first look takes longer, as classes are loaded and a connection is made for it.
    """

    def __init__(
        self,
        spark: SparkSession,
        topic: Kafka,
        timeout_ms: int = 6000,
        first_timeout_ms: int = 20_000,
        rest_s: float = 30.0,
    ) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._topics = topic.topics
        self._timeout_ms = timeout_ms
        self._patience_ms = first_timeout_ms
        self._deadline_s = 0.0
        self._rest_s = rest_s
        self._silent_until_s = 0.0
        settings = jvm.java.util.Properties()
        settings.put("bootstrap.servers", topic.servers)
        for name, value in topic.options.items():
            if name.lower().startswith("kafka."):
                settings.put(name[len("kafka.") :], value)
        settings.put("default.api.timeout.ms", str(first_timeout_ms))
        settings.put("request.timeout.ms", str(min(timeout_ms, first_timeout_ms) // 3))
        try:
            self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        except Py4JError as error:
            reason = reason_of(error)
            raise StartError(f"kafka topic {topic.topic!r}: no client for {topic.servers!r}: {reason}") from error
        self._arrivals = {name: TopicRate() for name in self._topics}

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ZERO)

    def look(self, *, learn: bool = False) -> TopicOffsets | None:
        """Identities and offsets, now; with `learn` the rate of arrivals is that since the last such look."""
        if time.monotonic() < self._silent_until_s:
            return None
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        self._deadline_s = time.monotonic() + self._patience_ms / 1000
        try:
            described = self._got(self._admin.describeTopics(list(self._topics)).allTopicNames())
            ids = {name: str(described.get(name).topicId().toString()) for name in self._topics}
            sizes = {name: int(described.get(name).partitions().size()) for name in self._topics}
            earliest = self._offsets(sizes, spec.earliest())
            before = time.monotonic()
            latest = self._offsets(sizes, spec.latest())
            at_s = (before + time.monotonic()) / 2
        except Py4JError as error:
            self._silent_until_s = time.monotonic() + self._rest_s
            _log.warning(
                "no answer about topic %s for now: what is gone is not counted, lag not told (%s)",
                ", ".join(self._topics),
                reason_of(error),
            )
            return None
        finally:
            self._patience_ms = self._timeout_ms
        if learn:
            for name, ends in latest.items():
                self._arrivals[name].update(at_s, ends)
        return TopicOffsets(at_s, ids, earliest, latest)

    def since(self, moment_s: float, ends: Offsets) -> Offsets | None:
        """The offset, in every partition of `ends`, of the first record from this moment on; its end without one.

        A record's time is when it was produced, or came to the broker: what it tells of is no younger. None without an
        answer: then nothing is known, and all is read.
        """
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(round(1000 * moment_s))
        self._deadline_s = time.monotonic() + self._patience_ms / 1000
        try:
            found = self._offsets({name: len(partitions) for name, partitions in ends.items()}, spec)
        except Py4JError as error:
            _log.warning("topic %s: the broker does not tell what is stale: %s", self._topics[0], reason_of(error))
            return None
        # a partition that the broker says nothing about is read from its first record on
        return {
            name: {
                number: end if found[name].get(number, 0) < 0 else min(end, found[name].get(number, 0))
                for number, end in partitions.items()
            }
            for name, partitions in ends.items()
        }

    def lag(self, end: Offsets, seen: TopicOffsets) -> dict[str, TopicSample]:
        """Per topic: how fast it fills and how far behind a reader is that has read up to `end`."""
        samples = {}
        for name, partitions in seen.latest.items():
            waiting = sum(max(0, last - end.get(name, {}).get(number, 0)) for number, last in partitions.items())
            samples[name] = self._arrivals[name].behind(waiting)
        return samples

    def _offsets(self, sizes: Mapping[str, int], spec: Any) -> dict[str, dict[str, int]]:
        asked = self._jvm.java.util.HashMap()
        partitions = {}
        for name, count in sizes.items():
            for number in range(count):
                partitions[name, number] = self._jvm.org.apache.kafka.common.TopicPartition(name, number)
                asked.put(partitions[name, number], spec)
        answer = self._got(self._admin.listOffsets(asked).all())
        found: dict[str, dict[str, int]] = {name: {} for name in sizes}
        for (name, number), partition in partitions.items():
            found[name][str(number)] = int(answer.get(partition).offset())
        return found

    def _got(self, future: Any) -> Any:
        left_ms = max(1, round(1000 * (self._deadline_s - time.monotonic())))
        return future.get(left_ms, self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
