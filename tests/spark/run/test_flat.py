"""Trust 20: some hundred tiny batches with a short retention leave nothing behind, and slow nothing down.

The cheapest network that has all that could grow: windows with state, plans that shed, ledger, metrics, retention. Its
source is Spark's own, so that no Python worker takes part. `jettison experiment run soak` is the long form, with joins.

    batches   0 ....... 40 | restart ............................ 240 | restart
    judged                        first third | second | last third
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.experiments.lasting.soak import _heap_mb, _resident_mb
from jettison.spark.folder_size import size_of_folder
from jettison.spark.run.run import Run
from jettison.statistics.profile import Profile

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.slow]

EARLY, BATCHES, EVERY = 40, 240, 20
RETENTION = 50
SHUFFLES = "spark.sql.shuffle.partitions"


@pytest.fixture
def one_shuffle(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(SHUFFLES)
    spark.conf.set(SHUFFLES, "1")
    yield spark
    assert before is not None
    spark.conf.set(SHUFFLES, before)


@dataclass
class Seen:
    """What was looked at after so many batches."""

    batches: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)
    jvm_mb: list[float] = field(default_factory=list)
    batch_ms: list[float] = field(default_factory=list)
    sheds: int = 0

    def look(self, spark: SparkSession, folder: Path, batches: int) -> None:
        gc.collect()
        self.batches.append(batches)
        self.files.append(size_of_folder(str(folder)).files)
        self.rss_mb.append(_resident_mb())
        self.jvm_mb.append(_heap_mb(spark))


def begin(spark: SparkSession, folder: Path) -> tuple[Run, float]:
    """Start, or start again; the seconds until a batch was done."""
    began = time.monotonic()
    net = jt.Network("flat")
    ticks = net.source("ticks", "timestamp timestamp, value long", event_time="timestamp", id=["value"])
    ticks.window("1 second").agg(n="count(*)", name="busy").output("seconds", qos=jt.QoS(gap=3))
    options = {"rowsPerBatch": 20, "numPartitions": 1, "advanceMillisPerBatch": 500}
    stream = spark.readStream.format("rate-micro-batch").options(**options).load()
    run = jt.start(
        net,
        {"ticks": stream},
        {"seconds": jt.spark_format("noop")},
        trigger="10 milliseconds",
        checkpoint=jt.Checkpoint(str(folder), retention=RETENTION),
        costs=jt.Costs(Profile({"busy": 600.0, "ticks": 1.0}, {}, fixed_ms=2.0), learn=False, shared=()),
        metrics=0,
    )
    wait(run, 1)
    return run, time.monotonic() - began


def wait(run: Run, batches: int) -> None:
    while len(run.history) < batches:
        assert not run.await_termination(timeout=0.02)


def go_on(spark: SparkSession, folder: Path, run: Run, before: int, until: int, seen: Seen) -> None:
    for goal in range(before + EVERY, until + 1, EVERY):
        wait(run, goal - before)
        seen.look(spark, folder, goal)
    run.stop()
    seen.batch_ms += [sample.duration_ms for sample, _ in run.history][: until - before]
    seen.sheds += sum(plan.sheds for _, plan in run.history)


def thirds(values: Sequence[float]) -> float:
    """The median of the last third over that of the first, once Spark is warm."""
    warm = values[EARLY * len(values) // BATCHES :]
    third = len(warm) // 3
    return statistics.median(warm[-third:]) / statistics.median(warm[:third])


def test_trust_20_some_hundred_tiny_batches_leave_files_memory_and_times_flat(
    one_shuffle: SparkSession, tmp_path: Path
) -> None:
    spark, seen = one_shuffle, Seen()
    run, _ = begin(spark, tmp_path)
    go_on(spark, tmp_path, run, 0, EARLY, seen)
    run, first_s = begin(spark, tmp_path)
    go_on(spark, tmp_path, run, EARLY, BATCHES, seen)
    run, last_s = begin(spark, tmp_path)
    ledger = {row["batch"] for row in run.ledger().collect()}
    run.stop()

    assert seen.sheds > BATCHES / 4, "plans and ledger have something to keep"
    files = dict(zip(seen.batches, seen.files, strict=True))
    # records are put together in batches 120 and 220, and Spark keeps its own of a hundred: one wave is like the next
    first, second = ([count for at, count in files.items() if low < at <= low + 100] for low in (20, 120))
    assert max(second) <= 1.05 * max(first), files
    assert max(ledger) >= BATCHES - 10
    assert min(ledger) > 0, "old entries are gone"
    assert thirds(seen.rss_mb) <= 1.1, seen.rss_mb
    assert thirds(seen.jvm_mb) <= 1.25, seen.jvm_mb
    assert thirds(seen.batch_ms) <= 2.5, seen.batch_ms
    assert last_s <= 2.5 * first_s + 1.0, (first_s, last_s)
