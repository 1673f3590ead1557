"""Twenty queries at twice the capacity for a minute: who gets what, by three shedders with the same budget (DISSP 5).

"fair" against a random drop of the same share at all inputs and against the road map with equal loss graphs. SIC is
that of the loop, from counted rows, on average over the batches behind the first source time window. What a batch takes
is measured first, nothing shed; the budget is half of what the rows of a batch take beyond its fixed part.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jettison.experiments.fair.shared_platform import ROWS, relative_costs, shared_platform
from jettison.experiments.harness import Result, Say
from jettison.experiments.speed.fixed_cost import rows_in_jvm
from jettison.experiments.support.capacity import parquet_sinks
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.problem import Problem
from jettison.sim.fair.nodes import jain_index
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile
from jettison.telemetry.events import BatchEvent

WAYS = {"fair": "fair", "random": "input-uniform-cost", "road map": "random"}
_HEADROOM = 0.9
_STW = "20 seconds"
_WINDOW_BATCHES = 10
_JAIN, _SPREAD, _VS_RANDOM = 0.99, 0.1, 1.2


@dataclass(frozen=True)
class Measured:
    """What every query had, batch by batch, and how long batches took."""

    sic: list[Mapping[str, float]]
    duration_ms: list[float]

    def mean(self, behind: int) -> dict[str, float]:
        """Every query's SIC, on average over the batches behind the first ones."""
        later = self.sic[min(behind, len(self.sic) - 1) :]
        return {name: statistics.fmean(each[name] for each in later) for name in later[0]}


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    rows = {name: max(64, count // 20) if quick else count for name, count in ROWS.items()}
    say("what a batch takes, nothing shed")
    profile = _measured_profile(spark, rows, 3 if quick else 8)
    batches = 6 if quick else 40
    found: dict[str, Measured] = {}
    for way, shedder in WAYS.items():
        say(f"{way}: {batches} batches at twice the capacity")
        found[way] = _run(spark, profile, rows, batches, shedder)
    behind = 2 if quick else _WINDOW_BATCHES
    sic = {way: each.mean(behind) for way, each in found.items()}
    jain = {way: jain_index(np.array(list(each.values()))) for way, each in sic.items()}
    lowest = {way: min(each.values()) for way, each in sic.items()}
    metrics = {
        "jain": round(jain["fair"], 4),
        "spread": round(max(sic["fair"].values()) - lowest["fair"], 4),
        "lowest_vs_random": round(lowest["fair"] / lowest["random"], 4) if lowest["random"] > 0 else float("inf"),
        "lowest": round(lowest["fair"], 4),
        "lowest_random": round(lowest["random"], 4),
        "lowest_road_map": round(lowest["road map"], 4),
        "jain_random": round(jain["random"], 4),
        "jain_road_map": round(jain["road map"], 4),
        "median_batch_ms": round(statistics.median(found["fair"].duration_ms)),
        "budget_ms": round(_budget_ms(profile, rows)),
    }
    checks = {
        f"Jain's index of SIC is at least {_JAIN}": metrics["jain"] >= _JAIN,
        f"highest less lowest SIC is at most {_SPREAD}": metrics["spread"] <= _SPREAD,
        f"the lowest SIC is at least {_VS_RANDOM} times a random drop's": metrics["lowest_vs_random"] >= _VS_RANDOM,
        "the lowest SIC is above that of the road map": lowest["fair"] > lowest["road map"],
    }
    table = [{"query": name, **{way: round(sic[way][name], 4) for way in WAYS}} for name in sorted(sic["fair"])]
    return Result("fairness", metrics, checks, table, lambda figure: _draw(figure, table))


def _budget_ms(profile: Profile, rows: Mapping[str, int]) -> float:
    """The time in which half of the work of a batch can be done, its fixed part included."""
    load_us = Problem(shared_platform().graph, profile, rows, 0.0).load_us
    return profile.fixed_ms + (load_us / 1000 - profile.fixed_ms) / 2


def _measured_profile(spark: Any, rows: Mapping[str, int], batches: int) -> Profile:
    """Costs in proportion to what queries do, scaled to what a whole batch takes beyond an empty one, as measured."""
    few = dict.fromkeys(rows, 1)
    graph = shared_platform().graph
    guess = relative_costs(graph, 0.01, 10.0)
    small, large = (
        statistics.median(_run(spark, guess, each, batches, "fair", mode="off").duration_ms[1:]) for each in (few, rows)
    )
    work_us = Problem(graph, relative_costs(graph, 1.0, 0.0), rows, 0.0).load_us
    return relative_costs(graph, max(0.001, 1000 * (large - small) / work_us), small)


def _run(
    spark: Any,
    profile: Profile,
    rows: Mapping[str, int],
    batches: int,
    shedder: str,
    *,
    mode: Literal["on", "off"] = "on",
) -> Measured:
    net = shared_platform()
    budget_ms = _budget_ms(profile, rows)
    # the trigger whose budget that is; whatever a batch truly takes, the next one has as many rows
    trigger_ms = max(100.0, budget_ms / _HEADROOM)
    found = Measured([], [])

    def heard(event: BatchEvent) -> None:
        found.sic.append(dict(event.sic))
        found.duration_ms.append(event.sample.duration_ms)

    with tempfile.TemporaryDirectory(prefix="jettison-fairness-") as folder:
        running: Run = start(
            net,
            {name: rows_in_jvm(spark, count, seed) for seed, (name, count) in enumerate(rows.items())},
            parquet_sinks(net, Path(folder)),
            trigger=f"{trigger_ms:.0f} milliseconds",
            shedding=Shedding(mode=mode, shedder=shedder, headroom=_HEADROOM, stw=_STW),
            checkpoint=str(Path(folder) / "checkpoint"),
            costs=Costs(profile, learn=False, shared=()),
            listeners=[heard],
        )
        running.await_batches(batches, timeout=600)
        running.stop()
    return found


def _draw(figure: Any, table: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    at = np.arange(len(table))
    for number, way in enumerate(WAYS):
        axes.bar(at + 0.28 * (number - 1), [row[way] for row in table], 0.28, label=way)
    axes.set_xticks(at, [row["query"] for row in table], rotation=60)
    axes.set_ylabel("SIC")
    axes.set_title("Twenty queries at twice the capacity")
    axes.legend()
