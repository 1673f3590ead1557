"""Estimated windows against the truth: how far off they are, how often the intervals hold, whether groups vanish.

Trips in windows by group, with too much work for the budget by so much that a given share is to be kept; costs are
given, so that the control loop asks for just that share in every batch. Groups are of one size, or skewed: those of 97
trips in 100 by Zipf's law (group k has a share that goes with 1 / k), the other 3 are of 400 rare groups, which have 1
or 2 rows in a window, if any. Values are uniform, lognormal with a sigma of 0.75 and one of 1.5, rare (4 in 1,000 are
1,000, the others 0), and flags: one that is set as often as not, one that is set in 2 of 100 trips. Every result of
which rows were dropped is compared with the one of all rows; those of groups that were kept whole are exact, and are
left out of the coverage: they would only make it look better. Results whose interval is not known, as too few rows
stayed, hold nothing and miss nothing: they are left out too, and their share is told.

Each aggregate is judged by itself in each cell: a keep share, with groups of one size, with small groups beside large
ones, with large ones beside small ones. `width_vs_normal` compares with T +- 1.96 sqrt(V) of the same kept rows, which
are found again by the plans of the run. As before, `coverage_pooled_min` and `coverage_pooled_max` are over the five
aggregates of the first version together.
"""

from __future__ import annotations

import functools
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import parquet_sinks, wait_for
from jettison.experiments.support.trip_files import TripFiles
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.network.windows.estimates import WEIGHT
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.plan import Plan
from jettison.spark.compile.compiler import Compiler
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
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
    "sum_tail": "sum(tail)",
    "avg_tail": "avg(tail)",
    "sum_rare": "sum(rare)",
    "avg_rare": "avg(rare)",
    "avg_flag": "avg(flag)",
    "avg_flagged": "avg(flagged)",
    "n_flagged": "count_if(flagged > 0)",
}
_POOLED = ("n", "sum_even", "sum_skewed", "avg_even", "avg_skewed")
"""The aggregates of the first version of this experiment, whose pooled coverage is told as before."""
_SMALL = 300
"""Groups with fewer rows in a window are small."""
_FEWEST = 100
"""Cells with fewer results are left out: chance alone would decide."""
_VALUES = ("even", "skewed", "tail", "rare", "flag", "flagged")
_VIEW = "jettison_estimate_kept"
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
    table, ratios = [], list[float]()
    with tempfile.TemporaryDirectory(prefix="jettison-estimate-") as name:
        trips = TripFiles(Path(name) / "trips", *((20_000, 3) if quick else (100_000, 14)), 10.0)
        say("writing trips")
        trips.write(spark)
        for kind, count in counts.items():
            columns = _columns(kind, count)
            truth = _truth(spark, trips, columns)
            for keep in keeps:
                given, kept_share, normal = _given(spark, trips, columns, keep, Path(name) / f"{kind}-{keep}")
                row = {
                    "groups": kind,
                    "keep_share": keep,
                    "kept_share": round(kept_share, 3),
                    **_compared(truth, given, keep),
                    **_judged(truth, given, normal),
                }
                table.append(row)
                ratios += _ratios(truth, given, normal)
                say(", ".join(f"{column} {value}" for column, value in row.items()))
    coverage = [row["coverage"] for row in table]
    alone = [(row["lowest"], row["lowest_of"]) for row in table]
    off = max(abs(row["kept_share"] - row["keep_share"]) / row["keep_share"] for row in table)
    return Result(
        "estimate",
        {
            "coverage_min": min(alone)[0],
            "coverage_pooled_min": min(coverage),
            "coverage_pooled_max": max(coverage),
            "unknown_share": max(row["unknown_share"] for row in table),
            "zero_width_wrong": sum(row["zero_width_wrong"] for row in table),
            "width_vs_normal": round(statistics.median(ratios), 3),
            "width_vs_normal_most": max(row["widest"] for row in table),
            "groups_lost": sum(row["groups_lost"] for row in table),
            "plain_drop_would_lose": round(sum(row["plain_would_lose"] for row in table)),
            f"error_at_{100 * keeps[0]:.0f}_percent": max(r["error"] for r in table if r["keep_share"] == keeps[0]),
            "kept_share_off": round(off, 3),
        },
        {
            "the intervals of 95 % hold in 93 % or more, of each aggregate in each cell": min(alone)[0] >= 0.93,
            "intervals are known in 98 % or more": all(row["unknown_share"] <= 0.02 for row in table),
            "equal ends mean exact": all(row["zero_width_wrong"] == 0 for row in table),
            "half of the intervals are at most 1.5 times as wide as normal ones": statistics.median(ratios) <= 1.5,
            "no group of any window is lost": all(row["groups_lost"] == 0 for row in table),
            "what is kept is within a tenth of what was asked for": off <= 0.1,
        },
        table,
        lambda figure: _draw(figure, table),
    )


