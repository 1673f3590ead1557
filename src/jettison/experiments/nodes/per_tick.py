"""The program solved every tick, from the solution of the last one, beside plans made in advance (planning)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.figure_networks import HIGHEST, network, rates, timed, worst_error
from jettison.network.declare import Network
from jettison.network.nodes.placement import Node
from jettison.network.qos import QoS
from jettison.plan.nodes.plans import NodesPlan
from jettison.plan.nodes.program import Program
from jettison.plan.nodes.solver import PerTick, Solver
from jettison.plan.nodes.structure import Structure, Vector, structure
from jettison.plan.nodes.tables import Grain, Tables
from jettison.statistics.profile import Profile


def large(nodes: int, arcs: int, seed: int) -> Structure:
    """Queries from the root of a binary tree of nodes down to some node, an operator on each node of the way; about
    every third shares the operators of another one as far as their ways are the same."""
    draw = np.random.default_rng(seed)
    net, count, costs, passes = Network("large"), 0, dict[str, float](), dict[str, float]()
    members: dict[int, list[str]] = {node: [] for node in range(nodes)}
    ways: list[tuple[list[int], list[str]]] = []
    queries = 0
    while count < arcs:
        way = [nodes - 1 - queries if queries < nodes else int(draw.integers(nodes))]
        while way[-1] > 0:
            way.append((way[-1] - 1) // 2)
        way.reverse()
        shared: list[str] = []
        if ways and draw.random() < 0.35:
            other, names = ways[int(draw.integers(len(ways)))]
            same = next((at for at, (a, b) in enumerate(zip(way, other, strict=False)) if a != b), 0)
            shared = names[: same or 1]
        stream = net.stream(shared[-1]) if shared else net.source(f"s{queries}", "x int")
        count += 0 if shared else 1
        made = list(shared)
        for node in way[len(shared) :]:
            name = f"w{queries}n{node}"
            stream = stream.where("true", name=name)
            members[node].append(name)
            costs[name], passes[name] = float(draw.uniform(1, 10)), float(draw.uniform(0.5, 1))
            made.append(name)
            count += 1
        loss = ((100.0, 1.0), (50.0, float(draw.uniform(0.5, 1))), (0.0, 0.0))
        stream.output(f"o{queries}", qos=QoS(loss, priority=float(draw.uniform(0.5, 5))))
        count += 1
        ways.append((way, made))
        queries += 1
    sources = [source.name for source in net.graph.sources]
    net.place(*(Node(f"n{node}", [*members[node], *(sources if node == 0 else [])], 1.0) for node in range(nodes)))
    return structure(net.graph, Profile(costs, passes))


def _ticks(made: Structure, count: int, seed: int) -> list[dict[str, float]]:
    """Rates that wander, three times as high as fits on the busiest node on average."""
    draw, names = np.random.default_rng(seed), [source.name for source in made.graph.sources]
    base = draw.uniform(0.5, 1.5, len(names))
    base *= 3 / float((made.load_us @ base / made.capacity_us).max())
    found = []
    for _ in range(count):
        base = base * np.exp(draw.normal(0, 0.1, len(names)))
        found.append(dict(zip(names, base.tolist(), strict=True)))
    return found


def _cold(made: Structure, rate: Vector) -> float:
    """The optimum by a program that is made anew."""
    return Program(made, "utility").solve(rate).score


def _measured(made: Structure, ticks: int, seed: int) -> tuple[list[float], float]:
    """Milliseconds of processor time per tick, and the largest difference to a program that is made anew."""
    planner, times, error = PerTick(made, Program(made, "utility")), [], 0.0
    planner.plan(_ticks(made, 1, seed + 1)[0])
    for at, tick in enumerate(_ticks(made, ticks, seed)):
        began = time.process_time()
        plan = planner.plan(tick)
        times.append(1000 * (time.process_time() - began))
        if at % max(1, ticks // 5) == 0:
            best = _cold(made, made.rates(tick))
            error = max(error, abs(best - plan.score) / best)
            assert max(plan.load.values()) <= 1 + 1e-6
    return times, error


def run(*, quick: bool, say: Say) -> Result:
    ticks = 10 if quick else 100
    say("10 nodes, 100 arcs")
    small_ms, small_error = _measured(large(10, 100, seed=1), ticks, 1)
    size = (30, 200) if quick else (100, 1000)
    many = f"{size[0]} nodes, {size[1]:,} arcs"
    say(many)
    large_ms, large_error = _measured(large(*size, seed=2), ticks, 2)
    rows = [_compared(name) for name in ("per tick", "Solver", "C-FIT", "C-FIT fine")]
    error = max(small_error, large_error, rows[0]["error"])
    metrics = {
        "tick_ms": round(float(np.median(small_ms)), 3),
        "tick_large_ms": round(float(np.median(large_ms)), 3),
        "worst_tick_ms": round(max(small_ms), 3),
        "worst_tick_large_ms": round(max(large_ms), 3),
        "error": round(error, 9),
    }
    checks = {
        "a tick of 10 nodes and 100 arcs takes at most 2 ms": metrics["tick_ms"] <= 2.0,
        f"a tick of {many.replace(',', ' and', 1)} takes at most 20 ms": metrics["tick_large_ms"] <= 20.0,
        "the error is 0 (to 6 digits)": error < 1e-6,
    }
    return Result("per-tick", metrics, checks, rows, lambda figure: _draw(figure, rows, small_ms, large_ms, many))


def _compared(name: str) -> dict[str, Any]:
    """Time to prepare and per tick, memory and true error on the network (64, 32) of figure 5.11."""
    made = network((64.0, 32.0))
    plan: Callable[[dict[str, float]], NodesPlan]
    if name == "per tick":
        prepare_s, per_tick = timed(lambda: PerTick(made))
        plan, memory = per_tick.plan, 0
    elif name == "Solver":
        prepare_s, solver = timed(lambda: Solver(made, rates(HIGHEST, HIGHEST), 0.05))
        plan, memory = solver.plan, solver.cells.bytes
    else:
        prepare_s, tables = timed(lambda: Tables(made, Grain(0.05, fine=name.endswith("fine"))))
        columns = [each for fit in tables.fits.values() for each in (fit.rates, fit.score, fit.passing)]
        plan, memory = tables.plan, sum(each.nbytes for each in columns)
        _ = tables.fits["A"].index
    draw = np.random.default_rng(3)
    points = [rates(*each) for each in draw.random((50, 2)) * HIGHEST]
    tick_s, _ = timed(lambda: [plan(point) for point in points], 3)
    return {
        "planner": name,
        "prepare_ms": round(1000 * prepare_s, 3),
        "tick_ms": round(1000 * tick_s / len(points), 4),
        "bytes": memory,
        "error": round(worst_error(made, plan, 60), 6),
    }


def _draw(figure: Any, rows: list[dict[str, Any]], small_ms: list[float], large_ms: list[float], many: str) -> None:
    left, right = figure.subplots(1, 2)
    left.plot(small_ms, label="10 nodes, 100 arcs")
    left.plot(large_ms, label=many)
    left.axhline(2.0, color="C0", linestyle="--", linewidth=1)
    left.axhline(20.0, color="C1", linestyle="--", linewidth=1)
    left.set_yscale("log")
    left.set_xlabel("tick")
    left.set_ylabel("processor time (ms); dashed: the bars")
    left.legend()
    left.set_title("the program of every tick")
    for row in rows:
        right.scatter(row["prepare_ms"] + row["tick_ms"], 100 * row["error"], s=80, label=row["planner"])
    right.set_xscale("log")
    right.set_xlabel("ms until the first plan, two chains (64, 32)")
    right.set_ylabel("largest true error (%)")
    right.legend()
    right.set_title("against plans made in advance")
    figure.suptitle("No plans in advance (planning)")
