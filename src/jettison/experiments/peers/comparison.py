"""The experiment `peers`: Jettison, native Structured Streaming and Flink SQL on the three outputs of `native`.

Without overload all engines read the same trips, from parquet files and from Kafka, and must write the same results
before their times count. In an overload each gets three times its own capacity: results are as old as the files say in
which they came, and worth in time is a share of what the engine itself delivers at capacity.
Flink comes from PyPI, into an environment of its own; without it the experiment says so, and its checks fail.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
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
_ROUNDS = 2
_QUICK_ROWS_PER_S = 8_000.0


def run(*, quick: bool, say: Say, broker: Broker | None = None) -> Result:
    """Measure. The quick form leaves Flink out, and Kafka unless a broker is given."""
    spark = local_session(kafka=not quick)
    found = Found(quick)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jettison-peers-")))
        engines: list[Engine] = [OnJettison(spark), OnSpark(spark, try_stores=not quick)]
        if not quick:
            engines += _flink(stack, folder, found, say)
        inputs = _inputs(spark, stack, folder, broker, quick, say)
        if not quick:
            _warm_up(spark, folder, say)
        for kind, given in inputs.items():
            _throughputs(engines, kind, given, folder / kind, found, say)
        length = Length(500.0, 1.0, 2.0, 3.0) if quick else Length(1000.0, 6.0, 8.0, 30.0)
        for engine in engines:
            rate = found.median_rows_per_s(engine.name, "parquet")
            if rate is None:
                continue
            work, rows_per_s = (quickly_overloaded, _QUICK_ROWS_PER_S) if quick else (overloaded, rate)
            try:
                found.overloads[engine.name] = work(
                    spark, engine, rows_per_s, folder / f"live-{engine.name}", length, say
                )
            except StartError as error:
                found.without(engine.name, str(error))
                say(f"{engine.name}: {error}")
    return found.result(length)


def _flink(stack: ExitStack, folder: Path, found: Found, say: Say) -> list[Engine]:
    try:
        process = FlinkProcess(flink_home(say), folder / "flink.log")
    except StartError as error:
        found.without("flink", str(error))
        say(f"Flink is not measured: {error}")
        return []
    stack.callback(process.close)
    return [OnFlink(process)]


def _inputs(
    spark: Any, stack: ExitStack, folder: Path, broker: Broker | None, quick: bool, say: Say
) -> Mapping[str, Input]:
    say("writing trips")
    trips = TripFiles(folder / "trips", *((4_000, 3, 40.0) if quick else (1_500_000, 4, 5.0)))
    trips.write(spark)
    if quick and broker is None:
        return {"parquet": trips}
    kafka = stack.enter_context(running_broker(say, broker))
    sent = trips if quick else TripFiles(folder / "sent", 300_000, 4, 5.0)
    if sent is not trips:
        sent.write(spark)
    say("filling a topic")
    kafka.create(_TOPIC)
    topic = TripTopic(kafka.servers, _TOPIC, sent)
    topic.fill(spark)
    return {"parquet": trips, "kafka": topic}


def _warm_up(spark: Any, folder: Path, say: Say) -> None:
    """Engines in Spark's JVM have seen the work before; Flink warms its own JVM up."""
    say("warming up")
    small = TripFiles(folder / "small", 50_000, 8, 5.0)
    small.write(spark)
    engines: list[Engine] = [OnJettison(spark), OnSpark(spark, try_stores=True)]
    for engine in engines:
        engine.rounds(small, folder / "warm" / engine.name, 1)


def _throughputs(engines: list[Engine], kind: str, given: Input, folder: Path, found: Found, say: Say) -> None:
    for engine in engines:
        try:
            rates = engine.rounds(given, folder / engine.name, 1 if found.quick else _ROUNDS)
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
