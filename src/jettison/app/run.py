"""`jettison run` and `jettison demo`: a network on Spark, on this machine. Spark is loaded only here."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jettison.app.arguments import Shedder, SpecPath, check_seconds, make_folder, wrong_argument
from jettison.app.logs import Quiet, Verbose, show_log, step
from jettison.app.screen import fault, first_line, out
from jettison.app.situation import find_modules_here, load_spec
from jettison.errors import StartError
from jettison.network.graph import Graph
from jettison.plan.shedders.registry import SEMANTIC, check_shedder
from jettison.spec.run_section import read_places
from jettison.telemetry.metrics_address import parse_address

if TYPE_CHECKING:
    from jettison.spark.run.run import Run

_POLL_S = 0.5


def run(
    spec: SpecPath,
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", help="Stop after this many seconds. Without it, run until Ctrl-C."),
    ] = None,
    no_shedding: Annotated[bool, typer.Option("--no-shedding", help="Measure and report, but drop nothing.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and report what would be dropped, but drop nothing.")
    ] = False,
    shedder: Shedder = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Serve Prometheus metrics at 0.0.0.0:9100, or at :9100 for this machine alone."
        ),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Cores for Spark. Without it, all cores.")] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run a file on Spark, on this machine, and print a report at the end. Ctrl-C stops it between two batches.

    On a terminal a live line shows the state of the run; in files and pipes the log goes to stderr.

    \b
    jettison run examples/taxi.yaml --for 30
    jettison run examples/taxi.yaml --for 30 --dry-run
    """
    live = out.is_terminal and not quiet
    show_log(verbose=verbose, quiet=quiet, live=live)
    if no_shedding and dry_run:
        raise typer.BadParameter("--no-shedding and --dry-run exclude each other: give one of them.")
    if seconds is not None:
        check_seconds("--for", seconds)
    with wrong_argument():
        check_shedder(shedder or SEMANTIC)
        parse_address(metrics or 0)
    read, graph = load_spec(spec)
    places = read_places(read, graph)
    find_modules_here()
    session = spark_session(graph, cores, kafka=places.use_kafka)
    from jettison.spark.run.from_spec import start_spec

    try:
        with _stop_signals() as stopping:
            running = start_spec(
                read,
                session,
                mode="dry-run" if dry_run else "off" if no_shedding else None,
                shedder=shedder,
                metrics=metrics,
                live=live,
            )
            if running.metrics is not None:
                typer.echo(f"metrics: http://{running.metrics.host}:{running.metrics.port}/metrics", err=True)
            _watch(running, seconds, stopping)
    finally:
        with suppress(Exception):  # a JVM that is gone must not hide why
            session.stop()


def spark_session(graph: Graph, cores: int | None, *, kafka: bool) -> Any:
    """A Spark session on this machine, with the jars that the network needs."""
    with step("starting Spark"):
        from jettison.spark.run.session import local_session

        kafka = kafka or any(source.kafka is not None for source in graph.sources)
        avro = any(source.payload == "avro" for source in graph.sources)
        try:
            return local_session(f"jettison-{graph.name}", cores, kafka=kafka, avro=avro)
        except StartError:
            raise
        except Exception as error:
            remedy = "It needs Java 17 or newer: see `java -version`."
            raise StartError(f"Spark does not start: {first_line(error)} {remedy}") from error


def demo(
    seconds: Annotated[float, typer.Option(help="How many seconds each of the four runs lasts.")] = 12.0,
    quick: Annotated[bool, typer.Option("--quick", help="The short form, for tests.")] = False,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Read the trips from a Kafka broker that is started on this machine.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for results and the picture.")
    ] = Path("out/demo"),
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run an overload against a small network in four ways: nothing shed, batches capped, shed by chance, by value.

    It measures this machine first, and takes about two minutes.

    \b
    jettison demo
    jettison demo --kafka
    """
    show_log(verbose=verbose, quiet=quiet, live=out.is_terminal)
    check_seconds("--seconds", seconds)
    make_folder(folder)
    from jettison.experiments.overloads.demo import run_demo

    raise typer.Exit(run_demo(seconds, quick, folder, out, kafka=kafka))


def _watch(running: Run, seconds: float | None, stopping: threading.Event) -> None:
    """Wait for the end, whoever brings it about, and report; what has run is reported even when the run failed."""
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        while not stopping.is_set() and (deadline is None or time.monotonic() < deadline):
            left_s = _POLL_S if deadline is None else min(_POLL_S, max(0.01, deadline - time.monotonic()))
            if running.await_termination(left_s):
                break
        else:
            running.stop()
    finally:
        typer.echo(str(running.report()))


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, or a polite kill. The second one is not polite any more.

    PySpark's own handler cancels all jobs at once, in the middle of a batch: this one takes its place.
    """
    stopping = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        fault("stopping after this batch (once more: at once)")

    for number in before:
        signal.signal(number, ask)
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
