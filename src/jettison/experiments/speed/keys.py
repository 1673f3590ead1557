"""What many keys cost: time per row and memory of windows by key, from a thousand keys to a million.

The same trips in tumbling windows, by a key that each trip has by chance; then, at a hundred thousand keys, more
windows per row (the same size, shorter slides) and a longer history (the same windows, a longer delay, so that more
slices are kept). Time per row is that of batches over their rows, from the first on that closes a window. Memory is
what the JVM, this process and Spark's Python workers have resident together, its peak by sampling /proc. A JVM uses
much of the heap that it may have (4 GB here), whether it must or not.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import parquet_sinks, wait_for
from jettison.experiments.support.trip_files import TripFiles
from jettison.network.declare import Network
from jettison.options.costs import Costs
from jettison.spark.batch.calibration import assumed_profile
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start

_SCHEMA = "trip long, pickup timestamp, key int, cents long"
_HEAP_GB = 4.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Case:
    """Windows of `size_s` every `slide_s` by one of `keys` keys; rows may be `delay_s` late."""

    varied: str
    keys: int
    size_s: int = 40
    slide_s: int = 40
    delay_s: int = 0

    @property
    def windows_per_row(self) -> float:
        return self.size_s / self.slide_s


@dataclass
class Peak:
    """The most memory so far, in GB."""

    gb: float = 0.0


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    most = 10_000 if quick else 1_000_000
    middle = 1_000 if quick else 100_000
    counts = [1_000, 10_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    cases = [
        *(Case("keys", keys) for keys in counts),
        *(Case("windows", middle, 60, slide_s) for slide_s in ((60, 10) if quick else (60, 10, 5))),
        *(Case("history", middle, 10, 10, delay_s) for delay_s in ((0, 30) if quick else (0, 30, 60))),
    ]
    table = []
    with tempfile.TemporaryDirectory(prefix="jettison-keys-") as name:
        trips = TripFiles(Path(name) / "trips", *((3_000, 4, 30.0) if quick else (400_000, 9, 10.0)))
        long = TripFiles(Path(name) / "long", *((500, 5, 30.0) if quick else (40_000, 13, 10.0)))
        say("writing trips")
        trips.write(spark)
        long.write(spark)
        if not quick:
            say("warming up")
            _measured(spark, Case("keys", 1_000), trips, Path(name) / "warm")
        for number, case in enumerate(cases):
            files = trips if case.varied == "keys" else long
            row = _measured(spark, case, files, Path(name) / str(number))
            table.append(row)
            say(", ".join(f"{column} {value}" for column, value in row.items()))
    by_keys = {row["keys"]: row for row in table if row["varied"] == "keys"}
    ratio = by_keys[most]["us_per_row"] / by_keys[1_000]["us_per_row"]
    label = "1e4" if quick else "1e6"
    return Result(
        "keys",
        {
            f"us_per_row_{label}_over_1e3": round(ratio, 2),
            f"peak_gb_{label}": by_keys[most]["peak_gb"],
            **{f"us_per_row_{keys:.0e}".replace("+0", ""): row["us_per_row"] for keys, row in by_keys.items()},
            "windows_ratio": _growth(table, "windows"),
            "history_ratio": _growth(table, "history"),
        },
        {
            f"{most:,} keys: every closed window has all of its rows": all(row["complete"] for row in table),
            "memory stays below the heap and 2 GB beside it": max(row["peak_gb"] for row in table) <= _HEAP_GB + 2,
        },
        table,
        lambda figure: _draw(figure, table),
    )


def _growth(table: list[dict[str, Any]], varied: str) -> float:
    """Time per row at the largest setting over that at the smallest."""
    found = [row["us_per_row"] for row in table if row["varied"] == varied]
    return float(round(found[-1] / found[0], 2))


def _measured(spark: Any, case: Case, trips: TripFiles, folder: Path) -> dict[str, Any]:
    network = Network("keys")
    rows = network.source("trips", _SCHEMA, event_time="pickup", id=["trip"])
    size, slide, delay = (f"{seconds} seconds" for seconds in (case.size_s, case.slide_s, case.delay_s))
    rows.window(size, slide=slide, by="key", delay=delay).agg(n="count(*)", cents="sum(cents)", name="busy").output(
        "out"
    )
    stream = trips.stream(spark).selectExpr(
        "trip", "pickup", f"CAST(pmod(xxhash64(trip), {case.keys}) AS int) AS key", "cents"
    )
    with sampled_memory() as peak:
        running = start(
            network,
            {"trips": stream},
            parquet_sinks(network, folder),
            trigger="1 millisecond",
            checkpoint=str(folder / "checkpoint"),
            shedding=False,
            costs=Costs(assumed_profile(network.graph), shared=()),
        )
        wait_for(running, trips.batches)
    samples = [sample for sample, _ in running.history][: trips.batches]
    first = next(number for number, sample in enumerate(samples) if sample.outputs["out"].rows > 0)
    steady_ms = [sample.duration_ms for sample in samples[first:]]
    kept = sum(path.stat().st_size for path in (folder / "checkpoint/state").rglob("*.parquet"))
    return {
        "varied": case.varied,
        "keys": case.keys,
        "windows_per_row": case.windows_per_row,
        "slices_kept": (case.size_s + case.delay_s) // math.gcd(case.size_s, case.slide_s),
        "us_per_row": round(1000 * statistics.mean(steady_ms) / trips.rows, 2),
        "peak_gb": round(peak.gb, 2),
        "state_mb": round(kept / 1e6, 1),
        "results": sum(sample.outputs["out"].rows for sample in samples),
        "complete": _complete(spark, case, trips, folder),
    }


def _complete(spark: Any, case: Case, trips: TripFiles, folder: Path) -> bool:
    """Whether every window that was given has as many rows as trips came in its time, over all keys."""
    given = spark.read.parquet(str(folder / "out")).groupBy("window_start").agg({"n": "sum"}).collect()
    window = f"window(pickup, '{case.size_s} seconds', '{case.slide_s} seconds').start AS window_start"
    came = spark.read.parquet(str(trips.folder)).selectExpr(window).groupBy("window_start").count().collect()
    wanted = {row["window_start"]: row["count"] for row in came}
    return bool(given) and all(row["sum(n)"] == wanted[row["window_start"]] for row in given)


@contextmanager
def sampled_memory(every_s: float = 0.1) -> Iterator[Peak]:
    """The most that this process and all below it (the JVM, Python workers) have resident meanwhile."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(every_s):
            peak.gb = max(peak.gb, resident_gb(os.getpid()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def resident_gb(process: int) -> float:
    """What a process and all below it have in memory, in GB, from /proc; 0 where there is no /proc."""
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            name, _, fields = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
        except OSError:  # it has ended meanwhile
            continue
        parents[int(entry.name)] = int(fields.split()[1])
        names[int(entry.name)] = name
    family = _family(parents, process)
    # a JVM below a JVM is about to become another program (chmod), and shows its parent's memory until then
    twice = {each for each in family if names.get(each) == names.get(parents.get(each, 0)) == "java"}
    return sum(pages.get(each, 0) for each in family - twice) * _PAGE / 1e9


def _family(parents: Mapping[int, int], process: int) -> set[int]:
    """A process and all below it.

    >>> sorted(_family({2: 1, 3: 2, 4: 1, 5: 4, 9: 8}, 2)), sorted(_family({2: 1, 3: 2, 4: 1, 5: 4}, 1))
    ([2, 3], [1, 2, 3, 4, 5])
    """
    found, waiting = {process}, [process]
    while waiting:
        parent = waiting.pop()
        below = {each for each, above in parents.items() if above == parent} - found
        found |= below
        waiting += below
    return found


def _draw(figure: Any, table: list[dict[str, Any]]) -> None:
    axes = figure.subplots(1, 3)
    shown = (("keys", "keys", "keys"), ("windows", "windows_per_row", "windows per row"))
    for axis, (varied, column, label) in zip(axes, (*shown, ("history", "slices_kept", "slices kept")), strict=True):
        rows = [row for row in table if row["varied"] == varied]
        at = [row[column] for row in rows]
        axis.plot(at, [row["us_per_row"] for row in rows], marker="o", color="C0")
        axis.set_xlabel(label)
        axis.set_ylabel("time per row (us)", color="C0")
        axis.set_ylim(bottom=0)
        beside = axis.twinx()
        beside.plot(at, [row["peak_gb"] for row in rows], marker="s", linestyle="--", color="C1")
        beside.set_ylabel("peak memory (GB)", color="C1")
        beside.set_ylim(0, _HEAP_GB + 2)
        if varied == "keys":
            axis.set_xscale("log")
    most = max(row["keys"] for row in table)
    by_keys = [row["us_per_row"] for row in table if row["varied"] == "keys"]
    figure.suptitle(
        f"Windows by key, nothing shed: {most:,} keys work in a heap of {_HEAP_GB:g} GB,\n"
        f"a row takes {by_keys[-1] / by_keys[0]:.1f} times as long as with {table[0]['keys']:,}"
    )
