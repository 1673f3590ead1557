"""The three outputs on Jettison: one run, whose windows share slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.peers.engines import LiveRun, read_all, round_folders, watched_stream
from jettison.experiments.peers.inputs import Input
from jettison.experiments.speed.native import AGGREGATES, SCENARIOS
from jettison.experiments.support.capacity import parquet_sinks
from jettison.experiments.support.trip_files import SCHEMA, TripFiles
from jettison.network.declare import Network
from jettison.network.kafka import Kafka
from jettison.network.qos import QoS
from jettison.options.costs import Costs
from jettison.spark.batch.calibration import assumed_profile
from jettison.spark.run.run import Run
from jettison.spark.run.start import start

ESTIMATED = {name: sql for name, sql in AGGREGATES.items() if name != "most"}
"""Aggregates of live runs, on every engine: a maximum cannot be estimated."""


def three_outputs(topic: Kafka | None = None, *, live: bool = False) -> Network:
    """The network. In a live run windows are estimated from what is kept; all outputs have the default QoS."""
    network = Network("taxi")
    if topic is None:
        rows = network.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    else:
        rows = network.source("trips", topic, event_time="pickup")
    for name, what in SCENARIOS["three_outputs"].items():
        if isinstance(what, str):
            rows.where(what).output(name)
        else:
            windows = rows.window(what.size, slide=what.slide, by="zone")
            windows.agg(ESTIMATED if live else AGGREGATES).output(name, qos=QoS(on_loss="estimate") if live else QoS())
    return network


class OnJettison:
    name = "jettison"
    setting = "defaults"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def rounds(self, given: Input, folder: Path, count: int) -> list[float]:
        self._round(given, folder / "first")
        return [self._round(given, place) for place in round_folders(folder, count)]

    def _round(self, given: Input, folder: Path) -> float:
        sources: dict[str, Any] = {}
        if isinstance(given, TripFiles):
            network, sources = three_outputs(), {"trips": given.stream(self._spark)}
        else:
            network = three_outputs(given.kafka)
        running = start(
            network,
            sources,
            parquet_sinks(network, folder),
            trigger="1 millisecond",
            checkpoint=str(folder / "checkpoint"),
            shedding=False,
            costs=Costs(assumed_profile(network.graph), shared=()),
            spark=self._spark,
        )
        try:
            rate = read_all([running.query], given, _Live(running).check)
        finally:
            running.stop()
        report = running.report()
        assert (report.rows_shed, report.rows_late) == (0, 0), f"all rows count\n{report}"
        return rate

    @contextmanager
    def live(self, watched: Path, out: Path, trigger_ms: float) -> Iterator[LiveRun]:
        network = three_outputs(live=True)
        running = start(
            network,
            {"trips": watched_stream(self._spark, watched)},
            parquet_sinks(network, out),
            trigger=f"{trigger_ms:.0f} milliseconds",
            checkpoint=str(out / "checkpoint"),
        )
        try:
            yield _Live(running)
        finally:
            running.stop()


@dataclass(frozen=True)
class _Live:
    running: Run

    def check(self) -> None:
        self.running.await_termination(timeout=0.01)

    def takes_next(self, last: str) -> bool:
        return True

    def kept_shares(self, since_s: float, until_s: float) -> Mapping[str, float]:
        read = 0.0
        kept = {output.name: 0.0 for output in self.running.graph.outputs}
        for sample, _ in list(self.running.history):
            if since_s <= sample.started_ms / 1000 < until_s:
                rows = sum(sample.rows_in.values())
                read += rows
                for name in kept:
                    kept[name] += rows * sample.delivered.get(name, 1.0)
        return {name: share / read for name, share in kept.items()} if read else {}
