"""Planning: how long one cycle of the controller takes, by the number of tasks and machines (5.9).

Processor time of a whole cycle, from metrics to the shares that load shedders keep. Load changes from cycle to cycle,
so that shedding is always needed; nothing has to move, as in the seed. Tasks are placed at random: most applications
span as many machines as they have tasks, so machines depend on each other as much as they can.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.plan.quality import Instances, Machines, Metrics, Task, TaskGraph, cycle, task_graph
from jettison.plan.quality.instances import instances

SIZES = ((200, 2), (500, 2), (1000, 2), (2000, 2), (20_000, 100))
_PRIORITIES = 5
_RATE = 1000.0


def run(*, quick: bool, say: Say) -> Result:
    rows = []
    for tasks, machines in SIZES:
        say(f"{tasks:,} tasks on {machines} machines")
        rows.append(measure(tasks, machines, cycles=5 if quick else 40))
    by_size = {(row["tasks"], row["machines"]): row for row in rows}
    small, large = by_size[(2000, 2)], by_size[(20_000, 100)]
    metrics = {
        "cycle_ms": small["median_ms"],
        "cycle_large_ms": large["median_ms"],
        "worst_cycle_ms": small["worst_ms"],
        "worst_cycle_large_ms": large["worst_ms"],
    }
    checks = {
        "2,000 tasks on two machines take at most 5 ms (the seed: 115)": small["median_ms"] <= 5,
        "20,000 tasks on 100 machines take at most 100 ms": large["median_ms"] <= 100,
        "load is shed in every cycle": all(row["least_shed"] > 0 for row in rows),
        "nothing has to move": all(row["moves"] == 0 for row in rows),
    }
    return Result("qod-scale", metrics, checks, rows, lambda figure: _draw(figure, rows))


def applications(tasks: int, seed: int = 1) -> TaskGraph:
    """Applications like taxi drives: two sources, a merge, two sinks with random priorities and minima."""
    chance = np.random.default_rng(seed)
    found: list[Task] = []
    for number in range(tasks // 5):
        name = f"a{number}."
        first, second, merge = (
            Task(f"{name}src1"),
            Task(f"{name}src2"),
            Task(f"{name}merge", (f"{name}src1", f"{name}src2")),
        )
        sinks = [
            Task(
                f"{name}snk{at}",
                (merge.name,),
                priority=float(chance.integers(1, _PRIORITIES + 1)),
                min_accuracy=float(chance.uniform(0.0, 0.4)),
            )
            for at in (1, 2)
        ]
        found += [first, second, merge, *sinks]
    return task_graph(found)


def measure(tasks: int, machines: int, cycles: int) -> dict[str, Any]:
    """Cycles over applications whose load changes: their time, and what they decided."""
    graph, chance = applications(tasks), np.random.default_rng(2)
    placed = instances(graph)
    where = chance.integers(0, machines, len(placed.names))
    placed = Instances(placed.names, placed.task, where.astype(np.intp), placed.warming)
    full = chance.uniform(0.2, 1.0, len(graph.tasks))
    cores = np.bincount(where, weights=full[placed.task], minlength=machines)
    there = Machines(tuple(f"TM{at + 1}" for at in range(machines)), np.asarray(cores * 0.75, dtype=np.float64))
    took, shed, moved = [], [], 0
    for _ in range(cycles):
        seen = _sample(graph, placed, full * chance.uniform(0.8, 1.2), machines)
        begin = time.process_time()
        found = cycle(graph, there, placed, seen)
        took.append((time.process_time() - begin) * 1000)
        shed.append(1.0 - float(found.desired.mean()))
        moved += len(found.moves)
    return {
        "tasks": tasks,
        "machines": machines,
        "median_ms": round(float(np.median(took)), 3),
        "third_quartile_ms": round(float(np.quantile(took, 0.75)), 3),
        "worst_ms": round(max(took), 3),
        "least_shed": round(min(shed), 4),
        "moves": moved,
    }


def _sample(graph: TaskGraph, placed: Instances, full: np.ndarray[Any, Any], machines: int) -> Metrics:
    """What would be measured if everything was processed at accuracy .5."""
    rate = np.full(len(graph.tasks), _RATE / 2)
    for wave in graph.waves:
        rate[wave.tasks] = np.add.reduceat(rate[graph.tails[wave.edges]], wave.starts)
    cpu = full / 2
    return Metrics(
        rate[placed.task],
        cpu[placed.task],
        rate[graph.tails],
        np.full(len(graph.sources), _RATE),
        np.bincount(placed.machine, weights=cpu[placed.task], minlength=machines).astype(float),
    )


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    places = range(len(rows))
    axes.bar(places, [row["median_ms"] for row in rows], 0.5, label="median")
    axes.plot(places, [row["worst_ms"] for row in rows], "_", color="black", markersize=20, label="longest")
    axes.axhline(115, color="grey", linestyle="--", linewidth=1, label="the seed, 2,000 tasks")
    axes.set_xticks(list(places), [f"{row['tasks']:,} tasks\n{row['machines']} machines" for row in rows])
    axes.set_yscale("log")
    axes.set_ylabel("processor time of one cycle (ms)")
    axes.set_title("One cycle of the controller (planning)")
    axes.legend()
