"""Simulation: half of the entities swap what they take in mid-stream. How soon does LAS know? (LAS 3.1)

The average completion latency in every window of N tuples since the swap, beside Full Knowledge's. `recover_windows`
counts the windows before latency is back: the first window that is within 10 %, and from which on the average of all
that follow is too. `recover_windows_each` demands it of every single window from one on. No shedder can hold that:
queues are random, and `off_before` of all windows are further apart before the swap, when costs are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.las.fig_3 import TAU_US, WINDOW, learner
from jettison.experiments.las.mentions import ENTITIES, TUPLES, shifted_mentions
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.sim.timed.queue import FullKnowledge, LoadAware, QueueResult, Vector, simulate_queue

LOAD = 1.08
_NEAR = 0.10
_WARM_WINDOWS = 8
"""Before so many windows costs are hardly known."""
_QUICK_TUPLES = 100_000
_SHOWN = 40


def run(*, quick: bool, say: Say) -> Result:
    stream = shifted_mentions(_QUICK_TUPLES if quick else TUPLES, LOAD)
    half = len(stream.keys) // 2
    estimator = LoadAware(learner(), float(stream.duration_us[:half].mean()), ENTITIES)
    las = simulate_queue(stream, LatencyRule(TAU_US), estimator)
    full = simulate_queue(stream, LatencyRule(TAU_US), FullKnowledge())
    in_las, in_full = by_window(las, half), by_window(full, half)
    recover = recovered(in_las, in_full)
    first = half % WINDOW
    before = by_window(las, first)[: half // WINDOW] / by_window(full, first)[: half // WINDOW]
    say(f"latency is back after {recover} windows; {len(estimator.published)} pairs were published")
    skews_us = [abs(skew) for at, skew in zip(las.synchronised, las.skew_us, strict=True) if at >= half]
    metrics = {
        "recover_windows": recover,
        "recover_windows_each": recovered_each(in_las, in_full),
        "off_before": float((np.abs(before[_WARM_WINDOWS:] - 1.0) > _NEAR).mean()),
        "drop_gap_after": 100 * abs(float(full.kept[half:].mean() - las.kept[half:].mean())),
        "largest_skew_s": max(skews_us) / 1e6,
    }
    checks = {"latency is back within 10 % of Full Knowledge's after at most 3 windows": recover <= 3}
    rows = [
        {"window": number, "LAS ms": a / 1e3, "Full Knowledge ms": b / 1e3}
        for number, (a, b) in enumerate(zip(in_las, in_full, strict=True), start=1)
    ]
    return Result("las-shift", metrics, checks, rows, lambda figure: _draw(figure, rows[:_SHOWN]))


def by_window(result: QueueResult, first: int) -> Vector:
    """The average completion latency in every whole window of tuples from one on, in microseconds."""
    windows = (len(result.kept) - first) // WINDOW
    inside = slice(first, first + windows * WINDOW)
    kept = result.kept[inside].reshape(windows, WINDOW)
    completion = (result.waited_us + result.stream.duration_us)[inside].reshape(windows, WINDOW)
    averages: Vector = np.where(kept, completion, 0.0).sum(axis=1) / np.maximum(1, kept.sum(axis=1))
    return averages


def recovered_each(latency: Vector, wanted: Vector) -> int:
    """How many windows there are up to the last one that is not near.

    >>> recovered_each(np.array([3.0, 1.0, 1.4, 1.05, 0.95, 1.0]), np.ones(6))
    3
    """
    off = np.flatnonzero(np.abs(latency / wanted - 1.0) > _NEAR)
    return int(off[-1]) + 1 if len(off) else 0


def recovered(latency: Vector, wanted: Vector) -> int:
    """How many windows come before the first one that is near, and from which on the average is.

    >>> recovered(np.array([3.0, 1.4, 0.5, 1.05, 1.2, 0.8]), np.ones(6))
    3
    """
    for window in range(len(latency)):
        rest = latency[window:].mean() / wanted[window:].mean()
        if abs(latency[window] / wanted[window] - 1.0) <= _NEAR and abs(rest - 1.0) <= _NEAR:
            return window
    return len(latency)


def _draw(figure: Any, rows: list[dict[str, float]]) -> None:
    axes = figure.subplots()
    windows = [row["window"] for row in rows]
    for name, style in (("Full Knowledge", "-"), ("LAS", "--")):
        axes.plot(windows, [row[f"{name} ms"] for row in rows], style, marker=".", label=name)
    axes.set_xlabel(f"windows of {WINDOW:,} tuples since costs were swapped")
    axes.set_ylabel("average completion latency in the window (ms)")
    axes.set_ylim(bottom=0)
    axes.set_title("Half of the entities swap what they take (simulation)")
    axes.legend()
