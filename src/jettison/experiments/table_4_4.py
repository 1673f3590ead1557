"""What a window drop costs when it drops nothing: throughput with one in place over that without (table 4.4).

As in figure 4.13 a filter stands before the aggregates: half of the rows pass it. Batches are run by hand under plans
that are forced: none, or window drops in all places where they may stand. The drop share is 0 for every window that
comes. That alone would prove little: where a batch needs everything, the drop at the input is left out. So the
schedule has windows going from some time on that is near enough to be reckoned with and never reached: as in the seed
the drop stands at the input, and on branches that need less than others, and judges every row. Behind aggregates
nothing stands: which windows close in a batch is known before it, and the driver finds that all of them are kept. That
is part of what is measured, as is the driver's own work. (The seed's operator also marks tuples and keeps fake ones;
there are neither here.)

Batches are large, as they are at capacity. Each is run with and without drops, in turns, in a JVM that has seen both
ten times. Speed is rows over the median time of a batch, first batches (of whose times nothing is known) left out;
beside it stands the ratio of the processor time of tasks, which others on the machine hardly change. Reading parquet,
filtering and counting is about the least that a query can do to a row: whatever else it does makes the ratio better.
The seed has .96 to 1.0.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jettison.experiments.by_hand import ByHand, shapes_of
from jettison.experiments.harness import Result, Say
from jettison.experiments.trip_files import FIRST_US, SCHEMA, TripFiles
from jettison.network.declare import Network, Stream
from jettison.plan.fate import BEGINNING, Schedule, Segment
from jettison.plan.plan import Fate, Plan
from jettison.plan.window_arcs import WindowArcs
from jettison.spark.session import local_session

BAR = 0.98
_NEVER_US = 10**9
"""From so long after the first trip on windows would go: later than any trip, and near enough to be worked out."""
_GAP = 24  # with less no row of the sliding windows could go early, and the drop would be left out
_SKIPPED = 2
_HALF = "cents > 15000"
_SUMS = {"n": "count(*)", "cents": "sum(cents)"}


def _tumbling(rows: Stream) -> None:
    rows.window("10 seconds", by="zone").agg(_SUMS, name="tens").output("tens_out")


def _sliding(rows: Stream) -> None:
    rows.window("60 seconds", slide="5 seconds", by="zone").agg(_SUMS, name="minutes").output("minutes_out")


def _nested(rows: Stream) -> None:
    fives = rows.window("5 seconds", by="zone").agg(_SUMS, name="fives").where("n > 1", name="busy")
    fives.window("10 seconds", by="zone").agg(most="max(cents)", name="tens").output("tens_out")


def _fan_out(rows: Stream) -> None:
    _tumbling(rows)
    rows.window("20 seconds", slide="10 seconds").agg(_SUMS, name="city").output("city_out")


SHAPES: Mapping[str, Callable[[Stream], None]] = {
    "tumbling": _tumbling,
    "sliding": _sliding,
    "nested": _nested,
    "fan_out": _fan_out,
}


def network_of(shape: str) -> Network:
    network = Network(shape)
    trips = network.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    SHAPES[shape](trips.where(_HALF, name="half"))
    return network


def keeping_all(network: Network) -> Plan:
    """Window drops in all places, with a drop share of 0 until a time that never comes.

    >>> keeping_all(network_of("nested")).arcs
    ('trips', 'fives>busy', 'tens>tens_out')
    """
    arcs = WindowArcs(network.graph)
    fates = {}
    for name in arcs.fate_arcs:
        slide_us = next(each.window.slide_us for each in network.graph.aggregates if each.name == name)
        never = (FIRST_US + _NEVER_US) // slide_us
        share = _GAP / (_GAP + 1)
        schedule = Schedule((Segment(BEGINNING, 0.0, _GAP, name), Segment(never, share, _GAP, name)))
        fates[name] = Fate(slide_us, schedule)
    return Plan(arcs.drops(fates), "forced")


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    rounds = 1 if quick else 2
    table: list[dict[str, Any]] = []
    same = dict.fromkeys(SHAPES, True)
    with tempfile.TemporaryDirectory(prefix="jettison-table-4-4-") as name:
        trips = TripFiles(Path(name) / "trips", *((2_000, 4, 10.0) if quick else (600_000, 8, 10.0)))
        say("writing trips")
        trips.write(spark)
        frames = trips.frames(spark)
        for number in range(-1 if not quick else 0, rounds):
            for shape in SHAPES:
                where = Path(name) / f"{shape} {number}"
                measured, alike = _round(spark, shape, frames, trips.rows, where)
                same[shape] &= alike
                if number >= 0:
                    table += [{"shape": shape, "round": number, **row} for row in measured]
                with_ms, without_ms = (_median(measured, variant) for variant in ("window_drop", "no_drop"))
                with_cpu, without_cpu = (_median(measured, f"{each}_cpu") for each in ("window_drop", "no_drop"))
                where_to = "warming up" if number < 0 else f"round {number + 1} of {rounds}"
                say(
                    f"{where_to}: {shape}, {without_ms:.0f} ms a batch without a drop, {with_ms:.0f} ms with one "
                    f"({without_cpu:.0f} and {with_cpu:.0f} ms of tasks)"
                )
    speed = {
        shape: {
            variant: trips.rows / _median([row for row in table if row["shape"] == shape], variant)
            for variant in ("no_drop", "window_drop")
        }
        for shape in SHAPES
    }
    cpu_ratios = {
        shape: _median(rows, "no_drop_cpu") / max(1.0, _median(rows, "window_drop_cpu"))
        for shape in SHAPES
        if (rows := [row for row in table if row["shape"] == shape])
    }
    ratios = {shape: each["window_drop"] / each["no_drop"] for shape, each in speed.items()}
    return Result(
        "table-4-4",
        {
            "min_ratio": round(min(ratios.values()), 3),
            "min_cpu_ratio": round(min(cpu_ratios.values()), 3),
            **{f"{shape}_ratio": round(ratio, 3) for shape, ratio in ratios.items()},
            **{f"{shape}_cpu_ratio": round(ratio, 3) for shape, ratio in cpu_ratios.items()},
            **{
                f"{shape}_{variant}_rows_per_s": round(1000 * rate)
                for shape, each in speed.items()
                for variant, rate in each.items()
            },
        },
        {
            **{f"{shape}: the same results": alike for shape, alike in same.items()},
            "every row that came to a drop passed it": all(row["passed"] == row["rows"] for row in table),
            **{f"{shape}: at least {BAR} of the throughput": ratio >= BAR for shape, ratio in ratios.items()},
        },
        table,
        lambda figure: _draw(figure, table, ratios, trips.rows),
    )


def _round(spark: Any, shape: str, frames: list[Any], rows: int, folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """Batch by batch, with and without drops, first the one and then the other; and whether results are the same."""
    network = network_of(shape)
    plans = {"no_drop": Plan(), "window_drop": keeping_all(network)}
    shapes = shapes_of(spark, network, frames[0])
    runs = {variant: ByHand(spark, network, shapes, folder / variant) for variant in plans}
    table = []
    for batch, frame in enumerate(frames):
        times_ms: dict[str, float] = {}
        came = passed = 0
        for variant in plans if batch % 2 else reversed(plans):
            took = runs[variant].run(frame, rows, plans[variant])
            times_ms |= {f"{variant}_ms": took.wall_ms, f"{variant}_cpu_ms": took.cpu_ms}
            came += sum(rows_in for rows_in, _ in took.measured.arcs.values())
            passed += sum(rows_kept for _, rows_kept in took.measured.arcs.values())
        if batch >= _SKIPPED:
            times = {name: round(times_ms[name], 1) for name in sorted(times_ms)}
            table.append({"batch": batch, "rows": came, "passed": passed, **times})
    found = [each.results() for each in runs.values()]
    for each in runs.values():
        each.close()
    return table, found[0] == found[1] and all(found[0].values())


def _median(table: list[dict[str, Any]], variant: str) -> float:
    return float(statistics.median(row[f"{variant}_ms"] for row in table))


def _draw(figure: Any, table: list[dict[str, Any]], ratios: Mapping[str, float], rows: int) -> None:
    axes = figure.subplots()
    pairs = [[row["no_drop_ms"] / row["window_drop_ms"] for row in table if row["shape"] == shape] for shape in ratios]
    axes.boxplot(pairs, tick_labels=[f"{shape}\n{ratio:.3f}" for shape, ratio in ratios.items()], showfliers=False)
    axes.axhline(1.0, color="grey", linestyle=":", linewidth=1)
    axes.axhline(BAR, color="tab:red", linestyle="--", linewidth=1, label=f"bar: {BAR}")
    axes.set_xlabel("windows behind a filter that half of the rows pass (ratio of medians below)")
    axes.set_ylabel("throughput, window drop that keeps all / no drop")
    axes.set_title(
        f"Thesis table 4.4, batches of {rows:,} rows: with a window drop that drops nothing,\n"
        f"at least {min(ratios.values()):.3f} of the throughput is left (the seed: .96 to 1.0)"
    )
    axes.legend()
