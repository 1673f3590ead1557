"""Records of what operators keep: other files beside them are ignored, damaged ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.spark.files import LocalFolder
from jettison.spark.join_log import Record, Side
from jettison.spark.slice_log import SliceRecord
from jettison.spark.state_log import StateLog

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
