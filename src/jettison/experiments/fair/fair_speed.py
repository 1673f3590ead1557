"""How long one fair decision takes: 1,000 queries, 10,000 batches of tuples in all (planning).

Timed is the decision itself (`admit`): from rows, costs and what queries have had, to what each of them keeps. Which
part needs which arc is known from the start of a run. Every decision is made for other rows and another history.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.plan.shedders.fair.admission import admit
from jettison.plan.shedders.fair.competition import Competition

BATCHES_EACH = 10
SHARED = 50
BAR_MS = 10.0


def competition_of(draw: np.random.Generator, queries: int) -> Competition:
    """Queries with ten batches of tuples each; every one shares an operator with some others."""
    number = np.arange(queries)
    return Competition.of(
        draw.uniform(0.0, 0.5, queries),
        number,
        draw.uniform(0.3, 0.5, queries),
        draw.lognormal(3.0, 1.0, queries),
        shared_us=draw.lognormal(6.0, 1.0, SHARED),
        needs=(number, draw.integers(0, SHARED, queries)),
        buckets=BATCHES_EACH,
    )


def run(*, quick: bool, say: Say) -> Result:
    draw = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for queries in (100, 300, 1000):
        say(f"{queries} queries")
        times_ms = []
        for _ in range(20 if quick else 200):
            given = competition_of(draw, queries)
            budget_us = 0.5 * given.work_us(np.full(queries, BATCHES_EACH))
            began = time.perf_counter()
            found = admit(given, budget_us)
            times_ms.append(1000 * (time.perf_counter() - began))
            assert found.work_us <= budget_us * (1 + 1e-9)
        rows.append(
            {
                "queries": queries,
                "batches": queries * BATCHES_EACH,
                "median_ms": round(statistics.median(times_ms), 3),
                "p95_ms": round(float(np.percentile(times_ms, 95)), 3),
            }
        )
    metrics = {"decision_ms": rows[-1]["median_ms"], "p95_ms": rows[-1]["p95_ms"]}
    checks = {f"one decision takes at most {BAR_MS:g} ms": metrics["decision_ms"] <= BAR_MS}
    return Result("fair-speed", metrics, checks, rows, draw=lambda figure: _draw(figure, rows))


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    axes.loglog([row["batches"] for row in rows], [row["median_ms"] for row in rows], "o-", label="median")
    axes.loglog([row["batches"] for row in rows], [row["p95_ms"] for row in rows], "o--", label="95th percentile")
    axes.axhline(BAR_MS, color="grey", linestyle=":")
    axes.set_xlabel("batches of tuples")
    axes.set_ylabel("one decision, ms")
    axes.set_title("What a fair decision takes")
    axes.legend()
