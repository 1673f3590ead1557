"""What the experiments on Kafka share: a broker with a filled topic, the capacity measured on it, lag over time."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from jettison.experiments.harness import Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.producer import fill
from jettison.experiments.support.capacity import Capacity, measure_capacity, parquet_sinks, read_us_per_row, wait_for
from jettison.experiments.support.workload import taxi_network
from jettison.network.kafka import Kafka
from jettison.options.costs import Costs
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.read.kafka import read_between
from jettison.spark.read.offsets import end_offsets
from jettison.spark.run.run import Run
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile

_SIZES = (4_000, 60_000)

FIRST_ROWS = 100
"""Records for a first batch, before anything is timed."""


@contextmanager
def running_broker(say: Say, given: Broker | None = None) -> Iterator[Broker]:
    """A broker in a temporary folder, or one that runs already."""
    if given is not None:
        yield given
        return
    say("starting a Kafka broker")
    with tempfile.TemporaryDirectory(prefix="jettison-kafka-") as name, Broker(Path(name)) as broker:
        yield broker


def kafka_capacity(spark: Any, broker: Broker, say: Say, *, batches: int, **options: float) -> Capacity:
    """The capacity of the taxi network, read from a topic that was filled before; `options` of `measure_capacity`."""
    topic = Kafka(broker.servers, "filled", starting_offsets="earliest")
    say("filling a topic")
    broker.create("filled")
    fill(broker.servers, "filled", _SIZES[1] * batches)
    held = min(broker.ends("filled").values())
    none = {"filled": {"0": 0, "1": 0}}

    def read(rows: int) -> Any:
        return read_between(spark, topic, none, {"filled": {"0": rows // 2, "1": rows // 2}})

    read_us = read_us_per_row(read, (held // 4, 2 * held))

    def loop(folder: Path, rows: int, count: int, profile: Profile | None, shared: frozenset[str]) -> Run:
        limited = Kafka(
            broker.servers, "filled", starting_offsets="earliest", options={"maxOffsetsPerTrigger": str(rows)}
        )
        network = taxi_network(limited)
        running = start(
            network,
            sinks=parquet_sinks(network, folder),
            trigger="1 millisecond",
            checkpoint=str(folder / "checkpoint"),
            shedding=False,
            costs=Costs(profile, shared=shared if profile is not None else None),
        )
        wait_for(running, count)
        return running

    return measure_capacity(
        spark,
        taxi_network(topic),
        say,
        batches=batches,
        loop=loop,
        sizes=_SIZES,
        read_us=read_us,
        **options,
    )


def committed(checkpoint: Path) -> int:
    """Records that a query has read and committed, all partitions of its one topic together."""
    import json

    folder = LocalFolder(checkpoint)
    done = [int(name) for name in folder.names("commits") if name.isdigit()]
    if not done:
        return 0
    (line,) = end_offsets(folder, max(done))
    (partitions,) = json.loads(line).values()
    return sum(partitions.values())


@dataclass
class LagMeter:
    """Samples, four times a second, how many records of a topic wait: what the broker has less what is committed."""

    servers: str
    topic: str
    partitions: int
    read: Callable[[], int]
    samples: list[tuple[float, int]] = field(default_factory=list)
    fault: BaseException | None = None

    def __enter__(self) -> LagMeter:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        if self.fault is not None:
            raise self.fault

    def _measure(self) -> None:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "lag-meter"})
        try:
            while not self._ending.wait(0.25):
                read = self.read()  # first: what is committed in between is no lag
                ends = [
                    consumer.get_watermark_offsets(TopicPartition(self.topic, number), timeout=20)[1]
                    for number in range(self.partitions)
                ]
                self.samples.append((time.time(), max(0, sum(ends) - read)))
        except BaseException as error:
            self.fault = error
        finally:
            consumer.close()
