"""What test_killed_windows kills: `python -m tests.spark.killed_driver FOLDER SEED POINT NUMBER DELAY_MS`.

It runs the network of SEED over FOLDER/trips, one file per batch, under plans that change in mid-stream, until all is
read. FOLDER/filters gets a file of all filters that it was to compile, and of all texts that it compiled. At the
NUMBER-th time that it comes to POINT, and DELAY_MS later, the whole process group gets SIGKILL, JVM and
all; a POINT of "never" lets it live.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.spark import running
from tests.spark.running import FREE, ended, forced
from tests.spark.windows.random_windows import TRIPS, network_of, random_stages

import jettison as jt
from jettison.control.loop import Controller
from jettison.network.event_time import join_retention
from jettison.plan.plan import Plan
from jettison.plan.refine.window_lookahead import without_idle
from jettison.plan.windows.decisions import decisions_of
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.logs import Ledger, Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.compile.drops import passes
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.run.session import local_session
from jettison.spark.state.operator_state import OpenedBatch
from jettison.spark.state.slice_writer import SliceWriter
from jettison.spark.state.state_log import StateLog
from jettison.spark.write.batch_jobs import BatchJobs
from jettison.statistics.samples import Measured

BEFORE, AFTER = "before", "after"
POINTS: dict[str, tuple[type, str, str]] = {
    "plan logged": (PlanLog, "write", AFTER),
    "slices being written": (SliceWriter, "append", BEFORE),
    "slices written": (SliceWriter, "append", AFTER),
    "parts being merged": (SliceWriter, "merge", BEFORE),
    "parts merged": (SliceWriter, "merge", AFTER),
    "output being written": (BatchJobs, "_write", BEFORE),
    "output written": (BatchJobs, "_write", AFTER),
    "slices recorded": (StateLog, "write", AFTER),
    "old slices being deleted": (LocalFolder, "delete", AFTER),
    "ledger written": (Ledger, "write", AFTER),
}
"""Where a run may be killed: before or after which call."""

BATCHES, PER_BATCH, STEP_S = 16, 400, 40.0

SHARES = (0.0, 0.3, 0.6, 0.97)
"""Shares of windows to drop; the last is more than any gap allows, so as many go as may."""
PATIENCE_S = 400.0
"""A busy machine is not a fault."""
MOST_PARTS = 2
"""Parts are merged more often than usual, so that there is something to kill."""


def arm(point: str, number: int, delay_ms: float) -> None:
    """Let the process be killed when it has come so often to a point."""
    if point == "never":
        return
    kind, name, when = POINTS[point]
    call, lock, left = getattr(kind, name), threading.Lock(), [number]

    def reached() -> None:
        with lock:
            left[0] -= 1
            if left[0] == 0:
                threading.Timer(delay_ms / 1000, os.killpg, (0, signal.SIGKILL)).start()
        if left[0] <= 0 and delay_ms == 0:
            threading.Event().wait()  # come no further

    @functools.wraps(call)
    def killed(*args: Any, **others: Any) -> Any:
        if when == BEFORE:
            reached()
        result = call(*args, **others)
        if when == AFTER:
            reached()
        return result

    setattr(kind, name, killed)


def record_filters(folder: Path) -> None:
    """Write down, batch by batch: the filters of a plan before it is logged, those of the plan that is obeyed, and
    every text that is compiled."""
    folder.mkdir(exist_ok=True)
    file = (folder / f"{len(list(folder.iterdir()))}.jsonl").open("a", buffering=1)
    write, attempt, expression = PlanLog.write, BatchRunner._attempt, ExpressionCache.expression
    running: list[int] = []

    def note(batch: int, kind: str, text: object) -> None:
        file.write(json.dumps([batch, kind, text]) + "\n")

    def filters(plan: Plan) -> dict[str, str | None]:
        obeyed = without_idle(plan)
        return {arc: passes(arc, obeyed) for arc in obeyed.arcs}

    def noted_write(log: PlanLog, logged: Logged) -> None:
        note(logged.batch, "planned", filters(logged.plan))
        write(log, logged)

    def noted_attempt(runner: BatchRunner, raw: Any, batch: OpenedBatch, rows: Any) -> Measured:
        running[:] = [batch.number]
        note(batch.number, "obeyed", filters(batch.plan))
        return attempt(runner, raw, batch, rows)

    def noted_expression(known: ExpressionCache, item: object) -> Any:
        if running and isinstance(item, str):
            note(running[0], "compiled", item)
        return expression(known, item)

    PlanLog.write = noted_write  # type: ignore[method-assign]
    BatchRunner._attempt = noted_attempt  # type: ignore[method-assign]
    ExpressionCache.expression = noted_expression  # type: ignore[method-assign]


def force_plans(checkpoint: Path, seed: int) -> None:
    """Let the shares of windows to drop depend on the batch, and change every three batches."""

    def asking(controller: Controller) -> Plan:
        batch = len(list((checkpoint / "plans").glob("[0-9]*.json")))
        decisions = decisions_of(controller.graph)
        asked = {
            name: random.Random(f"{seed} {decision.seed} {batch // 3}").choice(SHARES)
            for name, decision in decisions.by_aggregate.items()
        }
        return Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "forced", row=1)

    Controller.decide = forced(asking)  # type: ignore[method-assign,assignment]


def main(folder: Path, seed: int, point: str, number: int, delay_ms: float) -> None:
    stages = random_stages(random.Random(seed))
    checkpoint = folder / "checkpoint"
    join_retention.MOST_PARTS = MOST_PARTS
    running.PATIENCE_S = PATIENCE_S
    force_plans(checkpoint, seed)
    record_filters(folder / "filters")
    spark = local_session("killed", cores=2, extra={"spark.driver.memory": "1g"})
    arm(point, number, delay_ms)
    trips = spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1).parquet(str(folder / "trips"))
    done = len(list((checkpoint / "spark" / "commits").glob("[0-9]*")))
    run = jt.start(
        network_of(stages),
        {"trips": trips},
        {stage.output: jt.parquet(str(folder / stage.output)) for stage in stages},
        trigger="10 milliseconds",
        checkpoint=str(checkpoint),
        costs=FREE,
    )
    ended(run, PER_BATCH * (BATCHES - done))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
