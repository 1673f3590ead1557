"""The experiment `peers`: Jettison, native Structured Streaming and Flink SQL on the three outputs of `native`.

Without overload all engines read the same trips, from parquet files and from Kafka, and must write the same results
before their times count. In an overload each gets three times its own capacity: results are as old as the files say in
which they came, and worth in time is a share of what the engine itself delivers at capacity.
Flink comes from PyPI, into an environment of its own; without it the experiment says so, and its checks fail.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.errors import StartError
from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import running_broker
from jettison.experiments.peers.engines import Engine
from jettison.experiments.peers.flink.engine import OnFlink
from jettison.experiments.peers.flink.home import flink_home
from jettison.experiments.peers.flink.process import FlinkProcess
from jettison.experiments.peers.found import Found
from jettison.experiments.peers.inputs import Input, TripTopic
from jettison.experiments.peers.on_jettison import OnJettison
from jettison.experiments.peers.on_spark import OnSpark
from jettison.experiments.peers.overload import Length, overloaded, quickly_overloaded
from jettison.experiments.peers.results import equal_results
from jettison.experiments.support.trip_files import TripFiles
from jettison.spark.run.session import local_session

_TOPIC = "peers"


@dataclass(frozen=True)
class Scale:
    """How much is measured. Files and records: rows a batch, batches, seconds of event time a batch."""

    files: tuple[int, int, float]
    records: tuple[int, int, float]
    rounds: int
    length: Length
    with_flink: bool = True
    rows_per_s: float | None = None
    """A capacity that is given, and not measured."""


FULL = Scale((1_500_000, 4, 5.0), (300_000, 4, 5.0), 2, Length(1000.0, 6.0, 8.0, 30.0))
QUICK = Scale((4_000, 3, 40.0), (4_000, 3, 40.0), 1, Length(500.0, 1.0, 2.0, 3.0), with_flink=False, rows_per_s=8_000)


def run(*, quick: bool, say: Say, broker: Broker | None = None) -> Result:
    """Measure. The quick form leaves Flink out, and Kafka unless a broker is given."""
    if not quick or broker is not None:
        return compare(QUICK if quick else FULL, say, broker)
    return compare(QUICK, say, None, with_kafka=False)


def compare(scale: Scale, say: Say, broker: Broker | None, *, with_kafka: bool = True) -> Result:
    """Throughputs on every input first, then the overload of every engine."""
    spark = local_session(kafka=with_kafka)
    found = Found(scale.with_flink)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jettison-peers-")))
        engines: list[Engine] = [OnJettison(spark), OnSpark(spark, try_stores=scale.with_flink)]
        if scale.with_flink:
            engines += _flink(stack, folder, found, say)
        trips = TripFiles(folder / "trips", *scale.files)
        say("writing trips")
        trips.write(spark)
        inputs: dict[str, Input] = {"parquet": trips}
        if with_kafka:
            inputs["kafka"] = _topic(spark, stack.enter_context(running_broker(say, broker)), folder, scale, say)
        if scale.rows_per_s is None:
            _warm_up(spark, folder, say)
        for kind, given in inputs.items():
            _throughputs(engines, kind, given, folder / kind, scale.rounds, found, say)
        for engine in engines:
            _overload(spark, engine, folder / f"live-{engine.name}", scale, found, say)
    return found.result(scale.length)


def _overload(spark: Any, engine: Engine, folder: Path, scale: Scale, found: Found, say: Say) -> None:
    measured = found.median_rows_per_s(engine.name, "parquet")
    if measured is None:
        return
    try:
        if scale.rows_per_s is None:
            went = overloaded(spark, engine, measured, folder, scale.length, say)
        else:
            went = quickly_overloaded(spark, engine, scale.rows_per_s, folder, scale.length, say)
        found.overloads[engine.name] = went
    except StartError as error:
        found.without(engine.name, str(error))
        say(f"{engine.name}: {error}")


def _flink(stack: ExitStack, folder: Path, found: Found, say: Say) -> list[Engine]:
    try:
        process = FlinkProcess(flink_home(say), folder / "flink.log")
    except StartError as error:
        found.without("flink", str(error))
        say(f"Flink is not measured: {error}")
        return []
    stack.callback(process.close)
    return [OnFlink(process)]


def _topic(spark: Any, kafka: Broker, folder: Path, scale: Scale, say: Say) -> TripTopic:
    say("filling a topic")
    sent = TripFiles(folder / "sent", *scale.records)
    sent.write(spark)
    kafka.create(_TOPIC)
    topic = TripTopic(kafka.servers, _TOPIC, sent)
    topic.fill(spark)
    return topic


def _warm_up(spark: Any, folder: Path, say: Say) -> None:
    """Engines in Spark's JVM have seen the work before; Flink warms its own JVM up."""
    say("warming up")
    small = TripFiles(folder / "small", 50_000, 8, 5.0)
    small.write(spark)
    engines: list[Engine] = [OnJettison(spark), OnSpark(spark, try_stores=True)]
    for engine in engines:
        engine.rounds(small, folder / "warm" / engine.name, 1)


def _throughputs(
    engines: list[Engine], kind: str, given: Input, folder: Path, rounds: int, found: Found, say: Say
) -> None:
    for engine in engines:
        try:
            rates = engine.rounds(given, folder / engine.name, rounds)
        except StartError as error:
            found.without(engine.name, str(error))
            say(f"{engine.name}, {kind}: {error}")
            continue
        found.rates[engine.name, kind] = rates
        found.settings[engine.name, kind] = engine.setting
        say(f"{engine.name}, {kind}, {engine.setting}: {statistics.median(rates):,.0f} rows/s")
    measured = {name: folder / name / "last" for name, each in found.rates if each == kind}
    found.compared[kind] = equal_results(measured)
    say(f"{kind}: {found.compared[kind]:,} results are the same on {', '.join(measured)}")
