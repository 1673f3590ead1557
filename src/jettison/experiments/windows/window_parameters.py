"""What the size and the slide of windows do to a window drop: what figures 4.11 and 4.12 ask, beside the estimate.

One count of all trips, work before it and behind it. As in the seed there is a gap of 10, and with a result for every
tick (slide 1) both take about as long. A share of 10/11 of the windows goes, at the input: with a gap of 10 that leaves
nothing to chance, and a batch is a whole number of blocks of 11 windows. Measured on Spark are

- the share of tuples that go early, which is counted;
- the share of work that is saved, in processor time of tasks (see `window_places`);
- the share of work that is behind the aggregate: what dropping results by chance saves;
- the share that is in neither filter (`other_share`): reading, slices, and merging them into windows that may then go,
  which the estimate knows nothing of. It is so little that measure and estimate may not part for it.

The estimate (thesis 4.9.2, `plan.windows.savings`) has from the latter what must be saved: with `early` the share of
tuples that go early, and b that of work behind the aggregate,

    saved share  =  early * (1 - b) + p * b

Both are linear in p: the drop rate that an excess load e asks for is p * e / (1 + e) / saved share. A tumbling window
that saves as much as it drops needs 0.2 for 25 %, a sliding one that saves half of that 0.4:

>>> Point(50, 50, 10 / 11, 10 / 11, 0.0).drop_rate(0.25), Point(50, 1, 0.0, 5 / 11, 0.5).drop_rate(0.25)
(0.2, 0.4)
>>> round(Point(50, 1, 0.0, 5 / 11, 0.5).estimated_drop_rate(0.25), 3)
0.4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Say
from jettison.experiments.support.trip_files import SCHEMA
from jettison.experiments.windows.window_places import Place, busy, drop_rate, measure
from jettison.network.declare import Network
from jettison.plan.windows.savings import saved_share, saved_share_of_thesis

GAP = 10
SHARE = GAP / (GAP + 1)
BATCH_S = 1100.0
"""Whole blocks of 11 windows for slides of 1, 10, 20, 25, 50 and 100 s."""
NEAR_TUPLES = 0.01
"""How far counted shares of tuples may be from the estimate: rows do not come at even distances."""
NEAR_WORK = 0.1
"""The same for work, whose parts are measured one by one."""
_INPUT, _RANDOM = "input", "random"
_PLACES = (Place(_INPUT), Place(_RANDOM, by_chance=("counts>behind",)))


@dataclass(frozen=True)
class Point:
    """What was measured for one size and slide, at a drop share of 10/11."""

    size_s: int
    slide_s: int
    early_share: float
    saved_share: float
    behind_share: float
    exact: bool = True
    other_share: float = 0.0
    """Work that is in neither filter: reading, slices, and merging them into windows that may then go."""

    @property
    def estimated_early_share(self) -> float:
        return saved_share(self.size_s, self.slide_s, SHARE, GAP)

    @property
    def early_share_of_thesis(self) -> float:
        return saved_share_of_thesis(self.size_s, self.slide_s, SHARE, GAP)

    @property
    def estimated_saved_share(self) -> float:
        return self.estimated_early_share * (1.0 - self.behind_share) + SHARE * self.behind_share

    def drop_rate(self, excess: float) -> float:
        """The share of windows that must go at an excess load; 1 where that is not enough."""
        return drop_rate(excess, 1.0, self.saved_share / SHARE)

    def estimated_drop_rate(self, excess: float) -> float:
        return drop_rate(excess, 1.0, self.estimated_saved_share / SHARE)

    def row(self) -> dict[str, Any]:
        return {
            "size_s": self.size_s,
            "slide_s": self.slide_s,
            "early_share": round(self.early_share, 4),
            "estimated_early_share": round(self.estimated_early_share, 4),
            "early_share_of_thesis": round(self.early_share_of_thesis, 4),
            "saved_share": round(self.saved_share, 4),
            "estimated_saved_share": round(self.estimated_saved_share, 4),
            "behind_share": round(self.behind_share, 4),
            "other_share": round(self.other_share, 4),
            "drop_rate_at_25": round(self.drop_rate(0.25), 4),
            "estimated_drop_rate_at_25": round(self.estimated_drop_rate(0.25), 4),
        }


def network_of(size_s: int, slide_s: int, rows: int, hashes: int) -> Network:
    """A result is hashed as often as the tuples of a tick together: with a slide of 1 s both take as long."""
    network = Network("parameters")
    trips = network.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    before = trips.where(busy("trip", hashes), name="before")
    counts = before.window(f"{size_s} seconds", slide=f"{slide_s} seconds").agg(n="count(*)", name="counts")
    counts.where(busy("n", round(hashes * rows / BATCH_S)), name="behind").output("out")
    return network


def points(spark: Any, windows: Sequence[tuple[int, int]], folder: Path, say: Say, *, quick: bool) -> list[Point]:
    """Measure these sizes and slides, one by one; the first also before all others, for a JVM to warm up."""
    rows, batches, hashes = (2_200, 1, 4) if quick else (33_000, 8, 500)
    found = []
    for number, (size_s, slide_s) in enumerate(windows if quick else [windows[0], *windows]):
        saved = measure(
            spark,
            partial(network_of, size_s, slide_s, rows),
            _PLACES,
            folder / f"{number}",
            lambda _: None,
            rows=rows,
            hashes=hashes,
            batches=batches,
            batch_s=BATCH_S,
            shares=(SHARE,),
        )
        if number == 0 and not quick:
            say("warmed up")
            continue
        work_ms = max(saved.work_ms, 1.0)
        by_chance = 1.0 - saved.passed[_RANDOM, SHARE]["counts>behind"]
        point = Point(
            size_s,
            slide_s,
            1.0 - saved.passed[_INPUT, SHARE]["trips"],
            1.0 - saved.after_ms[_INPUT, SHARE] / work_ms,
            (1.0 - saved.after_ms[_RANDOM, SHARE] / work_ms) / by_chance,
            saved.exact,
            max(0.0, saved.other_ms) / work_ms,
        )
        say(
            f"{size_s} s every {slide_s} s: {point.early_share:.1%} of tuples go early, {point.saved_share:.1%} of "
            f"{saved.work_ms:.0f} ms work is saved (estimated: {point.estimated_saved_share:.1%}); "
            f"{point.other_share:.1%} is in neither filter"
        )
        found.append(point)
    return found


def common_checks(found: Sequence[Point]) -> dict[str, bool]:
    return {
        f"tuples that go early: within {NEAR_TUPLES:g} of the estimate": _furthest_tuples(found) <= NEAR_TUPLES,
        f"work that is saved: within {NEAR_WORK:g} of the estimate": _furthest_work(found) <= NEAR_WORK,
        "what is delivered is what the unshed run delivers": all(each.exact for each in found),
    }


def common_metrics(found: Sequence[Point]) -> dict[str, float]:
    return {
        "furthest_tuples": round(_furthest_tuples(found), 4),
        "furthest_tuples_of_thesis": round(
            max(abs(each.early_share - each.early_share_of_thesis) for each in found), 4
        ),
        "furthest_work": round(_furthest_work(found), 4),
        "most_other_share": round(max(each.other_share for each in found), 4),
    }


def _furthest_tuples(found: Sequence[Point]) -> float:
    return max(abs(each.early_share - each.estimated_early_share) for each in found)


def _furthest_work(found: Sequence[Point]) -> float:
    return max(abs(each.saved_share - each.estimated_saved_share) for each in found)
