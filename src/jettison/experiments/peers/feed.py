"""Files that come at a rate: written before, and linked into the folder that an engine watches when they are due.

Nobody produces anything while an engine is measured, so that it has both cores. Event time passes faster or slower with
the rate: a row does the same work at any of them. A row arrives at its place between the file before and its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jettison.experiments.support.trip_files import FILES_PER_BATCH, FIRST_US, TripFiles

_PRIMERS = 1  # Flink would take two that are there at its start in any order
_READY_S = 120.0
_POLL_S = 0.01

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """A rate, for so long."""

    name: str
    rows_per_s: float
    seconds: float


@dataclass(frozen=True)
class Arrivals:
    """When event times arrived: microseconds at which files end, and seconds since 1970 at which these came.

    >>> Arrivals([0, 1000, 3000], [10.0, 10.5, 11.0], {}).seconds_of(np.array([500.0, 2000.0]))
    array([10.25, 10.75])
    """

    edges_us: Sequence[float]
    seconds: Sequence[float]
    phases: dict[str, tuple[float, float]]
    """By name, the event times that arrived in a phase: from, until."""

    def seconds_of(self, events_us: npt.NDArray[Any]) -> Numbers:
        found: Numbers = np.interp(events_us, self.edges_us, self.seconds)
        return found

    def span_s(self, phase: str) -> tuple[float, float]:
        first, last = self.seconds_of(np.array(self.phases[phase]))
        return float(first), float(last)


def rows_needed(phases: Sequence[Phase], rows_per_file: int) -> int:
    """Rows of all phases, and of the file that comes first.

    >>> rows_needed([Phase("warm", 100.0, 2.0), Phase("overload", 300.0, 4.0)], 50)
    1450
    """
    return round(sum(phase.rows_per_s * phase.seconds for phase in phases)) + _PRIMERS * rows_per_file


class Reader(Protocol):
    """What a feed must know of the engine that reads it."""

    def check(self) -> None:
        """Raise what it died of."""

    def takes_next(self, last: str) -> bool:
        """Whether another file may be shown, `last` being the one before it."""


def feed(
    trips: TripFiles,
    watched: Path,
    phases: Sequence[Phase],
    ready: Callable[[], bool],
    reader: Reader,
    drain_s: float,
) -> Arrivals:
    """Give an engine one file, wait until it has delivered results of it, then let files come at these rates.

    A file arrives when it is due, also where the engine takes it later. After the last one the engine has `drain_s`.
    """
    files = sorted(trips.folder.glob("part-*.parquet"))
    rows = trips.rows // FILES_PER_BATCH
    span_us = 1e6 * trips.batch_s / FILES_PER_BATCH
    shown = _Shown(files, watched, reader)
    shown.until(_PRIMERS, time.time() + _READY_S)
    _wait(ready, reader.check)
    at, number = time.time(), _PRIMERS
    edges_us, seconds = [FIRST_US + number * span_us], [at]
    spans = {}
    for phase in phases:
        until, first_us = at + phase.seconds, edges_us[-1]
        while number < len(files) and at + rows / phase.rows_per_s <= until + 1e-6:
            at += rows / phase.rows_per_s
            shown.until(number, at)
            time.sleep(max(0.0, at - time.time()))
            number += 1
            edges_us.append(FIRST_US + number * span_us)
            seconds.append(at)
        reader.check()
        spans[phase.name] = (first_us, edges_us[-1])
    shown.until(number, at + drain_s)
    time.sleep(max(0.0, at + drain_s - time.time()))
    return Arrivals(edges_us, seconds, spans)


class _Shown:
    """Files that an engine can see: in their order, and no more than it takes."""

    def __init__(self, files: Sequence[Path], watched: Path, reader: Reader) -> None:
        self._files, self._watched, self._reader = files, watched, reader
        self._count = 0

    def until(self, due: int, moment_s: float) -> None:
        """Show the files before number `due`, at the latest at a moment: those that are not taken by then wait on."""
        while self._count < due:
            if self._count == 0 or self._reader.takes_next(self._files[self._count - 1].name):
                path = self._files[self._count]
                os.link(path, self._watched / path.name)
                self._count += 1
            elif time.time() >= moment_s:
                return
            else:
                time.sleep(_POLL_S)


def _wait(ready: Callable[[], bool], check: Callable[[], None]) -> None:
    deadline = time.monotonic() + _READY_S
    while not ready():
        check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"no result of the first file after {_READY_S:.0f} s")
        time.sleep(0.1)
