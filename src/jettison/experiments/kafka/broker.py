"""A real Apache Kafka broker on loopback: one node, KRaft mode, its jars from Maven Central, a folder of its own.

For tests, experiments and for trying things out. Its data is gone when the folder is.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]  # they are there

from jettison.errors import StartError
from jettison.experiments.kafka.ports import HOST, free_ports, is_free
from jettison.spark.read.jars import Jar, fetch, java

VERSION = "4.3.1"
_TRIES = 3  # another program may take a port between its choice and its use
_START_S = 60.0
_STOP_S = 20.0
_ANSWER_S = 30.0
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
log.retention.ms=-1
"""


def jars() -> list[Path]:
    """Kafka's server, fetched once."""
    return fetch(
        f"kafka-{VERSION}",
        [Jar("org.apache.kafka", "kafka_2.13", VERSION), Jar("org.slf4j", "slf4j-simple", "1.7.36")],
    )


def cluster_id(random: uuid.UUID) -> str:
    """The name of a new cluster, in Kafka's letters. It never begins with a dash, which would read as an option.

    >>> cluster_id(uuid.UUID("fbffffff-ffff-4fff-bfff-ffffffffffff"))
    'A_______T_-__________w'
    """
    text = base64.urlsafe_b64encode(random.bytes).decode().rstrip("=")
    return "A" + text[1:] if text.startswith("-") else text


class Broker:
    """A broker in `folder`; as a context manager it is started, and stopped at the end."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._folder = folder
        self._settings = folder / "server.properties"
        self._data = folder / "data"
        self._given = port
        self.port = port or free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, or start it again on what it holds, and wait until it answers."""
        if self._settings.exists():
            return self._run()
        for tries_left in reversed(range(1 if self._given else _TRIES)):
            try:
                self._format()
                return self._run()
            except StartError:
                if not tries_left:
                    raise
                shutil.rmtree(self._data, ignore_errors=True)
                self.port = free_ports(1)[0]
                self.__dict__.pop("_admin", None)

    def _format(self) -> None:
        if not is_free(self.port):
            raise StartError(f"port {self.port} on {HOST} is in use: choose another one, or end what uses it.")
        self._folder.mkdir(parents=True, exist_ok=True)
        places = {"host": HOST, "port": self.port, "controller": free_ports(1)[0], "data": self._data}
        self._settings.write_text(_SETTINGS.format(**places))
        named = f"--cluster-id={cluster_id(uuid.uuid4())}"
        if self._java("kafka.tools.StorageTool", "format", named, "-c", str(self._settings)).wait() != 0:
            raise StartError(f"the Kafka broker cannot use {self._folder}: {self._reason()}")

    def _run(self) -> None:
        self._process = self._java("kafka.Kafka", str(self._settings))
        try:
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.stop()
            raise

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if process.poll() is not None:
                raise StartError(f"the Kafka broker does not start on {self.servers}: {self._reason()}")
            if time.monotonic() > deadline:
                raise StartError(f"the Kafka broker on {self.servers} does not answer within {_START_S:.0f} s.")
            time.sleep(0.1)

    def _reason(self) -> str:
        """The last errors in its log, without their traces."""
        log = (self._folder / "broker.log").read_text(errors="replace").splitlines()
        exceptions = [line for line in log if "Exception" in line and not line.startswith("\t")]
        return " | ".join(exceptions[-5:]) or (log[-1] if log else "it says nothing.")

    def stop(self) -> None:
        """End it in good order."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def wait(self) -> None:
        """Until it ends by itself or by a signal."""
        if self._process is not None:
            self._process.wait()

    def create(self, topic: str, partitions: int = 2) -> None:
        _done(self._admin.create_topics([NewTopic(topic, partitions, 1)]))
        deadline = time.monotonic() + _START_S
        while topic not in self._admin.list_topics(timeout=_ANSWER_S).topics and time.monotonic() < deadline:
            time.sleep(0.05)

    def widen(self, topic: str, partitions: int) -> None:
        """Add partitions, up to so many."""
        _done(self._admin.create_partitions([NewPartitions(topic, partitions)]))

    def delete(self, topic: str) -> None:
        _done(self._admin.delete_topics([topic]))
        deadline = time.monotonic() + _START_S
        while topic in self._admin.list_topics(timeout=_ANSWER_S).topics:
            if time.monotonic() > deadline:
                raise StartError(f"the broker on {self.servers} does not delete topic {topic!r}.")
            time.sleep(0.05)

    def ends(self, topic: str) -> dict[str, int]:
        """The end offset of every partition."""
        consumer = Consumer({**_client(self.servers), "group.id": "ends"})
        try:
            numbers = self._admin.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions
            return {
                str(number): int(consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_ANSWER_S)[1])
                for number in sorted(numbers)
            }
        finally:
            consumer.close()

    def forget(self, topic: str, before: Mapping[str, int]) -> None:
        """Let records before these offsets go, as retention does."""
        _done(self._admin.delete_records([TopicPartition(topic, int(n), offset) for n, offset in before.items()]))

    @cached_property
    def _admin(self) -> AdminClient:
        """Kept: a client that is collected takes its unanswered questions along."""
        return AdminClient(_client(self.servers))

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=1):
                pass
            return bool(self._admin.list_topics(timeout=2).brokers)
        except (OSError, KafkaException):
            return False

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        path = ":".join(map(str, jars()))
        memory = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        with (self._folder / "broker.log").open("ab") as log:
            return subprocess.Popen(
                [java(), *memory, quiet, "-cp", path, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )


def _client(servers: str) -> dict[str, str | int | float]:
    """Settings of a client that says nothing about a broker that is down: here that is expected."""
    return {"bootstrap.servers": servers, "log_level": 0}


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(timeout=_START_S)
