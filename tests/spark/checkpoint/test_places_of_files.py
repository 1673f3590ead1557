"""Where a run may write, checked before it does (trust 5, 13, 14): no Spark is started here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jettison.errors import CheckpointError, StartError
from jettison.spark.checkpoint import checkpoint
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.targets import check_paths
from jettison.spark.write.sinks import parquet

pytestmark = pytest.mark.core


def test_a_checkpoint_inside_of_results_is_refused(tmp_path: Path) -> None:
    sink = parquet(str(tmp_path / "fares"))
    with pytest.raises(StartError, match=r"output 'fares' writes to .*, and the checkpoint .* is inside"):
        check_paths({"output 'fares'": sink}, str(tmp_path / "fares" / "checkpoint"))
    check_paths({"output 'fares'": sink}, str(tmp_path / "fares-checkpoint"))


def test_a_file_is_no_place_for_results(tmp_path: Path) -> None:
    (tmp_path / "fares").write_text("")
    with pytest.raises(StartError, match=r"output 'fares': .*fares' is a file: give the path of a folder"):
        check_paths({"output 'fares'": parquet(str(tmp_path / "fares"))})


def test_trust_13_a_disk_that_is_full_at_the_start_keeps_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(CheckpointError, match=r"cannot be written to: No space left on device\. Make room"):
            checkpoint._lock(str(tmp_path))
    held = checkpoint._lock(str(tmp_path))
    assert held is not None
    os.close(held)


def test_trust_14_refusals_name_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for sinks, kept in (
        ({"output 'fares'": parquet("file")}, None),
        ({"output 'fares'": parquet("out")}, "out/checkpoint"),
        ({"output 'fares'": parquet("out"), "output 'alerts'": parquet("out/")}, None),
    ):
        with pytest.raises(StartError, match=rf"'{tmp_path}/(file|out)'"):
            check_paths(sinks, kept)


def test_the_house_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    """It was a raw IsADirectoryError."""
    (tmp_path / "profile.json").mkdir()
    folder = LocalFolder(tmp_path)
    for use in (
        lambda: folder.read("profile.json"),
        lambda: folder.head("profile.json", 3),
        lambda: folder.checksum("profile.json"),
        lambda: folder.write("profile.json", "{}"),
    ):
        with pytest.raises(CheckpointError, match=r"profile.json is a folder, and a file belongs there. Move it away"):
            use()
