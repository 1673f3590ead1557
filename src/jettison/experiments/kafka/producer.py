"""Taxi trips into a Kafka topic, at a rate: a process of its own, so that Spark does not wait for it nor it for Spark.

It appends (time, records sent so far) to a log twenty times a second: the truth that estimates are compared with.
"""

from __future__ import annotations

import bisect
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from jettison.synthetic.fields import TAXI_PAYLOAD, Payload
from jettison.synthetic.rates import Rate, rate_from_dict

_TICK_S = 0.005
_LOG_EVERY_S = 0.05


@contextmanager
def producing(servers: str, topic: str, rate: Rate, seconds: float, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Send at a rate for so long, beside what the block does; ended with it."""
    settings = {"servers": servers, "topic": topic, "rate": rate.to_dict(), "seconds": seconds, "log": str(log)}
    command = [sys.executable, "-m", "jettison.experiments.kafka.producer", json.dumps(settings)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Truth:
    """What was sent, when."""

    times_s: list[float]
    sent: list[int]

    @classmethod
    def read(cls, log: Path) -> Truth:
        lines = [line.split() for line in log.read_text().splitlines() if len(line.split()) == 2]
        return cls([float(moment) for moment, _ in lines], [int(count) for _, count in lines])

    def until(self, moment_s: float) -> float:
        """Records sent until a moment, between two entries of the log in proportion."""
        place = bisect.bisect_right(self.times_s, moment_s)
        if place == 0 or place == len(self.times_s):
            return float(self.sent[min(place, len(self.sent) - 1)] if place else 0)
        before, after = self.times_s[place - 1], self.times_s[place]
        share = (moment_s - before) / (after - before) if after > before else 0.0
        return self.sent[place - 1] + share * (self.sent[place] - self.sent[place - 1])

    def rows_per_s(self, from_s: float, to_s: float) -> float:
        return (self.until(to_s) - self.until(from_s)) / (to_s - from_s)


def fill(servers: str, topic: str, rows: int, first: int = 0) -> None:
    """Send so many trips as fast as it goes, and wait until the broker has them."""
    producer = _producer(servers)
    texts = _texts()
    for start in range(first, first + rows, 10_000):
        _send(producer, topic, texts, start, min(start + 10_000, first + rows))
        producer.flush()


def send(servers: str, topic: str, values: list[bytes]) -> None:
    """Send these values, and wait until the broker has them."""
    producer = _producer(servers)
    failures: list[Any] = []
    for value in values:
        producer.produce(topic, value=value, on_delivery=lambda error, _: failures.append(error) if error else None)
        producer.poll(0)
    if producer.flush(60) or failures:
        raise RuntimeError(f"the broker did not take all records: {failures[:1]}")


def _producer(servers: str) -> Producer:
    return Producer(
        {"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000, "acks": "all"}
    )


def _texts() -> list[str]:
    payload = TAXI_PAYLOAD["value"]
    assert isinstance(payload, Payload)
    return [text[1:] for text in payload.drawn_from(7)[: payload.pool]]


def _send(producer: Producer, topic: str, texts: list[str], first: int, last: int) -> None:
    """Trips with these numbers, picked up now."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    count = len(texts)
    for number in range(first, last):
        text = f'{{"trip":{number},"pickup":"{now}",{texts[(number * 2654435761) % count]}'
        while True:
            try:
                producer.produce(topic, value=text)
                break
            except BufferError:
                producer.poll(0.05)
    producer.poll(0)


def main(settings: dict[str, Any]) -> None:
    rate = rate_from_dict(settings["rate"])
    producer, texts = _producer(settings["servers"]), _texts()
    sent, began, logged = 0, time.time(), 0.0
    with Path(settings["log"]).open("w") as log:
        while (elapsed := time.time() - began) < settings["seconds"]:
            due = rate.rows_until(elapsed)
            _send(producer, settings["topic"], texts, sent, due)
            sent = due
            now = time.time()
            if now - logged >= _LOG_EVERY_S:
                print(f"{now:.6f} {sent}", file=log, flush=True)
                logged = now
            time.sleep(max(0.0, _TICK_S - (time.time() - began - elapsed)))
        producer.flush(30)
        print(f"{time.time():.6f} {sent}", file=log, flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
