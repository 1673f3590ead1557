"""How well the arrival rate is known from offsets, through ups and downs (Stream Economics 5.7, Figure 5.4).

The estimate of every batch is compared with what the producer says it sent in the same interval. Accuracy is the share
of tuples that were kept; while there is shedding it must follow the rate.
"""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import FIRST_ROWS, kafka_capacity, running_broker
from jettison.experiments.kafka.producer import Truth, fill, producing
from jettison.experiments.support.capacity import Capacity, parquet_sinks
from jettison.experiments.support.waiting import first_batch
from jettison.experiments.support.workload import taxi_network
from jettison.network.kafka import Kafka
from jettison.options.costs import Costs
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.synthetic.rates import Trace

_TOPIC = "rate"
_LEVELS = (0.6, 1.4, 2.2, 3.0, 2.2, 1.4, 0.6, 1.8, 2.6, 1.8, 0.6)


def run(*, quick: bool, say: Say, capacity: Capacity | None = None, broker: Broker | None = None) -> Result:
    """Measure; `capacity` and a broker may be given to save time."""
    each_s, warm_s = (2.0, 3.0) if quick else (9.0, 8.0)
    levels = _LEVELS[:5] if quick else _LEVELS
    spark = local_session(kafka=True)
    with running_broker(say, broker) as kafka, tempfile.TemporaryDirectory(prefix="jettison-rate-") as name:
        capacity = capacity or kafka_capacity(spark, kafka, say, batches=4 if quick else 8)
        kafka.create(_TOPIC)
        times = (0.0, *(warm_s + each_s * number for number in range(len(levels))))
        rate = Trace(times, tuple(capacity.rows_per_s * level for level in (levels[0], *levels)))
        seconds = warm_s + each_s * len(levels)
        say(f"injection up and down around {capacity.rows_per_s:,.0f} rows/s for {seconds:.0f} s")
        network = taxi_network(Kafka(kafka.servers, _TOPIC, starting_offsets="earliest"))
        running = start(
            network,
            sinks=parquet_sinks(network, Path(name) / "out"),
            trigger=capacity.trigger,
            checkpoint=f"{name}/checkpoint",
            costs=Costs(capacity.profile, shared=capacity.shared),
        )
        fill(kafka.servers, _TOPIC, FIRST_ROWS)
        first_batch(running)
        log = Path(name) / "sent"
        with producing(kafka.servers, _TOPIC, rate, seconds, log) as producer:
            if producer.wait(seconds + 60) != 0:
                raise RuntimeError(f"the producer ended with code {producer.returncode}")
        time.sleep(capacity.trigger_ms / 1000)
        running.stop()
        rows = _compared(running, Truth.read(log), warm_s / 2)
    errors = np.array([row["error"] for row in rows])
    shedding = [row for row in rows if row["accuracy"] < 1]
    correlation = _correlation(shedding)
    mean, p90 = (float(errors.mean()), float(np.quantile(np.abs(errors), 0.9))) if rows else (1.0, 1.0)
    return Result(
        "kafka-rate",
        {
            "mean_error": round(mean, 5),
            "error_spread": round(float(errors.std()) if rows else 1.0, 5),
            "p90_error": round(p90, 5),
            "mean_absolute_error": round(float(np.abs(errors).mean()) if rows else 1.0, 5),
            "correlation": round(correlation, 3),
            "correlation_with_inverse_rate": round(_correlation(shedding, inverse=True), 3),
            "batches": len(rows),
            "batches_that_shed": len(shedding),
        },
        {
            "mean error is at most the seed's .4 %": abs(mean) <= 0.004,
            "90th percentile of the error is at most the seed's 2.8 %": p90 <= 0.028,
            "accuracy falls as the rate rises": correlation <= -0.8,
        },
        rows,
        lambda figure: _draw(figure, rows),
    )


def _compared(running: Run, truth: Truth, after_s: float) -> list[dict[str, Any]]:
    """Per batch: estimated and true rate over the same interval, and what was kept."""
    rows = []
    samples = [(sample, plan, sample.topics[_TOPIC]) for sample, plan in running.history if _TOPIC in sample.topics]
    wall_s = time.time() - time.monotonic()  # the producer's log has the wall clock
    for (_, _, before), (sample, plan, seen) in pairwise(samples):
        began, ended = wall_s + before.at_s, wall_s + seen.at_s
        if ended <= began or began < truth.times_s[0] + after_s or ended > truth.times_s[-1]:
            continue
        actual = truth.rows_per_s(began, ended)
        read, kept = sample.arcs["trips"]
        arrived = read + sample.skipped.get("trips", 0)
        rows.append(
            {
                "second": round(ended - truth.times_s[0], 2),
                "estimated_rows_per_s": round(seen.rows_per_s, 1),
                "actual_rows_per_s": round(actual, 1),
                "error": (seen.rows_per_s - actual) / actual,
                "accuracy": round(kept / arrived if arrived else 1.0, 4),
                "lag_rows": seen.lag_rows,
                "plan_row": plan.row,
            }
        )
    return rows


def _correlation(rows: list[dict[str, Any]], inverse: bool = False) -> float:
    """Of accuracy with the rate, or with its inverse: what fits into a budget is a share that falls like 1 / rate."""
    if len(rows) < 3:
        return 0.0
    rates = np.array([row["estimated_rows_per_s"] for row in rows])
    accuracy = np.array([row["accuracy"] for row in rows])
    return float(np.corrcoef(1 / rates if inverse else rates, accuracy)[0, 1])


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    first, second, third = figure.subplots(3, 1, sharex=True)
    seconds = [row["second"] for row in rows]
    first.plot(seconds, [row["accuracy"] for row in rows], marker=".")
    first.set_ylabel("accuracy")
    second.plot(seconds, [row["actual_rows_per_s"] for row in rows], label="sent", color="black")
    second.plot(seconds, [row["estimated_rows_per_s"] for row in rows], ".", label="estimated")
    second.set_ylabel("rows/s")
    second.legend()
    third.plot(seconds, [row["lag_rows"] for row in rows])
    third.set_ylabel("records behind")
    third.set_xlabel("time (s)")
    figure.suptitle("Accuracy follows the injection rate, which is known from offsets (Figure 5.4)")
