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

    `checks` states claims that can fail; `rows` is the table behind them, a mapping per row; `draw` makes the picture
    on a Matplotlib figure.

    >>> Result("demo", {"ratio": 1.2}, {"ratio is at least 1": True}).to_json()
    '{"name": "demo", "metrics": {"ratio": 1.2}, "checks": {"ratio is at least 1": true}, "passed": true}'
    """

    name: str
    metrics: Mapping[str, float]
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
    Experiment("overhead", "overhead", "ours", "throughput of a network, nothing shed, over plain Spark"),
    Experiment("fixed-cost", "fixed_cost", "ours", "nearly empty batches: what a trigger takes, beside plain Spark"),
    Experiment("many-outputs", "many_outputs", "ours", "thirty small outputs of one source over one output"),
    Experiment("native", "native", "ours", "windowed aggregates, nothing shed, over native Structured Streaming"),
    Experiment("keys", "keys", "ours", "windows by a thousand to a million keys: time per row, memory"),
    Experiment("estimate", "estimate", "ours", "windows estimated from 10 to 80 % of their rows, against the truth"),
    Experiment("drift", "drift", "ours", "values that drift, jump and were never seen: shares planned and delivered"),
    Experiment(
        "overload", "overload", "thesis 3.1", "three times the capacity for a minute, with and without shedding"
    ),
    Experiment("burst", "burst", "thesis 3.2", "ten times the capacity for five seconds"),
    Experiment("fig-3-18", "fig_3_18", "thesis 3.9", "the battalion on Spark: value utility lost by three algorithms"),
    Experiment("exact-gap", "exact_gap", "ours", "utility of the road map over the optimum, and its time"),
    Experiment("stale", "stale", "ours", "after a stall: how soon results are fresh again, old data going first"),
    Experiment("parity", "parity", "ours", "one scenario in the simulator and on Spark"),
    Experiment("planning", "planning", "thesis 3.5", "road map, look-up and control tick on a large network"),
    Experiment(
        "fig-3-11", "fig_3_11", "thesis 3.8.2", "simulation: tuple utility lost, six shedders over the input rate"
    ),
    Experiment(
        "fig-3-12", "fig_3_12", "thesis 3.8.2", "simulation: value utility lost, six shedders over the input rate"
    ),
    Experiment(
        "fig-3-13", "fig_3_13", "thesis 3.8.3", "simulation: value utility lost by chance over by value, by skew"
    ),
    Experiment(
        "fig-3-14", "fig_3_14", "thesis 3.8.4", "simulation: 20 queries behind one operator, inputs against splits"
    ),
    Experiment("fig-4-8", "fig_4_8", "thesis 4.11.2", "nested aggregates: drop rate over excess load by place"),
    Experiment("fig-4-10", "fig_4_10", "thesis 4.11.2", "fan-out: drop rate over excess load by place"),
    Experiment("fig-4-11", "fig_4_11", "thesis 4.11.3", "effect of the window's size, beside the estimate of 4.9.2"),
    Experiment("fig-4-12", "fig_4_12", "thesis 4.11.3", "effect of the window's slide, beside the estimate of 4.9.2"),
    Experiment("table-4-4", "table_4_4", "thesis 4.11.4", "throughput with a window drop that drops nothing over none"),
    Experiment("recovery", "recovery", "ours", "killed a hundred times: nothing lost, doubled or wrong, plans alike"),
    Experiment("soak", "soak", "ours", "thousands of tiny batches: files, memory, batch and restart time stay flat"),
    Experiment(
        "kafka-lag", "kafka_lag", "Stream Economics 5.8", "Kafka's lag as injection rises past capacity, beside Spark's"
    ),
    Experiment("kafka-rate", "kafka_rate", "Stream Economics 5.7", "the arrival rate, estimated and true"),
    Experiment("kafka-late-parse", "kafka_late_parse", "DISSP 5.4", "dropping before parsing over dropping after"),
    Experiment("kafka-faults", "kafka_faults", "ours", "broker, partition, topic and retention faults: nothing lost"),
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
