"""Both applications of the seed in one Spark application, on real Kafka, as load rises beyond capacity (5.5, 5.6).

Three outputs have priorities 5, 3 and 1 and a minimum accuracy each. The shedder is "qod". Of every batch, the accuracy
that was planned for an output is compared with the share of source tuples that was truly processed for it.

Shares that are drawn by chance scatter: a batch holds a minimum unless it is more than four standard errors below it.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import running_broker
from jettison.experiments.kafka.producer import fill, producing
from jettison.experiments.quality.applications import TOPICS, Asked, both_applications
from jettison.experiments.support.waiting import wait_until
from jettison.network.graph import Graph
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.floors import plan_accuracies
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.spark.write.sinks import ParquetSink
from jettison.statistics.account import summed
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Trace
from jettison.telemetry.events import BatchEvent

ASKED = {"complaints": Asked(5, 0.3), "zones": Asked(3, 0.2), "classes": Asked(1, 0.1)}
LEVELS = (0.5, 0.9, 1.3, 1.8, 2.4)
"""Load over capacity, one after another."""
_TRIGGER_S = 2.0
_HEADROOM = 0.7  # broker and producers share this machine with Spark
_FIRST_ROWS = 6_000
_ERRORS = 4.0


@dataclass(frozen=True)
class Seen:
    """One output in one batch: source tuples that arrived, the accuracy planned, and the one that was measured."""

    output: str
    batch: int
    started_ms: float
    rows: float
    planned: float
    processed: float

    @property
    def error(self) -> float:
        """The standard error of a share of so many tuples."""
        share = min(0.99, max(0.01, self.planned))
        return math.sqrt(share * (1 - share) / max(1.0, self.rows))


def run(*, quick: bool, say: Say, broker: Broker | None = None) -> Result:
    """Measure; a broker may be given to save time."""
    spark = local_session("jettison-qod", kafka=True)
    level_s = 5.0 if quick else 16.0
    levels = (LEVELS[0], LEVELS[-1]) if quick else LEVELS
    with running_broker(say, broker) as kafka, tempfile.TemporaryDirectory(prefix="jettison-qod-") as folder:
        for topic in TOPICS:
            kafka.create(topic)
            fill(kafka.servers, topic, _FIRST_ROWS)
        say("measuring costs")
        profile = _profile(spark, kafka.servers, Path(folder))
        graph = both_applications(kafka.servers, ASKED).graph
        rows_per_s = capacity_rows_per_s(graph, profile)
        say(f"capacity: {rows_per_s:,.0f} rows/s of every topic")
        seen = _overloaded(kafka.servers, Path(folder), profile, [level * rows_per_s for level in levels], level_s, say)
    return _result(graph, seen, rows_per_s)


def capacity_rows_per_s(graph: Graph, profile: Profile) -> float:
    """Rows per second of every topic, all alike, whose work fits into the budget of a batch."""
    loads = load_coefficients(graph, profile)
    per_row_us = sum(loads[each.name] + profile.read_us.get(each.name, 0.0) for each in graph.sources)
    return max(50.0, 1e6 * (_HEADROOM * _TRIGGER_S - profile.fixed_ms / 1000) / per_row_us / _TRIGGER_S)


def _profile(spark: Any, servers: str, folder: Path) -> Profile:
    """What operators cost, measured beside a run that sheds nothing."""
    running = start(
        both_applications(servers, ASKED),
        sinks={name: ParquetSink(str(folder / "first" / name)) for name in ASKED},
        trigger=f"{_TRIGGER_S:g} seconds",
        shedding=False,
        checkpoint=str(folder / "first-checkpoint"),
        spark=spark,
    )
    for first in range(_FIRST_ROWS, 4 * _FIRST_ROWS, _FIRST_ROWS // 2):
        for topic in TOPICS:
            fill(servers, topic, _FIRST_ROWS // 2, first)
        time.sleep(_TRIGGER_S / 2)
    wait_until(lambda: running.totals.batches >= 4)
    running.await_calibration(timeout=60.0)
    wait_until(lambda: running.totals.batches >= 5)
    running.stop()
    return running.controller.profile


def _overloaded(
    servers: str, folder: Path, profile: Profile, rates: Sequence[float], level_s: float, say: Say
) -> list[Seen]:
    """Send to all topics at one rate after another, and note what every batch planned and did."""
    net, seen = both_applications(servers, ASKED), list[Seen]()
    graph = net.graph

    def note(event: BatchEvent) -> None:
        read, skipped = event.sample.rows_in, event.sample.skipped
        arrived = {source: count + skipped.get(source, 0) for source, count in read.items()}
        unread = {source: read[source] / count for source, count in arrived.items() if count}
        planned = plan_accuracies(graph, arrived, event.plan, unread)
        for name in ASKED:
            account = summed(each for (_, output), each in event.accounts.items() if output == name)
            if account.read - account.rejected > 0:
                share = account.processed / (account.read - account.rejected)
                seen.append(Seen(name, event.sample.batch, event.sample.started_ms, account.read, planned[name], share))

    rate = Trace(tuple(level_s * number for number in range(len(rates))), tuple(rates))
    seconds = level_s * len(rates)
    say(f"load rises from {rates[0]:,.0f} to {rates[-1]:,.0f} rows/s of every topic within {seconds:.0f} s")
    running = start(
        net,
        sinks={name: ParquetSink(str(folder / "out" / name)) for name in ASKED},
        trigger=f"{_TRIGGER_S:g} seconds",
        shedding=Shedding(shedder="qod", headroom=_HEADROOM),
        checkpoint=str(folder / "checkpoint"),
        costs=Costs(profile),
        listeners=[note],
    )
    try:
        wait_until(lambda: running.totals.batches >= 1 or running.await_termination(timeout=0.01))
        with ExitStack() as stack:
            senders = [
                stack.enter_context(producing(servers, topic, rate, seconds, folder / f"sent-{topic}"))
                for topic in TOPICS
            ]
            for sender in senders:
                if sender.wait(seconds + 90) != 0:
                    raise RuntimeError(f"a producer ended with code {sender.returncode}")
        time.sleep(_TRIGGER_S)
    finally:
        running.stop()
    return seen


def _result(graph: Graph, seen: Sequence[Seen], rows_per_s: float) -> Result:
    warm = [each for each in seen if each.batch > 1]
    held = [each.processed >= ASKED[each.output].min_accuracy - _ERRORS * each.error for each in warm]
    inversions = priority_inversions(warm)
    shed = [each for each in warm if each.planned < 1.0]
    errors = [abs(each.planned - each.processed) for each in warm]
    weight = sum(each.rows for each in warm) or 1.0
    error = sum(each.rows * wrong for each, wrong in zip(warm, errors, strict=True)) / weight
    share = sum(held) / len(held) if held else 0.0
    return Result(
        "qod-spark",
        {
            "minima_held": round(share, 4),
            "priority_inversions": inversions,
            "accuracy_error": round(error, 5),
            "accuracy_error_shed": round(sum(abs(e.planned - e.processed) for e in shed) / max(1, len(shed)), 5),
            "batches": len({each.batch for each in warm}),
            "batches_shed": len({each.batch for each in shed}),
            "capacity_rows_per_s": round(rows_per_s),
            **{
                f"lowest {name}": round(min((e.processed for e in warm if e.output == name), default=1.0), 3)
                for name in ASKED
            },
        },
        {
            "every output gets its minimum accuracy in every batch": share == 1.0,
            "no lower priority gets more than its minimum while a higher one lacks something": inversions == 0,
            "the accuracy processed is within .006 of the accuracy planned, on average": error <= 0.006,
            "something was shed": bool(shed),
        },
        [
            {
                "output": each.output,
                "batch": each.batch,
                "second": round((each.started_ms - warm[0].started_ms) / 1000, 2),
                "rows": round(each.rows),
                "planned": round(each.planned, 4),
                "processed": round(each.processed, 4),
            }
            for each in warm
        ],
        lambda figure: _draw(figure, warm),
    )


def priority_inversions(seen: Sequence[Seen]) -> int:
    """How often a lower priority got more than its minimum while a higher one did not get all.

    >>> both = [Seen("complaints", 3, 0.0, 1e6, 0.8, 0.8), Seen("classes", 3, 0.0, 1e6, 0.5, 0.5)]
    >>> priority_inversions(both), priority_inversions([both[0], Seen("classes", 3, 0.0, 1e6, 0.1, 0.1)])
    (1, 0)
    """
    by_batch: dict[int, list[Seen]] = {}
    for each in seen:
        by_batch.setdefault(each.batch, []).append(each)
    found = 0
    for batch in by_batch.values():
        for high in batch:
            for low in batch:
                lower = ASKED[low.output].priority < ASKED[high.output].priority
                more = low.processed > ASKED[low.output].min_accuracy + _ERRORS * low.error
                found += lower and more and high.processed < 1.0 - _ERRORS * high.error
    return found


def _draw(figure: Any, seen: Sequence[Seen]) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    began_ms = seen[0].started_ms if seen else 0.0
    for name, asked in ASKED.items():
        own = [each for each in seen if each.output == name]
        at = [(each.started_ms - began_ms) / 1000 for each in own]
        (line,) = below.plot(
            at, [each.processed for each in own], marker=".", label=f"{name}, priority {asked.priority:g}"
        )
        below.step(at, [each.planned for each in own], where="mid", linestyle=":", color=line.get_color())
        below.axhline(asked.min_accuracy, color=line.get_color(), linewidth=0.7, linestyle="--")
    first = [each for each in seen if each.output == next(iter(ASKED))]
    above.plot([(each.started_ms - began_ms) / 1000 for each in first], [each.rows for each in first], color="black")
    above.set_ylabel("drives per batch")
    below.set_ylabel("accuracy")
    below.set_xlabel("seconds")
    below.legend(fontsize=8)
    figure.suptitle("Minima for all (dashed), what is left by priority: planned (dotted) and processed")
