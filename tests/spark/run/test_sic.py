"""SIC on Spark: events, report, ledger, `jettison top`; a restart goes on where it was; windows lose by their share."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.app.commands import jettison
from tests.spark.running import FREE, TRIGGER, ended, log_plans, taxi, trips, until
from tests.spark.windowing import Hand, Row, S, source, trips_of

import jettison as jt
from jettison.network.windows.time_windows import WindowSpec
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.windows.fates import Schedule, extend, keep
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.checkpoint.logs import PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow

pytestmark = pytest.mark.spark

ROWS = 500


def run_batches(spark: SparkSession, folder: Path, batches: int, rows: int) -> tuple[jt.Run, list[jt.BatchEvent]]:
    """Run trips up to so many batches in all; `rows` are still to be read."""
    events: list[jt.BatchEvent] = []
    run = jt.start(
        taxi(),
        {"trips": trips(spark, batches * ROWS, ROWS)},
        {"fares": jt.memory(), "alerts": jt.memory()},
        trigger=TRIGGER,
        checkpoint=folder,
        costs=FREE,
        shedding=jt.Shedding(stw="1 hour"),
        listeners=[events.append],
    )
    return ended(run, rows), events


def followed(window: SicWindow, events: list[jt.BatchEvent]) -> SicWindow:
    """The same from what was measured, batch after batch."""
    for event in events:
        window = window.after(event.sample)
        assert event.sic == pytest.approx(window.all(), rel=1e-4)
        assert list(event.sic.values()) == sorted(event.sic.values())
    return window


def test_sic_goes_on_after_a_restart_and_a_repeated_batch_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    """Batch 2 is broken off before Spark has committed it, as by kill -9; its ledger was written."""
    half = Plan({"trips": Random(0.5), "paid>dear": Random(0.5)})
    log_plans(tmp_path, [Plan(), half, half], {"trips": ROWS})
    run, events = run_batches(spark, tmp_path, 3, 3 * ROWS)
    before = followed(SicWindow(taxi().graph, 3.6e6), events)
    assert 0.6 < before.sic("fares") < 0.75
    assert before.sic("alerts") < before.sic("fares")
    shown = run.report().outputs["alerts"]
    assert shown.sic == shown.lowest_sic == pytest.approx(before.sic("alerts"))
    assert f"{shown.sic:.3f}" in str(run.report())

    over_time = {(row.batch, row.output): row.sic for row in run.queries().collect()}
    told = {(event.sample.batch, name): sic for event in events for name, sic in event.sic.items()}
    assert over_time == pytest.approx(told, abs=1e-6)

    listed = json.loads(jettison("top", str(tmp_path), "--json").stdout)
    assert listed["batch"] == 2
    assert [each["name"] for each in listed["queries"]] == ["alerts", "fares"]
    assert listed["queries"][0]["sic"] == pytest.approx(shown.sic, abs=1e-5)
    assert listed["queries"][0]["lost_per_s"] > listed["queries"][1]["lost_per_s"] > 0
    assert jettison("top", str(tmp_path)).stdout.startswith("batch 2: 2 queries, SIC 0.")

    for name in ("2", ".2.crc"):
        (tmp_path / "spark" / "commits" / name).unlink(missing_ok=True)
    _, again = run_batches(spark, tmp_path, 5, 3 * ROWS)
    assert [event.sample.batch for event in again] == [2, 3, 4]
    first_two = followed(SicWindow(taxi().graph, 3.6e6), events[:2])
    after = followed(first_two, again)
    assert after.read("trips") == 5 * ROWS
    assert after.sic("fares") > before.sic("fares")


def test_a_restart_says_which_outputs_are_new_and_which_sic_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Both were silent: a query with other windows was at 1 again, an output that came later had no note."""

    def notes(size: str, *names: str) -> tuple[str, ...]:
        net = jt.Network("taxi")
        rows = net.source("trips", "trip long, zone int, at timestamp", event_time="at", id=["trip"])
        rows.window(size, by="zone").agg(n="count(*)").output("busy", qos=jt.QoS(on_loss="ignore"))
        for name in names:
            rows.where("zone > 1", name=f"of_{name}").output(name)
        stream = trips(spark, 10 * ROWS, ROWS).selectExpr("trip", "zone", "pickup AS at")
        sinks = {name: jt.memory() for name in ("busy", *names)}
        run = jt.start(net, {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=tmp_path, costs=FREE)
        until(run, lambda: run.report().batches >= 2)
        run.stop()
        return run.report().notes

    assert notes("20 seconds") == ()
    found = notes("30 seconds", "later")
    assert any("output 'later' is new with batch" in note for note in found), found
    assert any("output 'busy': its SIC begins anew" in note for note in found), found


def test_rows_of_sliding_windows_lose_by_the_share_of_windows_that_go(spark: SparkSession, tmp_path: Path) -> None:
    """Against every row: of its windows, those that the fate keeps."""

    def network() -> jt.Network:
        net = jt.Network("taxi")
        windows = source(net).window("30 seconds", slide="10 seconds", by="zone", delay="5 seconds")
        windows.agg(n="count(*)", name="busy").output("out")
        return net

    net, spec = network(), WindowSpec(30 * S, 10 * S)
    fate = Fate(10 * S, extend(Schedule(), None, drop_share=0.5, gap=2, seed="s"))
    plan = Plan(WindowArcs(net.graph).drops({"busy": fate}))
    hand, window = Hand(spark, tmp_path / "shed", net), SicWindow(net.graph, 3.6e6)
    used, read = 0.0, 0
    for number, rows in enumerate(trips_of(4, 60, 20.0, 4.0)):
        measured = hand.run(number, rows, plan)
        assert measured.arrived["busy"] + measured.arcs["trips"][0] - measured.arcs["trips"][1] == len(rows)
        window = window.after(BatchSample(number, 0.0, 1e3, 9e2, {"trips": len(rows)}, **vars(measured)))
        used, read = used + sum(kept_share(row, fate, spec) for row in rows), read + len(rows)
    hand.close()
    assert window.read("trips") == read
    assert window.sic("out") == pytest.approx(used / read, abs=1e-6)
    assert 0.2 < used / read < 0.8


def kept_share(row: Row, fate: Fate, spec: WindowSpec) -> float:
    latest = row[1] // spec.slide_us * spec.slide_us
    starts = [
        latest - back * spec.slide_us for back in range(3) if latest - back * spec.slide_us + spec.size_us > row[1]
    ]
    return sum(keep(fate.schedule, start // spec.slide_us) for start in starts) / len(starts)


def test_results_carry_their_own_share_also_across_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Batch n brings seconds 10 n to 10 n + 10, the second twice as many rows, half of which are dropped. The window
    of the first 20 s closes in the fourth batch, after a restart."""
    files, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    files.mkdir()
    counts = (100, 200, 100, 100, 100)
    for number, count in enumerate(counts):
        seconds = [10 * number + 10 * row / count for row in range(count)]
        lines = [json.dumps({"trip": 1000 * number + row, "us": round(s * S)}) for row, s in enumerate(seconds)]
        path = files / f"{number}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    log_plans(checkpoint, [Plan(), Plan({"trips": Random(0.5)}, delivered={"fares": 0.5})], {"trips": 0})
    for number, count in enumerate(counts[:2]):
        logged = PlanLog(LocalFolder(checkpoint)).read(number)
        assert logged is not None
        PlanLog(LocalFolder(checkpoint)).write(replace(logged, records=Records({"trips": count})))
    sinks = {"fares": jt.memory(), "busy": jt.memory()}
    events: list[jt.BatchEvent] = []

    def go_on(wanted: int) -> None:
        net = jt.Network("own")
        stream = spark.readStream.schema("trip long, us long").option("maxFilesPerTrigger", 1).json(str(files))
        rows = net.source("trips", "trip long, at timestamp", event_time="at", id=["trip"])
        rows.where("trip >= 0", name="paid").output("fares", quality=True)
        ignore = jt.QoS(on_loss="ignore")
        rows.window("20 seconds").agg(n="count(*)", name="counted").output("busy", qos=ignore, quality=True)
        frame = stream.selectExpr("trip", "timestamp_micros(us) AS at")
        run = jt.start(
            net, {"trips": frame}, sinks, trigger=TRIGGER, checkpoint=checkpoint, costs=FREE, listeners=[events.append]
        )
        until(run, lambda: len(events) >= wanted)
        run.stop()

    go_on(2)
    go_on(5)
    shares = {row["_batch"]: row["_sic"] for row in map(as_dict, sinks["fares"].rows)}
    assert shares == {0: 1.0, 1: 0.5, 2: 1.0, 3: 1.0, 4: 1.0}
    kept = events[1].sample.arcs["trips"][1]
    assert 70 <= kept <= 130
    windows = {row["window_start"].timestamp(): (row["n"], row["_sic"]) for row in map(as_dict, sinks["busy"].rows)}
    assert windows[0.0] == (100 + kept, pytest.approx((100 + kept) / 300, abs=0.005))  # batches tell the time


def as_dict(row: Any) -> dict[str, Any]:
    return dict(row.asDict())
