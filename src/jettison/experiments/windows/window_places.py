"""How much work is saved by dropping the same share of windows in one place or another: what figures 4.8 and 4.10 ask.

Where the seed has operators that wait, there are filters here that hash so often and pass all rows. Measured on Spark
is the processor time of a batch's tasks: load is just that in the seed. The same rows are run under forced plans, all
variants in turns, in an order by chance (`typical` tells how times of several batches become one): with nothing
dropped, and with a share of 1/2, 3/4 and all windows (or results) dropped at each place. Shares of 1/2 and 3/4 at a gap
of 1 and 3 leave nothing to chance: every other window goes, or three of four. With T the time of a batch, F what it
takes with hardly any rows and filters that hash once (where windows overlap, few rows are in many), and S what dropping
everything at a place saves, the share p that an excess load e (0.5: half as many rows again as fit) asks for is
computed, since work saved is linear in p:

    (1 + e) (T - F - p S)  =  T - F        p  =  (T - F) / S * e / (1 + e)

>>> drop_rate(0.5, work_ms=900.0, saved_ms=600.0), drop_rate(1.0, work_ms=900.0, saved_ms=300.0)
(0.5, 1.0)

Where p would be above 1 nothing is delivered, and that is still not enough. The times at 1/2 and 3/4 are no part of the
computation, and so confirm it: a batch that takes t there is one that carries (T - F) / (t - F) - 1 more rows.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Say
from jettison.experiments.support.by_hand import ByHand, shapes_of
from jettison.experiments.support.trip_files import TripFiles
from jettison.network.declare import Network
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import BEGINNING, Schedule, Segment
from jettison.plan.windows.window_arcs import WindowArcs

SHARES = (0.5, 0.75, 1.0)
_SKIPPED = 2
_MOST = 100.0
"""Work that is saved all but so small a part of is not told from none left."""
_NEXT_TO_NONE = 0.001
"""What is kept by chance where all goes: with nothing kept there is not even a job, and what is saved is not linear."""
_NOTHING = "nothing dropped"
_FEW = ("hardly any rows", 0.0)
_IDLE = ("all rows, next to no work", 0.0)


@dataclass(frozen=True)
class Place:
    """Where drops stand: by window, from somewhere on (`left_out` are the arcs above that), or by chance on `arcs`.

    `step_us` is given where aggregates are decided together.
    """

    name: str
    left_out: tuple[str, ...] = ()
    by_chance: tuple[str, ...] = ()
    step_us: int | None = None

    def plan(self, network: Network, share: float) -> Plan:
        """Drop this share: of windows 1/2, 3/4 and so on, or all."""
        if self.by_chance:
            keep = max(_NEXT_TO_NONE, 1.0 - share)
            return Plan({arc: Random(keep) for arc in self.by_chance}, "forced")
        arcs = WindowArcs(network.graph)
        gap = 1 if share == 1.0 else round(share / (1.0 - share))
        schedule = Schedule((Segment(BEGINNING, share, gap, "forced"),))
        slides_us = {each.name: each.window.slide_us for each in network.graph.aggregates}
        fates = {name: Fate(self.step_us or slides_us[name], schedule, share) for name in arcs.fate_arcs}
        drops = arcs.drops(fates)
        return Plan({arc: drop for arc, drop in drops.items() if arc not in self.left_out}, "forced")


@dataclass(frozen=True)
class Saved:
    """What was measured: the time of a batch, without what hardly any rows take, and what places save of it."""

    work_ms: float
    fixed_ms: float
    after_ms: Mapping[tuple[str, float], float]
    exact: bool
    passed: Mapping[tuple[str, float], Mapping[str, float]] = field(default_factory=dict)
    """By place and share, the share of rows that passed on arcs with drops: counted, not estimated."""
    other_ms: float = 0.0
    """Of the work what is done where filters hash once: reading, slices, and merging them into windows."""

    def saved_ms(self, place: str) -> float:
        """What dropping everything at a place saves."""
        return self.work_ms - self.after_ms[place, 1.0]

    def rate(self, place: str, excess: float) -> float:
        return drop_rate(excess, self.work_ms, self.saved_ms(place))

    def most_excess(self, place: str) -> float:
        """The excess load from which on nothing is delivered."""
        return self.carried(place, 1.0)

    def carried(self, place: str, share: float) -> float:
        """The excess load that dropping a share was seen to make room for."""
        work_ms = max(self.work_ms, 1.0)  # of a short run the clock may tell nothing
        return work_ms / max(self.after_ms[place, share], work_ms / _MOST) - 1.0


def drop_rate(excess: float, work_ms: float, saved_ms: float) -> float:
    """The share that must go at an excess load, where dropping all saves so much of the work; 1 where it is too
    little."""
    needed_ms = work_ms * excess / (1.0 + excess)
    return min(1.0, max(0.0, needed_ms / saved_ms)) if saved_ms > 0 else 1.0


def busy(column: str, times: int) -> str:
    """A condition that holds and takes its time: a column's value, hashed so often."""
    return f"aggregate(sequence(1, {times}), bigint({column}), (a, i) -> xxhash64(a, i)) IS NOT NULL"


