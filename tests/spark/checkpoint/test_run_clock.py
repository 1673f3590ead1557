"""Retention by the time that a run has run (trust 18, 19): a clock that jumps deletes nothing before its time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from jettison.options.retention import Retention
from jettison.spark.checkpoint.batch_files import MARGIN, SEGMENT
from jettison.spark.checkpoint.logs import Ledger
from jettison.spark.checkpoint.run_clock import RunClock
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.checkpoint.tidying import Tidying

pytestmark = pytest.mark.core

DAY_S = 86_400.0


class Clocks:
    """The two clocks of a machine, which a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.monotonic_s = 1_700_000_000.0, 50.0
        monkeypatch.setattr(time, "time", lambda: self.wall_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.monotonic_s)
        monkeypatch.setattr(os, "fsync", lambda handle: None)

    def passes(self, seconds: float) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds


def run(folder: Path, clocks: Clocks, first: int, last: int, every_s: float) -> None:
    """A run that writes these batches and tidies as one does, then ends."""
    ledger = Ledger(LocalFolder(folder))
    tidying = Tidying(LocalFolder(folder), [ledger.files], Retention.of("7 days"), clock=ledger.clock)
    for batch in range(first, last):
        clocks.passes(every_s)
        ledger.write(batch, [])
        if batch % SEGMENT == MARGIN:
            tidying._tidy(batch)
    tidying.close()


def kept(folder: Path) -> list[int]:
    return Ledger(LocalFolder(folder)).files.batches()


@pytest.mark.parametrize("days_off", [30.0, 3000.0, -30.0])
def test_trust_19_a_clock_that_is_wrong_after_a_restart_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days_off: float
) -> None:
    clocks = Clocks(monkeypatch)
    run(tmp_path, clocks, 0, 440, every_s=60)
    clocks.wall_s += days_off * DAY_S
    run(tmp_path, clocks, 440, 930, every_s=60)
    assert kept(tmp_path) == list(range(930))


def test_trust_19_a_clock_that_jumps_in_mid_run_deletes_nothing_and_a_week_still_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(monkeypatch)
    ledger = Ledger(LocalFolder(tmp_path))
    tidying = Tidying(LocalFolder(tmp_path), [ledger.files], Retention.of("7 days"), clock=ledger.clock)
    for batch in range(930):
        clocks.passes(60)
        clocks.wall_s += 30 * DAY_S if batch == 500 else 0
        ledger.write(batch, [])
        if batch % SEGMENT == MARGIN:
            tidying._tidy(batch)
    assert kept(tmp_path) == list(range(930))
    clocks.passes(7.1 * DAY_S)
    tidying._tidy(930)
    assert kept(tmp_path)[0] == 900, "what is old by any clock"
    tidying.close()


def test_trust_19_short_runs_go_on_from_the_last_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    for first in range(0, 900, 30):  # none of them lasts as long as a segment
        run(tmp_path, clocks, first, first + 30, every_s=0.02 * DAY_S)
    assert 300 < kept(tmp_path)[0] < 600


def test_the_first_run_begins_with_the_wall_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    clock = RunClock(lambda: None)
    assert clock.now_ms() == 1000 * clocks.wall_s
    clocks.passes(5)
    clocks.wall_s -= 500
    assert clock.now_ms() == 1000 * 1_700_000_005.0
