"""What stands around windows that count rows, on Spark: many of them at once, other windows, functions, drops."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.state.test_count_windows import AT, CALLS, KIND, TRIP, ZONE, counted, identities, windows
from tests.spark.windowing import Hand, Row, S, frame_of, plain, source, trips_of

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import WindowDecisions
from jettison.plan.windows.fates import keep
from jettison.spark.batch import calibration
from jettison.spark.batch.processor_time import Meter, Work
from jettison.spark.compile.drops import identity_of, keeps

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_whatever_comes_every_window_is_the_true_one(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Shapes, groups, sizes of batches, rows without a time or twice, and broken batches, all at random."""
    draw = random.Random(seed)
    net = jt.Network("taxi")
    trips = source(net)
    shapes: dict[str, tuple[int, int, tuple[int, ...]]] = {}
    for number in range(4):
        size = draw.randint(1, 12)
        shape = (size, draw.randint(1, size), draw.choice([(), (ZONE,), (KIND,), (ZONE, KIND)]))
        shapes[f"a{number}"] = shape
        by = [["trip", "at", "zone", "kind", "fare"][column] for column in shape[2]]
        windowed = trips.window(f"{size} rows", slide=f"{shape[1]} rows", by=by)
        windowed.agg(CALLS, name=f"a{number}").output(f"out{number}")
    everything = [row for batch in trips_of(1, 150, step_s=40, late_s=40, seed=seed) for row in batch]
    everything = [(*row[:AT], None, *row[AT + 1 :]) if draw.random() < 0.05 else row for row in everything]
    cuts = sorted(draw.sample(range(len(everything)), 4))
    batches = [everything[a:b] for a, b in zip([0, *cuts], [*cuts, len(everything)], strict=True)]
    batches.insert(2, [])
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        run.run(number, batch)
        if draw.random() < 0.3:
            run = run.again()
            run.run(number, draw.sample(batch, len(batch)))
    order = identities(spark, batches)
    for number, shape in enumerate(shapes.values()):
        assert run.rows(f"out{number}") == windows(batches, order, *shape, counted), shape
    run.close()


