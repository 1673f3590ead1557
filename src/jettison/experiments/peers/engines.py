"""What the experiment asks of an engine, and what Jettison and native Structured Streaming have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from jettison.experiments.peers.feed import Reader
from jettison.experiments.peers.inputs import Input, trips_of
from jettison.experiments.support.trip_files import SCHEMA

_MOST_S = 300.0
_SETTLE_S = 1.0  # a native batch without rows closes the last windows
SKIPPED = 1
"""Batches at the start of a run that do not count: they are compiled, and find no state."""


class LiveRun(Reader, Protocol):
    """A run over files that keep coming."""

    def kept_shares(self, since_s: float, until_s: float) -> Mapping[str, float]:
        """By output, the share of rows that it processed of those read between two times; all where it is missing."""


class Engine(Protocol):
    """Runs the three outputs, and writes each as parquet to a folder of its name."""

    @property
    def name(self) -> str: ...

    @property
    def setting(self) -> str:
        """In words, with what it runs; the better one of those that were tried."""

    def rounds(self, given: Input, folder: Path, count: int) -> list[float]:
        """Rows per second without overload, once per round; results of the last one are in folder/last.

        A first round, in which settings are tried, does not count.
        """

    def live(self, watched: Path, out: Path, trigger_ms: float) -> AbstractContextManager[LiveRun]:
        """Process files as they come to a folder; results are written every trigger."""


def round_folders(folder: Path, count: int) -> list[Path]:
    """Where so many rounds write.

    >>> [path.name for path in round_folders(Path("out"), 3)]
    ['0', '1', 'last']
    """
    return [folder / str(number) for number in range(count - 1)] + [folder / "last"]


def watched_stream(spark: Any, folder: Path) -> Any:
    """All files that are new, in every batch."""
    return spark.readStream.schema(SCHEMA).parquet(str(folder))


def read_all(queries: Sequence[Any], given: Input, check: Callable[[], None]) -> float:
    """Wait until streaming queries have read all of their input; returns rows per second.

    From the start of the first measured batch to the end of the last one, of all queries.
    """
    trips = trips_of(given)
    deadline = time.monotonic() + _MOST_S
    while any(_rows(_batches(query)) < trips.rows * trips.batches for query in queries):
        check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"the input is not read after {_MOST_S:.0f} s")
        time.sleep(0.05)
    measured = [_batches(query)[SKIPPED:] for query in queries]
    time.sleep(_SETTLE_S)
    began = min(_seconds(batches[0]) for batches in measured)
    ended = max(_seconds(batches[-1]) + batches[-1]["durationMs"]["triggerExecution"] / 1000 for batches in measured)
    return float(_rows(measured[0]) / (ended - began))


def _batches(query: Any) -> list[Any]:
    return [each for each in query.recentProgress if each["numInputRows"] > 0]


def _rows(batches: Sequence[Any]) -> int:
    return sum(each["numInputRows"] for each in batches)


def _seconds(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()
