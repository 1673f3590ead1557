"""The demo: a burst against a small network on this machine, nothing shed, shed by chance, shed by value."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jettison.experiments.harness import Result, save
from jettison.experiments.support.capacity import Capacity, measure_capacity, parquet_sinks
from jettison.experiments.support.timeline import draw, table
from jettison.experiments.support.workload import taxi_network
from jettison.network.declare import Network
from jettison.network.kafka import Kafka
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.read.generator import generate
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.synthetic.fields import TAXI_PAYLOAD
from jettison.synthetic.rates import Burst, Rate

_PATIENCE_S = 8.0
_SIZES = (5_000, 80_000)
_LOG = logging.getLogger("jettison")
_MOST_TRIGGER_MS = 2000.0  # there is time for a dozen seconds per run, and a run should have some batches
_LEAST_TRIGGERS = 10
"""A run lasts so many triggers at least, so that its burst lasts five: on a slow or busy machine triggers are long."""


Feed = Callable[[str, Rate, float], AbstractContextManager[tuple[Network, dict[str, Any]]]]
"""Where trips come from: for a name, a rate and so many seconds, the network and the streams to start it with."""


def run_demo(seconds: float, quick: bool, out: Path, console: Console, *, kafka: bool = False) -> int:
    """Measure the capacity, run both ways, show a table and draw a picture. Returns the exit code."""
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
                from jettison.experiments.support.kafka_runs import kafka_capacity, running_broker

                broker = stack.enter_context(running_broker(status.update))
                capacity = kafka_capacity(spark, broker, status.update, batches=batches)
                feed = partial(_sent, broker)
            else:
                network = taxi_network(valued=True)
                capacity = measure_capacity(
                    spark, network, status.update, batches=batches, sizes=_SIZES, most_trigger_ms=_MOST_TRIGGER_MS
                )
                feed = partial(_generated, spark)
        return _both_ways(capacity, feed, seconds, out, console)


def _both_ways(capacity: Capacity, feed: Feed, seconds: float, out: Path, console: Console) -> int:
    console.print(
        f"capacity of this machine: {capacity.rows_per_s:,.0f} rows/s "
        f"within 90 % of a {capacity.trigger_ms / 1000:.0f} s trigger"
    )
    seconds = max(seconds, _LEAST_TRIGGERS * capacity.trigger_ms / 1000)
    rate = Burst(0.5 * capacity.rows_per_s, 3 * capacity.rows_per_s, at_s=seconds / 5, length_s=seconds / 2)
    console.print(
        f"load: half the capacity, and a burst of three times the capacity for {seconds / 2:.0f} s; three runs of "
        f"{seconds:.0f} s each\n"
    )
    runs: dict[str, Run] = {}
    for label, shedder in (("none", None), ("random", "random"), ("semantic", "semantic")):
        console.print(f"shedding: {label}", style="bold")
        with feed(f"shedding-{label}", rate, seconds) as (network, streams):
            runs[label] = _run(network, streams, capacity, seconds, shedder)
    console.print(_comparison(runs, rate, seconds))
    _explain(runs["semantic"], console)
    tables = {label: table(running, label) for label, running in runs.items()}
    rows = [row for each in tables.values() for row in each]
    title = f"A burst of 3 x capacity ({capacity.rows_per_s:,.0f} rows/s)"
    written = save(Result("demo", {}, {}, rows, lambda figure: draw(figure, tables, title, capacity.budget_ms)), out)
    console.print(f"picture and numbers: {', '.join(map(str, written))}")
    return 0


@contextmanager
def _generated(spark: Any, name: str, rate: Rate, seconds: float) -> Iterator[tuple[Network, dict[str, Any]]]:
    yield taxi_network(valued=True), {"trips": generate(spark, TAXI_PAYLOAD, rate=rate)}


@contextmanager
def _sent(broker: Any, name: str, rate: Rate, seconds: float) -> Iterator[tuple[Network, dict[str, Any]]]:
    """Trips in a topic of their own, sent while the run reads them."""
    from jettison.experiments.support.producer import producing

    broker.create(name)
    with (
        tempfile.TemporaryDirectory(prefix="jettison-sent-") as folder,
        producing(broker.servers, name, rate, seconds, Path(folder) / "sent"),
    ):
        yield taxi_network(Kafka(broker.servers, name, starting_offsets="earliest"), valued=True), {}


def _run(network: Network, streams: dict[str, Any], capacity: Capacity, seconds: float, shedder: str | None) -> Run:
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
        running.await_termination(timeout=seconds)
        running.stop(patience_s=_PATIENCE_S)
    return running


def _comparison(runs: dict[str, Run], rate: Rate, seconds: float) -> Table:
    """Latency, delivered share and utility of every output, all runs. Utility counts what is in time and of value."""
    shown = Table(title="What the outputs got", caption="p50 to max: from a trip's arrival to its row being written")
    shown.add_column("output")
    shown.add_column("shedding")
    for heading in ("delivered", "utility", "p50", "p95", "p99", "max"):
        shown.add_column(heading, justify="right")
    for output in next(iter(runs.values())).graph.outputs:
        for label, running in runs.items():
            seen = running.report().outputs[output.name]
            # what has arrived and was not read by the end counts as not delivered
            read = min(1.0, running.totals.rows_in / max(1, rate.rows_until(seconds)))
            share = seen.delivered_share * read
            utility = output.qos.utility(running.totals.worth_share(output.name) * read)
            times = [seen.latency_ms[key] for key in ("p50", "p95", "p99", "max")]
            texts = ["-" if each is None else f"{each / 1000:.1f} s" for each in times]
            shown.add_row(output.name, label, f"{share:.0%}", f"{utility:.2f}", *texts)
        shown.add_section()
    return shown


def _explain(running: Run, console: Console) -> None:
    report = running.report()
    console.print(
        f"Shed by value, outputs lost {report.shed_share:.0%} of {report.rows_in:,} rows, as early as possible; the "
        f"slowest batch took {report.slowest_batch_ms / 1000:.1f} s. "
        "Every dropped row can be found again from the plan log."
    )
