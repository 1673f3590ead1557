"""Number 14: damaged and deleted files of a checkpoint. What is a cache is made anew; all else is refused by name."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended, logged_plans, taxi, trips, until

import jettison as jt
from jettison.errors import CheckpointError
from jettison.spark.checkpoint.logs import Ledger
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.statistics.profile import Profile

pytestmark = [pytest.mark.spark, pytest.mark.long]


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def uncommit(checkpoint: Path, batch: int) -> None:
    """As if the run had been killed before Spark committed a batch."""
    for name in (str(batch), f".{batch}.crc"):
        (checkpoint / "spark" / "commits" / name).unlink(missing_ok=True)


def windows() -> jt.Network:
    net = jt.Network("windows")
    rows = net.source("trips", "trip long, pickup timestamp, zone int, fare double", event_time="pickup", id=["trip"])
    rows.window("1 second", by="zone").agg(n="count(*)", name="busy").output("out")
    return net


def refused(run: jt.Run) -> str:
    with pytest.raises(CheckpointError) as caught:
        until(run, lambda: False)
    return str(caught.value)


def test_trust_14_caches_are_made_anew_and_what_is_needed_is_refused(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"

    def started(rows: int, profile: Profile | None = FREE) -> jt.Run:
        sinks = {"fares": jt.parquet(str(out)), "alerts": jt.memory()}
        stream = trips(spark, rows, 100)
        return jt.start(
            taxi(),
            {"trips": stream},
            sinks,
            trigger=TRIGGER,
            checkpoint=str(checkpoint),
            costs=jt.Costs(profile, learn=False),
        )

    ended(started(200), 200)
    for name in ("profile.json", "shared.json"):
        cut_off(checkpoint / name)
    for below in ("plans", "ledger", "spark/offsets"):
        (checkpoint / below / "1.json.bak").write_text("half of a fi")
    with caplog.at_level(logging.WARNING, logger="jettison"):
        ended(started(400, profile=None), 200)
    assert "profile.json is damaged" in caplog.text
    assert "shared.json is damaged" in caplog.text
    assert Ledger(LocalFolder(checkpoint)).files.batches() == [0, 1, 2, 3]

    uncommit(checkpoint, 3)
    plan = checkpoint / "plans" / "3.json"
    text = plan.read_bytes()
    cut_off(plan)
    said = refused(started(500))
    assert f"the plan of batch 3, file {plan}, is damaged" in said

    plan.unlink()
    said = refused(started(500))
    assert "batch 3 has run" in said
    assert f"{checkpoint}/ledger/3.json is of it" in said
    assert f"Restore {plan} from a copy" in said
    (checkpoint / "ledger" / "3.json").unlink()
    assert f"{out}/batch=3 is of it" in refused(started(500))

    plan.write_bytes(text)
    ended(started(500), 200)
    assert len(logged_plans(checkpoint)) == 5
    assert set(json.loads((checkpoint / "shared.json").read_text())) == {"shared", "crc32"}, "made anew"
    uncommit(checkpoint, 4)
    for path in (checkpoint / "plans" / "4.json", checkpoint / "ledger" / "4.json"):
        path.unlink()
    (out / "batch=4").rename(tmp_path / "elsewhere")
    ended(started(500), 100)  # nothing shows that it ran: a crash between Spark's record and ours

    for name, remedy in (("run.json", "Restore it"), ("network.json", "delete it if")):
        path = checkpoint / name
        text = path.read_bytes()
        cut_off(path)
        with pytest.raises(CheckpointError, match=rf"file {path}, is damaged .*{remedy}"):
            started(500)
        path.write_bytes(text)


def test_trust_14_what_was_decided_about_open_windows_is_not_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def started(rows: int) -> jt.Run:
        return jt.start(
            windows(),
            {"trips": trips(spark, rows, 100)},
            {"out": jt.memory()},
            trigger=TRIGGER,
            checkpoint=str(checkpoint),
            costs=FREE,
        )

    ended(started(200), 200)
    plan = checkpoint / "plans" / "1.json"
    text = plan.read_bytes()
    plan.unlink()
    said = refused(started(300))
    assert f"{plan}, the plan of the batch before batch 2, is gone" in said
    assert "windows that are open" in said
    assert "Restore it from a copy" in said
    plan.write_bytes(text)
    ended(started(300), 100)

    uncommit(checkpoint, 2)
    (checkpoint / "plans" / "2.json").unlink()
    (checkpoint / "ledger" / "2.json").unlink()
    assert f"{checkpoint}/state/busy/2.json is of it" in refused(started(300))


def keeping_two() -> jt.Network:
    """A join of streams and windows of rows, both with open state after every batch."""
    net = jt.Network("two")
    schema = "trip long, pickup timestamp, zone int, fare double"
    rows = net.source("trips", schema, event_time="pickup", id=["trip"])
    cards = net.source("cards", schema, event_time="pickup", id=["trip"]).select("trip", "fare AS paid")
    rows.join(cards, on="trip", within="1 hour", name="pairs").output("both")
    rows.window("70 rows", by="zone").agg(n="count(*)", name="rows").output("counts")
    return net


def test_trust_14_state_of_joins_and_rows_that_is_gone_or_has_a_flipped_bit_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    state = tmp_path / "checkpoint" / "state"

    def started(rows: int) -> jt.Run:
        streams = {name: trips(spark, rows, 50) for name in ("trips", "cards")}
        sinks = {name: jt.memory() for name in ("both", "counts")}
        where = str(tmp_path / "checkpoint")
        return jt.start(
            keeping_two(), streams, sinks, trigger=TRIGGER, checkpoint=where, costs=jt.Costs(FREE, learn=False)
        )

    ended(started(50), 100)
    for kind, name, below in (("join", "pairs", "left/0"), ("aggregate", "rows", "0-0")):
        part = next((state / name / below).glob("*.parquet"))
        content = part.read_bytes()
        part.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
        said = refused(started(100))
        assert f"{kind} {name!r}: {part.parent}, a part of what it keeps, is damaged (the checksum of" in said
        part.write_bytes(content)
        record = state / name / "0.json"
        text = record.read_bytes()
        record.unlink()
        assert f"{kind} {name!r}: {record}, what it keeps after batch 0, is gone" in refused(started(100))
        record.write_bytes(text)
    ended(started(100), 100)
