"""The plan log gives back what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.logs import Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.statistics.records import Records

pytestmark = pytest.mark.core


@pytest.mark.parametrize("careful", [False, True])
def test_a_repeated_batch_knows_whether_bad_rows_were_rejected(tmp_path: Path, careful: bool) -> None:
    logged = Logged(7, Plan({"s": Random(0.5)}), Records({"s": 10}), careful=careful)
    PlanLog(LocalFolder(tmp_path)).write(logged)
    assert PlanLog(LocalFolder(tmp_path)).read(7) == logged
