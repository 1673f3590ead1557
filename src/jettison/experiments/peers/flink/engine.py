"""The three outputs on Flink SQL: one job, its source shared, in a JVM that has run it before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jettison.experiments.peers.engines import SKIPPED, LiveRun, round_folders
from jettison.experiments.peers.flink import sql as flink_sql
from jettison.experiments.peers.flink.process import FlinkProcess
from jettison.experiments.peers.flink.sql import Job
from jettison.experiments.peers.inputs import Input, trips_of
from jettison.experiments.support.trip_files import FILES_PER_BATCH, TripFiles


class OnFlink:
    """A job that reads one batch and one that reads all: their difference leaves out what starting a job costs."""

    name = "flink"

    def __init__(self, process: FlinkProcess) -> None:
        self._process = process
        self.setting = self._for_files = next(iter(flink_sql.VARIANTS))

    def rounds(self, given: Input, folder: Path, count: int) -> list[float]:
        """A job warms the JVM up, and each way to aggregate is tried in a round that does not count."""
        self._seconds(given, folder / "warm", trips_of(given).batches)
        found = {}
        for variant in flink_sql.VARIANTS:
            self.setting = variant
            found[variant] = self._round(given, folder / variant.replace(",", "").replace(" ", "-"))
        self.setting = max(found, key=lambda variant: found[variant])
        if isinstance(given, TripFiles):
            self._for_files = self.setting
        return [self._round(given, place) for place in round_folders(folder, count)]

    def _round(self, given: Input, folder: Path) -> float:
        trips = trips_of(given)
        first_s = self._seconds(given, folder / "first", SKIPPED)
        all_s = self._seconds(given, folder, trips.batches)
        return trips.rows * (trips.batches - SKIPPED) / max(1e-3, all_s - first_s)

    def _seconds(self, given: Input, folder: Path, batches: int) -> float:
        return self._process.run(_job(given, folder, batches), flink_sql.settings(self.setting))

    @contextmanager
    def live(self, watched: Path, out: Path, trigger_ms: float) -> Iterator[LiveRun]:
        settings = flink_sql.settings(self._for_files)
        settings |= {
            "execution.checkpointing.interval": f"{trigger_ms:.0f} ms",
            "table.exec.source.idle-timeout": "1 s",
        }
        with self._process.running(flink_sql.from_files(watched, out, live=True), settings):
            yield _Live(self._process)


def _job(given: Input, folder: Path, batches: int) -> Job:
    if not isinstance(given, TripFiles):
        return flink_sql.from_topic(given.servers, given.topic, given.ends(batches), folder)
    if batches == given.batches:
        return flink_sql.from_files(given.folder, folder)
    part = folder / "input"
    part.mkdir(parents=True)
    for path in sorted(given.folder.glob("part-*.parquet"))[: batches * FILES_PER_BATCH]:
        os.link(path, part / path.name)
    return flink_sql.from_files(part, folder)


@dataclass(frozen=True)
class _Live:
    process: FlinkProcess

    def check(self) -> None:
        self.process.check()

    def takes_next(self, last: str) -> bool:
        """Flink reads the newest of several files first, and what is behind its watermark would be lost."""
        return self.process.has_taken(last)

    def kept_shares(self, since_s: float, until_s: float) -> Mapping[str, float]:
        return {}
