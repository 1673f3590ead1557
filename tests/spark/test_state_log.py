"""Records of what operators keep: other files beside them are ignored, damaged ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.spark.files import LocalFolder
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
    with pytest.raises(CheckpointError, match=r"busy/5\.json is no record of a aggregate .*it is that of batch 4"):
        again.latest()