def _columns(kind: str, count: int) -> list[str]:
    """Group and values of a trip, drawn by its number."""
    u = [f"(pmod(xxhash64(trip, {seed}), 1000003) / 1000003)" for seed in range(9)]
    group = _GROUPS[kind].format(u=u[0], count=count)
    skewed = f"exp(2 + 0.75 * {_NORMAL.format(u[2], u[3])})"
    tail = f"exp(2 + 1.5 * {_NORMAL.format(u[4], u[5])})"
    flags = [f"double({u[7]} < 0.5) AS flag", f"double({u[8]} < 0.02) AS flagged"]
    rare = f"IF({u[6]} < 0.004, 1000D, 0D) AS rare"
    values = [f"50 * {u[1]} AS even", f"{skewed} AS skewed", f"{tail} AS tail", rare, *flags]
    return ["trip", "pickup", f"{group} AS zone", *values]


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
) -> tuple[dict[tuple[Any, Any], dict[str, float]], float, dict[tuple[Any, Any], dict[str, float]]]:
    """What a run delivers that is to keep this share, what it has kept, and how wide normal intervals are."""
    network = Network("estimate")
    schema = "trip long, pickup timestamp, zone int, " + ", ".join(f"{name} double" for name in _VALUES)
    rows = network.source("trips", schema, event_time="pickup", id=["trip"])
    busy = rows.window(_WINDOW, by="zone").agg(_AGGREGATES, name="busy")
    busy.output("table", qos=QoS(on_loss="estimate"))
    cost_us = 1000 * _TRIGGER_MS * _HEADROOM / (keep * trips.rows)
    running = start(
        network,
        {"trips": trips.stream(spark).selectExpr(*columns)},
        parquet_sinks(network, folder),
        trigger=f"{_TRIGGER_MS:g} milliseconds",
        shedding=Shedding(headroom=_HEADROOM),
        checkpoint=str(folder / "checkpoint"),
        costs=Costs(Profile({"busy": cost_us}, {}), learn=False, shared=()),
    )
    wait_for(running, trips.batches)
    arcs = [sample.arcs["trips"] for sample, _ in running.history]
    normal = _normal(network, trips.frames(spark), columns, [plan for _, plan in running.history])
    found = spark.read.parquet(str(folder / "table")).collect()
    given = {(row["window_start"], row["zone"]): row.asDict() for row in found}
    return given, sum(kept for _, kept in arcs) / sum(count for count, _ in arcs), normal


def _normal(
    network: Network, batches: list[Any], columns: list[str], plans: list[Plan]
) -> dict[tuple[Any, Any], dict[str, float]]:
    """How wide T +- 1.96 sqrt(V) is, by window and group, of the rows that the plans have kept."""
    kept = [
        Compiler(network.graph, {"trips": rows.selectExpr(*columns)}, plan, {}).operator("trips")
        for rows, plan in zip(batches, plans, strict=False)
    ]
    rows = functools.reduce(lambda one, other: one.unionByName(other), kept)
    w, made = WEIGHT, [f"sum({WEIGHT} * ({WEIGHT} - 1)) AS a", f"sum({WEIGHT}) AS rows"]
    for name in _VALUES:
        made += [f"sum({w} * ({w} - 1) * {power}) AS {name}{n}" for n, power in ((1, name), (2, f"{name} * {name}"))]
        made.append(f"sum({w} * {name}) / sum({w}) AS {name}")
    rows.selectExpr("*", f"window(pickup, '{_WINDOW}').start AS window_start").createOrReplaceTempView(_VIEW)
    found = rows.sparkSession.sql(f"SELECT window_start, zone, {', '.join(made)} FROM {_VIEW} GROUP BY 1, 2").collect()
    widths = {}
    for row in found:
        variances = {"n": row["a"], "n_flagged": row["flagged2"]}
        for name in _VALUES:
            mean = row[name]
            residual = max(0.0, row[f"{name}2"] - 2 * mean * row[f"{name}1"] + mean**2 * row["a"])
            variances |= {f"sum_{name}": row[f"{name}2"], f"avg_{name}": residual / row["rows"] ** 2}
        widths[row["window_start"], row["zone"]] = {n: 2 * 1.96 * math.sqrt(v) for n, v in variances.items()}
    return widths


