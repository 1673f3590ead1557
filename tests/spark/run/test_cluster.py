"""The same network, unchanged, on a standalone cluster that loses a worker while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conftest import ROOT
from tests.spark import cluster_driver, running
from tests.spark.running import Expected, pairs
from tests.spark.standalone import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 600.0


def finished(checkpoint: Path) -> int:
    """How many batches are in the ledger."""
    return len(list((checkpoint / "ledger").glob("[0-9]*.json")))


def run_and_kill(cluster: StandaloneCluster, folder: Path) -> dict[str, object]:
    """Run the driver, kill worker 0 when two batches are done, and give what the driver says in the end."""
    with (folder / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.cluster_driver", cluster.url, str(folder)],
            env=cluster.driver_env() | {"PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while finished(folder / "checkpoint") < 2:
            assert driver.poll() is None, (folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
            time.sleep(0.05)
        cluster.kill_worker(0)
        done = finished(folder / "checkpoint")
        said, _ = driver.communicate(timeout=PATIENCE_S)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, (folder / "log").read_text()[-3000:]
    assert done < cluster_driver.BATCHES - 2, "the worker was killed too late to matter"
    last: dict[str, object] = json.loads(said.splitlines()[-1])
    return last


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_gives_what_one_machine_gives(spark: SparkSession, tmp_path: Path) -> None:
    local, remote = tmp_path / "local", tmp_path / "remote"
    local.mkdir()
    remote.mkdir()
    with standalone_cluster(workers=2) as cluster:
        said = run_and_kill(cluster, remote)
        assert cluster.alive_workers() == 1
        url = cluster.url
    rows = cluster_driver.BATCHES * cluster_driver.PER_BATCH
    assert said == {"rows_in": rows, "batches": cluster_driver.BATCHES, "master": url}

    cluster_driver.run(spark, local)
    expected = Expected(spark, cluster_driver.PLANS, cluster_driver.PER_BATCH)
    for folder in (local, remote):
        assert sorted(pairs(spark.read.parquet(str(folder / "fares")))) == sorted(expected.fares)
        assert sorted(pairs(spark.read.parquet(str(folder / "alerts")))) == sorted(expected.alerts)
        assert running.logged_plans(folder / "checkpoint") == cluster_driver.PLANS
        assert running.counts(folder / "checkpoint") == expected.counts
