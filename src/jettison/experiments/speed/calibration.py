"""Calibration that nobody waits for: what it delays, what it takes, and how much its costs differ from time to time.

A network of 12 operators and 5 outputs (a filter, a tumbling and two sliding aggregates, a join of two streams) is
started again and again, each time without costs: they are measured beside the stream. Between these runs it is started
with costs that are given, so that nothing is measured. The first batch of both is compared (`held_ms`): calibration
begins when it is written. So are the batches that run beside calibration, each with the same batch of the other run
(`beside_ms`). The first start of all warms up the JVM: what it found is in the figures that begin with `cold`, and in
no other.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jettison.errors import StartError
from jettison.experiments.harness import Result, Say
from jettison.experiments.speed.fixed_cost import SCHEMA, rows_in_jvm
from jettison.experiments.support.capacity import parquet_sinks
from jettison.network.declare import Network
from jettison.network.operators import Output
from jettison.options.costs import Costs
from jettison.spark.batch.calibration import Calibration, assumed_profile
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.telemetry.events import BatchEvent
from jettison.telemetry.listeners import Listener

_ROWS = 50_000
_BARS = {"held_ms": 200.0, "beside_ms": 200.0, "work_s": 3.0, "spread": 0.2}
_TIMEOUT_S = 300.0


def network() -> Network:
    """Twelve operators and five outputs over two sources."""
    net = Network("calibration")
    trips, tips = (net.source(name, SCHEMA, event_time="pickup", id=["trip"]) for name in ("trips", "tips"))
    paid = trips.where("fare > 0.5", name="paid")
    with_cab = paid.with_columns({"cab": "pmod(trip * 7, 20000)"}, name="with_cab")
    coded = with_cab.with_columns({"code": "substring(sha2(CAST(trip AS string), 256), 1, 3)"}, name="coded")
    coded.where("fare > 20 AND code LIKE 'a%'", name="dear").output("alerts")
    coded.window("10 seconds", by="zone").agg(n="count(*)", fares="sum(fare)", name="busy").output("zones")
    coded.window("60 seconds", slide="5 seconds", by="cab").agg(fares="sum(fare)", name="often").output("cabs")
    coded.window("10 seconds", slide="2 seconds", by="code").agg(n="count(*)", name="lately").output("codes")
    mine = paid.select("trip", "zone", "fare", name="mine")
    other = tips.select("trip", "fare AS tip", name="other")
    mine.join(other, on="trip", within="2 seconds", name="tipped").output("tips_paid")
    return net


def started(spark: Any, folder: Path, rows: int, listener: Listener, *, given: bool) -> Run:
    """A run of the network, without costs or with those that are assumed."""
    net = network()
    names = [source.name for source in net.graph.sources]
    return start(
        net,
        {name: rows_in_jvm(spark, rows, seed) for seed, name in enumerate(names)},
        parquet_sinks(net, folder),
        trigger="1 second",
        checkpoint=str(folder / "checkpoint"),
        shedding=False,
        listeners=[listener],
        costs=Costs(assumed_profile(net.graph), learn=False, shared=()) if given else None,
    )


def measured_batches_ms(spark: Any, folder: Path, rows: int) -> tuple[list[float], Calibration]:
    """How long batches took until costs were measured, and these costs. All but the first batch began while costs were
    measured."""
    events: list[BatchEvent] = []
    run = started(spark, folder, rows, events.append, given=False)
    _wait(run, lambda: run.calibration is not None)
    if run.calibration is None:
        raise StartError(f"calibration: nothing was measured in {_TIMEOUT_S:.0f} s.")
    return [event.sample.duration_ms for event in events if event.calibrating], run.calibration


def given_batches_ms(spark: Any, folder: Path, rows: int, batches: int) -> list[float]:
    """How long as many batches took with costs that were given."""
    events: list[BatchEvent] = []
    run = started(spark, folder, rows, events.append, given=True)
    _wait(run, lambda: len(events) >= batches)
    if len(events) < batches:
        raise StartError(f"calibration: {len(events)} of {batches} batches ran in {_TIMEOUT_S:.0f} s.")
    return [event.sample.duration_ms for event in events[:batches]]


def _wait(run: Run, done: Callable[[], bool]) -> None:
    """Wait until that is so, and stop the run."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not done() and time.monotonic() < deadline:
        run.await_termination(timeout=0.05)
    run.stop()


