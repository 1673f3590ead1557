"""Figure 5.16: 2, 4 and 8 inputs: how Solver-W converges, and what C-FIT takes (planning)."""

from __future__ import annotations

import time
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.figure_networks import HIGHEST, network, rates, timed
from jettison.plan.nodes.solver import Solver
from jettison.plan.nodes.tables import Grain, Tables
from jettison.plan.nodes.workload import Exponential

_EPSILON = 0.1
BYTES = {2: 52, 4: 96, 8: 184}
ENTRIES = {2: 46, 4: 984, 8: 42_472}
"""What table 5.5 has."""


def costs_of(inputs: int) -> tuple[float, ...]:
    """(64, 32) spread over more inputs: the same cost in all."""
    return (64 / (inputs / 2), 32 / (inputs / 2)) * (inputs // 2)


def tables_of(inputs: int) -> tuple[float, Tables]:
    """The tables of so many inputs with their index, and the time that they take."""

    def work() -> Tables:
        tables = Tables(network(costs_of(inputs)), Grain(_EPSILON))
        _ = tables.fits["A"].index
        return tables

    return timed(work)


def run(*, quick: bool, say: Say) -> Result:
    rows: list[dict[str, Any]] = []
    most_s = 0.2 if quick else 6.0
    metrics: dict[str, float] = {}
    for inputs in (2, 4, 8):
        say(f"{inputs} inputs: C-FIT")
        seconds, tables = tables_of(inputs)
        metrics[f"cfit_{inputs}_inputs_s"] = round(seconds, 4)
        rows.append({"inputs": inputs, "what": "C-FIT", "seconds": round(seconds, 4), "error": _EPSILON})
        say(f"{inputs} inputs: Solver-W, at most {most_s:g} s")
        top = rates(*([HIGHEST] * inputs))
        made, workload = network(costs_of(inputs)), Exponential(3.0)
        solver = Solver(made, top, 0.01, workload=workload, most_s=most_s, clock=time.process_time)
        step = max(1, len(solver.history) // 40)
        rows += [
            {"inputs": inputs, "what": "Solver-W", "seconds": round(at, 4), "error": round(error, 5)}
            for at, _, error in solver.history[::step]
        ]
        metrics[f"solverw_{inputs}_inputs_error"] = round(solver.history[-1][2], 4)
        metrics[f"entries_{inputs}"] = len(tables.fits["A"])
    metrics["entries"] = metrics["entries_8"]
    checks = {"C-FIT with 8 inputs takes at most 10 s": metrics["cfit_8_inputs_s"] <= 10.0}
    return Result("fig-5-16", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    for inputs in (2, 4, 8):
        here = [row for row in rows if row["what"] == "Solver-W" and row["inputs"] == inputs]
        left.plot([row["seconds"] for row in here], [100 * row["error"] for row in here], label=f"{inputs} inputs")
    left.set_xscale("symlog", linthresh=0.01)
    left.set_xlabel("processor time (s)")
    left.set_ylabel("expected error (%)")
    left.set_title("Solver-W converges")
    left.legend()
    here = [row for row in rows if row["what"] == "C-FIT"]
    right.bar([str(row["inputs"]) for row in here], [row["seconds"] for row in here])
    right.set_yscale("log")
    right.set_xlabel("inputs")
    right.set_ylabel("processor time (s)")
    right.set_title("C-FIT, spread 10 %")
    figure.suptitle("Effect of input dimensionality (planning)")
