"""Parts of state that are not what was written (trust 14) are found before anything is made of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.state.slice_log import SlicePart, SliceRecord
from jettison.spark.state.slice_store import SliceStore

pytestmark = pytest.mark.core

PART = SlicePart("4-0", 3, 0, 2_000_000, 0, ("busy",))


@pytest.fixture
def part(tmp_path: Path) -> Path:
    file = tmp_path / "busy" / "4-0" / "slices.parquet"
    file.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2, 3]}), file)
    return file


def store(tmp_path: Path) -> SliceStore:
    session: Any = None
    return SliceStore(session, LocalFolder(tmp_path), str(tmp_path), ["busy"], threads=1, called="test")


def check(tmp_path: Path, part: SlicePart = PART) -> None:
    store(tmp_path).check_parts("busy", [part])


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


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_trust_14_any_bit_of_a_part_that_has_flipped_is_noticed(tmp_path: Path, part: Path) -> None:
    written = replace(PART, files=store(tmp_path).files("busy", "4-0"))
    assert SliceRecord.from_json(SliceRecord(4, {}, parts=(written,)).to_json()).parts == (written,)
    check(tmp_path, written)
    fault = rf"aggregate 'busy': {part.parent}, a part of .* \(the checksum of file 'slices.parquet' does not match\)"
    size = part.stat().st_size
    for place in range(0, size, max(1, size // 40)):
        flip(part, place)
        with pytest.raises(CheckpointError, match=fault):
            check(tmp_path, written)
        flip(part, place)
    check(tmp_path, written)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("gone", "file 'slices.parquet' is gone"),
        ("folder gone", "file 'slices.parquet' is gone"),
        ("foreign", "file 'copy.parquet' is not of it"),
        ("cut off", r"file 'slices.parquet' has [\d,]+ bytes of [\d,]+"),
    ],
)
def test_trust_14_files_of_a_part_are_those_of_its_record(tmp_path: Path, part: Path, damage: str, fault: str) -> None:
    written = replace(PART, files=store(tmp_path).files("busy", "4-0"))
    (part.parent / "_SUCCESS").touch()
    check(tmp_path, written)
    if damage == "foreign":
        shutil.copy(part, part.parent / "copy.parquet")
    elif damage == "cut off":
        part.write_bytes(part.read_bytes()[:-9])
    else:
        part.unlink()
    if damage == "folder gone":
        shutil.rmtree(part.parent)
    with pytest.raises(CheckpointError, match=rf"{part.parent}, a part of what it keeps, is damaged \({fault}\)"):
        check(tmp_path, written)
