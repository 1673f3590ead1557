"""kill -9 in mid-run under `las`: a batch that is repeated drops the same tuples, by the same published costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.spark.maps.las_driver import BATCHES
from tests.spark.running import logged_plans

from jettison.plan.drops.cost_bound import CostBound

pytestmark = [pytest.mark.spark, pytest.mark.long]
KILLED = 4


def drive(folder: Path, order: str, killed: int) -> int:
    given = [sys.executable, "-m", "tests.spark.maps.las_driver", str(folder), order, str(killed)]
    found = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": found, "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(given, cwd=ROOT, env=env, start_new_session=True, timeout=500).returncode


@pytest.mark.parametrize("order", ["arrival", "worth"])
def test_a_repeated_batch_drops_the_same_tuples(tmp_path: Path, order: str) -> None:
    assert drive(tmp_path, order, KILLED) == -signal.SIGKILL
    logged = logged_plans(tmp_path / "checkpoint")[KILLED]
    assert any(isinstance(drop, CostBound) and drop.sketch for drop in logged.drops.values())
    assert drive(tmp_path, order, -1) == 0
    first, again = (json.loads((tmp_path / "kept" / f"{KILLED}.{attempt}.json").read_text()) for attempt in (0, 1))
    assert first == again
    assert len(first) > 0
    assert all((tmp_path / "kept" / f"{batch}.0.json").exists() for batch in range(BATCHES))
    assert logged_plans(tmp_path / "checkpoint")[KILLED] == logged
