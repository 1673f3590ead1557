"""One network and one overload on Spark, shedder by shedder, each in a run of its own with the same costs."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Say
from jettison.experiments.policies.measured import NO_SHEDDING, Measured, minima_held, priorities_held
from jettison.experiments.support.waiting import first_batch
from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.run.run import Run
from jettison.spark.run.start import start
from jettison.statistics.account import Account, summed
from jettison.statistics.latency import LatencyHistogram
from jettison.statistics.profile import Profile
from jettison.statistics.worth import DEADLINE_TRIGGERS, share_of_worth, share_of_worth_by_rows, shares_in_time

_PATIENCE_S = 8.0

Streams = Callable[[], Mapping[str, Any]]
"""New streams for a run, by source."""


@dataclass(frozen=True)
class Workload:
    """What all shedders go through: a network, streams from their beginning, a trigger, and for how long."""

    network: Network | Graph
    streams: Streams
    trigger: str
    seconds: float
    headroom: float = 0.9
    tables: Mapping[str, Any] | None = None
    spark: Any = None

    @property
    def graph(self) -> Graph:
        return self.network.graph if isinstance(self.network, Network) else self.network

    def run(self, shedder: str, costs: Costs) -> Run:
        """Run it for so many seconds from the first batch on; results go to a temporary folder."""
        how = Shedding("off") if shedder == NO_SHEDDING else Shedding(shedder=shedder, headroom=self.headroom)
        with tempfile.TemporaryDirectory(prefix="jettison-policy-") as name:
            running = start(
                self.network,
                self.streams(),
                parquet_sinks_of(self.graph, Path(name)),
                trigger=self.trigger,
                checkpoint=f"{name}/checkpoint",
                shedding=how,
                costs=costs,
                tables=self.tables,
                spark=self.spark,
            )
            first_batch(running)
            running.await_termination(timeout=self.seconds)
            if costs.profile is None:
                running.await_calibration(timeout=30.0)
            running.stop(patience_s=_PATIENCE_S)
            return running


def parquet_sinks_of(graph: Graph, folder: Path) -> dict[str, Any]:
    """A parquet folder for every output."""
    from jettison.spark.write.sinks import ParquetSink

    return {output.name: ParquetSink(str(folder / output.name)) for output in graph.outputs}


def compare_on_spark(
    workload: Workload, shedders: Iterable[str], say: Say, costs: Costs | None = None
) -> list[Measured]:
    """Run without shedding first, which measures costs unless they are given; then every shedder with these."""
    say(f"nothing shed, {workload.seconds:g} s")
    unshed = workload.run(NO_SHEDDING, costs or Costs())
    known = costs
    if known is None:
        profile: Profile = unshed.controller.profile
        known = Costs(profile, shared=unshed.shared)
    runs = {NO_SHEDDING: unshed}
    for shedder in shedders:
        say(f"shedder {shedder}, {workload.seconds:g} s")
        runs[shedder] = workload.run(shedder, known)
    return measured_runs(workload.graph, runs)


def measured_runs(graph: Graph, runs: Mapping[str, Run]) -> list[Measured]:
    """What was measured of runs of one workload, by shedder; the one without shedding is among them."""
    arrived = max(1, *(each.totals.rows_in for each in runs.values()))
    unshed = runs[NO_SHEDDING]
    read = max(1, unshed.totals.rows_in)
    passing = {each.name: unshed.totals.offered_rows(each.name) / read for each in graph.outputs}
    return [_measured(graph, name, each, arrived, passing) for name, each in runs.items()]


def _measured(graph: Graph, name: str, run: Run, arrived: int, passing: Mapping[str, float]) -> Measured:
    samples = [sample for sample, _ in run.history]
    deadline_ms = DEADLINE_TRIGGERS * run.settings.trigger_ms
    shares = shares_in_time(graph, samples, arrived, deadline_ms)
    offered = {output: share * arrived for output, share in passing.items()}
    accounts = run.totals.accounts
    read_share = min(1.0, run.totals.rows_in / arrived)
    accuracy = {each.name: _account(accounts, each.name).accuracy for each in graph.outputs}
    sic = {each: read_share * output.sic for each, output in run.report().outputs.items()}
    seen = LatencyHistogram()
    for sample in samples:
        for output in sample.outputs.values():
            if output.latency_ms is not None and output.rows:
                seen.add(output.rows, output.latency_ms)
    p50_ms, p99_ms = (seen.quantile(share) for share in (0.5, 0.99))
    deciding = [sample.parts_ms["deciding"] for sample in samples if "deciding" in sample.parts_ms]
    return Measured(
        name,
        share_of_worth(graph, shares),
        share_of_worth_by_rows(graph, shares, offered),
        sic,
        accuracy,
        minima_held(graph, accuracy),
        priorities_held(graph, accuracy),
        None if p50_ms is None else p50_ms / 1000,
        None if p99_ms is None else p99_ms / 1000,
        summed(accounts.values()).processed,
        statistics.median(deciding) if deciding else None,
    )


def _account(accounts: Mapping[tuple[str, str], Account], output: str) -> Account:
    return summed(each for (_, name), each in accounts.items() if name == output)
