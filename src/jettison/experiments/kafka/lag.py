"""Injection rises past capacity: Kafka's lag with a plain Spark query and with Jettison (Stream Economics 5.8).

The plain query does the same work on the same topic: parse and score once, persist, three parquet writes side by side,
in `foreachBatch`. Lag is what the broker has less what the query has committed, sampled four times a
second, in triggers: over what arrives in one trigger at that time.
"""

from __future__ import annotations

import tempfile
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import FIRST_ROWS, LagMeter, committed, kafka_capacity, running_broker
from jettison.experiments.kafka.producer import Truth, fill, producing
from jettison.experiments.speed.overhead import outputs_of, scored
from jettison.experiments.support.capacity import ONE_SECOND_MS, Capacity, parquet_sinks
from jettison.experiments.support.waiting import wait_until
from jettison.experiments.support.workload import taxi_network
from jettison.network.kafka import Kafka
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.read.kafka import read_stream
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.synthetic.rates import Rate, Trace

_LEVELS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_HEADROOM = 0.7  # broker and producer share this machine with Spark


def run(*, quick: bool, say: Say, capacity: Capacity | None = None, broker: Broker | None = None) -> Result:
    """Measure; `capacity` and a broker may be given to save time."""
    seconds, warm_s = (6.0, 3.0) if quick else (96.0, 12.0)
    spark = local_session(kafka=True)
    with running_broker(say, broker) as kafka:
        capacity = capacity or kafka_capacity(
            spark, kafka, say, batches=4 if quick else 8, most_trigger_ms=ONE_SECOND_MS
        )
        rate = _rising(capacity, seconds, warm_s)
        runs = {}
        for name, work in (("jettison", _jettison), ("native", _native)):
            say(f"{name}: injection rises to {_LEVELS[-1]:g} x capacity within {seconds:.0f} s")
            kafka.create(name)
            runs[name] = _measured(spark, kafka, name, work, capacity, rate, warm_s, seconds)
    worst = {name: max((row["lag_triggers"] for row in rows), default=0.0) for name, rows in runs.items()}
    growth = _late_over_early(runs["native"])
    return Result(
        "kafka-lag",
        {
            "max_lag_triggers": round(worst["jettison"], 3),
            "native_max_lag_triggers": round(worst["native"], 3),
            "native_lag_growth": round(growth, 2),
            "capacity_rows_per_s": round(capacity.rows_per_s),
            "trigger_s": capacity.trigger_ms / 1000,
            "headroom": _HEADROOM,
            "injected_over_capacity": round(
                max(row["arriving_rows_per_s"] for row in runs["jettison"]) / capacity.rows_per_s, 2
            ),
            "read_rows_per_s": round(_throughput(runs["jettison"])),
            "native_read_rows_per_s": round(_throughput(runs["native"])),
            "max_lag_s": round(max(row["lag_s"] for row in runs["jettison"]), 2),
            "native_max_lag_s": round(max(row["lag_s"] for row in runs["native"]), 2),
        },
        {
            "lag stays within two triggers' worth of records": worst["jettison"] <= 2.0,
            "lag of the plain query exceeds that": worst["native"] > 2.0,
            "lag of the plain query grows": growth > 2.0,
        },
        [row for rows in runs.values() for row in rows],
        lambda figure: _draw(figure, runs),
    )


def _rising(capacity: Capacity, seconds: float, warm_s: float) -> Rate:
    """Half the capacity while the query warms up, then six levels, each for a sixth of the time."""
    each = seconds / len(_LEVELS)
    times = (0.0, *(warm_s + each * number for number in range(len(_LEVELS))))
    return Trace(times, tuple(capacity.rows_per_s * level for level in (_LEVELS[0], *_LEVELS)))


