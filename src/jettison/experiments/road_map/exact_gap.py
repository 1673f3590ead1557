"""What the greedy road map loses against the best plan that there is, on random networks, and what the best one costs.

The exact planner solves every problem outright (a linear program). On networks whose streams never merge the greedy
rule is optimal up to its ladder's steps; where several merge into one output it is not always (records 3 and 10).
"""

from __future__ import annotations

import random
import statistics
import time
from itertools import pairwise
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.speed.planning import large_network
from jettison.network import Graph, Operator, Output, QoS, Source, Union, Where
from jettison.plan.certify import certify
from jettison.plan.placement.ladder import Ladder
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.exact import ExactShedder
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile

_EXCESSES = (0.1, 0.3, 0.5, 0.7, 0.9)
_FINE = Ladder(0.01)
_OPTIMAL = 0.999


def random_network(draw: random.Random, *, merge: bool) -> tuple[Graph, Profile, dict[str, float]]:
    """Filters with fan-outs over one to three sources, with unions if `merge`; several pieces per loss graph."""
    made: list[Operator] = [Source(f"s{index}", (("x", "int"),)) for index in range(draw.randint(2 if merge else 1, 3))]
    for index in range(draw.randint(2, 10)):
        tail = draw.choice(made).name
        other = draw.choice(made).name
        if merge and other != tail and draw.random() < 0.4:
            made.append(Union(f"u{index}", (tail, other)))
        else:
            made.append(Where(f"w{index}", (tail,), "x > 0"))
    read = {tail for operator in made for tail in operator.inputs}
    ends = [operator.name for operator in made if operator.name not in read or draw.random() < 0.2]
    outputs: list[Operator] = [
        Output(f"o{index}", (end,), QoS(_loss(draw), priority=draw.choice((0.5, 1.0, 1.0, 2.0, 5.0))))
        for index, end in enumerate(ends)
    ]
    graph = Graph("random", (*made, *outputs))
    graph.check_complete()
    costs = {operator.name: draw.uniform(0.1, 5) for operator in graph.operators}
    passes = {operator.name: draw.uniform(0.2, 1) for operator in made if isinstance(operator, Where)}
    rows = {source.name: draw.choice((100.0, 300.0, 1000.0)) for source in graph.sources}
    return graph, Profile(costs, passes), rows


def _loss(draw: random.Random) -> tuple[tuple[float, float], ...]:
    """A concave graph of one to three pieces."""
    percents = sorted({round(draw.uniform(10, 90)) for _ in range(draw.randint(0, 2))}, reverse=True)
    edges = [100.0, *map(float, percents), 0.0]
    slopes = sorted(draw.uniform(0.1, 3) for _ in range(len(edges) - 1))
    widths = [right - left for right, left in pairwise(edges)]
    fall = sum(slope * width for slope, width in zip(slopes, widths, strict=True))
    points, utility = [(100.0, 1.0)], 1.0
    for edge, slope, width in zip(edges[1:], slopes, widths, strict=True):
        utility -= slope * width / fall
        points.append((edge, max(0.0, utility)))
    return tuple(points)


def run(*, quick: bool, say: Say) -> Result:
    draw = random.Random(7)
    rows: list[dict[str, Any]] = []
    networks = 24 if quick else 1000
    for number in range(networks):
        merge = number % 2 == 1
        if number % 100 == 0:
            say(f"network {number} of {networks}")
        graph, profile, entering = random_network(draw, merge=merge)
        road_map = build_road_map(graph, profile, entering, _FINE)
        exact = ExactShedder()
        problem = Problem(graph, profile, entering, 0.0)
        for excess in _EXCESSES if not quick else _EXCESSES[1::2]:
            asked = problem.with_budget((1 - excess) * problem.load_us)
            best, greedy = exact.plan(asked), RoadMapShedder(road_map).plan(asked)
            assert isinstance(best, Plan)
            assert isinstance(greedy, Plan)
            certify(asked, best)
            rows.append(
                {
                    "network": number,
                    "merges": merge,
                    "operators": len(graph.operators),
                    "excess": excess,
                    "road_map": round(greedy.utility, 6),
                    "exact": round(best.utility, 6),
                    "ratio": greedy.utility / best.utility if best.utility > 0 else 1.0,
                }
            )
    say("timing the exact planner on 1,000 arcs")
    exact_ms = _exact_ms(5 if quick else 15)
    ratios = [row["ratio"] for row in rows]
    trees = [row["ratio"] for row in rows if not row["merges"]]
    merging = [row["ratio"] for row in rows if row["merges"]]
    metrics = {
        "mean": round(statistics.mean(ratios), 5),
        "worst": round(min(ratios), 4),
        "share_optimal": round(sum(ratio > _OPTIMAL for ratio in ratios) / len(ratios), 4),
        "mean_trees": round(statistics.mean(trees), 5),
        "worst_trees": round(min(trees), 4),
        "mean_merging": round(statistics.mean(merging), 5),
        "worst_merging": round(min(merging), 4),
        "exact_ms": round(exact_ms, 1),
        "networks": networks,
    }
    checks = {
        "the road map is never better than the exact plan": max(ratios) <= 1 + 1e-5,
        "on average the road map gives at least .99 of the best": statistics.mean(ratios) >= 0.99,
        "the exact planner takes at most 50 ms on 1,000 arcs": exact_ms <= 50,
    }
    return Result("exact-gap", metrics, checks, rows, lambda figure: _draw(figure, trees, merging))


def _exact_ms(repeats: int) -> float:
    """The median time of a plan on a network of 1,000 arcs, whose program is made already."""
    graph, profile = large_network(1000, 100, seed=1)
    entering = {source.name: 1000.0 * (index + 1) for index, source in enumerate(graph.sources)}
    problem = Problem(graph, profile, entering, 0.0)
    exact = ExactShedder()
    work_us = problem.load_us - problem.unavoidable_us
    times = []
    for repeat in range(repeats + 1):
        excess = _EXCESSES[repeat % len(_EXCESSES)]
        asked = problem.with_budget(problem.unavoidable_us + (1 - excess) * work_us)
        began = time.perf_counter()
        exact.plan(asked)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:])


def _draw(figure: Any, trees: list[float], merging: list[float]) -> None:
    axes = figure.subplots()
    for label, ratios in (("streams split only", trees), ("streams merge too", merging)):
        places = [100 * (index + 1) / len(ratios) for index in range(len(ratios))]
        axes.plot(places, sorted(ratios), label=label)
    axes.set_xlabel("share of problems (%), from the worst")
    axes.set_ylabel("utility of the road map over the optimum")
    axes.set_title("What the greedy road map loses against the exact planner (random networks)")
    axes.legend()