def measure(
    spark: Any,
    build: Callable[[int], Network],
    places: Sequence[Place],
    folder: Path,
    say: Say,
    *,
    rows: int,
    hashes: int,
    batches: int,
    batch_s: float,
    shares: Sequence[float] = SHARES,
    shared: frozenset[str] = frozenset(),
) -> Saved:
    """Run every variant batch by batch, in turns; the first two batches do not count.

    `build` makes the network with filters that hash so often.
    """
    network, idle = build(hashes), build(1)
    trips = TripFiles(folder / "trips", rows, batches + _SKIPPED, batch_s)
    few = TripFiles(folder / "few", 20, batches + _SKIPPED, batch_s)
    for files in (trips, few):
        files.write(spark)
    plans = {(_NOTHING, 0.0): Plan()}
    plans |= {(place.name, share): place.plan(network, share) for place in places for share in shares}
    frames, hardly_any = trips.frames(spark), few.frames(spark)
    shapes = shapes_of(spark, network, frames[0])
    runs = {
        key: ByHand(spark, network if key in plans else idle, shapes, folder / f"{key[0]} {key[1]:g}", shared)
        for key in (*plans, _FEW, _IDLE)
    }
    times_ms: dict[tuple[str, float], list[float]] = {key: [] for key in runs}
    counts: dict[tuple[str, float], list[Mapping[str, tuple[int, int]]]] = {key: [] for key in runs}
    for batch, frame in enumerate(frames):
        for key in random.Random(batch).sample(list(runs), len(runs)):
            each = runs[key]
            given, count = (hardly_any[batch], few.rows) if key == _FEW else (frame, trips.rows)
            took = each.run(given, count, plans.get(key, Plan()))
            if batch >= _SKIPPED:
                times_ms[key].append(took.cpu_ms)
                counts[key].append(took.measured.arcs)
        say(f"batch {batch + 1} of {len(frames)}")
    typical_ms = typical(times_ms)
    everything = {name: set(found) for name, found in runs[_NOTHING, 0.0].results().items()}
    exact = all(
        everything[name].issuperset(found) and len(found) < len(everything[name])
        for key in plans
        if key[0] != _NOTHING
        for name, found in runs[key].results().items()
    )
    for each in runs.values():
        each.close()
    fixed_ms, idle_ms = typical_ms.pop(_FEW), typical_ms.pop(_IDLE)
    for (name, share), took_ms in typical_ms.items():
        say(f"{name}, {share:g}: {took_ms:.0f} ms (hardly any rows: {fixed_ms:.0f} ms)")
    work_ms = typical_ms.pop((_NOTHING, 0.0)) - fixed_ms
    after_ms = {key: took_ms - fixed_ms for key, took_ms in typical_ms.items()}
    passed = {key: _passed(counts[key]) for key in plans}
    return Saved(work_ms, fixed_ms, after_ms, exact, passed, idle_ms - fixed_ms)


def typical(times: Mapping[Any, Sequence[float]]) -> dict[Any, float]:
    """How long each of some variants takes that were run in turns, batch by batch.

    What slows the machine down for a while slows all variants of a batch down. So a time is the batch's pace (the
    geometric mean of those variants in it that take long: time is told in ticks) times what is typical of the variant,
    the median over batches; the pace that counts is the quickest batch's.

    >>> alone = typical({"a": [100.0, 100.0, 100.0], "b": [50.0, 50.0, 50.0]})
    >>> beside_others = typical({"a": [100.0, 120.0, 150.0], "b": [50.0, 60.0, 99.0]})
    >>> {name: round(took) for name, took in alone.items()}, {name: round(took) for name, took in beside_others.items()}
    ({'a': 100, 'b': 50}, {'a': 100, 'b': 50})
    """
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    long = [measured for name, measured in times.items() if 4 * medians[name] >= max(medians.values())]
    batches = list(zip(*long, strict=True))
    paces = [math.exp(statistics.fmean(math.log(max(1.0, each)) for each in batch)) for batch in batches]
    return {
        name: min(paces) * statistics.median(each / pace for each, pace in zip(measured, paces, strict=True))
        for name, measured in times.items()
    }


def _passed(batches: Sequence[Mapping[str, tuple[int, int]]]) -> dict[str, float]:
    """The share of rows that passed, by arc, over some batches."""
    arcs = {arc for each in batches for arc in each}
    rows, kept = ({arc: sum(each.get(arc, (0, 0))[at] for each in batches) for arc in arcs} for at in (0, 1))
    return {arc: kept[arc] / rows[arc] for arc in arcs if rows[arc]}
