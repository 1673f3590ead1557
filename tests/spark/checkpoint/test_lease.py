"""Who holds a checkpoint that is not on this machine: one run at a time, and a dead one is no obstacle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.lease import Lease
from jettison.spark.checkpoint.sealed import seal
from jettison.spark.checkpoint.small_files import LocalFolder

pytestmark = pytest.mark.core

RENEW_S = 0.2


def lease(folder: Path, renew_s: float = RENEW_S) -> Lease:
    return Lease(LocalFolder(folder), renew_s=renew_s)


def left_by(folder: Path, *, process: int, machine: str | None = None) -> None:
    """What a run that was killed leaves: of this machine, or of another."""
    held = lease(folder)
    content = json.loads((folder / ".lease.json").read_text())
    held.release()
    del content["crc32"]
    content |= {"id": "theirs", "process": process, "holder": f"process {process} on somewhere"}
    content |= {} if machine is None else {"machine": machine}
    (folder / ".lease.json").write_text(seal(json.dumps(content)))


def test_trust_16_a_checkpoint_in_use_is_refused_and_one_that_was_released_is_free(tmp_path: Path) -> None:
    held = lease(tmp_path)
    time.sleep(2 * RENEW_S)
    for share in (0.3, 0.5, 0.7):  # wherever between two renewals
        time.sleep(share * RENEW_S)
        with pytest.raises(CheckpointError, match=rf"in use by process {os.getpid()} on .*: stop that run first"):
            lease(tmp_path)
    time.sleep(2 * RENEW_S)
    held.check()
    held.release()
    assert not (tmp_path / ".lease.json").exists()
    lease(tmp_path).release()


def test_trust_16_a_silent_holder_of_another_machine_is_waited_for_then_replaced(tmp_path: Path) -> None:
    left_by(tmp_path, process=1, machine="another")
    began = time.monotonic()
    held = lease(tmp_path)
    assert time.monotonic() - began >= 3 * RENEW_S
    held.check()
    held.release()


def test_trust_16_a_dead_process_of_this_machine_is_replaced_at_once(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left_by(tmp_path, process=ended.pid)
    began = time.monotonic()
    lease(tmp_path, renew_s=5.0).release()
    assert time.monotonic() - began < 5.0


def test_trust_16_a_damaged_file_is_no_obstacle_for_ever(tmp_path: Path) -> None:
    (tmp_path / ".lease.json").write_text("half of a fi")
    lease(tmp_path).release()


def test_trust_16_who_was_replaced_runs_no_further_batch(tmp_path: Path) -> None:
    held = lease(tmp_path)
    (tmp_path / ".lease.json").write_text(seal(json.dumps({"id": "theirs"})))
    time.sleep(2 * RENEW_S)
    with pytest.raises(CheckpointError, match=r"no longer holds it .*another run has taken it"):
        held.check()
    held.release()
    assert "theirs" in (tmp_path / ".lease.json").read_text(), "it is the other's now"


def test_trust_16_who_cannot_renew_runs_no_further_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = lease(tmp_path)

    def away(*_: object) -> None:
        raise OSError("the file system is away")

    monkeypatch.setattr(LocalFolder, "write", away)
    time.sleep(3 * RENEW_S)
    with pytest.raises(CheckpointError, match="could not be renewed in time"):
        held.check()
    monkeypatch.undo()
    held.release()


def test_trust_16_of_many_that_start_together_one_holds(tmp_path: Path) -> None:
    left_by(tmp_path, process=1, machine="another")
    held: list[Lease] = []
    refused: list[str] = []

    def begin() -> None:
        try:
            held.append(lease(tmp_path))
        except CheckpointError as error:
            refused.append(str(error))

    starting = [threading.Thread(target=begin) for _ in range(6)]
    for each in starting:
        each.start()
    for each in starting:
        each.join()
    assert (len(held), len(refused)) == (1, 5)
    held[0].check()
    held[0].release()
