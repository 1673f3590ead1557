"""Three times the capacity for a minute: with shedding results stay fresh, without it they grow ever staler.

Claims (thesis 3.1, 3.2): load shedding keeps latency bounded under a lasting overload, at little cost in work done;
without it queues and latency grow without end. Goodput is worth delivered in time (`statistics.worth`) over that of
the same network at its capacity, nothing shed. That run must itself deliver nearly all in time
(`steady_in_time_share`), or the ratio flatters. Metrics that end in `_by_rows` weigh outputs by the rows offered to
them; the checks judge the others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import ONE_SECOND_MS, Capacity, measure_capacity, parquet_sinks
from jettison.experiments.support.timeline import draw, p99_ms, processed_rows, table
from jettison.experiments.support.waiting import first_batch
from jettison.experiments.support.workload import taxi_network
from jettison.network.graph import Graph
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.read.generator import generate
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.samples import BatchSample
from jettison.statistics.worth import DEADLINE_TRIGGERS, shares_in_time, worth_by_rows_per_s, worth_per_s
from jettison.synthetic.fields import TAXI_PAYLOAD
from jettison.synthetic.rates import Constant, Rate

_WARM_BATCHES = 3
_TIMES = 3.0


def run(*, quick: bool, say: Say, capacity: Capacity | None = None) -> Result:
    """Measure; `capacity` may be given to save the time of measuring it."""
    seconds = 3.0 if quick else 60.0
    spark = local_session()
    capacity = capacity or measure_capacity(
        spark, taxi_network(), say, batches=6 if quick else 12, most_trigger_ms=ONE_SECOND_MS
    )
    say(f"at capacity for {seconds / 3:.0f} s, nothing shed")
    steady = timed_run(spark, capacity, Constant(capacity.rows_per_s), seconds / 3, shedding=False)
    say(f"three times the capacity for {seconds:.0f} s, with shedding")
    shed = timed_run(spark, capacity, Constant(_TIMES * capacity.rows_per_s), seconds)
    say(f"three times the capacity for {seconds:.0f} s, without shedding")
    unshed = timed_run(spark, capacity, Constant(_TIMES * capacity.rows_per_s), seconds, shedding=False)
    passing = _passing(steady)
    at_capacity = _delivered(steady, capacity, 1.0, passing)
    offered = _worth(steady.graph, dict.fromkeys(passing, 1.0), capacity.rows_per_s, passing)
    steady_share = at_capacity.over(offered)
    goodput, unshed_goodput = (_delivered(each, capacity, _TIMES, passing).over(at_capacity) for each in (shed, unshed))
    rows_share, output_rows_share = (
        _per_s(shed, rows) / _per_s(steady, rows) for rows in (came_through, processed_rows)
    )
    p99_triggers = p99_ms([sample for sample, _ in shed.history]) / capacity.trigger_ms
    growth = _growth(unshed, seconds)
    tables = {"with shedding": table(shed, "shed"), "without shedding": table(unshed, "unshed")}
    return Result(
        "overload",
        {
            "p99_triggers": round(p99_triggers, 3),
            "goodput_share": round(goodput.in_time, 3),
            "goodput_share_by_rows": round(goodput.by_rows, 3),
            "steady_in_time_share": round(steady_share.in_time, 3),
            "steady_in_time_share_by_rows": round(steady_share.by_rows, 3),
            "unshed_growth": round(growth, 3),
            "unshed_goodput_share": round(unshed_goodput.in_time, 3),
            "unshed_goodput_share_by_rows": round(unshed_goodput.by_rows, 3),
            "rows_share": round(rows_share, 3),
            "output_rows_share": round(output_rows_share, 3),
            "capacity_rows_per_s": round(capacity.rows_per_s),
            "fixed_ms": round(capacity.fixed_ms),
            "trigger_s": capacity.trigger_ms / 1000,
            "unshed_p99_triggers": round(p99_ms([sample for sample, _ in unshed.history]) / capacity.trigger_ms, 2),
            **{f"{name}_in_time_share": round(each.in_time_share, 3) for name, each in shed.report().outputs.items()},
        },
        {
            "p99 latency is at most 2 triggers": p99_triggers <= 2.0,
            "goodput is at least .95 of that without overload": goodput.in_time >= 0.95,
            "without shedding p99 latency grows by more than 1.5": growth > 1.5,
            **({} if quick else {"at capacity .95 of the worth offered arrives in time": steady_share.in_time >= 0.95}),
        },
        [*table(steady, "steady"), *tables["with shedding"], *tables["without shedding"]],
        lambda figure: draw(
            figure,
            tables,
            f"3 x capacity ({capacity.rows_per_s:,.0f} rows/s): latency stays bounded",
            capacity.budget_ms,
        ),
    )


def timed_run(spark: Any, capacity: Capacity, rate: Rate, seconds: float, *, shedding: bool = True) -> Run:
    """Run the taxi network at a rate, for so long after its first batch, with the costs of the capacity measurement."""
    network = taxi_network()
    with tempfile.TemporaryDirectory(prefix="jettison-overload-") as name:
        running = start(
            network,
            {"trips": generate(spark, TAXI_PAYLOAD, rate=rate)},
            parquet_sinks(network, Path(name)),
            trigger=capacity.trigger,
            shedding=Shedding(mode="on" if shedding else "off", headroom=0.9),
            checkpoint=f"{name}/checkpoint",
            costs=Costs(capacity.profile, shared=capacity.shared),
        )
        first_batch(running)
        running.await_termination(timeout=seconds)
        running.stop()
    return running


def came_through(sample: BatchSample) -> int:
    """Trips that were processed to the end: those that the output with the most of them got.

    A plan may close an output that is worth little and keep more trips for the others; rows at all outputs together
    would count a trip once per output that is open.
    """
    return max((seen.rows for seen in sample.outputs.values()), default=0)


def _passing(running: Run) -> dict[str, float]:
    """By output, how many rows it gets for each row that is read, nothing shed."""
    read = max(1, running.totals.rows_in)
    return {output.name: running.totals.rows.get(output.name, 0) / read for output in running.graph.outputs}


@dataclass(frozen=True)
class _Worth:
    """Worth, or a ratio of two: as plans weigh outputs, and by the rows offered to them."""

    in_time: float
    by_rows: float

    def over(self, other: _Worth) -> _Worth:
        """The ratios to another worth; 0 where that is 0."""
        return _Worth(
            self.in_time / other.in_time if other.in_time > 0 else 0.0,
            self.by_rows / other.by_rows if other.by_rows > 0 else 0.0,
        )


def _worth(graph: Graph, shares: Mapping[str, float], rows_per_s: float, passing: Mapping[str, float]) -> _Worth:
    """Worth per second when so many rows arrive, and of each output this share comes in time."""
    offered = {name: share * rows_per_s for name, share in passing.items()}
    return _Worth(worth_per_s(graph, shares, rows_per_s), worth_by_rows_per_s(graph, shares, offered))


def _delivered(running: Run, capacity: Capacity, times: float, passing: Mapping[str, float]) -> _Worth:
    """Worth delivered in time per second, at so many times the capacity, the first batches left out."""
    samples, rows_per_s = _warm(running), times * capacity.rows_per_s
    arrived = round(rows_per_s * sum(sample.interval_ms for sample in samples) / 1000)
    shares = shares_in_time(running.graph, samples, arrived, DEADLINE_TRIGGERS * capacity.trigger_ms)
    return _worth(running.graph, shares, rows_per_s, passing)


def _warm(running: Run) -> list[BatchSample]:
    samples = [sample for sample, _ in running.history]
    return samples[min(_WARM_BATCHES, len(samples) - 1) :]


def _per_s(running: Run, rows: Callable[[BatchSample], int]) -> float:
    """Rows per second, the first batches left out."""
    samples = _warm(running)
    elapsed_s = sum(sample.interval_ms for sample in samples) / 1000
    return sum(map(rows, samples)) / elapsed_s if elapsed_s else 0.0


def _growth(running: Run, seconds: float) -> float:
    """p99 latency of batches that began in the last third of the run over those of the first third."""
    samples = [sample for sample, _ in running.history]
    first_ms = samples[0].started_ms
    early = [sample for sample in samples if sample.started_ms - first_ms < 1000 * seconds / 3]
    late = [sample for sample in samples if sample.started_ms - first_ms >= 2000 * seconds / 3] or samples[-1:]
    return p99_ms(late) / max(1.0, p99_ms(early))
