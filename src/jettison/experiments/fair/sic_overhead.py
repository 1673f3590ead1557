"""What SIC costs while nothing is shed: batches with it over batches without it, one after the other in one run.

Twenty small queries of one source, every third with windows, whose results carry `_sic`. In every other batch the loop
follows SIC, shows it and writes it into the ledger. Durations are those of batches as the loop measures them; medians
are compared. `sic_ms` is what the steps themselves take, measured beside it.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.speed.fixed_cost import SCHEMA, rows_in_jvm
from jettison.experiments.support.capacity import parquet_sinks
from jettison.network.declare import Network
from jettison.options.costs import Costs
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile
from jettison.telemetry.events import BatchEvent

_QUERIES = 20
_ROWS = 100_000
_BAR = 0.99


def network(queries: int) -> Network:
    """Two filters for every window."""
    net = Network("sic-overhead")
    trips = net.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    for number in range(queries):
        here = trips.where(f"zone = {number}", name=f"zone_{number}")
        if number % 3 == 2:
            windows = here.window("10 seconds").agg(n="count(*)", fares="sum(fare)", name=f"busy_{number}")
            windows.output(f"windows_{number}", quality=True)
        else:
            here.output(f"trips_{number}", quality=True)
    return net


def run(*, quick: bool, say: Say) -> Result:
    queries, batches, rows, warm = (5, 6, 2_000, 2) if quick else (_QUERIES, 160, _ROWS, 20)
    spark, net = local_session(), network(queries)
    cheap = Profile(dict.fromkeys(net.graph.by_name, 0.01), {}, fixed_ms=20.0)
    took: dict[bool, list[float]] = {True: [], False: []}
    table: list[dict[str, Any]] = []
    done = threading.Event()

    def heard(event: BatchEvent) -> None:
        controller = running.controller
        if event.sample.batch >= warm:
            took[controller.follows_sic].append(event.sample.duration_ms)
            entry = {"batch": event.sample.batch, "sic": controller.follows_sic}
            table.append({**entry, "duration_ms": round(event.sample.duration_ms, 1)})
        controller.follows_sic = not controller.follows_sic
        if event.sample.batch >= warm + batches:
            done.set()

    with tempfile.TemporaryDirectory(prefix="jettison-sic-overhead-") as folder:
        running = start(
            net,
            {"trips": rows_in_jvm(spark, rows, 0)},
            parquet_sinks(net, Path(folder)),
            trigger="100 milliseconds",
            checkpoint=str(Path(folder) / "checkpoint"),
            costs=Costs(cheap, learn=False, shared=()),
        )
        running.add_listener(heard)
        say(f"{batches} batches of {rows:,} rows, every other one with SIC")
        if not done.wait(900):
            say("it took too long: fewer batches are compared")
        alone_ms = _alone_ms(running)
        running.stop()
    on, off = (statistics.median(took[each]) for each in (True, False))
    metrics = {
        "throughput_share": round(off / on, 4),
        "on_ms": round(on, 1),
        "off_ms": round(off, 1),
        "sic_ms": round(alone_ms, 2),
        "queries": queries,
        "rows_per_batch": rows,
    }
    checks = {f"throughput_share is at least {_BAR}": metrics["throughput_share"] >= _BAR}
    return Result("sic-overhead", metrics, checks, table, lambda figure: _draw(figure, took))


def _alone_ms(running: Any) -> float:
    """What it takes to follow a batch and to list all queries, as the median of some."""
    sample, window = running.history[-1][0], running.controller.sic
    times = []
    for _ in range(20):
        began = time.perf_counter()
        after = window.after(sample)
        after.all()
        assert after.latest is not None
        after.latest.to_dict(after.graph)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def _draw(figure: Any, took: dict[bool, list[float]]) -> None:
    axes = figure.subplots()
    axes.boxplot([took[True], took[False]], tick_labels=["with SIC", "without"], showfliers=False)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("a batch (ms)")
    axes.set_title("Batches with and without SIC, nothing shed")
