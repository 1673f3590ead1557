"""The networks of figure 5.11, and what several experiments measure on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from jettison.plan.nodes.examples import chains
from jettison.plan.nodes.plans import NodesPlan
from jettison.plan.nodes.solver import PerTick
from jettison.plan.nodes.structure import Structure

T = TypeVar("T")

COSTS = ((48, 48), (64, 32), (72, 24), (80, 16), (88, 8))
"""Milliseconds per tuple of the two chain queries, the same on both servers; the thesis names only (64, 32)."""

HIGHEST = 100.0
"""The largest rate of an input, in tuples per second, as in figure 5.7."""


def network(costs: tuple[float, ...]) -> Structure:
    """Chain queries over two servers, the same cost of a query on both."""
    return chains(costs, costs, capacity=1000.0)


def rates(*values: float) -> dict[str, float]:
    return {f"i{at}": float(value) for at, value in enumerate(values)}


def timed(work: Callable[[], T], repeats: int = 1) -> tuple[float, T]:
    """Seconds of processor time, the least of some repetitions, and what came out."""
    best, found = np.inf, None
    for _ in range(repeats):
        began = time.process_time()
        found = work()
        best = min(best, time.process_time() - began)
    assert found is not None
    return max(float(best), 1e-6), found


def worst_error(made: Structure, plan: Callable[[dict[str, float]], NodesPlan], points: int, seed: int = 0) -> float:
    """The largest loss of score against the optimum, as a share of it, at random rates that do not fit."""
    draw, exact, worst = np.random.default_rng(seed), PerTick(made), 0.0
    tried = 0
    while tried < points:
        point = rates(*(draw.random(len(made.inputs)) * HIGHEST))
        if made.feasible(made.rates(point)):
            continue
        tried += 1
        best = exact.plan(point).score
        worst = max(worst, (best - plan(point).score) / best)
    return worst
