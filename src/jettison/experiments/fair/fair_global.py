"""Fairness among queries that span several nodes (simulation, DISSP 4.3).

Every node sheds by itself. With local knowledge alone, queries on nodes with little load get more. A coordinator that
spreads every query's SIC makes all of them alike, also when a fifth of its messages is lost, or all come late.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.sim.fair.federation import random_federation
from jettison.sim.fair.nodes import LOCAL, FairRun, Spreading, simulate_fair

GLOBAL_BAR, LOSSY_BAR = 0.97, 0.95
WAYS = {
    "local": LOCAL,
    "global": Spreading(),
    "lossy": Spreading(lost_share=0.2),
    "late": Spreading(late_intervals=3),
    "lossy_and_late": Spreading(lost_share=0.2, late_intervals=3),
}


def run(*, quick: bool, say: Say) -> Result:
    nodes, queries, intervals = (12, 120, 24) if quick else (60, 1000, 60)
    last = intervals // 2
    federation = random_federation(np.random.default_rng(18), nodes=nodes, queries=queries)
    runs: dict[str, FairRun] = {}
    for name, spreading in WAYS.items():
        say(f"{name}: {nodes} nodes, {queries} queries")
        runs[name] = simulate_fair(federation, spreading, intervals=intervals, seed=18)
    rows: list[dict[str, Any]] = [
        {
            "knowledge": name,
            "jain": round(found.jain(last), 5),
            "lowest_sic": round(float(found.sic[-last:].mean(axis=0).min()), 4),
            "mean_sic": round(float(found.sic[-last:].mean()), 4),
            "messages": found.messages,
        }
        for name, found in runs.items()
    ]
    metrics = {f"jain_{row['knowledge']}": row["jain"] for row in rows}
    checks = {
        f"with a coordinator Jain's index is at least {GLOBAL_BAR}": metrics["jain_global"] >= GLOBAL_BAR,
        "that is above local knowledge": metrics["jain_global"] > metrics["jain_local"],
        f"with a fifth of messages lost it is at least {LOSSY_BAR}": metrics["jain_lossy"] >= LOSSY_BAR,
        f"with messages late, too, it is at least {LOSSY_BAR}": metrics["jain_lossy_and_late"] >= LOSSY_BAR,
    }
    return Result("fair-global", metrics, checks, rows, draw=lambda figure: _draw(figure, runs, last))


def _draw(figure: Any, runs: dict[str, FairRun], last: int) -> None:
    axes = figure.subplots()
    for name, found in runs.items():
        axes.plot(np.sort(found.sic[-last:].mean(axis=0)), label=name.replace("_", " "))
    axes.set_xlabel("queries, the lowest SIC first")
    axes.set_ylabel("SIC")
    axes.set_ylim(0, 1)
    axes.set_title("Queries over several nodes, by what nodes know of other nodes")
    axes.legend()