def _compared(truth: Any, given: Any, keep: float) -> dict[str, Any]:
    """What was delivered, beside the truth of the same windows."""
    starts = {start for start, _ in given}
    windows = {place: row for place, row in truth.items() if place[0] in starts}
    held: dict[str, list[bool]] = {name: [] for name in _AGGREGATES}
    off: list[float] = []
    unknown = count = 0
    for place, row in given.items():
        if not _thinned(row, truth[place]):
            continue
        for name in _AGGREGATES:
            low, high, true = row[f"{name}_low"], row[f"{name}_high"], truth[place][name]
            if true:
                off.append(abs(row[name] - true) / abs(true))
            count += 1
            if low is None:
                unknown += 1
            else:
                held[name].append(_holds(low, true, high))
    every = [hit for name in _POOLED for hit in held[name]]
    return {
        "windows": len(starts),
        "groups_in_windows": len(windows),
        "groups_lost": len(windows.keys() - given.keys()),
        "plain_would_lose": round(sum((1 - keep) ** row["n"] for row in windows.values()), 1),
        "estimated": count,
        "unknown_share": round(unknown / count, 4),
        "coverage": round(statistics.mean(every), 4),
        **{f"coverage_{name}": round(statistics.mean(hits), 4) for name, hits in held.items()},
        "error": round(statistics.median(off), 4),
    }


def _judged(truth: Any, given: Any, normal: Any) -> dict[str, Any]:
    """The lowest coverage of any aggregate and size of group, the widest median of widths over normal ones, and the
    intervals of equal ends that are not exact."""
    cells: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    wrong = 0
    for place, row in given.items():
        true = truth[place]
        wrong += sum(
            row[f"{name}_low"] == row[f"{name}_high"] and not _same(row[name], true[name]) for name in _AGGREGATES
        )
        if not _thinned(row, true):
            continue
        size = "small" if true["n"] < _SMALL else "large"
        for name in _AGGREGATES:
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            if low is not None:
                width = _ratio(high - low, normal[place][name])
                cells.setdefault((name, size), []).append((_holds(low, true[name], high), width))
    many = {cell: found for cell, found in cells.items() if len(found) >= _FEWEST} or cells
    held = {cell: statistics.mean(hit for hit, _ in found) for cell, found in many.items()}
    least = min(held, key=lambda cell: held[cell])
    widths = {cell: statistics.median(width for _, width in found) for cell, found in many.items()}
    finite = [width for width in widths.values() if math.isfinite(width)]
    return {
        "lowest": round(held[least], 4),
        "lowest_of": f"{least[0]}, {least[1]} groups, of {len(many[least])}",
        "widest": round(max(finite), 3),
        "zero_width_wrong": wrong,
    }


def _ratios(truth: Any, given: Any, normal: Any) -> list[float]:
    """The width of every interval over that of the normal one, which is 0 where all kept values are."""
    return [
        _ratio(row[f"{name}_high"] - row[f"{name}_low"], normal[place][name])
        for place, row in given.items()
        if _thinned(row, truth[place])
        for name in _AGGREGATES
        if row[f"{name}_low"] is not None
    ]


def _ratio(width: float, normal: float) -> float:
    return width / normal if normal > 0 else math.inf


def _same(value: float, true: float) -> bool:
    return math.isclose(value, true, rel_tol=1e-9, abs_tol=1e-9)


def _holds(low: float, true: float, high: float) -> bool:
    """Whether a truth is inside, or at an end but for rounding: sums are added in another order."""
    return low <= true <= high or _same(low, true) or _same(high, true)


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
        left.plot(at, [100 * row["lowest"] for row in rows], ":", marker=".", color=f"C{number}", label="lowest alone")
        right.plot(at, [100 * row["error"] for row in rows], marker="o", color=f"C{number}", label=f"{kind} groups")
    left.axhspan(93, 100, color="0.9", label="93 % or more")
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
    hold = min(100 * row["lowest"] for row in table)
    figure.suptitle(
        f"Windows estimated from a part of their rows: 95 % intervals of each aggregate hold in {hold:.1f} % or more,\n"
        f"groups lost: {lost:.0f} (a plain random drop would lose {plain:,.0f})"
    )
