"""One engine, live: how much it can take with results in time, and what three times that leaves of their worth."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Say
from jettison.experiments.peers.engines import Engine
from jettison.experiments.peers.feed import Phase, feed, rows_needed
from jettison.experiments.peers.in_time import PhaseResult, completeness, deliveries, judge, timeline
from jettison.experiments.peers.on_jettison import three_outputs
from jettison.experiments.peers.results import delivered_files
from jettison.experiments.support.trip_files import FILES_PER_BATCH, TripFiles
from jettison.statistics.worth import DEADLINE_TRIGGERS

TIMES = 3.0
WARM, OVERLOAD = "warm-up", "overload"
_LEVELS = (0.4, 0.6, 0.8)
_IN_TIME_SHARE = 0.9
_FILES_PER_S = 3.3  # at capacity; three times as many in the overload
_EVENT_SPEED = 4.0  # how much faster than the clock event time passes at capacity: windows close every 2.5 s
_MOST_ROWS = 160_000_000


@dataclass(frozen=True)
class Length:
    """How long phases take."""

    trigger_ms: float
    warm_s: float
    level_s: float
    overload_s: float

    @property
    def deadline_s(self) -> float:
        return DEADLINE_TRIGGERS * self.trigger_ms / 1000


@dataclass(frozen=True)
class Overloaded:
    """What an engine can take, what it delivered then, and at three times that; a row per file of the overload."""

    at_capacity: PhaseResult
    overload: PhaseResult
    completeness: float
    table: Sequence[Mapping[str, Any]]

    @property
    def worth_share(self) -> float:
        """Worth in time during the overload over that at capacity."""
        worth = self.at_capacity.worth_per_s
        return self.overload.worth_per_s / worth if worth > 0 else 0.0

    @property
    def worth_by_rows_share(self) -> float:
        """The same, outputs weighed by the rows offered to them."""
        worth = self.at_capacity.worth_by_rows_per_s
        return self.overload.worth_by_rows_per_s / worth if worth > 0 else 0.0


def overloaded(spark: Any, engine: Engine, rows_per_s: float, folder: Path, length: Length, say: Say) -> Overloaded:
    """Find the highest of three levels of a throughput at which results are in time, then take three times that."""
    levels = [Phase(f"{level:g}", level * rows_per_s, length.level_s) for level in _LEVELS]
    trips = _written(spark, folder / "levels", [_warm(levels[0].rows_per_s, length), *levels], levels[-1].rows_per_s)
    found = _live(engine, trips, [_warm(levels[0].rows_per_s, length), *levels], folder / "levels-run", length)
    shutil.rmtree(folder)
    for phase in levels:
        went = found.phases[phase.name]
        say(f"{engine.name}: {went.rows_per_s:,.0f} rows/s, {went.worth_share:.0%} of the worth in time")
    good = [name for name, each in found.phases.items() if name != WARM and each.worth_share >= _IN_TIME_SHARE]
    at_capacity = found.phases[good[-1] if good else levels[0].name]
    seconds = min(length.overload_s, _MOST_ROWS / (TIMES * at_capacity.rows_per_s))
    phases = [
        _warm(0.5 * at_capacity.rows_per_s, length),
        Phase(OVERLOAD, TIMES * at_capacity.rows_per_s, seconds),
    ]
    say(f"{engine.name}: {TIMES:g} times {at_capacity.rows_per_s:,.0f} rows/s for {seconds:.0f} s")
    trips = _written(spark, folder / "overload", phases, at_capacity.rows_per_s)
    went_on = _live(engine, trips, phases, folder / "overload-run", length)
    shutil.rmtree(folder)
    return _result(engine, at_capacity, went_on, min(found.completeness, went_on.completeness))


def quickly_overloaded(
    spark: Any, engine: Engine, rows_per_s: float, folder: Path, length: Length, say: Say
) -> Overloaded:
    """For the test suite: the capacity is given, and both phases are of one run."""
    say(f"{engine.name}: {TIMES:g} times {rows_per_s:,.0f} rows/s for {length.overload_s:g} s")
    phases = [
        Phase(WARM, 0.5 * rows_per_s, length.warm_s),
        Phase("capacity", rows_per_s, length.level_s),
        Phase(OVERLOAD, TIMES * rows_per_s, length.overload_s),
    ]
    trips = _written(spark, folder / "trips", phases, rows_per_s)
    went = _live(engine, trips, phases, folder / "live", length)
    return _result(engine, went.phases["capacity"], went, went.completeness)


@dataclass(frozen=True)
class _Went:
    phases: Mapping[str, PhaseResult]
    completeness: float
    table: list[dict[str, Any]]


def _result(engine: Engine, at_capacity: PhaseResult, went: _Went, complete: float) -> Overloaded:
    rows = [{"engine": engine.name, **row} for row in went.table]
    return Overloaded(at_capacity, went.phases[OVERLOAD], complete, rows)


def _warm(rows_per_s: float, length: Length) -> Phase:
    return Phase(WARM, rows_per_s, length.warm_s)


def _written(spark: Any, folder: Path, phases: Sequence[Phase], capacity_rows_per_s: float) -> TripFiles:
    """Files for all phases: as many rows in each as come in a third of a second at capacity."""
    rows_per_file = max(10, round(capacity_rows_per_s / _FILES_PER_S))
    batch = FILES_PER_BATCH * rows_per_file
    batches = -(-rows_needed(phases, rows_per_file) // batch)
    trips = TripFiles(folder, batch, batches, _EVENT_SPEED * batch / capacity_rows_per_s)
    trips.write(spark)
    return trips


def _has_results(out: Path) -> bool:
    return bool(delivered_files(out / "alerts"))


def _live(engine: Engine, trips: TripFiles, phases: Sequence[Phase], folder: Path, length: Length) -> _Went:
    """Feed an engine, leave it the time of the deadline after the last file, and judge each phase by what it wrote."""
    watched, out = folder / "watched", folder / "out"
    watched.mkdir(parents=True)
    with engine.live(watched, out, length.trigger_ms) as running:
        ready = partial(_has_results, out)
        arrivals = feed(trips, watched, phases, ready, running, length.deadline_s)
        running.check()
        ended_s = time.time()
        kept = {phase.name: running.kept_shares(*arrivals.span_s(phase.name)) for phase in phases}
    delivered = [each for each in deliveries(out, arrivals) if each.at_s <= ended_s]
    graph = three_outputs(live=True).graph
    judged = {
        name: judge(graph, trips, delivered, arrivals, name, shares, length.deadline_s) for name, shares in kept.items()
    }
    began_s = arrivals.span_s(phases[-1].name)[0]
    return _Went(judged, completeness(out, trips), timeline(delivered, began_s))
