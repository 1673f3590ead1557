"""Estimated windows against the truth: how far off they are, how often the intervals hold, whether groups vanish.

Trips in windows by group, with too much work for the budget by so much that a given share is to be kept; costs are
given, so that the control loop asks for just that share in every batch. Groups are of one size, or skewed: those of 97
trips in 100 by Zipf's law (group k has a share that goes with 1 / k), the other 3 are of 400 rare groups, which have 1
or 2 rows in a window, if any. Values are uniform, and lognormal with a sigma of 0.75. Every result of which rows were
dropped is compared with the one of all rows; those of groups that were kept whole are exact, and are left out of the
coverage: they would only make it look better. Results whose interval is not known, as too few rows stayed, hold nothing
and miss nothing: they are left out too, and their share is told.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from jettison.experiments.capacity import parquet_sinks, wait_for
from jettison.experiments.harness import Result, Say
from jettison.experiments.trip_files import TripFiles
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.spark.session import local_session
from jettison.spark.start import start
from jettison.statistics.profile import Profile

_TRIGGER_MS = 100.0
_HEADROOM = 0.9
_WINDOW = "2 seconds"
_AGGREGATES = {
    "n": "count(*)",
    "sum_even": "sum(even)",
    "sum_skewed": "sum(skewed)",
    "avg_even": "avg(even)",
    "avg_skewed": "avg(skewed)",
}
_GROUPS = {
    "uniform": "int({u} * {count})",
    "skewed": "int(IF({u} < 0.03, 1000 + 400 * {u} / 0.03, pow({count} + 1, ({u} - 0.03) / 0.97)))",
}
_NORMAL = "sqrt(-2 * ln(1 - {0})) * cos(2 * pi() * {1})"


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    # 80 % would need 1.25 budgets, which passes as a single large batch
    keeps = (0.2,) if quick else (0.1, 0.2, 0.4, 0.6, 0.799)
    counts = {"uniform": 20 if quick else 50, "skewed": 20 if quick else 40}
    table = []
    with tempfile.TemporaryDirectory(prefix="jettison-estimate-") as name:
        trips = TripFiles(Path(name) / "trips", *((20_000, 3) if quick else (100_000, 14)), 10.0)
        say("writing trips")
        trips.write(spark)
        for kind, count in counts.items():
            columns = _columns(kind, count)
            truth = _truth(spark, trips, columns)
            for keep in keeps:
                given, kept_share = _given(spark, trips, columns, keep, Path(name) / f"{kind}-{keep}")
                row = {
                    "groups": kind,
                    "keep_share": keep,
                    "kept_share": round(kept_share, 3),
                    **_compared(truth, given, keep),
                }
                table.append(row)
                say(", ".join(f"{column} {value}" for column, value in row.items()))
    coverage = [row["coverage"] for row in table]
    off = max(abs(row["kept_share"] - row["keep_share"]) / row["keep_share"] for row in table)
    return Result(
        "estimate",
        {
            "coverage_min": min(coverage),
            "coverage_max": max(coverage),
            "unknown_share": max(row["unknown_share"] for row in table),
            "groups_lost": sum(row["groups_lost"] for row in table),
            "plain_drop_would_lose": round(sum(row["plain_would_lose"] for row in table)),
            f"error_at_{100 * keeps[0]:.0f}_percent": max(r["error"] for r in table if r["keep_share"] == keeps[0]),
            "kept_share_off": round(off, 3),
        },
        {
            "the intervals of 95 % hold in 93 to 97 % of all cases": 0.93 <= min(coverage) <= max(coverage) <= 0.97,
            "no group of any window is lost": all(row["groups_lost"] == 0 for row in table),
            "what is kept is within a tenth of what was asked for": off <= 0.1,
        },
        table,
        lambda figure: _draw(figure, table),
    )


def _columns(kind: str, count: int) -> list[str]:
    """Group and values of a trip, drawn by its number."""
    u = [f"(pmod(xxhash64(trip, {seed}), 1000003) / 1000003)" for seed in range(4)]
    group = _GROUPS[kind].format(u=u[0], count=count)
    skewed = f"exp(2 + 0.75 * {_NORMAL.format(u[2], u[3])})"
    return ["trip", "pickup", f"{group} AS zone", f"50 * {u[1]} AS even", f"{skewed} AS skewed"]


def _truth(spark: Any, trips: TripFiles, columns: list[str]) -> dict[tuple[Any, Any], dict[str, float]]:
    """The results of all rows, by window and group."""
    rows = spark.read.parquet(str(trips.folder)).selectExpr(*columns)
    windows = rows.selectExpr("*", f"window(pickup, '{_WINDOW}').start AS window_start")
    windows.createOrReplaceTempView("jettison_estimate_truth")
    made = ", ".join(f"{sql} AS {name}" for name, sql in _AGGREGATES.items())
    found = spark.sql(f"SELECT window_start, zone, {made} FROM jettison_estimate_truth GROUP BY window_start, zone")
    return {(row["window_start"], row["zone"]): row.asDict() for row in found.collect()}


def _given(
    spark: Any, trips: TripFiles, columns: list[str], keep: float, folder: Path
) -> tuple[dict[tuple[Any, Any], dict[str, float]], float]:
    """What a run delivers that is to keep this share, and the share that it has kept."""
    network = Network("estimate")
    schema = "trip long, pickup timestamp, zone int, even double, skewed double"
    rows = network.source("trips", schema, event_time="pickup", id=["trip"])
    busy = rows.window(_WINDOW, by="zone").agg(_AGGREGATES, name="busy")
    busy.output("table", qos=QoS(on_loss="estimate"))
    cost_us = 1000 * _TRIGGER_MS * _HEADROOM / (keep * trips.rows)
    running = start(
        network,
        {"trips": trips.stream(spark).selectExpr(*columns)},
        parquet_sinks(network, folder),
        trigger=f"{_TRIGGER_MS:g} milliseconds",
        headroom=_HEADROOM,
        checkpoint=str(folder / "checkpoint"),
        profile=Profile({"busy": cost_us}, {}),
        shared=(),
        learn=False,
    )
    wait_for(running, trips.batches)
    arcs = [sample.arcs["trips"] for sample, _ in running.history]
    found = spark.read.parquet(str(folder / "table")).collect()
    given = {(row["window_start"], row["zone"]): row.asDict() for row in found}
    return given, sum(kept for _, kept in arcs) / sum(count for count, _ in arcs)


def _compared(truth: Any, given: Any, keep: float) -> dict[str, Any]:
    """What was delivered, beside the truth of the same windows."""
    starts = {start for start, _ in given}
    windows = {place: row for place, row in truth.items() if place[0] in starts}
    held: dict[str, list[bool]] = {name: [] for name in _AGGREGATES}
    off: list[float] = []
    unknown = 0
    for place, row in given.items():
        if not _thinned(row, truth[place]):
            continue
        for name in _AGGREGATES:
            low, high, true = row[f"{name}_low"], row[f"{name}_high"], truth[place][name]
            off.append(abs(row[name] - true) / abs(true))
            if low is None:
                unknown += 1
            else:
                held[name].append(low <= true <= high)
    every = [hit for hits in held.values() for hit in hits]
    return {
        "windows": len(starts),
        "groups_in_windows": len(windows),
        "groups_lost": len(windows.keys() - given.keys()),
        "plain_would_lose": round(sum((1 - keep) ** row["n"] for row in windows.values()), 1),
        "estimated": len(off),
        "unknown_share": round(unknown / len(off), 4),
        "coverage": round(statistics.mean(every), 4),
        **{f"coverage_{name}": round(statistics.mean(hits), 4) for name, hits in held.items()},
        "error": round(statistics.median(off), 4),
    }


def _thinned(row: Any, true: Any) -> bool:
    """Whether rows of a result were dropped: one that is there has a weight, which shows in the interval of a count, or
    some are missing without a trace."""
    return bool(row["n_low"] < row["n_high"] or row["n"] != true["n"])


def _draw(figure: Any, table: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    for number, kind in enumerate(dict.fromkeys(row["groups"] for row in table)):
        rows = [row for row in table if row["groups"] == kind]
        at = [100 * row["keep_share"] for row in rows]
        left.plot(at, [100 * row["coverage"] for row in rows], marker="o", color=f"C{number}", label=f"{kind} groups")
        right.plot(at, [100 * row["error"] for row in rows], marker="o", color=f"C{number}", label=f"{kind} groups")
    left.axhspan(93, 97, color="0.9", label="93 to 97 %")
    left.axhline(95, color="0.5", linestyle="--", linewidth=1)
    left.set_ylim(90, 100)
    left.set_ylabel("intervals that hold the truth (%)")
    right.set_ylim(0, 115 * max(row["error"] for row in table))
    right.set_ylabel("median relative error (%)")
    for axis in (left, right):
        axis.set_xlabel("share of rows kept (%)")
        axis.set_xlim(0, 100)
        axis.legend()
    lost, plain = (sum(row[name] for row in table) for name in ("groups_lost", "plain_would_lose"))
    hold = [100 * row["coverage"] for row in table]
    figure.suptitle(
        f"Windows estimated from a part of their rows: 95 % intervals hold in {min(hold):.1f} to {max(hold):.1f} %,\n"
        f"groups lost: {lost:.0f} (a plain random drop would lose {plain:,.0f})"
    )
