"""The demo: a steady stream, then three times what this machine can process, gone through in four ways."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute
import pyarrow.parquet
from rich.console import Console

from jettison.experiments.harness import Result, save
from jettison.experiments.support.capacity import Capacity, measure_capacity, parquet_sinks
from jettison.experiments.support.waiting import first_batch
from jettison.experiments.support.ways import CAPPED, CHANCE, NONE, VALUE, Overload, Way, compared, draw, verdict
from jettison.experiments.support.workload import DEAR_FARE, taxi_network
from jettison.network.declare import Network
from jettison.network.kafka import Kafka
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.read.generator import generate
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.synthetic.fields import TAXI_PAYLOAD
from jettison.synthetic.rates import Rate, Step

_PATIENCE_S = 8.0
_SIZES = (5_000, 80_000)
_LOG = logging.getLogger("jettison")
_MOST_TRIGGER_MS = 2000.0  # there is time for a dozen seconds per run, and a run should have some batches
_LEAST_TRIGGERS = 12
"""A run lasts so many triggers at least: on a slow or busy machine triggers are long."""
_STEADY_SHARE = 0.25
_SHEDDERS = {NONE: None, CAPPED: None, CHANCE: "random", VALUE: "semantic"}

Feed = Callable[[str, Rate, float, int | None], AbstractContextManager[tuple[Network, dict[str, Any]]]]
"""Where trips come from: for a name, a rate, so many seconds and the most rows of a batch, the network and the streams
to start it with."""


@dataclass(frozen=True)
class _Ran:
    """A run that is over, and how many dear trips are in what it wrote."""

    run: Run
    dear_rows: int


def run_demo(seconds: float, quick: bool, out: Path, console: Console, *, kafka: bool = False) -> int:
    """Measure the capacity, go all ways, show a table and draw a picture. Returns the exit code."""
    origin = "from Kafka, " if kafka else ""
    console.print(
        f"Jettison: taxi trips {origin}parsed and scored once for three outputs, on local Spark", style="bold"
    )
    with ExitStack() as stack:
        _LOG.info("starting Spark, and measuring the capacity of this machine")  # where no spinner can be seen
        with console.status("starting Spark") as status:
            spark = local_session("jettison-demo", kafka=kafka)
            batches = 4 if quick else 5
            if kafka:
                from jettison.experiments.kafka.kafka_runs import kafka_capacity, running_broker

                broker = stack.enter_context(running_broker(status.update))
                capacity = kafka_capacity(spark, broker, status.update, batches=batches)
                feed = partial(_sent, broker)
            else:
                network = taxi_network(valued=True)
                capacity = measure_capacity(
                    spark, network, status.update, batches=batches, sizes=_SIZES, most_trigger_ms=_MOST_TRIGGER_MS
                )
                feed = partial(_generated, spark)
        return _all_ways(capacity, feed, seconds, out, console)


def _all_ways(capacity: Capacity, feed: Feed, seconds: float, out: Path, console: Console) -> int:
    trigger_s = capacity.trigger_ms / 1000
    console.print(f"This machine can process {capacity.rows_per_s:,.0f} rows/s, in batches of {trigger_s:g} s.")
    seconds = max(seconds, _LEAST_TRIGGERS * trigger_s)
    steady_s = _STEADY_SHARE * seconds
    rate = Step(0.5 * capacity.rows_per_s, 3 * capacity.rows_per_s, at_s=steady_s)
    console.print(
        f"Half of that arrives for {steady_s:.0f} s, then three times that for {seconds - steady_s:.0f} s. Four ways:\n"
    )
    cap = round(capacity.rows_per_s * trigger_s)
    ran: dict[str, _Ran] = {}
    for name, shedder in _SHEDDERS.items():
        console.print(name, style="bold")
        with feed(name.replace(" ", "-"), rate, seconds, cap if name == CAPPED else None) as (network, streams):
            ran[name] = _run(network, streams, capacity, seconds, shedder)
    overload = _overload(ran[NONE], rate, seconds, capacity)
    ways = [_way(name, each, overload) for name, each in ran.items()]
    console.print()
    console.print(compared(ways, overload))
    console.print()
    console.print(verdict(ways, overload))
    rows = [row for way in ways for row in way.timeline(overload)]
    written = save(Result("demo", {}, {}, rows, lambda figure: draw(figure, ways, overload)), out)
    console.print(f"picture and numbers: {', '.join(map(str, written))}")
    return 0


@contextmanager
def _generated(
    spark: Any, name: str, rate: Rate, seconds: float, cap: int | None
) -> Iterator[tuple[Network, dict[str, Any]]]:
    all_rows = rate.rows_until(seconds)
    trips = generate(spark, TAXI_PAYLOAD, rate=rate, rows_per_batch=cap, limit_rows=all_rows)
    yield taxi_network(valued=True), {"trips": trips}


@contextmanager
def _sent(
    broker: Any, name: str, rate: Rate, seconds: float, cap: int | None
) -> Iterator[tuple[Network, dict[str, Any]]]:
    """Trips in a topic of their own, sent while the run reads them."""
    from jettison.experiments.kafka.producer import producing

    broker.create(name)
    options = {} if cap is None else {"maxOffsetsPerTrigger": str(cap)}
    with (
        tempfile.TemporaryDirectory(prefix="jettison-sent-") as folder,
        producing(broker.servers, name, rate, seconds, Path(folder) / "sent"),
    ):
        topic = Kafka(broker.servers, name, starting_offsets="earliest", options=options)
        yield taxi_network(topic, valued=True), {}


def _run(network: Network, streams: dict[str, Any], capacity: Capacity, seconds: float, shedder: str | None) -> _Ran:
    with tempfile.TemporaryDirectory(prefix="jettison-demo-") as name:
        running = start(
            network,
            streams,
            parquet_sinks(network, Path(name)),
            trigger=capacity.trigger,
            checkpoint=f"{name}/checkpoint",
            shedding=Shedding(mode="on" if shedder is not None else "off", shedder=shedder or "random"),
            costs=Costs(capacity.profile, shared=capacity.shared),
            live=True,
        )
        first_batch(running)
        running.await_termination(timeout=seconds)
        running.stop(patience_s=_PATIENCE_S)
        return _Ran(running, _dear_rows(Path(name) / "fares"))


def _dear_rows(folder: Path) -> int:
    """How many dear trips an output got, from what it has written."""
    files = list(folder.glob("batch=*/*.parquet"))
    tables = (pyarrow.parquet.ParquetFile(path).read(columns=["fare"]) for path in files)
    return sum(pyarrow.compute.sum(pyarrow.compute.greater_equal(t["fare"], DEAR_FARE)).as_py() or 0 for t in tables)


def _rows(run: Run) -> dict[str, int]:
    """By output, how many rows it got."""
    rows = {output.name: 0 for output in run.graph.outputs}
    for sample, _ in run.history:
        for name, seen in sample.outputs.items():
            rows[name] += seen.rows
    return rows


def _overload(ran: _Ran, rate: Rate, seconds: float, capacity: Capacity) -> Overload:
    """What all ways go through: of what was read when nothing was shed it is known what outputs get."""
    read = max(1, ran.run.totals.rows_in)
    passing = {name: count / read for name, count in _rows(ran.run).items()}
    graph, dear = ran.run.graph, ran.dear_rows / read
    return Overload(graph, rate, seconds, capacity.rows_per_s, capacity.trigger_ms, passing, dear)


def _way(name: str, ran: _Ran, overload: Overload) -> Way:
    """What has arrived and was not read by the end counts as not delivered."""
    offered = {output: share * overload.arrived for output, share in overload.passing.items()}
    delivered = {output: min(1.0, count / max(1.0, offered[output])) for output, count in _rows(ran.run).items()}
    dear = min(1.0, ran.dear_rows / max(1.0, overload.dear * overload.arrived))
    return Way(name, [sample for sample, _ in ran.run.history], delivered, dear)
