"""Records of what operators keep: other files beside them are ignored, damaged ones are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jettison.errors import CheckpointError
from jettison.network.event_time.join_retention import Part
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.state.join_log import Record, Side
from jettison.spark.state.slice_log import SlicePart, SliceRecord
from jettison.spark.state.state_log import StateLog

pytestmark = pytest.mark.core


def test_trust_14_a_damaged_record_of_state_is_named(tmp_path: Path) -> None:
    log = StateLog(LocalFolder(tmp_path), "aggregate", "busy", SliceRecord.from_json)
    log.write(SliceRecord(4, {"busy": "counts"}), None)
    (tmp_path / "busy" / "4.json.bak").write_text("{")
    (tmp_path / "busy" / "4 (copy).json").write_text("{")
    again = StateLog(LocalFolder(tmp_path), "aggregate", "busy", SliceRecord.from_json)
    assert again.latest() == SliceRecord(4, {"busy": "counts"})
    path = tmp_path / "busy" / "4.json"
    path.write_text(path.read_text().replace("counts", "Counts"))
    with pytest.raises(CheckpointError, match=rf"'busy' keeps after batch 4, file {path}, is damaged \(its checksum"):
        again.latest()


def test_trust_14_a_record_of_another_batch_is_refused(tmp_path: Path) -> None:
    log = StateLog(LocalFolder(tmp_path), "aggregate", "busy", SliceRecord.from_json)
    log.write(SliceRecord(4, {"busy": "counts"}), None)
    (tmp_path / "busy" / "5.json").write_bytes((tmp_path / "busy" / "4.json").read_bytes())
    again = StateLog(LocalFolder(tmp_path), "aggregate", "busy", SliceRecord.from_json)
    with pytest.raises(CheckpointError, match=rf"{tmp_path}/busy/5\.json is no record .* \(it is that of batch 4\)"):
        again.latest()


@pytest.mark.parametrize("kind", ["aggregate", "join"])
def test_trust_14_a_record_of_another_operator_is_refused(tmp_path: Path, kind: str) -> None:
    made = {"aggregate": SliceRecord(4, {"busy": "counts"}), "join": Record(4, (Side("{}"), Side("{}")))}[kind]
    read = {"aggregate": SliceRecord.from_json, "join": Record.from_json}[kind]
    StateLog(LocalFolder(tmp_path), kind, "calm", read).write(made, None)
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "4.json").write_bytes((tmp_path / "calm" / "4.json").read_bytes())
    again = StateLog(LocalFolder(tmp_path), kind, "busy", read)
    with pytest.raises(CheckpointError, match=rf"{tmp_path}/busy/4\.json is no record .* \(it is that of 'calm'\)"):
        again.latest()


def test_trust_14_the_record_of_the_batch_before_must_be_there(tmp_path: Path) -> None:
    def log() -> StateLog[SliceRecord]:
        return StateLog(LocalFolder(tmp_path), "aggregate", "busy", SliceRecord.from_json)

    first = SliceRecord(3, {"busy": "counts"})
    written = log()
    written.write(first, None)
    written.write(SliceRecord(4, {"busy": "counts"}, before=3), first)
    assert log().base(5).batch == 4
    (tmp_path / "busy" / "4.json").unlink()
    with pytest.raises(CheckpointError, match=rf"{tmp_path}/busy/4\.json, what it keeps after batch 4, is gone\. Rest"):
        log().base(5)
    written.write(SliceRecord(3, {"busy": "counts"}, every=False), None)
    assert log().base(5).batch == 3, "of an earlier version, which left no record of batches without rows"


@pytest.mark.parametrize("kind", ["aggregate", "join"])
def test_trust_19_what_crashes_have_left_is_deleted_once_a_run(tmp_path: Path, kind: str) -> None:
    """A crash between a record and the deletion of what it needs no more left parts that nobody would ever delete."""
    below = "left/" if kind == "join" else ""

    def record(batch: int, live: list[str], gone: tuple[str, ...], before: int | None) -> Any:
        if kind == "join":
            parts = tuple(Part(f"left/{name}", 1, 0, 0) for name in live)
            return Record(batch, (Side("{}", parts), Side("{}")), tuple(f"left/{name}" for name in gone), before)
        return SliceRecord(batch, {}, parts=tuple(SlicePart(name, 1, 0, 0) for name in live), gone=gone, before=before)

    def log() -> StateLog[Any]:
        read = Record.from_json if kind == "join" else SliceRecord.from_json
        return StateLog(LocalFolder(tmp_path), kind, "busy", read)

    names = ["0-0", "1-0", "2-0", "3-0", "4-0", "5-0", "6-0"]
    for name in [*names, "notes"]:
        (tmp_path / "busy" / below / name).mkdir(parents=True)
    fourth = record(4, ["1-0", "4-0"], ("3-0",), 3)
    fifth = record(5, ["1-0", "5-0"], ("4-0",), 4)
    first = log()
    first.write(record(2, [], (), None), None)  # its file, too, was left by a crash
    first._put(fourth)
    again = log()
    again.write(fifth, fourth)
    left = sorted(path.name for path in (tmp_path / "busy" / below).iterdir() if path.is_dir())
    assert left == ["1-0", "4-0", "5-0", "6-0", "notes"]
    assert sorted(path.name for path in (tmp_path / "busy").glob("*.json")) == ["4.json", "5.json"]
    (tmp_path / "busy" / below / "0-0").mkdir()
    again.write(record(6, ["1-0", "6-0"], (), 5), fifth)
    assert (tmp_path / "busy" / below / "0-0").exists(), "nothing is listed in every batch"
