"""Window drops on Spark: what is delivered is what the unshed run delivers, without the windows that fate drops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import Observation, SparkSession
from tests.spark.running import TRIGGER, ended, forced
from tests.spark.windowing import TRIPS, Hand, Row, S, frame_of, plain, source, trips_of

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.network.event_time.lookahead import Sight
from jettison.plan.drops.window import Fate, Resolved, Window
from jettison.plan.plan import Plan
from jettison.plan.refine.window_lookahead import resolve_window_drops
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import Schedule, Segment, extend, keep
from jettison.plan.windows.need_bits import needed_bits
from jettison.plan.windows.needs import last_touched
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.raw_rows import dropped_raw
from jettison.spark.run.run import Run
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.spark

Change = tuple[float, int]
"""From a batch on: the share of windows to drop, and how many in a row."""


def scheduled(
    net: jt.Network, batches: Sequence[Sequence[Row]], changes: dict[int, dict[str, Change]]
) -> tuple[list[Plan], dict[str, Fate]]:
    """The plans of these batches, as a controller makes them, and the fates that come of it."""
    arcs = WindowArcs(net.graph)
    slides = {each.name: each.window.slide_us for each in net.graph.aggregates}
    fates: dict[str, Fate] = {}
    plans, newest = [], None
    for number, batch in enumerate(batches):
        for name, (share, gap) in changes.get(number, {}).items():
            before = fates[name].schedule if name in fates else Schedule()
            now = None if newest is None else last_touched(newest, slides[name])
            fates[name] = Fate(slides[name], extend(before, now, drop_share=share, gap=gap, seed="s"))
        plan = Plan(arcs.drops(fates))
        assert Plan.from_json(plan.to_json()) == plan
        plans.append(plan)
        newest = max([newest or 0, *(row[1] for row in batch)])
    return plans, fates


def both(
    spark: SparkSession, folder: Path, build: Callable[[], jt.Network], batches: list[list[Row]], plans: list[Plan]
) -> tuple[Hand, Hand, list[tuple[int, int]]]:
    """The network run without shedding and with it, broken off in the middle; and what came and stayed at the input."""
    full = Hand(spark, folder / "full", build())
    shed = Hand(spark, folder / "shed", build())
    kept = []
    for number, batch in enumerate(batches):
        full.run(number, batch)
        measured = shed.run(number, batch, plans[number])
        if number == len(batches) // 2:  # a new process does it again
            shed = shed.again()
            assert shed.run(number, batch, plans[number]).arcs == measured.arcs
        kept.append(measured.arcs["trips"])
    return full, shed, kept


def kept_of(rows: Sequence[Row], fate: Fate, start: int) -> list[Row]:
    """The rows whose window the fate keeps; `start` is the column of the window's start, in seconds."""
    return [row for row in rows if keep(fate.schedule, round(row[start] * S) // fate.slide_us)]


def longest_gap(rows: Sequence[Row], everything: Sequence[Row], slide_s: int, start: int) -> int:
    """How many windows in a row are missing between two that came, of those that the unshed run has."""
    came = sorted({round(row[start]) // slide_s for row in rows})
    first, last = (edge(round(row[start]) // slide_s for row in everything) for edge in (min, max))
    return max(after - before - 1 for before, after in pairwise([first - 1, *came, last + 1]))


def test_kept_windows_are_as_if_nothing_was_shed(spark: SparkSession, tmp_path: Path) -> None:
    def build() -> jt.Network:
        net = jt.Network("taxi")
        paid = source(net).where("fare > 5", name="paid")
        busy = paid.window("10 seconds", by="zone", delay="4 seconds").agg(n="count(*)", sum="sum(fare)", name="busy")
        busy.output("table")
        busy.where("n > 1", name="more").output("alerts")
        return net

    batches = trips_of(9, 60, step_s=13, late_s=12)  # some come later than the delay
    changes = {0: {"busy": (0.6, 3)}, 3: {"busy": (0.75, 3)}, 5: {"busy": (0.3, 2)}, 7: {"busy": (0.0, 2)}}
    plans, fates = scheduled(build(), batches, changes)
    assert set(plans[0].drops) == {"trips", "busy>table", "busy>more"}
    full, shed, kept = both(spark, tmp_path, build, batches, plans)
    everything = full.rows("table")
    wanted = kept_of(everything, fates["busy"], 1)
    assert 10 < len(wanted) < 0.8 * len(everything)
    assert shed.rows("table") == wanted
    assert shed.rows("alerts") == kept_of(full.rows("alerts"), fates["busy"], 1)
    assert longest_gap(wanted, everything, 10, 1) <= 3
    assert kept[0] == (60, 60), "in the first batch nothing is known of times"
    assert sum(rows - passed for rows, passed in kept) > 50, "rows went before they were parsed"
    full.close()
    shed.close()


def test_a_batch_that_gets_further_than_is_in_sight(spark: SparkSession, tmp_path: Path) -> None:
    """Hours of silence, then trips: nothing goes early in that batch, but in the next ones; results are the same."""

    def build() -> jt.Network:
        net = jt.Network("taxi")
        busy = source(net).window("10 seconds", by="zone", delay="4 seconds").agg(n="count(*)", name="busy")
        busy.output("table")
        return net

    jumps = 5
    batches = [
        [(trip, at + (30_000 * S if number >= jumps else 0), *others) for trip, at, *others in batch]
        for number, batch in enumerate(trips_of(9, 60, step_s=13, late_s=12))
    ]
    plans, fates = scheduled(build(), batches, {0: {"busy": (0.75, 3)}})
    full, shed, kept = both(spark, tmp_path, build, batches, plans)
    everything = full.rows("table")
    assert 5 < len(everything) - len(shed.rows("table")) < len(everything) - 5
    assert shed.rows("table") == kept_of(everything, fates["busy"], 1)
    passed = [passed for _, passed in kept]
    assert passed[jumps] == 60
    assert max(passed[jumps - 1], passed[jumps + 1]) < 60
    full.close()
    shed.close()


@pytest.mark.long
def test_nested_windows_with_outputs_between(spark: SparkSession, tmp_path: Path) -> None:
    """An aggregate of results decides what those above it need, and an output in between has a fate of its own."""

    def build() -> jt.Network:
        net = jt.Network("taxi")
        trips = source(net)
        sixes = trips.window("6 seconds", slide="3 seconds", by="kind", delay="4 seconds").agg(
            n="count(*)", sum="sum(fare)", name="sixes"
        )
        sixes.output("spans")
        busy = sixes.where("n > 2", name="busy")
        busy.window("12 seconds", by="kind").agg(times="count(*)", most="max(sum)", name="dozens").output("dozens_out")
        busy.output("busy_out")
        return net

    batches = trips_of(10, 50, step_s=12, late_s=13)
    changes = {
        0: {"sixes": (0.8, 6), "dozens": (0.6, 2)},
        4: {"sixes": (6 / 7, 6), "dozens": (0.5, 1)},
        7: {"sixes": (0.5, 6), "dozens": (2 / 3, 2)},
    }
    plans, fates = scheduled(build(), batches, changes)
    assert set(plans[0].drops) == {"trips", "sixes>spans", "busy>dozens", "busy>busy_out", "dozens>dozens_out"}
    full, shed, kept = both(spark, tmp_path, build, batches, plans)
    for output, name in (("spans", "sixes"), ("busy_out", "sixes"), ("dozens_out", "dozens")):
        everything = full.rows(output)
        wanted = kept_of(everything, fates[name], 1)
        assert 3 <= len(wanted) < len(everything)
        assert shed.rows(output) == wanted
    assert longest_gap(shed.rows("spans"), full.rows("spans"), 3, 1) <= 6
    assert longest_gap(shed.rows("dozens_out"), full.rows("dozens_out"), 12, 1) <= 2
    assert sum(rows - passed for rows, passed in kept) > 30
    full.close()
    shed.close()


def test_what_comes_to_drops_before_slices_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Slices tell what passed; what came is counted once, behind the operator that both branches read."""
    net = jt.Network("taxi")
    paid = source(net).where("fare > 5", name="paid")
    paid.window("6 seconds", by="zone", delay="4 seconds").agg(n="count(*)", name="sixes").output("sixes_out")
    paid.window("9 seconds", by="kind", delay="4 seconds").agg(n="count(*)", name="nines").output("nines_out")
    batches = trips_of(7, 60, step_s=13, late_s=12)
    plans, _ = scheduled(net, batches, {0: {"sixes": (0.75, 3), "nines": (2 / 3, 2)}})
    hand, arcs, sight = Hand(spark, tmp_path, net), WindowArcs(net.graph), Sight()
    went = dict.fromkeys(("trips", "paid>sixes", "paid>nines"), 0)
    for number, batch in enumerate(batches):
        marks = hand.state.marks(number)
        ready = resolve_window_drops(arcs, plans[number], marks, sight.before(marks.newest_us, len(batch)))

        def passing(rows: Sequence[Row], arc: str, ready: Plan = ready) -> list[Row]:
            drop = ready.drops.get(arc)
            needed = drop.resolved.needed if isinstance(drop, Window) and drop.resolved else None
            return [row for row in rows if needed is None or needed.at(row[1])]

        kept = passing(batch, "trips")
        came = [row for row in kept if row[4] is not None and row[4] > 5]
        found = hand.run(number, batch, plans[number]).arcs
        assert found["trips"] == (len(batch), len(kept))
        for arc in ("paid>sixes", "paid>nines"):
            assert found[arc] == (len(came), len(passing(came, arc)))
        went = {arc: went[arc] + found[arc][0] - found[arc][1] for arc in went}
    assert min(went.values()) > 10, went
    hand.close()


def test_beside_an_output_of_rows_drops_stand_on_the_branches(spark: SparkSession, tmp_path: Path) -> None:
    """All rows go to one output, and windows that share slices to others: rows are dropped on the way to the latter."""

    def build() -> jt.Network:
        net = jt.Network("taxi")
        trips = source(net)
        trips.where("fare > 40").output("dear")
        shape = {"by": "zone", "delay": "10 seconds"}
        trips.window("20 seconds", slide="10 seconds", **shape).agg(n="count(*)", name="a").output("as")
        trips.window("10 seconds", **shape).agg(n="count(*)", name="b").output("bs")
        return net

    batches = trips_of(8, 40, step_s=14, late_s=10)
    plans, fates = scheduled(build(), batches, {0: {"a": (0.75, 4), "b": (0.75, 4)}, 4: {"a": (0.8, 4)}})
    assert set(plans[0].drops) == {"trips>a", "trips>b", "a>as", "b>bs"}
    full = Hand(spark, tmp_path / "full", build())
    shed = Hand(spark, tmp_path / "shed", build())
    passed = []
    for number, batch in enumerate(batches):
        full.run(number, batch)
        passed.append(shed.run(number, batch, plans[number]).arcs.get("trips>a", (0, 0)))
    assert shed.rows("dear") == full.rows("dear")
    for output, name in (("as", "a"), ("bs", "b")):
        wanted = kept_of(full.rows(output), fates[name], 1)
        assert 3 <= len(wanted) < len(full.rows(output))
        assert shed.rows(output) == wanted
    assert sum(rows - kept for rows, kept in passed) > 10
    parts = [path.name for path in (tmp_path / "shed" / "a").iterdir() if path.name.startswith("7-")]
    assert parts == ["7-0"], "they need the same, and still share slices"
    full.close()
    shed.close()


def test_an_output_is_closed_and_comes_back_with_whole_windows(spark: SparkSession, tmp_path: Path) -> None:
    def build() -> jt.Network:
        net = jt.Network("taxi")
        source(net).window("10 seconds", delay="4 seconds").agg(n="count(*)", name="busy").output("table")
        return net

    batches = trips_of(8, 40, step_s=13, late_s=4)
    plans, fates = scheduled(build(), batches, {2: {"busy": (1.0, 1)}, 5: {"busy": (0.0, 1)}})
    full, shed, _ = both(spark, tmp_path, build, batches, plans)
    wanted = kept_of(full.rows("table"), fates["busy"], 0)
    assert 2 <= len(wanted) <= len(full.rows("table")) - 3
    assert shed.rows("table") == wanted
    full.close()
    shed.close()


def nested() -> jt.Network:
    """Thesis figure 4.1, in seconds: spans of prices, and how often they are wide."""
    net = jt.Network("stocks")
    spans = (
        source(net)
        .where("fare > 3", name="traded")
        .window("4 seconds", by="kind", delay="3 seconds")
        .agg(high="max(fare)", low="min(fare)", name="spans")
    )
    wide = spans.where("high - low > 20", name="wide")
    wide.window("16 seconds", slide="8 seconds", by="kind").agg(n="count(*)", name="counted").output("extremes")
    return net


COSTS = Profile({"trips": 1000.0, "traded": 1000.0, "spans": 1000.0}, {"spans": 0.1})


def test_an_overload_drops_windows_and_when_it_is_over_none(spark: SparkSession, tmp_path: Path) -> None:
    """The control loop with a burst in the middle, and with a new process in the middle of that."""
    sizes = [20, 20, 60, 60, 60, 60, 60, 60, 60, 60, 20, 20, 20, 20, 20]
    rows = [batch[:size] for batch, size in zip(trips_of(len(sizes), 60, step_s=9, late_s=10), sizes, strict=True)]
    settings = Settings(trigger_ms=100.0, headroom=1.0, learn=False)
    full, shed = Hand(spark, tmp_path / "full", nested()), Hand(spark, tmp_path / "shed", nested())
    controller = Controller(shed.graph, settings, COSTS)
    plans: list[Plan] = []
    for number, batch in enumerate(rows):
        full.run(number, batch)
        plans.append(controller.decide({"trips": len(batch)}, 100.0 * number, marks=shed.state.marks(number)))
        shed.run(number, batch, plans[-1])
        if number == 6:
            shed = shed.again()
            controller = Controller(shed.graph, settings, COSTS)
            controller.resume(Plan.from_json(plans[-1].to_json()))
    assert not plans[1].fates
    assert all(0.2 < plan.fates["counted"].drop_share < 1 for plan in plans[4:9])
    assert all(plan.fates.get("counted", Fate(1)).drop_share == 0 for plan in plans[-2:])
    everything, wanted = full.rows("extremes"), []
    for number, plan in enumerate(plans):
        closed = sorted(map(plain, full.sinks["extremes"].batches.get(number, [])), key=repr)
        wanted += kept_of(closed, plan.fates["counted"], 1) if plan.fates else closed
    assert 4 <= len(wanted) < len(everything)
    assert shed.rows("extremes") == sorted(wanted, key=repr)
    gap = decisions_of(shed.graph).by_aggregate["counted"].gap
    assert longest_gap(wanted, everything, 8, 1) <= gap
    full.close()
    shed.close()


def test_what_was_decided_survives_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is stopped goes on with the windows that it has begun, kept or not, also under another plan."""
    batches = trips_of(8, 40, step_s=11, late_s=12)
    shares = iter([0.3, 0.6, 0.6, 0.8, 0.5, 0.7, 0.7, 0.0])

    def asking(controller: Controller) -> Plan:
        decisions, asked = decisions_of(controller.graph), {"busy": next(shares)}
        return Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "forced", row=1)

    monkeypatch.setattr(Controller, "decide", forced(asking))
    table = jt.memory()

    def go() -> Run:
        net = jt.Network("taxi")
        busy = source(net).window("5 seconds", by="zone", delay="3 seconds").agg(n="count(*)", name="busy")
        busy.output("table", qos=jt.QoS(gap=4))
        stream = spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/trips/*")
        where = str(tmp_path / "checkpoint")
        return ended(jt.start(net, {"trips": stream}, {"table": table}, trigger=TRIGGER, checkpoint=where), 160)

    batch_count = 0
    for part in (batches[:4], batches[4:]):
        for batch in part:
            frame_of(spark, batch).coalesce(1).write.parquet(str(tmp_path / "trips" / str(batch_count)))
            batch_count += 1
        run = go()
        assert len(run.history) == 4
        assert run.history[0][1].reason == "forced"
    unshed: dict[Row, int] = {}
    for batch in batches:
        for _, at, zone, _, _ in batch:
            unshed[(zone, at // (5 * S))] = unshed.get((zone, at // (5 * S)), 0) + 1
    got = {(row[0], round(row[1]) // 5): row[3] for row in map(plain, table.rows)}
    assert 5 <= len(got) < 0.8 * len(unshed)
    for key, count in got.items():
        assert count == unshed[key], "every window that came is whole"
    closed = range(0, (max(row[1] for row in batches[6]) - 3 * S) // (5 * S))
    missing = [at for at in closed if not any(key[1] == at for key in got) and any(key[1] == at for key in unshed)]
    runs = "".join("." if at in missing else "x" for at in closed).split("x")
    assert max(map(len, runs)) <= 4


def test_of_a_payload_the_time_is_parsed_alone(spark: SparkSession) -> None:
    """What no kept window needs goes before the record is parsed; what has no time that can be read stays."""
    net = jt.Network("taxi")
    trips = net.source("trips", "trip long, at timestamp", event_time="at", id=["trip"], payload="json")
    trips.window("10 seconds").agg(n="count(*)", name="busy").output("table")
    fate = Fate(10 * S, Schedule((Segment(0, 0.5, 1, "s"),)))
    arcs = WindowArcs(net.graph)
    needed = needed_bits(arcs.needs("trips", {"busy": fate}, 0, 40 * S), 0, 40 * S, 10 * S, 12 * S)
    assert needed.sure_us == (20 * S, 30 * S)
    drops = arcs.drops({"busy": fate})
    plan = Plan({**drops, "trips": replace(drops["trips"], resolved=Resolved(needed=needed))})
    seconds = (-5, 5, 9.999999, 10, 19, 20, 25, 35, 45)
    rows = [(f'{{"trip": {n}, "at": "{_text(at)}"}}',) for n, at in enumerate(seconds)]
    raw = spark.createDataFrame([*rows, ('{"trip": 100}',), ("no json",)], "value string")
    newest = Observation()
    trips_source = net.graph.sources[0]
    passed = dropped_raw(trips_source, raw, raw.columns, plan, ExpressionCache(), newest=newest)
    assert passed.count() == 8  # those of windows -1, 0, 2 and 4, and the two without a time
    assert newest.get["newest"] == 45 * S, "what is shed counts too"
    shed = dropped_raw(trips_source, raw, raw.columns, plan, ExpressionCache(), shed=True)
    assert sorted(row.value for row in shed.collect()) == [rows[3][0], rows[4][0], rows[7][0]]


def _text(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
