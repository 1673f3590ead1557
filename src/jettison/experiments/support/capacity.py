"""The capacity of a network on this machine, measured and never assumed: closed-loop batches of two sizes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Say
from jettison.network.declare import Network
from jettison.options.costs import Costs
from jettison.spark.read.generated_rows import GeneratedRows
from jettison.spark.read.generator import generate
from jettison.spark.run.run import Run
from jettison.spark.run.start import start
from jettison.spark.write.sinks import ParquetSink
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile
from jettison.synthetic.fields import TAXI_PAYLOAD

_SIZES = (5_000, 160_000)

ONE_SECOND_MS = 1000.0
"""The trigger of experiments on overload: a batch's fixed part takes a quarter of it on two cores, or less."""
_TRIGGERS_MS = (1000.0, 2000.0, 4000.0, 8000.0)
_HEADROOM = 0.9


@dataclass(frozen=True)
class Capacity:
    """Rows per second that fit into the budget of one trigger, and what was learned about costs on the way.

    The trigger is 1 s, or longer on a machine where the fixed work of a batch would take half of that.
    """

    rows_per_s: float
    trigger_ms: float
    fixed_ms: float
    us_per_row: float
    profile: Profile
    shared: frozenset[str]

    @property
    def trigger(self) -> str:
        return f"{self.trigger_ms:.0f} milliseconds"

    @property
    def budget_ms(self) -> float:
        return _HEADROOM * self.trigger_ms


def parquet_sinks(network: Network, folder: Path) -> dict[str, ParquetSink]:
    return {output.name: ParquetSink(str(folder / output.name)) for output in network.graph.outputs}


Loop = Callable[[Path, int, int, Profile | None, frozenset[str]], Run]
"""Runs a network: folder, rows per batch, batches, costs, shared operators. All batches at once, nothing shed."""


def measure_capacity(
    spark: Any,
    network: Network,
    say: Say,
    *,
    batches: int = 12,
    loop: Loop | None = None,
    sizes: tuple[int, int] = _SIZES,
    read_us: float | None = None,
    most_trigger_ms: float = _TRIGGERS_MS[-1],
) -> Capacity:
    """Run batches of two sizes as fast as they go, nothing shed; a line through the two medians gives the capacity.

    The first run warms the JVM up and teaches costs; of each later one the first two batches are left out. A trigger
    longer than `most_trigger_ms` is taken only where the fixed part would leave little of that.
    """
    say("measuring capacity: warming up")
    small, large = sizes
    run_loop = loop or (lambda *arguments: closed_loop(spark, network, *arguments))
    with tempfile.TemporaryDirectory(prefix="jettison-capacity-") as name:
        profile, shared = None, frozenset[str]()
        times: dict[int, list[float]] = {small: [], large: []}
        rounds = 1 if batches < 10 else 3
        for number, rows in enumerate((large, *(small, large) * rounds)):
            run = run_loop(Path(name) / str(number), rows, batches, profile, shared)
            profile, shared = run.controller.profile, run.shared
            if number > 0:
                times[rows] += [sample.duration_ms for sample, _ in list(run.history)[2:]]
                say(f"measuring capacity: {rows:,} rows take {statistics.median(times[rows]):.0f} ms")
        medians = {rows: statistics.median(measured) for rows, measured in times.items()}
        assert profile is not None
        per_row = 1000 * (medians[large] - medians[small]) / (large - small)
        us_per_row = max(per_row, 100 * medians[large] / large)  # noise must not make rows free
        fixed_ms = max(0.0, medians[large] - us_per_row * large / 1000)
        trigger_ms = next((t for t in _TRIGGERS_MS if fixed_ms < _HEADROOM * t / 2), _TRIGGERS_MS[-1])
        if trigger_ms > most_trigger_ms and fixed_ms < 0.75 * _HEADROOM * most_trigger_ms:
            trigger_ms = most_trigger_ms
        rows_per_s = 1e6 * (_HEADROOM * trigger_ms - fixed_ms) / us_per_row / trigger_ms
        say(f"capacity: {rows_per_s:,.0f} rows/s ({fixed_ms:.0f} ms fixed, {us_per_row:.1f} us per row)")
        if read_us is None:
            made = GeneratedRows.of(generate(spark, TAXI_PAYLOAD))
            assert made is not None
            read_us = read_us_per_row(lambda rows: made.rows(spark, 0, rows, start_us=0))
        fitted = _fitted(network, profile, fixed_ms, us_per_row, read_us)
        return Capacity(rows_per_s, trigger_ms, fixed_ms, us_per_row, fitted, shared)


def read_us_per_row(read: Callable[[int], Any], sizes: tuple[int, int] = (100_000, 500_000)) -> float:
    """What reading one more row costs: a line through the best of three at two sizes, as a job costs something too."""
    best = {}
    for rows in sizes:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            read(rows).write.format("noop").mode("overwrite").save()
            times.append(time.perf_counter() - began)
        best[rows] = min(times)
    small, large = sizes
    return max(0.05, 1e6 * (best[large] - best[small]) / (large - small))


def _fitted(network: Network, profile: Profile, fixed_ms: float, us_per_row: float, read_us: float) -> Profile:
    """The profile with the measured fixed part and reading cost, its operators scaled to the measured cost of a row."""
    source = network.graph.sources[0].name
    reading = min(read_us, 0.5 * us_per_row)
    factor = (us_per_row - reading) / load_coefficients(network.graph, profile)[source]
    costs = {name: factor * cost for name, cost in profile.cost_us.items()}
    looks = {name: factor * cost for name, cost in profile.look_us.items()}
    return replace(profile, cost_us=costs, look_us=looks, fixed_ms=fixed_ms, read_us={source: reading})


def closed_loop(
    spark: Any,
    network: Network,
    folder: Path,
    rows: int,
    batches: int,
    profile: Profile | None,
    shared: frozenset[str] = frozenset(),
    fields: Mapping[str, Any] = TAXI_PAYLOAD,
    *,
    in_python: bool = False,
) -> Run:
    """Run so many batches of `rows` rows, one after another, nothing shed; `in_python`: Python workers make the rows,
    as they do for a query that is not ours."""
    stream = generate(spark, fields, rows_per_batch=rows, limit_rows=rows * batches)
    stream = stream.select("*") if in_python else stream  # a stream that is more than the generator is read as it is
    run = start(
        network,
        {network.graph.sources[0].name: stream},
        parquet_sinks(network, folder),
        trigger="1 millisecond",
        checkpoint=str(folder / "checkpoint"),
        shedding=False,
        costs=Costs(profile, shared=shared if profile is not None else None),
    )
    wait_for(run, batches)
    return run


def wait_for(run: Run, batches: int, timeout_s: float = 300.0) -> None:
    """Wait until so many batches have run and costs are measured, then stop."""
    deadline = time.monotonic() + timeout_s
    while len(run.history) < batches and time.monotonic() < deadline:
        if run.await_termination(timeout=0.2):
            return
    run.await_calibration(timeout=30.0)  # what is measured beside a short run would be lost with it
    run.stop()
