"""The plan log gives back what was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, Resolved, Window
from jettison.plan.plan import Plan
from jettison.plan.refine.window_lookahead import is_resolved
from jettison.plan.windows.need_bits import needed_bits
from jettison.spark.checkpoint.logs import Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.statistics.records import Records

pytestmark = pytest.mark.core


@pytest.mark.parametrize("careful", [False, True])
def test_a_repeated_batch_knows_whether_bad_rows_were_rejected(tmp_path: Path, careful: bool) -> None:
    logged = Logged(7, Plan({"s": Random(0.5)}), Records({"s": 10}), careful=careful)
    PlanLog(LocalFolder(tmp_path)).write(logged)
    assert PlanLog(LocalFolder(tmp_path)).read(7) == logged


def test_a_plan_of_an_earlier_version_says_nothing_of_what_window_drops_did(tmp_path: Path) -> None:
    """It is obeyed: what its window drops do is worked out when the batch is repeated."""
    fate = {"slide_us": 10_000_000, "drop_share": 0.5, "segments": []}
    window = {"window": {"fates": {"busy": fate}, "keep": 0.5}}
    content = {
        "batch": 7,
        "rows": {"trips": 10},
        "offsets": ["{}"],
        "plan": {"drops": {"trips": window}, "reason": "r"},
    }
    content |= {"skipped": {"trips": 3}, "begins": {"trips": {"t": {"0": 5}}}}
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "7.json").write_text(json.dumps(content), encoding="utf-8")
    logged = PlanLog(LocalFolder(tmp_path)).read(7)
    assert logged is not None
    assert not is_resolved(logged.plan)
    assert logged.records == Records({"trips": 10}, skipped={"trips": 3}, begins={"trips": {"t": {"0": 5}}})


def test_what_window_drops_do_is_logged(tmp_path: Path) -> None:
    needed = needed_bits(((0, 20), (40, 50)), low_us=0, high_us=60, granule_us=10, now_us=25)
    fates = {"busy": Fate(10)}
    drops = {
        "trips": Window(fates, 0.5, resolved=Resolved(needed=needed, parts=(needed, needed), column="zone")),
        "busy>out": Window(fates, 0.5, of="busy", resolved=Resolved(everything=True)),
    }
    logged = Logged(7, Plan(drops), Records({"trips": 10}))
    PlanLog(LocalFolder(tmp_path)).write(logged)
    again = PlanLog(LocalFolder(tmp_path)).read(7)
    assert again == logged
    assert again is not None
    assert is_resolved(again.plan)
