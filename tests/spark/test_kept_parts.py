"""Parts of state that are not what was written (trust 14): found by their footers, before anything is made of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from jettison.errors import CheckpointError
from jettison.spark.files import LocalFolder
from jettison.spark.slice_log import SlicePart
from jettison.spark.slice_store import SliceStore

pytestmark = pytest.mark.core

PART = SlicePart("4-0", 3, 0, 2_000_000, 0, ("busy",))


@pytest.fixture
def part(tmp_path: Path) -> Path:
    file = tmp_path / "busy" / "4-0" / "slices.parquet"
    file.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2, 3]}), file)
    return file


def check(tmp_path: Path) -> None:
    session: Any = None
    store = SliceStore(session, LocalFolder(tmp_path), str(tmp_path), ["busy"], threads=1, called="test")
    store.check_parts("busy", [PART])


def test_trust_14_a_part_as_it_was_written_is_taken(tmp_path: Path, part: Path) -> None:
    (part.parent / ".slices.parquet.crc").write_bytes(b"crc")
    check(tmp_path)


@pytest.mark.parametrize("damage", ["gone", "folder gone", "twice", "cut off", "empty"])
def test_trust_14_a_damaged_part_is_named(tmp_path: Path, part: Path, damage: str) -> None:
    if damage == "gone":
        part.unlink()
    elif damage == "folder gone":
        shutil.rmtree(part.parent)
    elif damage == "twice":
        shutil.copy(part, part.parent / "copy.parquet")
    else:
        part.write_bytes(part.read_bytes()[:-9] if damage == "cut off" else b"")
    with pytest.raises(CheckpointError, match=rf"aggregate 'busy': {part.parent}, a part of what it keeps, is damaged"):
        check(tmp_path)
