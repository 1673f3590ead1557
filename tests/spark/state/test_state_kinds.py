"""What operators keep is written in the checkpoint: a file that is cut off is told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.state.state_kinds import TIMES, check_kinds, remember_kinds

pytestmark = pytest.mark.core


def test_a_file_that_is_cut_off_is_named_with_what_to_do(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    remember_kinds(folder, {TIMES: ["busy"]})
    written = tmp_path / "kinds.json"
    written.write_text(written.read_text()[:-3])
    with pytest.raises(CheckpointError, match=rf"{written}, .* cannot be read .*: delete it"):
        check_kinds(folder, {TIMES: ["busy"]})
    written.unlink()
    check_kinds(folder, {TIMES: ["busy"]})
