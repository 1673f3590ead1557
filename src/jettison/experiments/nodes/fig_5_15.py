"""Figure 5.15: effect of operator fan-out: one input, a shared operator, 2 to 2^k branches (planning)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.figure_networks import timed
from jettison.plan.nodes.examples import fan_out
from jettison.plan.nodes.solver import PerTick, Solver
from jettison.plan.nodes.tables import Grain, Tables

_EPSILON = 0.01
_SHARED, _BRANCHES = 10.0, 86.0


def _network(branches: int) -> Any:
    """Branches that cost different amounts, 96 ms in all as in figure 5.11."""
    shares = np.linspace(1.0, 3.0, branches)
    return fan_out(_SHARED, (_BRANCHES * shares / shares.sum()).tolist(), capacity=1000.0)


def run(*, quick: bool, say: Say) -> Result:
    rows: list[dict[str, Any]] = []
    for power in range(1, 4 if quick else 7):
        branches = 2**power
        say(f"fan-out {branches}")
        made = _network(branches)
        solver_s, solver = timed(partial(Solver, made, {"i": 100.0}, _EPSILON), 3)
        tables_s, tables = timed(partial(Tables, made, Grain(_EPSILON)), 3)
        exact = PerTick(made)
        points = [{"i": rate} for rate in (20.0, 45.0, 80.0)]
        error = max(1 - tables.plan(point).score / exact.plan(point).score for point in points)
        rows.append(
            {
                "fan_out": branches,
                "solver_s": solver_s,
                "solver_programs": solver.program.solved,
                "cfit_s": tables_s,
                "cfit_entries": len(tables.fits["A"]),
                "cfit_error": round(error, 5),
            }
        )
    slower = [at for at, row in enumerate(rows) if row["cfit_s"] >= row["solver_s"]]
    first = max(slower, default=-1) + 1
    above = rows[first]["fan_out"] if first < len(rows) else 0
    metrics = {
        "cfit_faster_above": above,
        "cfit_error": max(row["cfit_error"] for row in rows),
        "largest_ratio": round(max(row["solver_s"] / row["cfit_s"] for row in rows), 2),
    }
    checks = {"C-FIT is faster than Solver at every fan-out above 2": first <= 1}
    return Result("fig-5-15", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    for key, label in (("solver_s", "Solver"), ("cfit_s", "C-FIT")):
        axes.plot([row["fan_out"] for row in rows], [row[key] for row in rows], marker="o", label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("fan-out")
    axes.set_ylabel("processor time to plan (s)")
    axes.set_title("Effect of operator fan-out, error 1 % (planning)")
    axes.legend()
