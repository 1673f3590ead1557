"""Figure 5.13: Solver-W over the workload: higher rates need more plans, more capacity fewer (planning)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.figure_networks import COSTS, HIGHEST, network, rates, timed
from jettison.plan.nodes.solver import Solver
from jettison.plan.nodes.workload import Exponential, Seen, Workload

_EPSILON = 0.01
_LAMBDAS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
_SCALED = ((64, 32), (56, 28), (48, 24), (40, 20), (32, 16), (24, 12))


def trace(ticks: int = 400, seed: int = 5) -> Seen:
    """Rates of two bursty streams, second by second: many small, few large (in place of the archive's TCP trace)."""
    draw = np.random.default_rng(seed)
    base = np.exp(draw.normal(2.2, 0.9, (ticks, 2)))
    return Seen(np.minimum(base, HIGHEST - 1e-6).tolist())


def _planned(costs: tuple[float, ...], workload: Workload) -> dict[str, Any]:
    made = network(costs)
    seconds, solver = timed(lambda: Solver(made, rates(HIGHEST, HIGHEST), _EPSILON, workload=workload))
    return {"seconds": seconds, "programs": solver.program.solved, "cells": len(solver.cells)}


def run(*, quick: bool, say: Say) -> Result:
    rows: list[dict[str, Any]] = []
    _planned(COSTS[0], Exponential(1.0))  # the first program also loads the solver
    for costs in COSTS[1:2] if quick else COSTS:
        say(f"lambda, {costs}")
        for scale in _LAMBDAS[::2] if quick else _LAMBDAS:
            rows.append({"part": "lambda", "costs": f"{costs}", "x": scale, **_planned(costs, Exponential(scale))})
    say("provision level, a trace")
    seen = trace()
    ticks = np.asarray(seen.ticks)
    for costs in _SCALED[::2] if quick else _SCALED:
        made = network(costs)
        provision = float(np.mean([made.feasible(each) for each in ticks]))
        rows.append({"part": "provision", "costs": f"{costs}", "x": round(provision, 3), **_planned(costs, seen)})
    rises = all(
        _monotone([row["programs"] for row in rows if row["part"] == "lambda" and row["costs"] == costs])
        for costs in {row["costs"] for row in rows if row["part"] == "lambda"}
    )
    falls = _monotone([-row["programs"] for row in rows if row["part"] == "provision"])
    metrics = {"rises_with_lambda": float(rises), "falls_with_provision": float(falls), "programs": _programs(rows)}
    checks = {
        "Solver-W solves more programs the higher the rates (lambda)": rises,
        "Solver-W solves fewer programs the better the system is provisioned": falls,
    }
    return Result("fig-5-13", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _programs(rows: list[dict[str, Any]]) -> int:
    return int(sum(row["programs"] for row in rows))


def _monotone(values: list[float]) -> bool:
    """Whether values rise, from each to the next and in all; a twentieth the other way is scatter."""
    steps = all(after >= before - 0.05 * abs(before) for before, after in pairwise(values))
    return steps and values[-1] > values[0]


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    for costs in dict.fromkeys(row["costs"] for row in rows if row["part"] == "lambda"):
        here = [row for row in rows if row["part"] == "lambda" and row["costs"] == costs]
        left.plot([row["x"] for row in here], [row["seconds"] for row in here], marker="o", label=costs)
    here = [row for row in rows if row["part"] == "provision"]
    right.plot([100 * row["x"] for row in here], [row["seconds"] for row in here], marker="o", color="black")
    for axes, label in ((left, "lambda (mean rate)"), (right, "provision level (% of ticks that fit)")):
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_ylabel("processor time to plan (s)")
    left.legend(title="costs (ms)")
    left.set_title("exponential workload")
    right.set_title("a synthetic bursty trace")
    figure.suptitle("Solver-W, expected error 1 % (planning)")
