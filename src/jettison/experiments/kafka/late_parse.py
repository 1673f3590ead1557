"""What dropping before parsing gains over dropping after it, at 80 % shed (DISSP 5.4: late deserialisation).

The same network on the same records of a topic, with the same share kept: once with the drop at the input, where a
record's identity is enough, once behind the source, where its value has been parsed. There the rows that reach the drop
are counted too, as they always are on an inner arc.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import running_broker
from jettison.experiments.kafka.producer import fill
from jettison.experiments.support.workload import taxi_network
from jettison.network.kafka import Kafka
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.read.kafka import read_between
from jettison.spark.run.session import local_session
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.sinks import FormatSink

_TOPIC = "late-parse"
_KEEP = 0.2
_PLACES = {"before parsing": "trips", "after parsing": "trips>paid"}


def run(*, quick: bool, say: Say, broker: Broker | None = None) -> Result:
    rows, rounds = (20_000, 3) if quick else (300_000, 12)
    spark = local_session(kafka=True)
    with running_broker(say, broker) as kafka:
        kafka.create(_TOPIC)
        say(f"sending {rows:,} trips")
        fill(kafka.servers, _TOPIC, rows)
        times = _alternate(spark, kafka, rows, rounds, say)
    median = {place: statistics.median(seconds) for place, seconds in times.items()}
    gain = median["after parsing"] / median["before parsing"]
    table = [
        {"place": place, "round": n, "seconds": round(s, 4)} for place in times for n, s in enumerate(times[place])
    ]
    return Result(
        "kafka-late-parse",
        {
            "gain": round(gain, 3),
            **{f"{place.replace(' ', '_')}_rows_per_s": round(rows / seconds) for place, seconds in median.items()},
        },
        {"dropping before parsing is faster": gain > 1.0},
        table,
        lambda figure: _draw(figure, {place: rows / seconds for place, seconds in median.items()}),
    )


def _alternate(spark: Any, broker: Broker, rows: int, rounds: int, say: Say) -> dict[str, list[float]]:
    """Seconds per round and place; the first rounds warm up and do not count."""
    topic = Kafka(broker.servers, _TOPIC)
    graph = taxi_network(topic).graph
    sinks = {output.name: FormatSink("noop") for output in graph.outputs}
    runner = BatchRunner(spark, graph, {}, RunSinks.of(graph, sinks, FormatSink("noop")))
    runner.shared = frozenset({"scored"})
    found = broker.ends(_TOPIC)
    start, end = {_TOPIC: dict.fromkeys(found, 0)}, {_TOPIC: found}
    times: dict[str, list[float]] = {place: [] for place in _PLACES}
    warm = max(1, rounds // 4)
    for number in range(warm + rounds):
        say(f"round {number + 1} of {warm + rounds}")
        for place, arc in list(_PLACES.items())[:: 1 if number % 2 else -1]:
            plan = Plan({arc: Random(_KEEP)}, "experiment")
            began = time.perf_counter()
            runner.run({"trips": read_between(spark, topic, start, end)}, number, plan, {"trips": rows})
            if number >= warm:
                times[place].append(time.perf_counter() - began)
    runner.close()
    return times


def _draw(figure: Any, rows_per_s: dict[str, float]) -> None:
    axes = figure.subplots()
    axes.bar(list(rows_per_s), list(rows_per_s.values()))
    axes.set_ylabel("rows/s")
    axes.set_title("80 % shed: dropping before the value is parsed, and after (DISSP 5.4)")
