"""What every experiment gives: metrics, checks that can fail, a table, a CSV and a picture."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jettison.errors import StartError

Say = Callable[[str], None]
"""Tells the user what is going on."""


@dataclass(frozen=True)
class Result:
    """What an experiment found.

    `metrics` are numbers, and names or lists where names or several numbers are the answer; `checks` states claims that
    can fail; `rows` is the table behind them, a mapping per row; `draw` makes the picture
    on a Matplotlib figure.

    >>> Result("demo", {"ratio": 1.2}, {"ratio is at least 1": True}).to_json()
    '{"name": "demo", "metrics": {"ratio": 1.2}, "checks": {"ratio is at least 1": true}, "passed": true}'
    """

    name: str
    metrics: Mapping[str, Any]
    checks: Mapping[str, bool]
    rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    draw: Callable[[Any], None] | None = field(default=None, repr=False)

    @property
    def passed(self) -> bool:
        return all(self.checks.values())

    def to_json(self) -> str:
        content = {"name": self.name, "metrics": dict(self.metrics), "checks": dict(self.checks), "passed": self.passed}
        return json.dumps(content)


@dataclass(frozen=True)
class Experiment:
    """An entry of the list: `run(quick, say)` in module `jettison.experiments.<module>` does the work."""

    name: str
    module: str
    section: str
    summary: str

    def run(self, *, quick: bool, say: Say) -> Result:
        """Do it. What needs Spark is imported only now."""
        import importlib

        try:
            module = importlib.import_module(f"jettison.experiments.{self.module}")
        except ModuleNotFoundError as error:
            if error.name != "confluent_kafka":
                raise
            raise StartError(
                f"experiment {self.name!r} sends records to Kafka: pip install 'jettison[kafka]'."
            ) from error
        found: Result = module.run(quick=quick, say=say)
        return found


EXPERIMENTS = (
    Experiment("overhead", "speed.overhead", "ours", "throughput of a network, nothing shed, over plain Spark"),
    Experiment(
        "fixed-cost", "speed.fixed_cost", "ours", "nearly empty batches: what a trigger takes, beside plain Spark"
    ),
    Experiment("many-outputs", "speed.many_outputs", "ours", "thirty small outputs of one source over one output"),
    Experiment("calibration", "speed.calibration", "ours", "costs measured beside the stream: delay, work, spread"),
    Experiment("native", "speed.native", "ours", "windowed aggregates, nothing shed, over native Structured Streaming"),
    Experiment(
        "peers",
        "peers.comparison",
        "ours",
        "three outputs on Jettison, native Structured Streaming and Flink SQL: throughput, and at three times capacity",
    ),
    Experiment("keys", "speed.keys", "ours", "windows by a thousand to a million keys: time per row, memory"),
    Experiment(
        "estimate", "windows.estimate", "ours", "windows estimated from 10 to 80 % of their rows, against the truth"
    ),
    Experiment(
        "drift", "overloads.drift", "ours", "values that drift, jump and were never seen: shares planned and delivered"
    ),
    Experiment(
        "overload",
        "overloads.overload",
        "thesis 3.1",
        "three times the capacity for a minute, with and without shedding",
    ),
    Experiment("burst", "overloads.burst", "thesis 3.2", "ten times the capacity for five seconds"),
    Experiment(
        "fig-3-18", "road_map.fig_3_18", "thesis 3.9", "the battalion on Spark: value utility lost by three algorithms"
    ),
    Experiment("exact-gap", "road_map.exact_gap", "ours", "utility of the road map over the optimum, and its time"),
    Experiment(
        "stale", "overloads.stale", "ours", "after a stall: how soon results are fresh again, old data going first"
    ),
    Experiment(
        "policies", "policies.policies", "ours", "every shedder in one overload: worth, fairness, age, promises"
    ),
    Experiment(
        "qod-spark",
        "quality.on_spark",
        "Stream Economics 5.5",
        "priorities and minimum accuracies on Kafka, as load rises beyond capacity",
    ),
    Experiment("parity", "overloads.parity", "ours", "one scenario in the simulator and on Spark"),
    Experiment("planning", "speed.planning", "thesis 3.5", "road map, look-up and control tick on a large network"),
    Experiment(
        "fig-3-11",
        "road_map.fig_3_11",
        "thesis 3.8.2",
        "simulation: tuple utility lost, six shedders over the input rate",
    ),
    Experiment(
        "fig-3-12",
        "road_map.fig_3_12",
        "thesis 3.8.2",
        "simulation: value utility lost, six shedders over the input rate",
    ),
    Experiment(
        "fig-3-13",
        "road_map.fig_3_13",
        "thesis 3.8.3",
        "simulation: value utility lost by chance over by value, by skew",
    ),
    Experiment(
        "fig-3-14",
        "road_map.fig_3_14",
        "thesis 3.8.4",
        "simulation: 20 queries behind one operator, inputs against splits",
    ),
    Experiment("fig-4-8", "windows.fig_4_8", "thesis 4.11.2", "nested aggregates: drop rate over excess load by place"),
    Experiment("fig-4-10", "windows.fig_4_10", "thesis 4.11.2", "fan-out: drop rate over excess load by place"),
    Experiment(
        "fig-4-11", "windows.fig_4_11", "thesis 4.11.3", "effect of the window's size, beside the estimate of 4.9.2"
    ),
    Experiment(
        "fig-4-12", "windows.fig_4_12", "thesis 4.11.3", "effect of the window's slide, beside the estimate of 4.9.2"
    ),
    Experiment(
        "table-4-4", "windows.table_4_4", "thesis 4.11.4", "throughput with a window drop that drops nothing over none"
    ),
    Experiment(
        "las-fig-3", "las.fig_3", "LAS 4", "simulation: latency as the stream unfolds, three ways to know costs"
    ),
    Experiment(
        "las", "las.on_spark", "LAS 4", "Python work of different length by key, twice the capacity: three shedders"
    ),
    Experiment("las-shift", "las.shift", "LAS 3.1", "simulation: costs are swapped in mid-stream and learned again"),
    Experiment("sketch", "las.sketch", "LAS 3.1", "updates and look-ups of the cost sketch beside Apache DataSketches"),
    Experiment(
        "fair-gap", "fair.fair_gap", "DISSP 5.3", "planning: lowest SIC by the seed's algorithm over exact shares"
    ),
    Experiment(
        "fairness", "fair.fairness", "DISSP 5", "20 queries at twice the capacity: SIC by fair, random and the road map"
    ),
    Experiment("fair-speed", "fair.fair_speed", "DISSP 5.3", "planning: one fair decision for 1,000 queries"),
    Experiment(
        "fair-global", "fair.fair_global", "DISSP 4.3", "simulation: fairness over many nodes, by what they know"
    ),
    Experiment("sic-truth", "fair.sic_truth", "DISSP 4.2", "SIC against the accuracy of results, 10 to 100 % kept"),
    Experiment("sic-overhead", "fair.sic_overhead", "DISSP 4.1", "throughput with SIC over without, nothing shed"),
    Experiment("table-5-1", "nodes.table_5_1", "thesis 5.1", "planning: two nodes, plans 0 to 4 and the optimum"),
    Experiment("table-5-4", "nodes.table_5_4", "thesis 5.5", "planning: three feasible input tables, row by row"),
    Experiment(
        "fig-5-12", "nodes.fig_5_12", "thesis 5.7.2", "planning: Solver, Solver-W and C-FIT over load imbalance"
    ),
    Experiment("fig-5-13", "nodes.fig_5_13", "thesis 5.7.2", "planning: Solver-W over workload and provision level"),
    Experiment("fig-5-15", "nodes.fig_5_15", "thesis 5.7.2", "planning: Solver and C-FIT over operator fan-out"),
    Experiment("fig-5-16", "nodes.fig_5_16", "thesis 5.7.2", "planning: 2, 4 and 8 inputs, time and convergence"),
    Experiment("table-5-5", "nodes.table_5_5", "thesis 5.7.2", "planning: entries of tables for 2, 4 and 8 inputs"),
    Experiment("fig-5-17", "nodes.fig_5_17", "thesis 5.7.2", "planning: what D-FIT sends, after changes too"),
    Experiment("per-tick", "nodes.per_tick", "ours", "planning: the program of every tick against plans in advance"),
    Experiment(
        "distributed", "nodes.distributed", "ours", "simulation: nodes coordinated and by themselves, with losses"
    ),
    Experiment(
        "qod-scenario-1",
        "quality.scenario_1",
        "Stream Economics 5.5",
        "simulation: equal priorities, a machine is added, load rises: shed first, then move",
    ),
    Experiment(
        "qod-scenario-2",
        "quality.scenario_2",
        "Stream Economics 5.6",
        "simulation: two applications of different priorities on two machines",
    ),
    Experiment(
        "qod-scale", "quality.scale", "Stream Economics 5.9", "planning: time of a cycle over tasks and machines"
    ),
    Experiment(
        "recovery", "lasting.recovery", "ours", "killed a hundred times: nothing lost, doubled or wrong, plans alike"
    ),
    Experiment(
        "soak", "lasting.soak", "ours", "thousands of tiny batches: files, memory, batch and restart time stay flat"
    ),
    Experiment(
        "kafka-lag", "kafka.lag", "Stream Economics 5.8", "Kafka's lag as injection rises past capacity, beside Spark's"
    ),
    Experiment("kafka-rate", "kafka.rate", "Stream Economics 5.7", "the arrival rate, estimated and true"),
    Experiment("kafka-late-parse", "kafka.late_parse", "DISSP 5.4", "dropping before parsing over dropping after"),
    Experiment("kafka-faults", "kafka.faults", "ours", "broker, partition, topic and retention faults: nothing lost"),
)


def experiment(name: str) -> Experiment | None:
    return next((each for each in EXPERIMENTS if each.name == name), None)


def save(result: Result, folder: Path) -> list[Path]:
    """Write the table as CSV and the picture as PNG; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    if result.rows:
        path = folder / f"{result.name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(result.rows[0]))
            writer.writeheader()
            writer.writerows(result.rows)
        written.append(path)
    if result.draw is not None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 5.5), layout="constrained")
        result.draw(figure)
        path = folder / f"{result.name}.png"
        figure.savefig(path, dpi=110)
        written.append(path)
    return written
