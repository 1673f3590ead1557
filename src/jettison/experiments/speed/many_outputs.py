"""Thirty small outputs of one source: what a batch takes, over that of one output.

Filters and tumbling windows of the same trips, as a platform has them that many people share. Rows are made in the JVM,
100,000 a batch. Runs of one output and of thirty alternate; the median trigger counts, as Spark gives it.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.speed.fixed_cost import SCHEMA, jettison
from jettison.network.declare import Network
from jettison.spark.run.session import local_session

_ROWS = 100_000
_OUTPUTS = 30
_BARS = {"thirty_vs_one": 4.0, "thirty_s": 1.0}


def network(outputs: int) -> Network:
    """Two filters for every window."""
    net = Network("many-outputs")
    trips = net.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    for number in range(outputs):
        here = trips.where(f"zone = {number}", name=f"zone_{number}")
        if number % 3 == 2:
            windows = here.window("10 seconds")
            windows.agg(n="count(*)", fares="sum(fare)", name=f"busy_{number}").output(f"windows_{number}")
        else:
            here.output(f"trips_{number}")
    return net


def run(*, quick: bool, say: Say) -> Result:
    rounds, batches, rows = (1, 3, 2_000) if quick else (3, 20, _ROWS)
    spark = local_session()
    variants: dict[str, Callable[[Any, Path, int], list[float]]] = {
        name: partial(jettison, network=partial(network, outputs), rows=rows)
        for name, outputs in (("one output", 1), ("thirty outputs", _OUTPUTS))
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    table = []
    with tempfile.TemporaryDirectory(prefix="jettison-many-outputs-") as folder:
        for number in range(rounds + 1):
            for variant, work in variants.items():
                measured = work(spark, Path(folder) / f"{variant.replace(' ', '-')}-{number}", batches)
                if number == 0:
                    say(f"warming up: {variant}")
                    continue
                times[variant] += measured[batches // 5 :]
                say(f"round {number} of {rounds}: {variant}, {statistics.median(measured[batches // 5 :]):.0f} ms")
                table += [{"round": number, "variant": variant, "trigger_ms": ms} for ms in measured]
    one, thirty = (statistics.median(values) for values in times.values())
    metrics = {
        "thirty_vs_one": round(thirty / one, 2),
        "thirty_s": round(thirty / 1000, 3),
        "one_s": round(one / 1000, 3),
        "rows_per_batch": rows,
    }
    checks = {f"{name} is at most {bar:g}": metrics[name] <= bar for name, bar in _BARS.items()}
    return Result("many-outputs", metrics, checks, table, lambda figure: _draw(figure, times))


def _draw(figure: Any, times: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    axes.boxplot(list(times.values()), tick_labels=list(times), showfliers=False)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("a trigger (ms)")
    axes.set_title("One output and thirty of the same source")
