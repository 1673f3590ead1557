"""How a run is started: everything is checked, opened and put together before the first batch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jettison.control.loop import Settings
from jettison.network.declare import Network
from jettison.network.durations import duration_ms
from jettison.network.graph import Graph
from jettison.network.kafka import Kafka
from jettison.plan.shedders import SEMANTIC
from jettison.spark.aside import ShedSinks
from jettison.spark.batch import BatchRunner
from jettison.spark.checkpoint import Checkpoint
from jettison.spark.checks import check_compiles, check_keys, check_paths, check_sinks, check_statics, opened
from jettison.spark.count_state import CountState
from jettison.spark.join_state import JoinState
from jettison.spark.metrics import Metrics
from jettison.spark.reading import Reader
from jettison.spark.run import Run
from jettison.spark.sinks import ParquetSink, as_sink
from jettison.spark.slice_state import SliceState
from jettison.spark.state_kinds import check_kinds, remember_kinds
from jettison.spark.stream import check_sources, is_bare
from jettison.statistics.profile import Profile


def start(
    network: Network | Graph,
    sources: Mapping[str, DataFrame | Kafka] | None = None,
    sinks: Mapping[str, Any] | None = None,
    *,
    trigger: str = "1 second",
    headroom: float = 0.9,
    checkpoint: str | None = None,
    shedding: bool = True,
    shedder: str = SEMANTIC,
    stale: str | None = None,
    profile: Profile | None = None,
    learn: bool = True,
    shared: Iterable[str] | None = None,
    statics: Mapping[str, DataFrame] | None = None,
    rejects: Any = None,
    on_shed: Mapping[str, Any] | None = None,
    metrics_port: int | None = None,
    live: bool = False,
    spark: SparkSession | None = None,
) -> Run:
    """Run a network. Nothing is shed while batches fit into `headroom` x `trigger`.

    Parameters
    ----------
    sources
        A streaming DataFrame, or a Kafka topic, for every source that is not declared with one.
    sinks
        A sink, a Kafka topic, or a function of (DataFrame, batch id), for every output.
    checkpoint
        Where the run keeps what it needs to go on after a failure; a temporary folder when left out.
    shedding
        False measures and reports, but drops nothing.
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
    statics
        The tables that joins name.
    rejects
        A sink for rows that do not parse; by default they are kept as parquet in the checkpoint.
    on_shed
        Sinks for what is shed, by arc (`trips`, `paid>alerts`) or by output (what is shed on the way to it).
    metrics_port
        Serve Prometheus metrics on this port of the loopback address.
    live
        Show a line with the state of the run in the terminal.
    spark
        The session, where no DataFrame tells it; by default the active one.
    """
    graph = network.graph if isinstance(network, Network) else network
    graph = graph if stale is None else graph.with_stale(stale)
    graph, frames, spark = opened(graph, sources or {}, spark)
    graph.check_complete()
    settings = Settings(duration_ms(trigger, "trigger"), headroom, shedding, shedder=shedder, learn=learn)
    check_sources(graph, frames)
    chosen = check_sinks(graph, sinks or {})
    shed_sinks = ShedSinks(graph, on_shed or {})
    rejects_sink = None if rejects is None else as_sink("rejects", rejects)
    check_paths({**chosen, **{f"on_shed {n}": s for n, s in shed_sinks.sinks.items()}, "rejects": rejects_sink})
    tables = check_statics(graph, statics or {})
    kept = check_compiles(spark, graph, frames, tables)
    check_keys(graph, tables)
    if profile is not None:
        profile.check(graph)
        profile = profile.completed(graph)
    folder = Checkpoint(checkpoint or tempfile.mkdtemp(prefix="jettison-"), graph, spark)
    metrics, runner, reader = None, None, None
    try:
        metrics = None if metrics_port is None else Metrics(metrics_port)
        aside = rejects_sink or ParquetSink(f"{folder.path}/rejects")
        check_kinds(folder.state_folder, kept.kinds)
        joins = JoinState(spark, folder.state_folder, folder.state_path, kept.sides) if kept.sides else None
        state = (folder.state_folder, folder.state_path)
        slices = SliceState(spark, graph, *state, kept.slices) if kept.slices else None
        counts = CountState(spark, *state, kept.counts) if kept.counts else None
        remember_kinds(folder.state_folder, kept.kinds)
        runner = BatchRunner(spark, graph, chosen, tables, aside, shed_sinks, joins, slices, counts)
        reader = Reader(spark, graph, folder, countable=all(is_bare(frame) for frame in frames.values()))
        run = Run(spark, graph, runner, reader, tables, settings, folder, profile, shared, metrics, live, slices)
        run.begin(frames)
        return run
    except BaseException:
        for part in (metrics, runner, reader):
            if part is not None:
                part.close()
        folder.close()
        raise
