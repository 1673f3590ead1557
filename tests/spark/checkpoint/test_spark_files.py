"""Spark's own files that are damaged (trust 14) are refused by name, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.checkpoint.spark_files import check_spark_files

pytestmark = pytest.mark.core

FILES = {
    "metadata": '{"id":"b1f0a5b2-0000-4000-8000-0123456789ab"}',
    "offsets/6": 'v1\n{"batchWatermarkMs":0}\n{"0":5}',
    "offsets/7": 'v1\n{"batchWatermarkMs":0}\n{"0":9}',
    "commits/6": 'v1\n{"nextBatchWatermarkMs":0}',
}


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    folder = LocalFolder(tmp_path)
    for name, text in FILES.items():
        folder.write(name, text)
    folder.write("offsets/8.bak", "half")
    return folder


def test_trust_14_files_as_spark_writes_them_pass(folder: LocalFolder, tmp_path: Path) -> None:
    check_spark_files(folder)
    check_spark_files(LocalFolder(tmp_path / "new"))


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("metadata", None, "the identity of the query, Spark's file .*/metadata, is gone"),
        ("metadata", '{"id":"b1', r"is damaged \(it is no JSON\)"),
        ("offsets/7", "", r"the offsets of batch 7, Spark's file .*/offsets/7, is damaged \(its first line"),
        ("offsets/7", "v1\n{", r"is damaged \(it has 2 lines of 3"),
        ("offsets/7", 'v1\n{"batch\n5', r"is damaged \(its second line is no JSON\)"),
        ("commits/6", "v1", "the end of batch 6, Spark's file .*/commits/6, is damaged"),
    ],
)
def test_trust_14_damaged_files_of_spark_are_named(
    folder: LocalFolder, tmp_path: Path, name: str, text: str | None, fault: str
) -> None:
    (tmp_path / name).unlink() if text is None else (tmp_path / name).write_text(text)
    with pytest.raises(CheckpointError, match=f"{fault}.*Restore it from a copy, or start with a new checkpoint"):
        check_spark_files(folder)