def test_without_event_time_rows_are_in_the_order_of_their_identity(spark: SparkSession, tmp_path: Path) -> None:
    batches = [[(*row[:AT], None, *row[AT + 1 :]) for row in batch] for batch in trips_of(3, 20, 10, 12)]
    net = jt.Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, zone int, kind string, fare double", id=["trip"])
    fives = trips.window("5 rows", by="kind").agg(CALLS, name="fives")
    fives.output("table")
    fives.window("2 rows", by="kind").agg(last="last(last)", start="first(window_start)", name="twos").output("pairs")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        measured = run.run(number, batch)
        assert measured.outputs["table"].latency_ms is None
    order = identities(spark, batches)
    assert run.rows("table") == windows(batches, order, 5, 5, (KIND,), counted)
    tens = windows(batches, order, 10, 10, (KIND,), lambda rows: (rows[-1][TRIP], 0))
    wanted = [(kind, start // 5, start // 5 + 2, last, start) for kind, start, _, last, _ in tens]
    assert len(wanted) >= 4
    assert run.rows("pairs") == sorted(wanted, key=repr), "results are counted in the order of their last rows"
    run.close()


def test_a_result_takes_the_place_of_its_last_row(spark: SparkSession, tmp_path: Path) -> None:
    """Windows of time over windows of rows, and the other way round."""
    batches = trips_of(5, 40, step_s=20, late_s=18)
    net = jt.Network("taxi")
    trips = source(net)
    fours = trips.window("4 rows", by="kind").agg(last="max_by(at, at)", n="count(*)", name="fours")
    fours.window("10 seconds", by="kind", delay="3 seconds").agg(windows="count(*)", name="tens").output("table")
    fives = trips.window("5 seconds", delay="3 seconds").agg(n="count(*)", name="fives")
    fives.window("3 rows", slide="2 rows").agg(n="sum(n)", name="threes").output("sums")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        assert run.run(number, batch).late == {"fives": 0, "tens": 0}
        if number == 3:
            run = run.again()
            run.run(number, batch)
    mark = max(row[AT] for batch in batches[:-1] for row in batch) - 3 * S
    groups: dict[tuple[str, int], int] = {}
    order = identities(spark, batches)
    for kind, _, _, at in windows(batches, order, 4, 4, (KIND,), lambda rows: (rows[-1][AT],)):
        groups[kind, at // (10 * S) * 10] = groups.get((kind, at // (10 * S) * 10), 0) + 1
    closed = [(kind, float(at), at + 10.0, n) for (kind, at), n in groups.items() if (at + 10) * S <= mark]
    assert len(closed) >= 8
    assert run.rows("table") == sorted(closed, key=repr)

    counts: dict[int, int] = {}
    for batch in batches:
        for row in batch:
            counts[row[AT] // (5 * S)] = counts.get(row[AT] // (5 * S), 0) + 1
    ended = [n for slot, n in sorted(counts.items()) if 5 * (slot + 1) * S <= mark]
    sums = [(at, at + 3, sum(ended[at : at + 3])) for at in range(0, len(ended) - 2, 2)]
    assert len(sums) >= 5
    assert run.rows("sums") == sorted(sums, key=repr)
    run.close()


def test_functions_of_the_users_own_get_rows_in_order(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(3, 20, step_s=10, late_s=12)
    net = jt.Network("taxi")
    calls = {
        "trips": jt.whole_window(lambda rows: list(rows["trip"]), columns="trip", type="array<bigint>"),
        "joined": jt.aggregate(
            init=str, incr=lambda s, t: f"{s},{t}", merge=lambda a, b: a + b, final=str, columns="trip", type="string"
        ),
        "bad": jt.whole_window(lambda rows: 1 / (max(rows["trip"]) % 2), columns="trip", type="double"),
        "n": "count(*)",
    }
    source(net).window("6 rows", slide="4 rows").agg(calls, name="own").output("table")
    run = Hand(spark, tmp_path, net)
    failed = 0
    for number, batch in enumerate(batches):
        threw = run.run(number, batch).failed.get("own")
        failed += 0 if threw is None else threw.windows
    order = identities(spark, batches)
    wanted = windows(batches, order, 6, 4, (), lambda rows: (",".join(str(row[TRIP]) for row in rows),))
    found = [(row.window_start, row.window_end, row.joined.lstrip(",")) for row in run.sinks["table"].rows]
    assert sorted(found, key=repr) == wanted
    shown = [",".join(map(str, row.trips)) for row in run.sinks["table"].rows]
    assert shown == [text for *_, text in found]
    even = sum(max(map(int, text.split(","))) % 2 == 0 for *_, text in wanted)
    assert failed == even == sum(row.bad is None for row in run.sinks["table"].rows)
    run.close()


def test_dropped_windows_are_missing_and_the_others_are_right(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(5, 40, step_s=20, late_s=3)
    net = jt.Network("taxi")
    fours = source(net).window("4 rows", slide="2 rows", by="kind").agg(CALLS, name="fours")
    fours.output("table", qos=jt.QoS(gap=3))
    fours.select("window_start AS at").output("starts")
    decisions = WindowDecisions(net.graph)
    plans = [Plan(decisions.arcs.drops(decisions.fates({"fours": share}))) for share in (0.0, 0.3, 0.75, 0.5, 0.75)]
    assert set(plans[1].drops) == {"fours>table", "fours>select1"}
    run = Hand(spark, tmp_path, net)
    came: dict[int, list[Row]] = {}
    for number, batch in enumerate(batches):
        measured = run.run(number, batch, plans[number])
        if number == 2:
            run = run.again()
            assert run.run(number, batch, plans[number]).arcs == measured.arcs
        came[number] = [plain(row) for row in run.sinks["table"].batches.get(number, [])]
    order = identities(spark, batches)
    wanted: list[Row] = []
    for number, plan in enumerate(plans):
        new = set(windows(batches[: number + 1], order, 4, 2, (KIND,), counted))
        new -= set(windows(batches[:number], order, 4, 2, (KIND,), counted))
        fate = plan.fates.get("fours")
        kept = [row for row in new if fate is None or keep(fate.schedule, row[1] // 2)]
        assert sorted(came[number], key=repr) == sorted(kept, key=repr)
        wanted += kept
    everything = windows(batches, order, 4, 2, (KIND,), counted)
    assert len(everything) // 4 < len(wanted) < 3 * len(everything) // 4
    assert len(run.rows("starts")) == len(wanted)
    for kind in ("cab", "bus"):
        starts = sorted(row[1] // 2 for row in wanted if row[0] == kind)
        assert max(b - a - 1 for a, b in pairwise(starts)) <= 3
    run.close()


def test_where_loss_is_ignored_the_rows_that_are_left_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(3, 60, step_s=20, late_s=3)
    net = jt.Network("taxi")
    source(net).window("5 rows").agg(CALLS, name="fives").output("table", qos=jt.QoS(on_loss="ignore"))
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        run.run(number, batch, Plan({"trips": Random(0.5)}))
    rows = frame_of(spark, [row for batch in batches for row in batch]).selectExpr("*", identity_of(["trip"]))
    kept = {row.trip for row in rows.where(keeps("trips", Random(0.5))).collect()}
    left: list[Sequence[Row]] = [[row for row in batch if row[TRIP] in kept] for batch in batches]
    assert run.rows("table") == windows(left, identities(spark, batches), 5, 5, (), counted)
    assert 10 < len(run.rows("table")) < 25
    run.close()


def test_they_are_calibrated(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    net = jt.Network("taxi")
    source(net).window("1000 rows", slide="50 rows", by="zone").agg(n="count(*)", name="many").output("table")
    frame = frame_of(spark, trips_of(1, 600, 10, 10)[0])
    calls = iter(range(1, 100))
    monkeypatch.setattr(Meter, "_work", lambda *_: Work(100.0 * next(calls), 0.0, 0.0, 1))
    found = calibration.calibrate(net.graph, {"trips": frame}, {"trips": 600}, {}).profile
    assert found.passes("many") == pytest.approx(1 / 50), "however few of the sample's groups fill a window"
    assert found.cost("many") == pytest.approx(1e5 / 600)
