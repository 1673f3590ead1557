"""What a window drop costs when it drops nothing: throughput with one in place over that without (table 4.4).

As in figure 4.13 a filter stands before the aggregates: half of the rows pass it. Batches are run by hand under plans
that are forced, with window drops in all places where they may stand:

- `kept`: a drop share of 0, as in the seed. The driver finds that everything is needed and puts no filter before the
  aggregates, and that all results that come are kept. So what is measured is the driver's work.
- `judged`: all windows go from some time on that the batch is about to reach and does not. So a filter stands at the
  input, and on branches that need less than others, and judges every row. That is the worst that can be: what a drop
  costs in a batch which it turns out to leave alone. The seed has no such case.

(The seed's operator also marks tuples and keeps fake ones; there are neither here.)

Batches are large, as they are at capacity. Each is run in all ways, one after the other in an order by chance, several
times over in a JVM that has seen all of them many times. A ratio is the median of those of batches, so that what comes
and goes on the machine meets both; first batches (of whose times nothing is known) are left out. Two of the ways are
the same, without a drop, and count by their geometric mean: how far their own ratio is from 1 says what the others are
worth (`noise`). At a drop share of 0 Spark does the same to rows with and without drops (tests/spark/test_idle_drops.py
compares the plans; of results of inner windows it counts those on their way to the outer ones), so that what the driver
spends on drops (`driver_share`, of the time of a batch) is the difference, as far as it can be told from noise. Beside
it stands the same of the processor time of tasks. Reading parquet, filtering and counting is about the least that a
query can do to a row: whatever else it does makes the ratios better. The seed has .96 to 1.0.
"""

from __future__ import annotations

import math
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.by_hand import ByHand, shapes_of
from jettison.experiments.support.trip_files import FIRST_US, SCHEMA, TripFiles
from jettison.network.declare import Network, Stream
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import BEGINNING, Schedule, Segment
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.run.session import local_session

BAR = 0.98
_BATCH_S = 10
_BEHIND_US = 5_000_000
"""So long behind the batch's last trip the first trip would go, when all are judged."""
_SKIPPED = 2
_HALF = "cents > 15000"
_SUMS = {"n": "count(*)", "cents": "sum(cents)"}
_NONE, _AGAIN, _KEPT, _JUDGED = VARIANTS = ("none", "again", "kept", "judged")
_WARM_UP = 3


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


