"""Planning must cost next to nothing: road map, look-up and tick for 1,000 operators, 100 outputs (thesis 3.5)."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from jettison.control.loop import Controller, Settings
from jettison.experiments.harness import Result, Say
from jettison.network import Graph, Operator, Output, QoS, Source, Where
from jettison.plan.problem import Problem
from jettison.plan.shedders.road_map import build_road_map
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

_SOURCES = 5


def large_network(operators: int, outputs: int, seed: int) -> tuple[Graph, Profile]:
    """A random network of filters with fan-outs, and random costs."""
    draw = random.Random(seed)
    made: list[Operator] = [Source(f"s{index}", (("x", "int"),)) for index in range(_SOURCES)]
    readers = {operator.name: 0 for operator in made}
    while len(made) < operators - outputs:
        leaves = [name for name, count in readers.items() if count == 0]
        splits = len(leaves) < outputs and draw.random() < 0.25
        tail = draw.choice(list(readers)) if splits else draw.choice(leaves)
        name = f"w{len(made)}"
        made.append(Where(name, (tail,), "x > 0"))
        readers[tail] += 1
        readers[name] = 0
    leaves = [name for name, count in readers.items() if count == 0]
    for index in range(outputs):
        tail = leaves[index] if index < len(leaves) else draw.choice(list(readers))
        loss = ((100.0, 1.0), (50.0, draw.uniform(0.5, 1)), (0.0, 0.0))
        made.append(Output(f"o{index}", (tail,), QoS(loss, priority=draw.uniform(0.5, 5))))
    graph = Graph("large", tuple(made))
    graph.check_complete()
    costs = {operator.name: draw.uniform(0.1, 5) for operator in made}
    passes = {operator.name: draw.uniform(0.5, 1) for operator in made if isinstance(operator, Where)}
    return graph, Profile(costs, passes, fixed_ms=50.0, read_us=dict.fromkeys((s.name for s in graph.sources), 0.1))


def run(*, quick: bool, say: Say) -> Result:
    repeats = 3 if quick else 9
    graph, profile = large_network(1000, 100, seed=1)
    rows = {source.name: 1000 * (index + 1) for index, source in enumerate(graph.sources)}
    say("building the road map")
    roadmap_s, road_map = _median_s(repeats, lambda: build_road_map(graph, profile, rows))
    load_us = Problem(graph, profile, rows, 0.0).load_us
    cursors = [int(len(road_map) * share) for share in (0.0, 0.3, 0.9)]
    lookups = [
        _median_s(repeats, partial(road_map.find, rows, excess * load_us, cursor))[0]
        for cursor in cursors
        for excess in (0.05, 0.4, 0.8)
    ]
    say("control ticks")
    controller = Controller(graph, Settings(trigger_ms=1000.0), profile)
    ticks = []
    for batch in range(10 * repeats):
        began = time.perf_counter()
        controller.decide(rows, now_ms=1000.0 * batch)
        decided = time.perf_counter()
        controller.record(BatchSample(batch, 1000.0 * batch, 1000.0, 900.0, rows))
        ticks.append((decided - began, time.perf_counter() - decided))
    tick_share = statistics.median(decide + record for decide, record in ticks)
    metrics = {
        "roadmap_s": round(roadmap_s, 4),
        "lookup_ms": round(1000 * max(lookups), 4),
        "tick_share": round(tick_share, 5),
        "worst_tick_share": round(max(decide + record for decide, record in ticks), 5),
        "roadmap_rows": len(road_map),
    }
    checks = {
        "the road map takes at most 1 s": roadmap_s <= 1.0,
        "a look-up takes at most 1 ms": max(lookups) <= 0.001,
        "a tick is at most .01 of a 1 s batch": tick_share <= 0.01,
    }
    table = [
        {"tick": i, "decide_ms": round(1e3 * d, 3), "record_ms": round(1e3 * r, 3)} for i, (d, r) in enumerate(ticks)
    ]
    return Result("planning", metrics, checks, table, lambda figure: _draw(figure, table))


def _median_s(repeats: int, work: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    result = None
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return statistics.median(times), result


def _draw(figure: Any, table: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    axes.plot([row["tick"] for row in table], [row["decide_ms"] for row in table], marker=".", label="decide")
    axes.plot([row["tick"] for row in table], [row["record_ms"] for row in table], marker=".", label="record")
    axes.axhline(10.0, color="grey", linestyle="--", linewidth=1, label="1 % of a 1 s batch")
    axes.set_yscale("log")
    axes.set_xlabel("tick")
    axes.set_ylabel("time (ms)")
    axes.set_title("One control tick: 1,000 operators, 100 outputs")
    axes.legend()
