"""How a run is started: everything is checked, opened and put together before the first batch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.control.catch_up import NEWEST, SHED, check_catch_up
from jettison.control.loop import Settings
from jettison.errors import StartError
from jettison.network.calls import checked_call
from jettison.network.columns.words import meant
from jettison.network.declare import Network
from jettison.network.durations import duration_ms
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka
from jettison.network.windows.estimated_aggregates import weighed
from jettison.network.windows.slice_groups import slice_groups
from jettison.plan.shedders.registry import SEMANTIC
from jettison.plan.windows.decisions import decisions_of
from jettison.spark.batch.parts import RunOptions, RunParts
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.first_drafts import clear_first_drafts
from jettison.spark.checkpoint.retention import DEFAULT_RETENTION, Retention
from jettison.spark.checkpoint.size import size_of
from jettison.spark.checkpoint.tidying import DEAD_LETTERS
from jettison.spark.connect import named_parts, refuse_connect
from jettison.spark.ending.alive import close_abandoned, remember
from jettison.spark.ending.closing import Step, close_all
from jettison.spark.read.reading import Reader
from jettison.spark.read.stream import check_sources, is_bare
from jettison.spark.run.arguments import check_arguments
from jettison.spark.run.checks import (
    check_compiles,
    check_keys,
    check_paths,
    check_shared,
    check_sinks,
    check_tables,
    opened,
)
from jettison.spark.run.known_file_systems import check_file_systems
from jettison.spark.run.run import Run
from jettison.spark.state.opening import open_states
from jettison.spark.state.presence import Presence
from jettison.spark.state.state_kinds import check_kinds, remember_kinds
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.dead_letters import ShedSinks
from jettison.spark.write.empty_results import EmptyResults
from jettison.spark.write.owners import Owners
from jettison.spark.write.sinks import ParquetSink, as_sink
from jettison.statistics.profile import Profile
from jettison.telemetry.metrics import Metrics
from jettison.telemetry.metrics_address import metrics_address

DRY_RUN = "dry-run"


@checked_call("jt.start", StartError)
def start(
    network: Network | Graph,
    sources: Mapping[str, DataFrame | Kafka] | None = None,
    sinks: Mapping[str, Any] | None = None,
    *,
    trigger: str = "1 second",
    headroom: float = 0.9,
    checkpoint: str | None = None,
    retention: str | int | None = DEFAULT_RETENTION,
    shedding: bool | str = True,
    catch_up: str = SHED,
    shedder: str = SEMANTIC,
    stale: str | None = None,
    profile: Profile | None = None,
    learn: bool = True,
    shared: Iterable[str] | None = None,
    tables: Mapping[str, DataFrame] | None = None,
    dead_letters: Any = None,
    on_shed: Mapping[str, Any] | None = None,
    metrics: str | int | None = None,
    metrics_port: int | None = None,
    live: bool = False,
    spark: SparkSession | None = None,
) -> Run:
    """Run a network. Nothing is shed while batches fit into `headroom` x `trigger`.

    What begins, changes and ends is logged under the name "jettison"; add a handler to see it.

    Parameters
    ----------
    sources
        A streaming DataFrame, or a Kafka topic, for every source that is not declared with one.
    sinks
        A sink, a Kafka topic, or a function of (DataFrame, batch id), for every output. A parquet folder belongs to
        the run that has written there: with another checkpoint the start is refused (see `jt.parquet`).
    checkpoint
        Where the run keeps what it needs to go on after a failure; a temporary folder when left out. Between two runs
        outputs and operators may come and go: state belongs to what is computed, and what was not there from the first
        row of a window on does not deliver it.
    retention
        How long plans, ledger and the rejected rows in the checkpoint are kept: a duration, a number of batches, or
        None for ever. What a restart needs is always kept. Old records are deleted a hundred batches at a time or more.
        A duration counts the time in which the network runs, not outages, and not what a clock jumps.
    shedding
        False measures and reports, but drops nothing. "dry-run" also plans: log, ledger, report and metrics say what
        would have been dropped.
    catch_up
        What becomes of rows that waited while the run was down: "shed" treats them as an overload, "newest" skips to
        fresh data, "all" sheds nothing until the run has caught up, in batches of bounded size.
    shedder
        Who plans: "semantic" (by value where outputs are valued), "random", "exact", or a rule of `plan.shedders`.
    stale
        The age, such as "1 minute", from which on rows are worth nothing: in an overload they go first. For outputs
        whose QoS does not say.
    profile
        Costs as known from elsewhere; by default they are measured on the first batch of some size. Measured costs are
        on trial: nothing is shed before a batch has run with them, and they count in full after two or three.
    learn
        Refine costs while running. False keeps those of the profile: the same rows, in the same batches, then get the
        same plans, whatever the clock says. Only `stale` still follows the clock.
    shared
        With a profile: the operators whose rows are persisted because several outputs read them.
    tables
        The tables that joins name.
    dead_letters
        A sink for rows that do not parse, and for those on which an expression of the network fails; by default they
        are kept as parquet in the checkpoint (`dead_letters/batch=7`), for as long as `retention` says. Nothing is
        deleted from a sink that is given here.
    on_shed
        Sinks for what is shed, by arc (`trips`, `paid>alerts`) or by output (what is shed on the way to it).
    metrics
        Serve Prometheus metrics at this address: "0.0.0.0:9100" for everybody, ":9100" or 9100 for this machine alone;
        port 0 takes any that is free (`run.metrics.port`). Runs of several networks in one process may share it. There
        is no password: listen only where whoever can connect may see them. Off by default.
    metrics_port
        The old name: a port of the loopback address.
    live
        Show a line with the state of the run in the terminal.
    spark
        The session, where no DataFrame tells it; by default the active one. Spark Connect is refused.
    """
    refuse_connect({"spark=": spark, **named_parts("source", sources), **named_parts("table", tables)})
    check_arguments(
        network=network,
        sources=sources,
        sinks=sinks,
        trigger=trigger,
        headroom=headroom,
        checkpoint=checkpoint,
        shedding=shedding,
        catch_up=catch_up,
        shedder=shedder,
        learn=learn,
        live=live,
        stale=stale,
        profile=profile,
        shared=shared,
        tables=tables,
        on_shed=on_shed,
        metrics_port=metrics_port,
        spark=spark,
    )
    address = metrics_address(metrics, metrics_port)
    graph = network.graph if isinstance(network, Network) else network
    graph = graph if stale is None else graph.with_stale(stale)
    graph, frames, spark = opened(graph, sources or {}, spark)
    graph.check_complete()
    dry_run = _is_dry_run(shedding)
    settings = Settings(
        duration_ms(trigger, "trigger"), headroom, bool(shedding) and not dry_run, shedder=shedder, learn=learn
    )
    check_skips(graph, check_catch_up(catch_up))
    check_sources(graph, frames)
    chosen = check_sinks(graph, sinks or {})
    shed_sinks = ShedSinks(graph, on_shed or {})
    letters_sink = None if dead_letters is None else as_sink("dead_letters", dead_letters)
    aside_sinks = {**{f"on_shed {n}": s for n, s in shed_sinks.sinks.items()}, "dead_letters": letters_sink}
    written = {**{f"output {name!r}": sink for name, sink in chosen.items()}, **aside_sinks}
    check_paths(written, None if checkpoint is None else str(checkpoint))
    paths = {name: sink.path for name, sink in written.items() if isinstance(sink, ParquetSink)}
    check_file_systems(spark, {**paths, "checkpoint": None if checkpoint is None else str(checkpoint)})
    check_shared(graph, shared)
    joined = check_tables(graph, tables or {})
    kept = check_compiles(spark, graph, frames, joined, chosen)
    check_keys(graph, joined)
    if profile is not None:
        profile.check(graph)
        profile = profile.completed(graph)
    close_abandoned()
    kept_for = Retention.of(retention)
    folder = Checkpoint(str(checkpoint or tempfile.mkdtemp(prefix="jettison-")), graph, spark, kept_for)
    shown, runner, reader, owners = None, None, None, None
    try:
        clear_first_drafts(folder.spark_folder)
        owners = Owners(spark, folder, graph.name, written)
        shown = None if address is None else Metrics(graph, settings.budget_us / 1000, address)
        if shown is not None:
            shown.watch_checkpoint(lambda: size_of(folder.path, spark))
        aside = letters_sink or ParquetSink(f"{folder.path}/{DEAD_LETTERS}")
        folder.tidying.with_dead_letters = letters_sink is None
        check_kinds(folder.state_folder, kept.kinds)
        presence = Presence(folder.state_folder, graph, kept.code)
        if slice_groups(presence.graph) != slice_groups(graph):  # aggregates go on to share slices as they did
            kept = check_compiles(spark, presence.graph, frames, joined)
        graph = presence.graph
        states = open_states(spark, graph, folder.state_folder, folder.state_path, kept, presence)
        remember_kinds(folder.state_folder, kept.kinds)
        run_sinks = RunSinks(graph, chosen, aside, shed_sinks, EmptyResults(spark, chosen, kept.results))
        runner = BatchRunner(spark, graph, joined, run_sinks, states, presence)
        reader = Reader(spark, graph, folder, countable=all(is_bare(frame) for frame in frames.values()))
        owners.take()
        run = Run(
            RunParts(spark, graph, settings, folder, reader, runner, joined),
            RunOptions(profile, shared, shown, live, presence.notes, catch_up, dry_run),
        )
        run.begin(frames)
        remember(run)
        return run
    except BaseException:
        opened_parts: list[Step] = [("closing", part.close) for part in (shown, runner, reader) if part is not None]
        if owners is not None:
            opened_parts.append(("giving parquet folders back", owners.release))
        close_all([*opened_parts, ("releasing the checkpoint", folder.close)])
        raise


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


def _is_dry_run(shedding: bool | str) -> bool:
    if isinstance(shedding, str) and shedding != DRY_RUN:
        raise StartError(f"shedding is {shedding!r}{meant(shedding, [DRY_RUN])}: use True, False or {DRY_RUN!r}.")
    return shedding == DRY_RUN