def keeping_all(network: Network, gone_from_us: int | None = None) -> Plan:
    """Window drops in all places, with a drop share of 0, or with 1 from where no trip before a time is needed on.

    >>> keeping_all(network_of("nested")).arcs
    ('trips', 'fives>busy', 'tens>tens_out')
    """
    arcs = WindowArcs(network.graph)
    fates = {}
    for name in arcs.fate_arcs:
        window = next(each.window for each in network.graph.aggregates if each.name == name)
        segments = [Segment(BEGINNING, 0.0, 1, name)]
        if gone_from_us is not None:
            first = -(-(gone_from_us - window.size_us) // window.slide_us) + 1
            segments.append(Segment(first, 1.0, 1, name))
        fates[name] = Fate(window.slide_us, Schedule(tuple(segments)))
    return Plan(arcs.drops(fates), "forced")


def plan_of(network: Network, variant: str, batch: int) -> Plan:
    """What is forced upon a batch."""
    if variant in (_NONE, _AGAIN):
        return Plan()
    if variant == _KEPT:
        return keeping_all(network)
    return keeping_all(network, FIRST_US + (batch + 1) * _BATCH_S * 1_000_000 + _BEHIND_US)


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    rounds = 1 if quick else 7
    table: list[dict[str, Any]] = []
    same = dict.fromkeys(SHAPES, True)
    with tempfile.TemporaryDirectory(prefix="jettison-table-4-4-") as name:
        rows, batches = (2_000, 4) if quick else (2_000_000, 7)
        trips = TripFiles(Path(name) / "trips", rows, batches, float(_BATCH_S))
        say("writing trips")
        trips.write(spark)
        frames = trips.frames(spark)
        for number in range(0 if quick else -_WARM_UP, rounds):
            for shape in SHAPES:
                measured, alike = _round(spark, shape, frames, trips.rows, Path(name) / f"{shape} {number}")
                same[shape] &= alike
                if number >= 0:
                    table += [{"shape": shape, "round": number, **row} for row in measured]
                took = ", ".join(
                    f"{variant} {_median(measured, shape, f'{variant}_ms'):.0f} ms" for variant in VARIANTS
                )
                where_to = "warming up" if number < 0 else f"round {number + 1} of {rounds}"
                say(f"{where_to}: {shape}, a batch: {took}")
    ratios, cpu_ratios = (
        {
            variant: {shape: _ratio(table, shape, variant, what) for shape in SHAPES}
            for variant in (_AGAIN, _KEPT, _JUDGED)
        }
        for what in ("_ms", "_cpu_ms")
    )
    noise = max(abs(ratio**2 - 1.0) for ratio in ratios.pop(_AGAIN).values())
    speed = {shape: 1000 * rows / _median(table, shape, f"{_NONE}_ms") for shape in SHAPES}
    driver = [_median(table, each, f"{_KEPT}_driver_ms") / _median(table, each, f"{_KEPT}_ms") for each in SHAPES]
    return Result(
        "table-4-4",
        {
            "min_ratio": round(min(ratios[_KEPT].values()), 3),
            "min_ratio_judged": round(min(ratios[_JUDGED].values()), 3),
            "noise": round(noise, 3),
            "driver_share": round(max(driver), 4),
            **{f"{shape}_ratio": round(ratio, 3) for shape, ratio in ratios[_KEPT].items()},
            **{f"{shape}_ratio_judged": round(ratio, 3) for shape, ratio in ratios[_JUDGED].items()},
            **{f"{shape}_cpu_ratio": round(ratio, 3) for shape, ratio in cpu_ratios[_KEPT].items()},
            **{f"{shape}_cpu_ratio_judged": round(ratio, 3) for shape, ratio in cpu_ratios[_JUDGED].items()},
            **{f"{shape}_rows_per_s": round(rate) for shape, rate in speed.items()},
        },
        {
            **{f"{shape}: the same results": alike for shape, alike in same.items()},
            "every row that came to a drop passed it": all(row["passed"] == row["rows"] for row in table),
            **{
                f"{shape}: at least {BAR} of the throughput at p = 0": ratio >= BAR
                for shape, ratio in ratios[_KEPT].items()
            },
        },
        table,
        lambda figure: _draw(figure, ratios, noise, rows),
    )


def _round(spark: Any, shape: str, frames: list[Any], rows: int, folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """Every batch in all ways, each time in another order; and whether results are the same."""
    network = network_of(shape)
    shapes = shapes_of(spark, network, frames[0])
    runs = {variant: ByHand(spark, network, shapes, folder / variant) for variant in VARIANTS}
    table = []
    for batch, frame in enumerate(frames):
        times_ms: dict[str, float] = {}
        came = passed = 0
        for variant in random.Random(f"{folder.name} {batch}").sample(VARIANTS, len(VARIANTS)):
            took = runs[variant].run(frame, rows, plan_of(network, variant, batch))
            times_ms |= {f"{variant}_ms": took.wall_ms, f"{variant}_cpu_ms": took.cpu_ms}
            times_ms[f"{variant}_driver_ms"] = took.resolving_ms
            came += sum(rows_in for rows_in, _ in took.measured.arcs.values())
            passed += sum(rows_kept for _, rows_kept in took.measured.arcs.values())
        if batch >= _SKIPPED:
            times = {name: round(times_ms[name], 2) for name in sorted(times_ms)}
            table.append({"batch": batch, "rows": came, "passed": passed, **times})
    found = [each.results() for each in runs.values()]
    for each in runs.values():
        each.close()
    return table, all(each == found[0] for each in found) and all(found[0].values())


def _ratio(table: list[dict[str, Any]], shape: str, variant: str, what: str) -> float:
    """The throughput in one way over that without a drop: the median over batches."""
    rows = [row for row in table if row["shape"] == shape]
    without = [math.sqrt(max(1.0, row[f"{_NONE}{what}"]) * max(1.0, row[f"{_AGAIN}{what}"])) for row in rows]
    pairs = zip(without, rows, strict=True)
    return float(statistics.median(each / max(1.0, row[f"{variant}{what}"]) for each, row in pairs))


def _median(table: list[dict[str, Any]], shape: str, name: str) -> float:
    return float(statistics.median(row[name] for row in table if row.get("shape", shape) == shape))


def _draw(figure: Any, ratios: Mapping[str, Mapping[str, float]], noise: float, rows: int) -> None:
    axes = figure.subplots()
    labels = {_KEPT: "drop share 0: all is needed, and no filter is put in", _JUDGED: "every row is judged, none goes"}
    for at, (variant, found) in enumerate(ratios.items()):
        places = [number + 0.4 * at - 0.2 for number in range(len(found))]
        bars = axes.bar(places, found.values(), 0.38, label=labels[variant])
        axes.bar_label(bars, [f"{ratio:.3f}" for ratio in found.values()], fontsize=8)
    axes.axhline(1.0, color="grey", linestyle=":", linewidth=1)
    axes.axhline(BAR, color="tab:red", linestyle="--", linewidth=1, label=f"bar at drop share 0: {BAR}")
    axes.set_xticks(range(len(SHAPES)), SHAPES)
    axes.set_xlabel(
        f"windows behind a filter that half of the rows pass (twice without a drop differs by up to {noise:.3f})"
    )
    axes.set_ylabel("throughput with a window drop / without")
    axes.set_ylim(0, 1.25)
    least = {variant: min(found.values()) for variant, found in ratios.items()}
    axes.set_title(
        f"Thesis table 4.4, batches of {rows:,} rows: a window drop that drops nothing leaves\n"
        f"{least[_KEPT]:.3f} of the throughput or more, {least[_JUDGED]:.3f} where it judges every row "
        f"(the seed: .96 to 1.0)",
        fontsize=10,
    )
    axes.legend(loc="lower right", fontsize=8)
