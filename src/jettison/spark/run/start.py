"""How a run is started: everything is checked, opened and put together before the first batch."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.control.catch_up import NEWEST
from jettison.control.loop import Settings, source_time_window_ms
from jettison.errors import StartError
from jettison.network.calls import checked_call
from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka
from jettison.network.windows.estimated_aggregates import weighed
from jettison.network.windows.slice_groups import slice_groups
from jettison.options.checkpoint import Checkpoint as CheckpointOptions
from jettison.options.costs import Costs
from jettison.options.moved import MOVED_ARGUMENTS
from jettison.options.shedding import Shedding
from jettison.options.trigger import Trigger
from jettison.plan.windows.decisions import decisions_of
from jettison.spark.batch.parts import RunOptions, RunParts
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.first_drafts import clear_first_drafts
from jettison.spark.checkpoint.size import size_of
from jettison.spark.checkpoint.tidying import DEAD_LETTERS
from jettison.spark.connect import named_parts, refuse_connect
from jettison.spark.ending.alive import close_abandoned, remember
from jettison.spark.ending.closing import Step, close_all
from jettison.spark.read.generated_rows import GeneratedRows
from jettison.spark.read.reading import Reader
from jettison.spark.read.stream import check_sources, is_bare, is_micro_rate
from jettison.spark.run.arguments import check_arguments
from jettison.spark.run.checks import StateShapes, check_compiles, check_keys, check_shared, check_tables, opened
from jettison.spark.run.known_file_systems import check_file_systems
from jettison.spark.run.run import Run
from jettison.spark.run.targets import Targets, check_targets
from jettison.spark.state.opening import open_states
from jettison.spark.state.presence import Presence
from jettison.spark.state.state_kinds import check_kinds, remember_kinds
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.empty_results import EmptyResults
from jettison.spark.write.owners import Owners
from jettison.spark.write.sinks import ParquetSink
from jettison.statistics.profile import Profile
from jettison.telemetry.listeners import Listener
from jettison.telemetry.metrics import Metrics
from jettison.telemetry.metrics_address import parse_address


@checked_call("jt.start", StartError, MOVED_ARGUMENTS)
def start(
    network: Network | Graph,
    sources: Mapping[str, DataFrame | Kafka] | None = None,
    sinks: Mapping[str, Any] | None = None,
    *,
    trigger: str = "1 second",
    checkpoint: str | PathLike[str] | CheckpointOptions | None = None,
    shedding: bool | str | Shedding = True,
    costs: Costs | Profile | None = None,
    tables: Mapping[str, DataFrame] | None = None,
    dead_letters: Any = None,
    on_shed: Mapping[str, Any] | None = None,
    metrics: str | int | None = None,
    live: bool = False,
    listeners: Sequence[Listener] = (),
    spark: SparkSession | None = None,
) -> Run:
    """Run a network. Nothing is shed while batches fit into their budget: headroom x `trigger`.

    What begins, changes and ends is logged under the name "jettison"; add a handler to see it.

    Parameters
    ----------
    network
        A `jt.Network`, or the graph of a file.
    sources
        A streaming DataFrame, or a Kafka topic, for every source that is not declared with one.
    sinks
        A sink, a Kafka topic, or a function of (DataFrame, batch id), for every output. A parquet folder belongs to
        the run that has written there: with another checkpoint the start is refused (see `jt.parquet`).
    trigger
        How often a batch begins, such as "1 second". "available now" works through all data that is there, sheds
        nothing, closes the windows that the watermark allows, and ends; batches of files are bounded by Spark's own
        `maxFilesPerTrigger` alone.
    checkpoint
        The folder in which the run keeps what it needs to go on after a failure, or `jt.Checkpoint(path, retention)`;
        a temporary folder when left out.
    shedding
        True; False measures and reports, but drops nothing; "dry-run" says what would have been dropped; or
        `jt.Shedding(mode, shedder, headroom, catch_up, stale, stw)`.
    costs
        What rows cost: `jt.Costs(profile, learn, shared)`, or a `jt.Profile`. Left out, it is measured beside the
        stream, on a sample of the first batch of some size; until then nothing is shed.
    tables
        The tables that joins name.
    dead_letters
        A sink for rows that do not parse, and for those on which an expression of the network fails; by default they
        are kept as parquet in the checkpoint (`dead_letters/batch=7`), for as long as its retention says. Nothing is
        deleted from a sink that is given here.
    on_shed
        Sinks for what is shed, by arc (`trips`, `paid>alerts`) or by output (what is shed on the way to it).
    metrics
        Serve Prometheus metrics at this address: "0.0.0.0:9100" for everybody, ":9100" or 9100 for this machine alone;
        port 0 takes any that is free (`run.metrics.port`). Runs of several networks in one process may share it. There
        is no password: listen only where whoever can connect may see them. Off by default.
    live
        Show a line with the state of the run in the terminal.
    listeners
        Functions that are called with the `BatchEvent` of every batch, from the first one on; see `run.add_listener`.
    spark
        The session, where no DataFrame tells it; by default the active one. Spark Connect is refused.
    """
    refuse_connect({"spark=": spark, **named_parts("source", sources), **named_parts("table", tables)})
    check_arguments(
        network=network,
        sources=sources,
        sinks=sinks,
        trigger=trigger,
        tables=tables,
        on_shed=on_shed,
        live=live,
        listeners=listeners,
        spark=spark,
    )
    when, known, kept = Trigger.of(trigger), Costs.of(costs), CheckpointOptions.of(checkpoint)
    how = when.shedding(Shedding.of(shedding))
    if metrics is not None:
        parse_address(metrics)
    graph = network.graph if isinstance(network, Network) else network
    graph = graph if how.stale is None else graph.with_stale(how.stale)
    graph, frames, session = opened(graph, sources or {}, spark)
    graph.check_complete()
    settings = Settings(
        when.interval_ms, how.headroom, how.obeyed, shedder=how.shedder, learn=known.learn, stw_ms=how.stw_ms
    )
    source_time_window_ms(graph, settings)
    check_skips(graph, how.catch_up)
    check_sources(graph, frames)
    targets = check_targets(graph, sinks or {}, on_shed or {}, dead_letters, kept.folder)
    check_file_systems(session, {**targets.paths, "checkpoint": kept.folder})
    check_shared(graph, known.shared)
    joined = check_tables(graph, tables or {})
    shapes = check_compiles(session, graph, frames, joined, targets.outputs)
    check_keys(graph, joined)
    return _begin(
        Asked(
            session, graph, frames, targets, joined, settings, when, how, known, kept, metrics, live, tuple(listeners)
        ),
        shapes,
    )


@dataclass(frozen=True)
class Asked:
    """All that a run is started with, checked."""

    spark: SparkSession
    graph: Graph
    frames: Mapping[str, DataFrame]
    targets: Targets
    tables: Mapping[str, DataFrame]
    settings: Settings
    trigger: Trigger
    shedding: Shedding
    costs: Costs
    checkpoint: CheckpointOptions
    metrics: str | int | None
    live: bool
    listeners: tuple[Listener, ...]

    @property
    def profile(self) -> Profile | None:
        """The costs that were given, with what the network itself says."""
        given = self.costs.profile
        if given is None:
            return None
        given.check(self.graph)
        return given.completed(self.graph)


def _begin(asked: Asked, shapes: StateShapes) -> Run:
    """Open the checkpoint and all that writes, and start the query; what was opened is closed when that fails."""
    profile = asked.profile
    close_abandoned()
    path = asked.checkpoint.folder or tempfile.mkdtemp(prefix="jettison-")
    folder = Checkpoint(path, asked.graph, asked.spark, asked.checkpoint.kept_for)
    closing: list[Step] = [("releasing the checkpoint", folder.close)]
    try:
        return _open(asked, shapes, profile, folder, closing)
    except BaseException:
        close_all(closing)
        raise


def _open(asked: Asked, shapes: StateShapes, profile: Profile | None, folder: Checkpoint, closing: list[Step]) -> Run:
    """Build a run from its parts and start it; `closing` gets a step for each part that must be closed."""
    spark, graph, targets = asked.spark, asked.graph, asked.targets
    clear_first_drafts(folder.spark_folder)
    owners = Owners(spark, folder, graph.name, targets.all)
    closing.insert(0, ("giving parquet folders back", owners.release))
    shown = _metrics(asked, folder)
    if shown is not None:
        closing.insert(0, ("closing", shown.close))
    check_kinds(folder.state_folder, shapes.kinds)
    presence = Presence(folder.state_folder, graph, shapes.code)
    if slice_groups(presence.graph) != slice_groups(graph):  # aggregates go on to share slices as they did
        shapes = check_compiles(spark, presence.graph, asked.frames, asked.tables)
    graph = presence.graph
    runner = _runner(asked, graph, shapes, folder, presence)
    closing.insert(0, ("closing", runner.close))
    micro_rates = [name for name, frame in asked.frames.items() if is_micro_rate(frame)]
    countable = all(is_bare(frame) for frame in asked.frames.values())
    made = {name: rows for name, frame in asked.frames.items() if (rows := GeneratedRows.of(frame)) is not None}
    reader = Reader(spark, graph, folder, countable, micro_rates, made)
    closing.insert(0, ("closing", reader.close))
    owners.take()
    options = RunOptions(
        profile,
        asked.costs.shared,
        shown,
        asked.live,
        presence.notes,
        asked.shedding.catch_up,
        dry_run=asked.shedding.is_dry_run,
        available_now=asked.trigger.available_now,
    )
    run = Run(RunParts(spark, graph, asked.settings, folder, reader, runner, asked.tables), options)
    for listener in asked.listeners:
        run.add_listener(listener)
    run.begin(asked.frames)
    remember(run)
    return run


def _metrics(asked: Asked, folder: Checkpoint) -> Metrics | None:
    if asked.metrics is None:
        return None
    shown = Metrics(asked.graph, asked.settings.budget_us / 1000, asked.metrics)
    shown.watch_checkpoint(lambda: size_of(folder.path, asked.spark))
    return shown


def _runner(asked: Asked, graph: Graph, shapes: StateShapes, folder: Checkpoint, presence: Presence) -> BatchRunner:
    """Who runs batches, with the state of joins and windows."""
    spark, targets = asked.spark, asked.targets
    aside = targets.dead_letters or ParquetSink(f"{folder.path}/{DEAD_LETTERS}")
    folder.tidying.with_dead_letters = targets.dead_letters is None
    states = open_states(spark, graph, folder.state_folder, folder.state_path, shapes, presence)
    remember_kinds(folder.state_folder, shapes.kinds)
    empty = EmptyResults(spark, targets.outputs, shapes.results)
    sinks = RunSinks(graph, targets.outputs, aside, targets.shed, empty)
    return BatchRunner(spark, graph, asked.tables, sinks, states, presence)


def check_skips(graph: Graph, catch_up: str) -> None:
    """Refuse to skip what windows are made of: those that begin before the skip would be incomplete."""
    if catch_up != NEWEST:
        return
    decisions, counted = decisions_of(graph), weighed(graph)
    for source in graph.sources:
        if source.name in counted or not decisions.by_chance(source.name):
            raise StartError(
                f"catch_up='newest' skips rows of source {source.name!r}, and windows below it would be incomplete: "
                f"use catch_up='shed' or 'all', or let its outputs say QoS(on_loss='ignore')."
            )
