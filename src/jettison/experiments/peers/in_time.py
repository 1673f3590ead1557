"""The age of what an engine delivered, and the share that came in time, from the files alone: the same for all engines.

A window of which an engine kept a third of the rows and estimated the rest counts as a third of a window. Worth is then
that of `statistics.worth`, with the default QoS: no output is worth more than another, and half of one is worth half.
By rows, an alert weighs as one row, and a window as the rows that it sums up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from jettison.experiments.peers.feed import Arrivals
from jettison.experiments.peers.results import delivered_files, event_column, micros
from jettison.experiments.speed.native import SCENARIOS
from jettison.experiments.support.trip_files import FIRST_US, ZONES, TripFiles
from jettison.network.durations import duration_ms
from jettison.network.graph import Graph
from jettison.statistics.worth import share_of_worth, share_of_worth_by_rows, worth_by_rows_per_s, worth_per_s

ALERT_SHARE = 10_299 / 30_000
"""Of all trips so many cost more than an alert asks for: fares are spread evenly over 300 to 30,299 cents."""


@dataclass(frozen=True)
class Delivered:
    """One file of results: when it was there, and the events that it is about."""

    output: str
    at_s: float
    events_us: npt.NDArray[np.int64]
    ages_s: npt.NDArray[np.float64]


@dataclass(frozen=True)
class PhaseResult:
    """How one phase went: by output the share in time, worth per second, and ages of all results (p50, p99).

    `worth_share` is of the worth that was offered. Names with `by_rows` weigh outputs by the rows offered to them.
    """

    rows_per_s: float
    shares: Mapping[str, float]
    worth_per_s: float
    worth_share: float
    worth_by_rows_per_s: float
    worth_by_rows_share: float
    p50_s: float
    p99_s: float


def deliveries(out: Path, arrivals: Arrivals) -> list[Delivered]:
    """All that an engine delivered, in the order of time."""
    found = []
    for output in SCENARIOS["three_outputs"]:
        column = event_column(output)
        for path, at_s in delivered_files(out / output).items():
            events_us = micros(pq.ParquetFile(path).read(columns=[column])[column])
            found.append(Delivered(output, at_s, events_us, at_s - arrivals.seconds_of(events_us)))
    return sorted(found, key=lambda each: each.at_s)


def judge(
    graph: Graph,
    trips: TripFiles,
    delivered: list[Delivered],
    arrivals: Arrivals,
    phase: str,
    kept: Mapping[str, float],
    deadline_s: float,
) -> PhaseResult:
    """What arrived in a phase, and what became of it by the deadline."""
    first_us, last_us = arrivals.phases[phase]
    rows = (last_us - first_us) * trips.rows / (1e6 * trips.batch_s)
    began_s, ended_s = arrivals.span_s(phase)
    rows_per_s = rows / max(1e-9, ended_s - began_s)
    shares, ages = {}, []
    for output, what in SCENARIOS["three_outputs"].items():
        mine = [each for each in delivered if each.output == output]
        inside = [(each.events_us > first_us) & (each.events_us <= last_us) for each in mine]
        aged = [each.ages_s[chosen] for each, chosen in zip(mine, inside, strict=True)]
        ages += aged
        in_time = sum(int((each <= deadline_s).sum()) for each in aged)
        if isinstance(what, str):
            expected = ALERT_SHARE * rows
        else:
            slide_us = 1000 * duration_ms(what.slide, output)
            expected = ZONES * (last_us // slide_us - first_us // slide_us)
        whole = 1.0 if isinstance(what, str) else kept.get(output, 1.0)
        shares[output] = whole * min(1.0, in_time / expected) if expected > 0 else 1.0
    offered = {
        name: rows_per_s * (ALERT_SHARE if isinstance(what, str) else 1.0)
        for name, what in SCENARIOS["three_outputs"].items()
    }
    all_ages = np.concatenate(ages) if any(map(len, ages)) else np.array([np.nan])
    p50, p99 = (float(each) for each in np.quantile(all_ages, (0.5, 0.99)))
    return PhaseResult(
        rows_per_s,
        shares,
        worth_per_s(graph, shares, rows_per_s),
        share_of_worth(graph, shares),
        worth_by_rows_per_s(graph, shares, offered),
        share_of_worth_by_rows(graph, shares, offered),
        p50,
        p99,
    )


def completeness(out: Path, trips: TripFiles) -> float:
    """Trips in the tumbling windows that were delivered, over those that the input has in them: 1 where all are right.

    Estimates are near 1, a window that lost rows on the way is below.
    """
    counts: dict[int, float] = {}
    for path in delivered_files(out / "tens"):
        table = pq.ParquetFile(path).read(columns=["window_start", "n"])
        for start_us, n in zip(micros(table["window_start"]), table["n"].to_numpy(), strict=True):
            counts[int(start_us)] = counts.get(int(start_us), 0.0) + float(n)
    whole = [n for start_us, n in counts.items() if start_us >= FIRST_US]
    per_window = 10.0 * trips.rows / trips.batch_s
    return sum(whole) / (per_window * len(whole)) if whole else 1.0


def timeline(delivered: list[Delivered], began_s: float) -> list[dict[str, Any]]:
    """One row per file: when it was there, and how old its results were (99th percentile)."""
    return [
        {
            "second": round(each.at_s - began_s, 2),
            "output": each.output,
            "results": len(each.ages_s),
            "p99_age_s": round(float(np.quantile(each.ages_s, 0.99)), 3),
        }
        for each in delivered
        if len(each.ages_s) and each.at_s >= began_s
    ]
