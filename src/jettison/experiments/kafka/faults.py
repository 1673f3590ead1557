"""What goes wrong with Kafka, done to a run: nothing that Kafka still has is lost or doubled in the parquet sink.

Retention is done by deleting the oldest records through Kafka's own administration, which moves a partition's start as
the retention timer does.

The broker is stopped for a while, and killed, and started again; partitions are added; retention passes the reader
while it is down; the topic is deleted and made anew. A run that fails is started again on its checkpoint, as a
supervisor would.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jettison.errors import JettisonError
from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import running_broker
from jettison.experiments.kafka.producer import send
from jettison.network.declare import Network
from jettison.network.kafka import Kafka
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.spark.write.sinks import ParquetSink

_TOPIC = "orders"
_PATIENCE_S = 120.0


class Supervised:
    """A run that is started again when it fails, and what has come out so far."""

    def __init__(self, spark: Any, broker: Broker, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        topic = Kafka(
            broker.servers,
            _TOPIC,
            schema="id long",
            starting_offsets="earliest",
            fail_on_data_loss=False,
            # a broker that is away is noticed within seconds, so that the experiment need not last minutes
            options={"kafka.default.api.timeout.ms": "6000", "kafka.request.timeout.ms": "5000"},
        )
        self._network = Network("faults")
        self._network.source("orders", topic).output("kept")
        self.failures: list[str] = []
        self.gone = 0
        self._run: Run | None = None

    def start(self) -> None:
        self._run = start(
            self._network,
            sinks={"kept": ParquetSink(f"{self._folder}/kept")},
            trigger="300 milliseconds",
            checkpoint=f"{self._folder}/checkpoint",
            shedding=False,
        )

    def stop(self) -> None:
        if self._run is None:
            return
        try:
            self._run.stop()
        except JettisonError as error:
            self.failures.append(str(error))
        self.gone += self._run.report().rows_gone
        self._run = None

    def wait_for(self, ids: set[int], say: Say) -> bool:
        """Until these ids have come out, starting again what has failed; False when patience ends before."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            if self._run is None or not self._run.is_active:
                self.stop()
                if self.failures:
                    say(f"started again after: {self.failures[-1][:150]}")
                self.start()
            if ids <= set(self.delivered()):
                return True
            time.sleep(0.3)
        return False

    def delivered(self) -> Counter[int]:
        """Ids that the sink holds, with how often."""
        import pyarrow.parquet as pq

        found: Counter[int] = Counter()
        for path in (self._folder / "kept").glob("batch=*"):
            if (path / "_SUCCESS").exists():
                for part in path.glob("*.parquet"):
                    found.update(pq.read_table(part).column("id").to_pylist())
        return found


def run(*, quick: bool, say: Say, broker: Broker | None = None) -> Result:
    each, away_s = (500, 2.0) if quick else (20_000, 25.0)
    spark = local_session(kafka=True)
    with running_broker(say, broker) as kafka, tempfile.TemporaryDirectory(prefix="jettison-faults-") as name:
        kafka.create(_TOPIC)
        supervised = Supervised(spark, kafka, Path(name))
        supervised.start()
        faults = _Faults(kafka, supervised, each)
        faults.suffer("no fault", lambda: None, say)
        faults.suffer("broker stopped and started", lambda: faults.restart(away_s), say)
        faults.suffer("broker killed and started", faults.kill, say)
        faults.suffer("partitions added", lambda: kafka.widen(_TOPIC, 4), say)
        faults.suffer("retention passes the reader", faults.pass_retention, say)
        faults.suffer("topic deleted and made anew", faults.renew, say)
        supervised.stop()
        found = supervised.delivered()
    lost = len(faults.expected - set(found))
    doubled = sum(count - 1 for count in found.values())
    return Result(
        "kafka-faults",
        {
            "lost": lost,
            "doubled": doubled,
            "rows": len(faults.expected),
            "restarts": len(supervised.failures),
            "gone_counted": supervised.gone,
            "gone_really": faults.forgotten,
        },
        {
            "nothing that Kafka still has is lost": lost == 0,
            "nothing is doubled": doubled == 0,
            "what is gone is counted": supervised.gone == faults.forgotten,
        },
        faults.steps,
        lambda figure: _draw(figure, faults.steps),
    )


class _Faults:
    """What is done to the broker while a run reads from it, and which ids must come out all the same.

    After every fault so many orders more are sent, and waited for. `forgotten` counts records that retention took.
    """

    def __init__(self, broker: Broker, supervised: Supervised, orders: int) -> None:
        self._broker = broker
        self._supervised = supervised
        self._orders = orders
        self._sent = _Sent(broker)
        self.expected: set[int] = set()
        self.forgotten = 0
        self.steps: list[dict[str, Any]] = []

    def suffer(self, what: str, fault: Callable[[], None], say: Say) -> None:
        say(what)
        began = time.monotonic()
        fault()
        self.expected.update(self._sent.take(self._orders))
        came = self._supervised.wait_for(self.expected, say)
        took = round(time.monotonic() - began, 1)
        failures = len(self._supervised.failures)
        self.steps.append({"fault": what, "all_came": came, "seconds": took, "failures": failures})

    def restart(self, away_s: float) -> None:
        self._broker.stop()
        time.sleep(away_s)
        self._broker.start()

    def kill(self) -> None:
        self._broker.kill()
        self._broker.start()

    def renew(self) -> None:
        self._broker.delete(_TOPIC)
        self._broker.create(_TOPIC)

    def pass_retention(self) -> None:
        """Forget half of what is sent while the reader is down."""
        self._supervised.stop()
        before = self._broker.ends(_TOPIC)
        self._sent.take(self._orders)
        middle = {number: (before[number] + end) // 2 for number, end in self._broker.ends(_TOPIC).items()}
        self._broker.forget(_TOPIC, middle)
        self.forgotten = sum(middle[number] - before[number] for number in before)
        self.expected.update(_still_there(self._broker, _TOPIC, middle))


class _Sent:
    """Orders with numbers that are never used twice."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next = 0

    def take(self, count: int) -> set[int]:
        """Send so many more; their ids."""
        ids = range(self._next, self._next + count)
        self._next += count
        send(self._broker.servers, _TOPIC, [b'{"id": %d}' % each for each in ids])
        return set(ids)


def _still_there(broker: Broker, topic: str, first: dict[str, int]) -> set[int]:
    """Ids of the records from these offsets on, read by a consumer of its own."""
    import json

    from confluent_kafka import Consumer, TopicPartition

    ends = broker.ends(topic)
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "still-there", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, int(number), offset) for number, offset in first.items()])
    wanted = sum(ends[number] - offset for number, offset in first.items())
    ids: set[int] = set()
    seen = 0
    deadline = time.monotonic() + _PATIENCE_S
    while seen < wanted:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {seen} of {wanted} records of topic {topic!r} could be read")
        for message in consumer.consume(min(1000, wanted - seen), timeout=10):
            ids.add(json.loads(message.value() or b"{}")["id"])
            seen += 1
    consumer.close()
    return ids


def _draw(figure: Any, steps: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    axes.barh([step["fault"] for step in steps][::-1], [step["seconds"] for step in steps][::-1])
    axes.set_xlabel("seconds until every record that Kafka has came out")
    axes.set_title("Faults of Kafka: nothing lost, nothing doubled")
