"""After a stall the old backlog makes way for the new: how soon results are fresh again, and what is delivered of them.

A sink hangs for a minute while trips keep coming into a Kafka topic at the network's capacity. Then the whole backlog
comes in one batch. With `stale` what would be older than two triggers when it is delivered goes first: the broker tells
from which offset on records are younger, and those before it are passed over unread. Without it as many of the newest
are read as there is time for, and old and new of these are thinned out alike.

Fresh is what can still be delivered within two triggers; the share of it that came through is counted at the sink.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.kafka_runs import kafka_capacity, running_broker
from jettison.experiments.kafka.producer import producing
from jettison.experiments.support.capacity import Capacity
from jettison.experiments.support.timeline import draw, table
from jettison.experiments.support.workload import taxi_network
from jettison.network.kafka import Kafka
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.samples import BatchSample
from jettison.synthetic.rates import Constant

_P95 = 5
_FRESH_TRIGGERS = 2.0
_STEADY = 2
_BIN = 500


@dataclass
class _Stall:
    """A sink that hangs once, in its first batch after so many seconds, and another that looks at the batch after it.

    Trips are numbered as they come, so their numbers tell how old they are.
    """

    after_s: float
    for_s: float
    began_s: float = 0.0
    ended_s: float | None = None
    delivered: dict[int, int] = field(default_factory=dict)

    def hang(self, frame: Any, batch: int) -> None:
        self.began_s = self.began_s or time.time()
        if self.ended_s is None and time.time() - self.began_s > self.after_s:
            time.sleep(self.for_s)
            self.ended_s = time.time()
        _discard(frame, batch)

    def look(self, frame: Any, batch: int) -> None:
        if self.ended_s is None or self.delivered:
            _discard(frame, batch)
            return
        for row in frame.selectExpr(f"trip div {_BIN} AS bin").groupBy("bin").count().collect():
            self.delivered[row["bin"]] = row["count"]

    def delivered_from(self, trip: float) -> int:
        """Trips from this number on that came through in the first batch after the stall."""
        return sum(count for number, count in self.delivered.items() if number * _BIN >= trip)


def run(*, quick: bool, say: Say, capacity: Capacity | None = None, broker: Broker | None = None) -> Result:
    """Measure; `capacity` and a broker may be given to save time."""
    warm_s, stall_s, after_s = (1.0, 3.0, 3.0) if quick else (20.0, 60.0, 40.0)
    spark = local_session(kafka=True)
    runs: dict[str, tuple[Run, _Stall]] = {}
    with running_broker(say, broker) as kafka:
        capacity = capacity or kafka_capacity(spark, kafka, say, batches=4 if quick else 8)
        limit_s = _FRESH_TRIGGERS * capacity.trigger_ms / 1000
        for label, stale, shedding in (
            ("nothing shed", None, False),  # the first of them has the coldest JVM
            ("by chance", None, True),
            ("stale first", f"{1000 * limit_s:.0f} milliseconds", True),
        ):
            if quick and not shedding:
                continue
            say(f"{label}: {stall_s:.0f} s stall at 1 x capacity")
            stall = _Stall(warm_s, stall_s)
            runs[label] = _stalled(kafka, capacity, stall, after_s, stale=stale, shedding=shedding)
    recovered = {label: _recovered_s(*each, limit_s, after_s) for label, each in runs.items()}
    fresh_trips = (limit_s - capacity.budget_ms / 1000) * capacity.rows_per_s
    fresh = {label: _fresh_share(*each, fresh_trips) for label, each in runs.items()}
    metrics = {
        "recover_s": round(recovered["stale first"], 2),
        "recover_s_without": round(recovered["by chance"], 2),
        "fresh_kept_share": round(fresh["stale first"], 3),
        "fresh_kept_share_without": round(fresh["by chance"], 3),
        "trigger_s": capacity.trigger_ms / 1000,
    }
    if "nothing shed" in recovered:
        metrics["recover_s_nothing_shed"] = round(recovered["nothing shed"], 2)
    checks = {
        "with staleness shedding results are fresh again": recovered["stale first"] < after_s,
        "that is sooner than without it": recovered["stale first"] < recovered["by chance"],
        "of what is fresh after the stall more comes through": fresh["stale first"] > fresh["by chance"],
    }
    tables = {label: table(each, label) for label, (each, _) in runs.items()}
    title = f"A stall of {stall_s:.0f} s at 1 x capacity ({capacity.rows_per_s:,.0f} rows/s): old makes way for new"
    return Result(
        "stale",
        metrics,
        checks,
        [row for rows in tables.values() for row in rows],
        lambda figure: draw(figure, tables, title, capacity.budget_ms),
    )


def _stalled(
    broker: Broker, capacity: Capacity, stall: _Stall, after_s: float, *, stale: str | None, shedding: bool
) -> tuple[Run, _Stall]:
    topic = f"stall-{'first' if stale else 'chance' if shedding else 'none'}"
    broker.create(topic)
    with tempfile.TemporaryDirectory(prefix="jettison-stale-") as name:
        running = start(
            taxi_network(Kafka(broker.servers, topic, starting_offsets="earliest")),
            sinks={"fares": _discard, "routes": stall.look, "alerts": stall.hang},
            trigger=capacity.trigger,
            shedding=Shedding(mode="on" if shedding else "off", headroom=0.9, stale=stale),
            checkpoint=str(Path(name) / "checkpoint"),
            costs=Costs(capacity.profile, shared=capacity.shared),
        )
        rate = Constant(capacity.rows_per_s)
        try:
            with producing(broker.servers, topic, rate, 3600.0, Path(name) / "sent") as producer:
                deadline = time.monotonic() + 300
                while stall.ended_s is None and time.monotonic() < deadline:
                    if producer.poll() is not None:
                        raise RuntimeError(f"the producer ended with code {producer.returncode}")
                    if running.await_termination(timeout=0.2):
                        break
                running.await_termination(timeout=after_s)
        finally:
            running.stop()
    return running, stall


def _discard(frame: Any, batch: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _after(running: Run, stall: _Stall) -> list[tuple[BatchSample, Any]]:
    return [(sample, plan) for sample, plan in running.history if sample.started_ms / 1000 > (stall.ended_s or 0.0)]


def _recovered_s(running: Run, stall: _Stall, limit_s: float, after_s: float) -> float:
    """Seconds from the stall's end to the end of the first batch from which on p95 latency stays within the limit."""
    assert stall.ended_s is not None
    after = _after(running, stall)
    fresh = [
        any(seen.rows for seen in sample.outputs.values())
        and all(
            seen.latency_ms[_P95] / 1000 <= limit_s for seen in sample.outputs.values() if seen.latency_ms is not None
        )
        for sample, _ in after
    ]
    for index in range(len(after)):
        if all(fresh[index : index + _STEADY]) and fresh[index]:
            sample = after[index][0]
            return (sample.started_ms + sample.duration_ms) / 1000 - stall.ended_s
    return after_s


def _fresh_share(running: Run, stall: _Stall, fresh_trips: float) -> float:
    """Of the newest trips in the first batch after the stall, so many, the share that came through, counted there."""
    after = _after(running, stall)
    if not after:
        return 0.0
    first = after[0][0]
    entered, passed, numbered = 0, 0, 0
    for sample, plan in running.history:
        if sample.batch <= first.batch:
            numbered += _arrived(sample)
        if sample.batch < first.batch and not plan.sheds:
            entered += sample.rows_in["trips"]
            passed += sample.outputs["routes"].rows
    fresh = min(fresh_trips, _arrived(first))
    paid_share = passed / max(1, entered)  # what is not shed must still pass a filter
    return stall.delivered_from(numbered - fresh) / max(1.0, fresh * paid_share)


def _arrived(sample: BatchSample) -> int:
    return sample.rows_in["trips"] + sample.skipped.get("trips", 0)
