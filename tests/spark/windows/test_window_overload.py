"""A burst that the control loop meets by itself: which groups lose their windows, and that all others are right."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import TRIGGER, ended, logged_plans
from tests.spark.windowing import TRIPS, Row, S, frame_of, plain, source

import jettison as jt
from jettison.network.durations import duration_ms
from jettison.plan.plan import Plan
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

ZONES, LOW = 10, 5  # zones below 5 are worth a tenth of the others
SIZE_S, STEP_S, GAP = 2, 10, 4  # a batch brings five windows of every zone
BEFORE, BURST, BEHIND = 2, 5, 3
LATE = slice(BEFORE + 1, BEFORE + BURST)  # one batch tells little of a rate
SIZES = [100] * BEFORE + [600] * BURST + [100] * BEHIND
HALF_FULL_US = 0.5 * 900 * duration_ms(TRIGGER, "trigger") / 100
"""What a row costs when 100 of them take half of the budget: 600 take three times as much as there is."""


def network(qos: jt.QoS) -> jt.Network:
    net = jt.Network("taxi")
    busy = source(net).window(f"{SIZE_S} seconds", by="zone").agg(n="count(*)", sum="sum(fare)", name="busy")
    busy.output("table", qos=qos)
    return net


def batches() -> list[list[Row]]:
    """Trips that are evenly spread over time and zones, more of them in the burst."""
    made, trip = [], count()
    for batch, size in enumerate(SIZES):
        moments = [batch * STEP_S * S + number * STEP_S * S // size for number in range(size)]
        made.append([(next(trip), at, number % ZONES, "cab", float(number)) for number, at in enumerate(moments)])
    return made


def by_hand(rows: list[list[Row]]) -> dict[tuple[int, int], tuple[int, float]]:
    """Count and sum of every window by zone and number, of those that have closed: all but the last batch's."""
    found: dict[tuple[int, int], tuple[int, float]] = {}
    closed = (len(rows) - 1) * STEP_S // SIZE_S - 1
    for _, at, zone, _, fare in (row for batch in rows for row in batch):
        place = (zone, at // (SIZE_S * S))
        n, total = found.get(place, (0, 0.0))
        found[place] = (n + 1, total + fare)
    return {place: made for place, made in found.items() if place[1] < closed}


@dataclass(frozen=True)
class Met:
    """A burst that was met: the plans, the windows that came by (zone, number), and how many rows went early."""

    plans: list[Plan]
    came: set[tuple[int, int]]
    went: int
    truth: dict[tuple[int, int], tuple[int, float]]

    @property
    def shares(self) -> list[float]:
        return [plan.fates["busy"].drop_share if plan.fates else 0.0 for plan in self.plans]

    def longest_gap(self, zone: int) -> int:
        """How many windows of a zone are missing in a row."""
        fared = "".join("x" if place in self.came else "." for place in sorted(self.truth) if place[0] == zone)
        return max(map(len, fared.split("x")))


def meet(spark: SparkSession, folder: Path, qos: jt.QoS) -> Met:
    """Let a run meet the burst, and see that every window that came is as if nothing was shed.

    Trust 8: without `learn` the plans are the same however long this machine takes for a batch.
    """
    rows = batches()
    for number, batch in enumerate(rows):
        frame_of(spark, batch).coalesce(1).write.parquet(str(folder / "trips" / f"{number:02}"))
    table = jt.memory()
    run = jt.start(
        network(qos),
        {"trips": spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1).parquet(f"{folder}/trips/*")},
        {"table": table},
        trigger=TRIGGER,
        checkpoint=str(folder / "checkpoint"),
        # what this machine takes must not decide
        costs=jt.Costs(Profile({"busy": HALF_FULL_US}, {"busy": 0.1}), learn=False, shared=()),
    )
    ended(run, sum(SIZES))
    truth = by_hand(rows)
    came = {(row[0], round(row[1]) // SIZE_S): (row[3], row[4]) for row in map(plain, table.rows)}
    assert len(came) == len(table.rows), "every window comes once"
    assert came == {place: truth[place] for place in came}, "what comes is as if nothing was shed"
    went = sum(sample.arcs["trips"][0] - sample.arcs["trips"][1] for sample, _ in run.history)
    met = Met(logged_plans(folder / "checkpoint"), set(came), went, truth)
    assert len(met.plans) == len(SIZES)
    assert met.shares[:BEFORE] == [0.0] * BEFORE, "before the burst nothing is too much"
    assert all(0.2 < share <= GAP / (GAP + 1) for share in met.shares[LATE]), met.shares
    assert met.shares[-1] == 0.0, "when it is over, nothing is"
    assert went > sum(SIZES) // 4, "rows went at the input"
    return met


def test_a_burst_costs_the_groups_that_are_worth_least(spark: SparkSession, tmp_path: Path) -> None:
    even = [(0, LOW, 0.5), (LOW, ZONES, 0.5)]
    value = jt.Value("zone", [(0, LOW, 0.1), (LOW, ZONES, 1.0)], histogram=even)
    met = meet(spark, tmp_path, jt.QoS(gap=GAP, value=value))
    cells = [plan.fates["busy"].cells for plan in met.plans[LATE]]
    assert all(each is not None and each.column == "zone" and len(set(each.shares)) > 1 for each in cells)
    there, kept = Counter(zone for zone, _ in met.truth), Counter(zone for zone, _ in met.came)
    low, high = (sum(kept[zone] for zone in zones) for zones in (range(LOW), range(LOW, ZONES)))
    assert low < 0.8 * high, f"{low} windows of zones that are worth little, {high} of the others"
    assert high < sum(there[zone] for zone in range(LOW, ZONES)), "the burst was too much for low zones alone"
    assert max(met.longest_gap(zone) for zone in range(LOW, ZONES)) <= GAP


def test_others_make_up_for_groups_that_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Of zone 3, a tenth of all rows, no window may be missing: the loop counts its rows and takes more of others."""
    met = meet(spark, tmp_path, jt.QoS(gap=GAP, gaps={"zone": {3: 0}}))
    for plan, share in zip(met.plans[LATE], met.shares[LATE], strict=True):
        cells = plan.fates["busy"].cells
        assert cells is not None
        assert cells.masses == pytest.approx((0.1, 0.9), abs=0.011)
        assert cells.shares == pytest.approx((0.0, min(share / cells.masses[1], GAP / (GAP + 1))), abs=1e-4)
    assert {place for place in met.truth if place[0] == 3} <= met.came
    assert len(met.came) < 0.8 * len(met.truth)
    assert max(met.longest_gap(zone) for zone in range(ZONES)) <= GAP