def _measured(
    spark: Any, broker: Broker, topic: str, work: Any, capacity: Capacity, rate: Rate, warm_s: float, seconds: float
) -> list[dict[str, Any]]:
    """One row per sample of the lag, from when the query is warm."""
    with tempfile.TemporaryDirectory(prefix="jettison-lag-") as name:
        folder, log = Path(name), Path(name) / "sent"
        checkpoint = folder / "checkpoint" / "spark"
        read = Kafka(broker.servers, topic, starting_offsets="earliest")
        stop = work(spark, read, folder, capacity)
        try:
            fill(broker.servers, topic, FIRST_ROWS)
            wait_until(lambda: committed(checkpoint) > 0)
            with (
                producing(broker.servers, topic, rate, warm_s + seconds, log) as producer,
                LagMeter(broker.servers, topic, 2, lambda: committed(checkpoint)) as meter,
            ):
                if producer.wait(warm_s + seconds + 60) != 0:
                    raise RuntimeError(f"the producer ended with code {producer.returncode}")
        finally:
            stop()
        truth = Truth.read(log)
        rows = []
        trigger_s = capacity.trigger_ms / 1000
        for moment, lag in meter.samples:
            elapsed = moment - truth.times_s[0] - warm_s
            if elapsed < 0 or moment > truth.times_s[-1]:
                continue
            arriving = truth.rows_per_s(moment - trigger_s, moment)
            rows.append(
                {
                    "run": topic,
                    "second": round(elapsed, 2),
                    "arriving_rows_per_s": round(arriving),
                    "read_rows": truth.until(moment) - lag,
                    "lag_rows": lag,
                    "lag_s": round(lag / max(1.0, arriving), 3),
                    "lag_triggers": round(lag / max(1.0, arriving * trigger_s), 3),
                }
            )
    return rows


def _jettison(spark: Any, topic: Kafka, folder: Path, capacity: Capacity) -> Any:
    network = taxi_network(topic)
    running = start(
        network,
        sinks=parquet_sinks(network, folder / "out"),
        trigger=capacity.trigger,
        shedding=Shedding(headroom=_HEADROOM),
        checkpoint=str(folder / "checkpoint"),
        costs=Costs(capacity.profile, shared=capacity.shared),
    )
    return running.stop


def _native(spark: Any, topic: Kafka, folder: Path, capacity: Capacity) -> Any:
    def write(frame: Any, batch: int) -> None:
        rows = scored(frame.selectExpr("_jt_value AS value"), beside=()).persist()
        try:
            jobs = [(each, f"{folder}/out/{name}/batch={batch}") for name, each in outputs_of(rows).items()]
            with ThreadPool(len(jobs)) as pool:
                pool.map(lambda job: job[0].write.mode("overwrite").parquet(job[1]), jobs)
        finally:
            rows.unpersist()

    query = (
        read_stream(spark, topic)
        .writeStream.trigger(processingTime=capacity.trigger)
        .option("checkpointLocation", f"{folder}/checkpoint/spark")
        .foreachBatch(write)
        .start()
    )

    def stop() -> None:
        deadline = time.monotonic() + 60
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
        fault = query.exception()
        if fault is not None:
            raise fault

    return stop


def _late_over_early(rows: list[dict[str, Any]]) -> float:
    """Mean lag in the last third over that in the first."""
    third = max(1, len(rows) // 3)
    early, late = rows[:third], rows[-third:]
    mean = [sum(row["lag_rows"] for row in part) / max(1, len(part)) for part in (early, late)]
    return float(mean[1] / max(1.0, mean[0]))


def _throughput(rows: list[dict[str, Any]]) -> float:
    if len(rows) < 2:
        return 0.0
    return float((rows[-1]["read_rows"] - rows[0]["read_rows"]) / (rows[-1]["second"] - rows[0]["second"]))


def _draw(figure: Any, runs: dict[str, list[dict[str, Any]]]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    for name, rows in runs.items():
        above.plot([row["second"] for row in rows], [row["lag_triggers"] for row in rows], label=name)
    above.axhline(2, color="grey", linestyle="--", linewidth=1, label="two triggers")
    above.set_ylabel("lag (triggers' worth)")
    above.legend()
    rows = runs["jettison"]
    below.plot([row["second"] for row in rows], [row["arriving_rows_per_s"] for row in rows], color="black")
    below.set_ylabel("injection (rows/s)")
    below.set_xlabel("time (s)")
    figure.suptitle("Injection rises past capacity: lag grows without shedding and stays bounded with it (5.8)")
