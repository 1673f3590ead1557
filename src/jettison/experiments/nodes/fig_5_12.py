"""Figure 5.12: effect of query load imbalance on the time to plan: Solver, Solver-W and C-FIT (planning)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.figure_networks import COSTS, HIGHEST, network, rates, timed, worst_error
from jettison.plan.nodes.solver import Cells, Solver
from jettison.plan.nodes.tables import Grain, Tables
from jettison.plan.nodes.workload import Exponential

_EPSILON = 0.05
_WORKLOAD = Exponential(5.0)


def _expected(cells: Cells) -> float:
    """The error that the cells of a Solver are expected to have under the workload."""
    chances = _WORKLOAD.probability(cells.low, cells.high)
    return float((chances * cells.error)[cells.child < 0].sum())


def run(*, quick: bool, say: Say) -> Result:
    shown = COSTS[:2] if quick else COSTS
    points, repeats = (30, 1) if quick else (300, 4)
    highest = rates(HIGHEST, HIGHEST)
    solvers: dict[tuple[int, int], tuple[float, Solver]] = {}
    for costs in shown:
        say(f"Solver, {costs}")
        made = network(costs)
        solvers[costs] = timed(partial(Solver, made, highest, _EPSILON), repeats)
    # as in the thesis: what Solver comes to on average is what Solver-W has to reach
    threshold = float(np.mean([_expected(solver.cells) for _, solver in solvers.values()]))
    rows: list[dict[str, Any]] = []
    for costs in shown:
        say(f"Solver-W and C-FIT, {costs}")
        made = network(costs)
        solver_s, solver = solvers[costs]
        weighted_s, weighted = timed(
            partial(Solver, made, highest, threshold, workload=_WORKLOAD),
            repeats,
        )
        tables_s, tables = timed(partial(_indexed, made, Grain(_EPSILON)), repeats)
        fine_s, fine = timed(partial(_indexed, made, Grain(_EPSILON, fine=True)), repeats)
        rows.append(
            {
                "costs": f"({costs[0]}, {costs[1]})",
                "solver_s": solver_s,
                "solver_programs": solver.program.solved,
                "solver_error": worst_error(made, solver.plan, points),
                "solverw_s": weighted_s,
                "solverw_programs": weighted.program.solved,
                "cfit_s": tables_s,
                "cfit_entries": len(tables.fits["A"]),
                "cfit_error": worst_error(made, tables.plan, points),
                "fine_s": fine_s,
                "fine_entries": len(fine.fits["A"]),
                "fine_error": worst_error(made, fine.plan, points),
            }
        )
    metrics = {
        "cfit_faster": round(min(row["solver_s"] / row["cfit_s"] for row in rows), 2),
        "solverw_faster": round(min(row["solver_s"] / row["solverw_s"] for row in rows), 2),
        "solver_worst_error": round(max(row["solver_error"] for row in rows), 4),
        "cfit_worst_error": round(max(row["cfit_error"] for row in rows), 4),
        "fine_cfit_worst_error": round(max(row["fine_error"] for row in rows), 4),
        "fine_cfit_s": round(max(row["fine_s"] for row in rows), 4),
        "fine_cfit_faster": round(min(row["solver_s"] / row["fine_s"] for row in rows), 2),
        "expected_error": round(threshold, 5),
    }
    checks = {
        "C-FIT with the seed's spread is faster than Solver on all": metrics["cfit_faster"] > 1,
        "Solver-W is faster than Solver on all": metrics["solverw_faster"] > 1,
        "Solver's true error is at most .05": metrics["solver_worst_error"] <= _EPSILON,
        "with a fine spread C-FIT's true error is at most .05": metrics["fine_cfit_worst_error"] <= _EPSILON,
    }
    return Result("fig-5-12", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _indexed(made: Any, grain: Grain) -> Tables:
    tables = Tables(made, grain)
    _ = tables.fits["A"].index
    return tables


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    names = [row["costs"] for row in rows]
    for key, label in (
        ("solver_s", "Solver, 5 %"),
        ("solverw_s", "Solver-W, the same expected error"),
        ("fine_s", "C-FIT, spread for a true 5 %"),
        ("cfit_s", "C-FIT, the seed's spread"),
    ):
        axes.plot(names, [row[key] for row in rows], marker="o", label=label)
    axes.set_yscale("log")
    axes.set_xlabel("costs of the two queries (ms), more imbalance to the right")
    axes.set_ylabel("processor time to plan (s)")
    axes.set_title("Effect of query load imbalance (planning)")
    axes.legend()
