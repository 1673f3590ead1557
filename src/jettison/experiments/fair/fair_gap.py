"""How far the seed's algorithm is from the fairest shares that there are, on random networks (planning).

Networks of 2 to 200 queries over one to three sources each, whose rates differ by factors of up to 1,000, behind shared
filters. Half of the problems come with a history: queries have lost different shares of late. Both planners count work
per arc, and what counts is the lowest SIC of any query.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.network import Graph, Operator, Output, Source, Union, Where
from jettison.plan.problem import Problem
from jettison.plan.shedders.fair.admission import admit
from jettison.plan.shedders.fair.max_min import max_min_shares
from jettison.plan.shedders.fair.network_competition import Views, compete
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow

BUCKETS = 64
P5_BAR, MEDIAN_BAR = 0.9, 0.97


def random_queries(draw: np.random.Generator, queries: int) -> tuple[Graph, Profile, dict[str, float]]:
    """Queries of one to three sources, each through a filter that others may share, with costs of all sizes."""
    sources = int(draw.integers(1, max(2, queries // 2) + 1))
    made: list[Operator] = [Source(f"s{number}", (("x", "int"),)) for number in range(sources)]
    filters = [Where(f"f{number}", (f"s{number % sources}",), "x > 0") for number in range(2 * sources)]
    used: dict[str, Operator] = {}
    ends: list[Operator] = []
    for number in range(queries):
        count = int(draw.integers(1, min(3, sources) + 1))
        tails = []
        for source in draw.choice(sources, size=count, replace=False):
            shared = filters[int(source) + sources * int(draw.integers(0, 2))]
            used[shared.name] = shared
            tails.append(shared.name)
        if count > 1:
            ends.append(Union(f"u{number}", tuple(tails)))
            tails = [f"u{number}"]
        ends.append(Where(f"w{number}", (tails[0],), "x > 1"))
        ends.append(Output(f"o{number}", (f"w{number}",)))
    read = {tail for each in used.values() for tail in each.inputs}
    graph = Graph("random", (*(each for each in made if each.name in read), *used.values(), *ends))
    graph.check_complete()
    costs = {each.name: float(draw.lognormal(0.0, 1.0)) for each in graph.operators}
    passes = {each.name: float(draw.uniform(0.2, 1.0)) for each in graph.operators if isinstance(each, Where)}
    return graph, Profile(costs, passes), {each.name: float(10 ** draw.uniform(2, 5)) for each in graph.sources}


def history(draw: np.random.Generator, graph: Graph, rows: dict[str, float]) -> SicWindow:
    """Some batches in which every source has lost a share of its own."""
    window = SicWindow(graph, 10_000.0)
    shares = {source: float(draw.uniform(0.5, 1.0)) for source in rows}
    brought = {source: round(count) for source, count in rows.items()}
    for number in range(5):
        arcs = {source: (count, round(count * shares[source])) for source, count in brought.items()}
        window = window.after(BatchSample(number, 0.0, 1000.0, 900.0, brought, arcs=arcs))
    return window


def run(*, quick: bool, say: Say) -> Result:
    draw = np.random.default_rng(11)
    problems, rows = 20 if quick else 400, list[dict[str, Any]]()
    for number in range(problems):
        if number % 50 == 0:
            say(f"problem {number} of {problems}")
        queries = round(math.exp(draw.uniform(math.log(2), math.log(60 if quick else 200))))
        graph, profile, entering = random_queries(draw, queries)
        window = history(draw, graph, entering) if number % 2 else None
        problem = Problem(graph, profile, entering, 0.0)
        asked = compete(problem, Views(window), BUCKETS)
        share = float(draw.uniform(0.2, 0.9))
        budget_us = share * asked.competition.work_us(np.full(len(asked.competition.query), BUCKETS))
        seed = float(admit(asked.competition, budget_us).sic.min())
        exact = max_min_shares(asked.competition, budget_us, rounds=1)
        assert exact is not None
        best = float(asked.competition.query_sic(BUCKETS * exact).min())
        rows.append(
            {
                "queries": queries,
                "budget_share": round(share, 3),
                "history": window is not None,
                "lowest_sic": round(seed, 5),
                "lowest_sic_exact": round(best, 5),
                "ratio": round(seed / best, 5),
            }
        )
    ratios = np.array([row["ratio"] for row in rows])
    metrics = {
        "p5_ratio": round(float(np.percentile(ratios, 5)), 4),
        "median_ratio": round(float(np.median(ratios)), 4),
        "best_ratio": float(ratios.max()),
    }
    checks = {
        f"lowest SIC at the 5th percentile is at least {P5_BAR} of the exact one": metrics["p5_ratio"] >= P5_BAR,
        f"at the median at least {MEDIAN_BAR}": metrics["median_ratio"] >= MEDIAN_BAR,
        "the seed's algorithm never beats the exact shares": metrics["best_ratio"] <= 1.0 + 1e-6,
    }
    return Result("fair-gap", metrics, checks, rows, draw=lambda figure: _draw(figure, rows))


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    for known in (False, True):
        mine = [row for row in rows if row["history"] is known]
        label = "with a history" if known else "without"
        axes.semilogx([row["queries"] for row in mine], [row["ratio"] for row in mine], "o", alpha=0.5, label=label)
    axes.axhline(P5_BAR, color="grey", linestyle=":")
    axes.set_xlabel("queries")
    axes.set_ylabel("lowest SIC over the exact planner's")
    axes.set_title("The seed's algorithm beside max-min fair shares")
    axes.legend()
