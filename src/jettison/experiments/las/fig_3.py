"""Simulation: the seed's figure 3, average completion latency as the stream unfolds (LAS 4).

500,000 tweets that mention 35,000 entities, 110 durations of 1 to 152 ms (`mentions`). Three shedders with the
same rule, which holds the average queueing latency below tau: Full Knowledge knows what every tuple takes, Straw-Man
believes in the mean and is not synchronised, LAS learns. The arrival rate, which the seed does not give, is such that
Full Knowledge drops 5 to 10 %, and that the mean cost fits: so Straw-Man drops nothing, as in the seed.

The seed brings estimated and true work together when a pair is published; here it is done after every batch of tuples
too. So two more are measured: LAS to the letter of the seed (`latency_vs_full_to_the_letter`), and Straw-Man with the
synchronisation of ours (`straw_man_synchronised_vs_full`), which shows what of the gain is due to that alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.las.mentions import ENTITIES, TUPLES, mentions
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.sim.timed.queue import (
    BATCH,
    Estimator,
    FullKnowledge,
    LoadAware,
    QueueResult,
    StrawMan,
    Vector,
    simulate_queue,
)
from jettison.statistics.sketches.cost_learner import CostLearner
from jettison.statistics.sketches.cost_sketch import CostSketch, sketch_size

TAU_US = 2e6
LOAD = 0.97
WINDOW, TOLERANCE, EPSILON, DELTA = 2048, 0.1, 0.01, 0.02
_POINTS = 200
_QUICK_TUPLES = 100_000


def learner() -> CostLearner:
    """The state machine with the parameters of this experiment."""
    return CostLearner(CostSketch.empty(*sketch_size(EPSILON, DELTA)), WINDOW, TOLERANCE)


def run(*, quick: bool, say: Say) -> Result:
    stream = mentions(_QUICK_TUPLES if quick else TUPLES, LOAD)
    mean_us = float(stream.duration_us.mean())
    shedders: dict[str, Estimator] = {
        "Full Knowledge": FullKnowledge(),
        "LAS": LoadAware(learner(), mean_us, ENTITIES),
        "Straw-Man": StrawMan(mean_us),
    }
    found: dict[str, QueueResult] = {}
    for name, estimator in shedders.items():
        found[name] = simulate_queue(stream, LatencyRule(TAU_US), estimator)
        say(f"{name}: {found[name].completion_us.mean() / 1e3:,.0f} ms, {found[name].drop_share:.2%} dropped")
    latency = {name: float(each.completion_us.mean()) for name, each in found.items()}
    drops = {name: each.drop_share for name, each in found.items()}
    metrics = {
        "latency_vs_full": latency["LAS"] / latency["Full Knowledge"],
        "drop_gap": 100 * abs(drops["LAS"] - drops["Full Knowledge"]),
        "straw_man_vs_full": latency["Straw-Man"] / latency["Full Knowledge"],
        "full_drop_share": drops["Full Knowledge"],
        "straw_man_drop_share": drops["Straw-Man"],
    }
    others: dict[str, Estimator] = {
        "to_the_letter": LoadAware(learner(), mean_us, ENTITIES, every_batch=False),
        "straw_man_synchronised": StrawMan(mean_us, batch=BATCH),
    }
    for name, estimator in others.items():
        other = simulate_queue(stream, LatencyRule(TAU_US), estimator)
        key = f"latency_vs_full_{name}" if name == "to_the_letter" else f"{name}_vs_full"
        metrics[key] = float(other.completion_us.mean()) / latency["Full Knowledge"]
        metrics[f"{name}_drop_gap"] = 100 * abs(other.drop_share - drops["Full Knowledge"])
    checks = {
        "LAS has at most 1.05 times the latency of Full Knowledge": metrics["latency_vs_full"] <= 1.05,
        "LAS drops as much as Full Knowledge, within a point": metrics["drop_gap"] <= 1.0,
        "Straw-Man has at least ten times its latency": metrics["straw_man_vs_full"] >= 10,
        "Full Knowledge drops 5 to 10 %": 0.05 <= metrics["full_drop_share"] <= 0.10,
    }
    rows = _rows(found)
    return Result("las-fig-3", metrics, checks, rows, lambda figure: _draw(figure, rows, list(found)))


def unfolding(result: QueueResult) -> Vector:
    """The average completion latency of all tuples kept so far, in microseconds, at every tuple."""
    completion = np.where(result.kept, result.waited_us + result.stream.duration_us, 0.0)
    average: Vector = np.cumsum(completion) / np.maximum(1, np.cumsum(result.kept))
    return average


def _rows(found: dict[str, QueueResult]) -> list[dict[str, float]]:
    averages = {name: unfolding(each) for name, each in found.items()}
    count = len(next(iter(averages.values())))
    at = np.linspace(count // _POINTS, count, _POINTS, dtype=int) - 1
    return [{"tuples": int(i) + 1, **{f"{name} ms": averages[name][i] / 1e3 for name in found}} for i in at]


def _draw(figure: Any, rows: list[dict[str, float]], names: list[str]) -> None:
    axes = figure.subplots()
    for name, style in zip(names, ("-", "--", "-."), strict=True):
        axes.plot([row["tuples"] for row in rows], [row[f"{name} ms"] for row in rows], style, label=name)
    axes.axhline(TAU_US / 1e3, color="grey", linewidth=0.8, label="tau")
    axes.set_yscale("log")
    axes.set_xlabel("tuples of the stream")
    axes.set_ylabel("average completion latency (ms)")
    axes.set_title("Average completion latency as the stream unfolds (simulation)")
    axes.legend()
