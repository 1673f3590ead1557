"""Number 16: checkpoints on Hadoop's file systems. Replacing a file is one step, and one run at a time holds a folder.

There is no HDFS here. `viewfs` is a real file system of Hadoop's, which mounts a local folder. A checkpoint at `file://`
stays a URI where Spark's files are elsewhere by default.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended, taxi, trips, until

import jettison as jt
from jettison.errors import CheckpointError
from jettison.options.retention import Retention
from jettison.spark.checkpoint import lease
from jettison.spark.checkpoint.batch_files import SEGMENT
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.logs import Ledger, PlanLog
from jettison.spark.checkpoint.sealed import seal
from jettison.spark.checkpoint.small_files import HadoopFolder, LocalFolder, open_folder

pytestmark = pytest.mark.spark


@pytest.fixture
def remote(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """The URI of a folder, by scheme; none of them is where Spark's files are by default."""
    conf = spark._jsc.hadoopConfiguration()
    usual = conf.get("fs.defaultFS")
    mounted = f"jt{uuid.uuid4().hex}"  # Hadoop keeps file systems by name, as they were mounted first
    conf.set(f"fs.viewfs.mounttable.{mounted}.link./data", f"file://{tmp_path}")
    conf.set("fs.defaultFS", f"viewfs://{mounted}/")
    roots = {"file": f"file://{tmp_path}", "viewfs": f"viewfs://{mounted}/data"}
    yield lambda scheme: f"{roots[scheme]}/run"
    conf.set("fs.defaultFS", usual)
    conf.unset(f"fs.viewfs.mounttable.{mounted}.link./data")


def test_trust_16_a_reader_sees_the_old_or_the_new_file(spark: SparkSession, remote: Callable[[str], str]) -> None:
    """Read again and again while it is replaced: never absent, never a part of it."""
    folder = open_folder(remote("file"), spark)
    texts = [str(number) * 5000 for number in range(10)]
    folder.write("profile.json", texts[0])
    seen: list[str | None] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(folder.read("profile.json"))

    reading = threading.Thread(target=read)
    reading.start()
    try:
        for number in range(60):
            folder.write("profile.json", texts[number % 10])
    finally:
        done.set()
        reading.join()
    assert len(seen) > 10
    assert set(seen) <= set(texts)


@pytest.mark.parametrize("scheme", ["file", "viewfs"])
def test_trust_16_a_file_is_created_once(spark: SparkSession, remote: Callable[[str], str], scheme: str) -> None:
    folder = open_folder(remote(scheme), spark)
    assert isinstance(folder, HadoopFolder if scheme == "viewfs" else LocalFolder)
    assert folder.create("new.json", "new")
    assert not folder.create("new.json", "another")
    assert folder.read("new.json") == "new"
    folder.write("new.json", "replaced")
    assert folder.read("new.json") == "replaced"
    folder.write_bytes("packed", bytes(range(256)))
    assert folder.read_bytes("packed") == bytes(range(256))
    assert folder.names("") == ["new.json", "packed"]


@pytest.mark.long
def test_trust_16_a_run_goes_on_from_a_remote_checkpoint_that_one_run_holds(
    spark: SparkSession, remote: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_S", 5.0)  # a busy machine may keep a run from renewing for some seconds
    where = f"{remote('viewfs')}/checkpoint"

    def started(rows: int) -> jt.Run:
        sinks = {"fares": jt.parquet(f"file://{tmp_path}/fares"), "alerts": jt.memory()}
        stream = trips(spark, rows, 200)
        return jt.start(taxi(), {"trips": stream}, sinks, trigger=TRIGGER, checkpoint=where, costs=FREE)

    first = started(400)
    try:
        until(first, lambda: first.report().rows_in >= 400)
        with pytest.raises(CheckpointError, match=r"run/checkpoint' is in use by process"):
            started(400)
    finally:
        first.stop()
    ended(started(1000), 600)
    assert Ledger(open_folder(where, spark)).files.batches() == [0, 1, 2, 3, 4]
    assert PlanLog(open_folder(where, spark)).batches() == [0, 1, 2, 3, 4]
    rows = spark.read.parquet(f"file://{tmp_path}/fares").select("trip").distinct().count()
    assert rows == spark.read.parquet(f"file://{tmp_path}/fares").count() > 900
    assert not (tmp_path / "run" / "checkpoint" / ".lease.json").exists()


def test_trust_16_a_checkpoint_that_another_has_taken_is_not_written_to(
    spark: SparkSession, remote: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a run that had lost its lease replaced the costs that the run which took the checkpoint had saved."""
    monkeypatch.setattr(lease, "RENEW_S", 1.0)
    checkpoint = Checkpoint(f"{remote('viewfs')}/checkpoint", taxi().graph, spark, Retention.of(1))
    kept = tmp_path / "run" / "checkpoint"
    try:
        checkpoint.remember(FREE, frozenset())
        before = (kept / "profile.json").read_bytes()
        for batch in range(3 * SEGMENT):
            (kept / "ledger").mkdir(exist_ok=True)
            (kept / "ledger" / f"{batch}.json").write_text('{"entries": []}')
        assert checkpoint._lease is not None
        while checkpoint._lease._lost is None:  # once may be just before a renewal is written
            checkpoint.folder.write(".lease.json", seal('{"id": "another", "machine": "another"}'))
            time.sleep(0.1)
        with pytest.raises(CheckpointError, match="no longer holds it"):
            checkpoint.remember(FREE, frozenset({"narrow"}))
        checkpoint.tidying.after(3 * SEGMENT)
        checkpoint.tidying._thread.submit(int).result()  # it has tried
    finally:
        checkpoint.close()
    assert (kept / "profile.json").read_bytes() == before
    assert len(list((kept / "ledger").glob("*.json"))) == 3 * SEGMENT
