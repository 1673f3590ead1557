"""What the tests of running networks share: a small network, runs that end when all is read, and a second opinion.

A plan that stands in the plan log before its batch runs is obeyed as if the batch were repeated. So a test that needs a
certain plan writes it there first. What a plan must leave is computed anew here, in one pass over the same rows.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.control.loop import Controller
from jettison.plan.drops.kind import Drop
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.context import Context
from jettison.plan.refine.refinements import FINISHING, refine
from jettison.plan.windows.group_gaps import named_groups
from jettison.spark.checkpoint.logs import Ledger, Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.compile.drops import identity_of, keeps
from jettison.spark.read.generator import generate, generated
from jettison.spark.run.run import Run
from jettison.statistics.profile import Profile
from jettison.statistics.records import Records
from jettison.synthetic.fields import TAXI

START_US = 1_700_000_000_000_000
SEED = 11
TRIPS = {"schema": "trip long, pickup timestamp, zone int, fare double", "event_time": "pickup", "id": ["trip"]}
TRIGGER = "200 milliseconds"
PATIENCE_S = 400.0

FREE = Profile({}, {})
"""A profile under which nothing is ever too much: no calibration, no drops."""


def taxi(name: str = "taxi") -> jt.Network:
    """Source trips, where paid, and behind it a split into outputs fares (select narrow) and alerts (where dear)."""
    net = jt.Network(name)
    paid = net.source("trips", **TRIPS).where("fare > 0", name="paid")
    qos = jt.QoS(loss=[(100, 1.0), (50, 0.8), (0, 0.0)])
    paid.select("trip", "zone", "fare", name="narrow").output("fares", qos=qos)
    paid.where("fare > 20", name="dear").output("alerts", qos=jt.QoS(priority=5))
    return net


def trips(spark: SparkSession, rows: int, per_batch: int, **others: Any) -> DataFrame:
    """The stream of `rows` taxi trips, `per_batch` in each batch."""
    return generate(spark, TAXI, seed=SEED, rows_per_batch=per_batch, limit_rows=rows, start_us=START_US, **others)


def same_trips(spark: SparkSession, from_row: int, to_row: int) -> DataFrame:
    """The same trips, not streamed."""
    return generated(spark, TAXI, from_row, to_row, seed=SEED, start_us=START_US)


def forced(asking: Callable[[Controller], Plan]) -> Callable[..., Plan]:
    """A `Controller.decide` that takes these plans for the shedder's, whatever the load is, and refines them."""

    def decide(controller: Controller, rows: Mapping[str, int], *_: object, **known: Any) -> Plan:
        problem = Problem(controller.graph, controller.profile, rows, 0.0)
        named = named_groups(controller.graph)
        context = Context(problem, rows, marks=known.get("marks"), fates=controller.fates, named=named)
        plan, _steps = refine(asking(controller), context, FINISHING)
        controller.resume(plan)
        return plan

    return decide


def until(run: Run, done: Callable[[], bool]) -> None:
    """Wait for what a test waits for; what the run raises is raised here."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s\n{run.report()}"
        assert not run.await_termination(timeout=0.05), f"ended before its time\n{run.report()}"


def ended(run: Run, rows: int) -> Run:
    """Wait until so many rows were read and their last batch is committed, then end the run."""
    try:
        until(run, lambda: run.report().rows_in >= rows)
        last = run.history[-1][0].batch
        until(run, lambda: run.query.lastProgress is not None and run.query.lastProgress["batchId"] >= last)
    except BaseException:
        run.query.stop()
        raise
    run.stop()
    assert run.report().rows_in == rows
    return run


def scrape(port: int) -> str:
    """What a run's metrics page says."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def log_plans(checkpoint: Path, plans: Sequence[Plan], rows: Mapping[str, int]) -> None:
    """Let batches 0, 1, ... of `rows` rows each run under these plans."""
    log = PlanLog(LocalFolder(checkpoint))
    for batch, plan in enumerate(plans):
        log.write(Logged(batch, plan, Records(rows)))


def logged_plans(checkpoint: Path) -> list[Plan]:
    """The plans of all batches."""
    log = PlanLog(LocalFolder(checkpoint))
    logged = [log.read(batch) for batch in log.batches()]
    return [each.plan for each in logged if each is not None]


def ledger(checkpoint: Path) -> list[dict[str, Any]]:
    """All entries of the ledger."""
    return list(Ledger(LocalFolder(checkpoint)).entries())


def counts(checkpoint: Path) -> dict[tuple[int, str], tuple[int, int]]:
    """Rows in and rows shed by batch and arc, rows that do not parse left out."""
    entries = [entry for entry in ledger(checkpoint) if entry["reason"] != "does not parse"]
    return {(entry["batch"], entry["arc"]): (entry["rows_in"], entry["rows_shed"]) for entry in entries}


class Expected:
    """What `taxi` must deliver and count when batches of `per_batch` trips run under these plans."""

    def __init__(self, spark: SparkSession, plans: Sequence[Plan], per_batch: int) -> None:
        self.fares: list[tuple[int, float]] = []
        self.alerts: list[tuple[int, float]] = []
        self.counts: dict[tuple[int, str], tuple[int, int]] = {}
        # One job for all batches: every row with what each drop of any plan would do to it.
        judged = {(arc, drop): f"kept{n}" for n, (arc, drop) in enumerate(dict.fromkeys(_drops(plans)))}
        conditions = [f"{keeps(arc, drop)} AS {name}" for (arc, drop), name in judged.items()]
        trips = same_trips(spark, 0, len(plans) * per_batch).selectExpr("*", identity_of(["trip"]))
        rows = trips.selectExpr("trip", "fare", "fare > 0 AS paid", "fare > 20 AS dear", *conditions).collect()

        def passed(batch: int, arc: str, plan: Plan, rows: list[Row]) -> list[Row]:
            drop = plan.drops.get(arc)
            kept = rows if drop is None else [row for row in rows if row[judged[arc, drop]]]
            if drop is not None or arc == "trips":
                self.counts[batch, arc] = (len(rows), len(rows) - len(kept))
            return kept

        for batch, plan in enumerate(plans):
            here = [row for row in rows if row.trip // per_batch == batch]
            paid = [row for row in passed(batch, "trips", plan, here) if row.paid]
            self.fares += [(row.trip, row.fare) for row in passed(batch, "paid>narrow", plan, paid)]
            self.alerts += [(row.trip, row.fare) for row in passed(batch, "paid>dear", plan, paid) if row.dear]


def _drops(plans: Sequence[Plan]) -> Iterator[tuple[str, Drop]]:
    for plan in plans:
        yield from plan.drops.items()


def pairs(rows: DataFrame) -> list[tuple[int, float]]:
    """Trips and fares of an output."""
    return [(row.trip, row.fare) for row in rows.select("trip", "fare").collect()]


# --- functions that networks name by import path ----------------------------------------------------------------------


def doubled(rows: DataFrame) -> DataFrame:
    """Every fare twice as high."""
    return rows.withColumn("fare", F.col("fare") * 2)


def slowly(rows: DataFrame) -> DataFrame:
    """The same rows, a millisecond each, in Python workers."""
    return rows.mapInPandas(_sleeping, rows.schema)


def _sleeping(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for part in parts:
        time.sleep(0.001 * len(part))
        yield part


def breaking(rows: DataFrame) -> DataFrame:
    """Rows that cannot be computed."""
    return rows.mapInPandas(_breaking, rows.schema)


def _breaking(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for _ in parts:
        raise ValueError("the fare is broken")
    yield from ()