def delays_ms(measured: Sequence[float], given: Sequence[float]) -> list[float]:
    """How much longer batches took beside calibration, which begins after the first, than the same batches without.

    >>> delays_ms([400.0, 350.0, 320.0], [390.0, 300.0, 310.0])
    [50.0, 10.0]
    """
    return [beside - alone for beside, alone in zip(measured[1:], given[1:], strict=True)]


def spreads(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By operator, how far the largest and the smallest cost are apart, over the median.

    >>> spreads([{"a": 1.0}, {"a": 1.1}, {"a": 0.9}])
    {'a': 0.2}
    """
    found = {}
    for name in costs[0]:
        values = [each[name] for each in costs]
        found[name] = round((max(values) - min(values)) / statistics.median(values), 9)
    return found


def run(*, quick: bool, say: Say) -> Result:
    rounds, rows = (2, 6_000) if quick else (10, _ROWS)
    spark = local_session()
    graph = network().graph
    names = [each.name for each in graph.operators if not isinstance(each, Output)]
    first_ms: dict[str, list[float]] = {"given": [], "measured": []}
    beside_ms: list[float] = []
    found: list[Calibration] = []
    with tempfile.TemporaryDirectory(prefix="jettison-calibration-") as folder:
        for number in range(rounds + 1):
            measured_ms, calibration = measured_batches_ms(spark, Path(folder) / f"{number}-measured", rows)
            found.append(calibration)
            say(f"calibration {number} of {rounds}: {calibration.took_s:.1f} s beside the stream")
            if number == 0:
                continue
            given_ms = given_batches_ms(spark, Path(folder) / f"{number}-given", rows, len(measured_ms))
            first_ms["measured"].append(measured_ms[0])
            first_ms["given"].append(given_ms[0])
            beside_ms += delays_ms(measured_ms, given_ms)
    cold, warm = found[0], found[1:]
    costs = [{name: each.profile.cost(name) for name in names} for each in warm]
    by_operator = spreads(costs)
    median = {name: statistics.median(each[name] for each in costs) for name in names}
    metrics = {
        "held_ms": round(statistics.median(first_ms["measured"]) - statistics.median(first_ms["given"]), 1),
        "beside_ms": round(statistics.median(beside_ms or [0.0]), 1),
        "beside_batches": float(len(beside_ms)),
        "work_s": round(max(each.took_s for each in warm), 2),
        "spread": round(max(by_operator.values()), 3),
        "deviation": round(max(abs(each[name] / median[name] - 1) for each in costs for name in names), 3),
        "processor_s": round(max(each.cpu_s for each in warm), 2),
        "cold_work_s": round(cold.took_s, 2),
        "cold_deviation": round(max(abs(cold.profile.cost(name) / median[name] - 1) for name in names), 3),
        "first_batch_ms": round(statistics.median(first_ms["measured"]), 1),
    }
    checks = {f"{name} is at most {bar:g}": metrics[name] <= bar for name, bar in _BARS.items()}
    checks["batches ran beside calibration"] = bool(beside_ms)
    table = [
        {"calibration": number, "operator": name, "cost_us": each.profile.cost(name), "work_s": each.took_s}
        for number, each in enumerate(found)
        for name in names
    ]
    return Result("calibration", metrics, checks, table, lambda figure: _draw(figure, names, costs))


def _draw(figure: Any, names: Sequence[str], costs: Sequence[Mapping[str, float]]) -> None:
    axes = figure.subplots()
    axes.boxplot([[each[name] for each in costs] for name in names], tick_labels=names)
    axes.set_yscale("log")
    axes.tick_params(axis="x", rotation=60)
    axes.set_ylabel("cost (microseconds a row)")
    axes.set_title("The same network, calibrated again and again")
