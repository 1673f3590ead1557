"""Runs that end badly, in a process of their own: a full disk, a session that is stopped, a JVM that is gone."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.conftest import ROOT
from tests.spark import running

import jettison as jt
from jettison.errors import CheckpointError
from jettison.spark.checkpoint.checkpoint import Checkpoint

pytestmark = pytest.mark.spark

SMALL = "8m"
IN_A_NAMESPACE = ["unshare", "--mount", "--map-root-user", "--user"]


def mounted(folder: Path, command: str) -> list[str]:
    """A command that runs with a small disk of its own mounted there, which nobody else sees."""
    return [*IN_A_NAMESPACE, "sh", "-c", f"mount -t tmpfs -o size={SMALL} tmpfs '{folder}' && {command}"]


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(mounted(folder, "true"), capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.long
def test_trust_13_and_15_a_full_disk_a_stopped_session_and_a_jvm_that_is_gone(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("a disk of its own cannot be mounted here")
    driver = f"exec '{sys.executable}' -m tests.spark.ending_driver '{tmp_path}'"
    done = subprocess.run(mounted(tmp_path, driver), capture_output=True, text=True, cwd=ROOT, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])

    # 13: the first cause is shown, in few lines, everything is released, and a start with more space goes on
    for failed in (seen["full"], seen["full_stop"]):
        assert failed["raised"] in ("SinkError", "CheckpointError"), failed
        assert "No space left" in failed["text"]
        assert failed["lines"] <= 40, failed  # it was 120
        assert "make room on the disk of" in failed["text"], failed
        assert str(tmp_path) in failed["text"], failed
        assert failed["java"] == 0
    assert seen["rows"] == [3000, 3000]
    assert seen["batches"] == [1, 2]

    # 15: a session that was stopped while nothing ran
    assert seen["active_after_spark_stop"] == {"gave": False}
    for asked in (seen["idle"], seen["gone"]):
        assert asked["active"] == asked["again"] == {"gave": False}
        assert asked["report"]["gave"].startswith("network full: ")
        assert asked["ledger"]["raised"] == "StartError"
        assert asked["await"]["raised"] == "SessionError"
        assert "its Spark session has ended while it ran" in asked["await"]["text"]
        assert asked["stop"] == {"gave": None}


def test_trust_13_closing_releases_whatever_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk when a run is closed: what was learned cannot be saved, all else is released."""
    net = jt.Network("full")
    net.source("trips", **running.TRIPS).output("out")
    stream = running.trips(spark, 500, 500)
    run = jt.start(
        net,
        {"trips": stream},
        {"out": jt.memory()},
        trigger=running.TRIGGER,
        checkpoint=str(tmp_path),
        costs=running.FREE,
        metrics=0,
    )
    running.until(run, lambda: run.report().rows_in == 500)

    def full(*_: object, **__: object) -> None:
        with Path("/dev/full").open("w") as file:
            file.write("x")

    monkeypatch.setattr(Checkpoint, "remember", full)
    assert run.metrics is not None
    monkeypatch.setattr(run.metrics, "close", full)
    with pytest.raises(CheckpointError, match="in use"):
        Checkpoint(str(tmp_path), run.graph, spark)
    run.stop()
    Checkpoint(str(tmp_path), run.graph, spark).close()
    told = [
        record.getMessage() for record in caplog.records if record.name == "jettison" and record.levelname == "WARNING"
    ]
    assert [each.partition(" failed")[0] for each in told] == [
        "closing the metrics server",
        "saving the costs (the next start measures them anew)",
    ]
    assert all("No space left on device" in each for each in told)
    run.stop()  # a second time does no harm


@pytest.mark.parametrize("asked", ["await_termination", "stop"])
def test_trust_22_a_run_that_fails_between_two_batches_does_not_say_that_it_has_stopped(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: str
) -> None:
    """Spark finds that another query writes into its checkpoint, before it hands the batch over."""
    caplog.set_level("INFO", "jettison")
    net = jt.Network("between")
    net.source("trips", **running.TRIPS).output("out")
    run = jt.start(
        net,
        {"trips": running.trips(spark, 5000, 10)},
        {"out": jt.memory()},
        trigger=running.TRIGGER,
        checkpoint=str(tmp_path),
        costs=running.FREE,
    )
    running.until(run, lambda: run.report().batches > 0)
    for batch in range(3, 100):
        (tmp_path / "spark" / "offsets" / f"{batch}").write_text("v1\n{}\n0")
    if asked == "stop":
        deadline = time.monotonic() + 60
        while run.is_active and time.monotonic() < deadline:
            time.sleep(0.05)
    with pytest.raises(jt.SourceError, match="network 'between' stopped"):
        getattr(run, asked)()
    last = [record for record in caplog.records if record.name == "jettison"][-1]
    assert last.levelname == "ERROR"
    assert last.getMessage().startswith("network 'between' has failed: ")


def test_trust_15_a_sink_that_hangs_does_not_make_stop_hang(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jettison.spark.run.run._BREAKING_OFF_S", 1.0)
    reached, released = threading.Event(), threading.Event()

    def hang(rows: DataFrame, batch: int) -> None:
        reached.set()
        assert released.wait(300)

    net = jt.Network("hangs")
    net.source("trips", **running.TRIPS).output("out")
    run = jt.start(
        net,
        {"trips": running.trips(spark, 500, 500)},
        {"out": hang},
        trigger=running.TRIGGER,
        checkpoint=str(tmp_path),
        costs=running.FREE,
    )
    try:
        assert reached.wait(300)
        began = time.monotonic()
        with pytest.raises(jt.SinkError, match=r"has not ended, though stop\(\) waited 0.2 s .* hangs.* mend the sink"):
            run.stop(patience_s=0.2)
        assert time.monotonic() - began < 10, "patience, and as long again for the batch to end, but not 10 s"
        with pytest.raises(CheckpointError, match="in use"):
            Checkpoint(str(tmp_path), run.graph, spark)
    finally:
        released.set()
    deadline = time.monotonic() + 60
    free = False
    while not free and time.monotonic() < deadline:  # it is closed by a thread of its own
        try:
            Checkpoint(str(tmp_path), run.graph, spark).close()
            free = True
        except CheckpointError:
            time.sleep(0.05)
    assert free


def test_trust_15_ctrl_c_ends_a_run_between_two_batches(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = jt.Network("interrupted")
    net.source("trips", **running.TRIPS).output("out")
    sink = jt.memory()
    run = jt.start(
        net,
        {"trips": running.trips(spark, 50_000, 10)},
        {"out": sink},
        trigger=running.TRIGGER,
        checkpoint=str(tmp_path),
        costs=running.FREE,
    )
    running.until(run, lambda: run.report().batches > 0)
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        run.await_termination(60)
    assert caught.value.__context__ is None
    assert not run.is_active
    assert run.query.exception() is None
    assert [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []
    run.stop()  # as programs do that catch it
